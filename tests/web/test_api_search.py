"""Searches and comparisons through the API, held to what the library itself answers."""

from __future__ import annotations

from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from graphkin import Library
from graphkin.binaries import samples
from graphkin.binaries.targets import find_function, parse_target
from graphkin.library.compare import compare_functions
from graphkin.library.scan import MIN_PROBABILITY
from graphkin.web.limits import ServerLimits
from tests.web.conftest import Serve
from tests.web.requests import FIRMWARE_ID, message, send, suspect

ANY = {"min_probability": 0}


def test_a_search_leaves_out_what_a_scan_leaves_out(client: TestClient) -> None:
    query = suspect(client)
    everything = client.post("/api/search", json={"query": query, **ANY}).json()
    best = everything["hits"][0]["probability"]
    assert best < MIN_PROBABILITY
    found = client.post("/api/search", json={"query": query}).json()
    assert (found["hits"], found["best_left_out"]) == ([], best)
    assert client.post("/api/search", json={"query": query, "min_probability": 2}).is_error


def test_a_search_finds_what_the_library_finds(client: TestClient, library: Path) -> None:
    query = suspect(client)
    found = client.post("/api/search", json={"query": query, "top": 5, **ANY}).json()
    names = {name: address for address, name in samples.true_names().items()}
    target = f"{samples.FIRMWARE}:{names['process_heartbeat']:#x}"
    with Library.open(library) as index:
        function = find_function(parse_target(target))
        graph = function.to_graph(index.model.vocabulary)
        expected = index.search(graph, 5, rerank=20)
    assert found["query"]["function"] == function.name
    assert found["query"]["blocks"] == len(function.blocks)
    assert [hit["reference"] for hit in found["hits"]] == [f"library:{hit.id}" for hit in expected]
    for rank, (hit, other) in enumerate(zip(found["hits"], expected, strict=True), start=1):
        assert (hit["rank"], hit["rank_by_distance"]) == (rank, other.rank_by_distance)
        assert hit["distance"] == other.distance
        assert hit["score"] == pytest.approx(other.score, abs=1e-4)
        assert hit["probability"] == pytest.approx(other.probability, abs=1e-4)
    best = found["hits"][0]
    assert (best["function"], best["tags"]) == ("process_heartbeat", dict([samples.TAG]))


def test_without_rerank_there_is_no_score(client: TestClient) -> None:
    found = client.post("/api/search", json={"query": suspect(client), "rerank": 0, **ANY}).json()
    assert [hit["score"] for hit in found["hits"]] == [None] * 10
    distances = [hit["distance"] for hit in found["hits"]]
    assert distances == sorted(distances)


def test_a_part_of_the_library(client: TestClient) -> None:
    query = suspect(client)
    where = {"function": "process_*", "binary": "", "architecture": "x86-64"}
    found = client.post("/api/search", json={"query": query, "where": where, **ANY}).json()
    assert found["hits"]
    assert all(hit["function"].startswith("process_") for hit in found["hits"])
    nothing = {"architecture": "mips"}
    assert client.post("/api/search", json={"query": query, "where": nothing}).json()["hits"] == []
    tagged = {"tags": dict([samples.TAG])}
    found = client.post(
        "/api/search", json={"query": query, "where": tagged, "top": 50, **ANY}
    ).json()
    assert {tuple(hit["tags"].items()) for hit in found["hits"]} == {(samples.TAG,)}


def test_an_entry_finds_itself(client: TestClient) -> None:
    found = client.post("/api/search", json={"query": "library:1", "rerank": 0}).json()
    assert found["hits"][0]["distance"] == 0
    assert "library:1" in {hit["reference"] for hit in found["hits"] if hit["distance"] == 0}


@pytest.mark.parametrize(
    ("request_", "part"),
    [
        ({}, "query"),
        ({"query": "library:1", "top": 0}, "top"),
        ({"query": "library:1", "top": 10**6}, "top is at most"),
        ({"query": "library:1", "rerank": 10**6}, "rerank is at most"),
        ({"query": "library:1", "depth": 3}, "depth"),
        ({"query": "library:1", "where": {"file": "x"}}, "where.file"),
        ({"query": ["library:1"]}, "query"),
    ],
)
def test_wrong_requests(client: TestClient, request_: dict[str, object], part: str) -> None:
    found = client.post("/api/search", json=request_)
    assert found.status_code == 400
    assert part in message(found)


def test_json_that_is_none(client: TestClient) -> None:
    headers = {"content-type": "application/json"}
    assert client.post("/api/search", content=b"{", headers=headers).status_code == 400


def test_a_comparison_is_that_of_the_command_line(client: TestClient, library: Path) -> None:
    query = suspect(client)
    hit = client.post("/api/search", json={"query": query, "top": 1, **ANY}).json()["hits"][0]
    sides = {"left": query, "right": hit["reference"]}
    found = client.get("/api/comparison", params=sides).json()
    names = {name: address for address, name in samples.true_names().items()}
    left = find_function(parse_target(f"{samples.FIRMWARE}:{names['process_heartbeat']:#x}"))
    right = find_function(parse_target(f"{hit['binary']}:{hit['address']}"))
    with Library.open(library) as index:
        expected = compare_functions(index.model, left, right).document
    assert found["score"] == pytest.approx(expected.score, abs=1e-4)
    assert found["probability"] == pytest.approx(expected.probability, abs=1e-4)
    assert found["distance"] == expected.distance
    assert found["evidence"]["matched_share"] == pytest.approx(expected.evidence.matched_share)
    assert [tuple(pair[:2]) for pair in found["evidence"]["pairs"]] == [
        (pair.left, pair.right) for pair in expected.evidence.pairs
    ]
    assert [tuple(word) for word in found["shared"]] == list(expected.shared or ())
    assert ["num", "1000"] in found["shared"]
    assert (found["left"]["reference"], found["right"]["reference"]) == tuple(sides.values())
    assert found["right"]["address"] == hit["address"]
    assert found["left"]["blocks"] == len(left.blocks)


def test_the_page_of_a_comparison_may_be_framed_by_the_page_alone(client: TestClient) -> None:
    sides = {"left": suspect(client), "right": "library:1"}
    page = client.get("/api/comparison.html", params=sides)
    assert page.headers["content-type"].startswith("text/html")
    assert page.headers["content-security-policy"] == "frame-ancestors 'self'"
    assert "script-src &#x27;" in page.text or "script-src '" in page.text
    assert 'id="step"' in page.text
    assert "content-disposition" not in page.headers
    saved = client.get("/api/comparison.html", params={**sides, "download": True})
    assert saved.headers["content-disposition"].startswith("attachment")
    assert saved.text == page.text


def test_functions_too_large_for_the_server(serve: Serve) -> None:
    client = serve(limits=ServerLimits(query_blocks=3, comparison_weights=10))
    query = suspect(client)
    found = client.post("/api/search", json={"query": query})
    assert found.status_code == 422
    assert "command line" in message(found)
    found = client.get("/api/comparison", params={"left": query, "right": "library:1"})
    assert found.status_code == 422
    assert "graphkin compare" in message(found)


def test_too_many_searches_are_sent_away(serve: Serve) -> None:
    client = serve(limits=ServerLimits(waiting=0))
    send(client)
    found = client.post("/api/search", json={"query": f"upload:{FIRMWARE_ID}:0"})
    assert found.status_code == 503
    assert found.headers["retry-after"]


def test_a_search_that_takes_too_long(serve: Serve) -> None:
    client = serve(limits=ServerLimits(request_seconds=1e-4))
    found = client.post("/api/search", json={"query": "library:1"})
    assert found.status_code == 504
    assert found.headers["content-security-policy"]
