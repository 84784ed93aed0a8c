"""Searches and comparisons through the API, held to what the library itself answers."""

from __future__ import annotations

from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from graphkin import Library
from graphkin.binaries import samples
from graphkin.binaries.targets import find_function, parse_target
from graphkin.library.compare import compare_functions
from graphkin.library.scan import MIN_PROBABILITY, scan
from graphkin.web.limits import ServerLimits
from tests.web.conftest import Serve
from tests.web.requests import FIRMWARE_ID, message, send, suspect

ANY = {"min_probability": 0}


def test_a_search_leaves_out_what_a_scan_leaves_out(client: TestClient) -> None:
    query = suspect(client)
    everything = client.post("/api/search", json={"query": query, **ANY}).json()
    best = everything["hits"][0]["probability"]
    assert best > MIN_PROBABILITY
    demanding = {"query": query, "min_probability": (1 + best) / 2}
    actual = client.post("/api/search", json=demanding).json()
    assert (actual["hits"], actual["best_left_out"]) == ([], best)
    assert client.post("/api/search", json={"query": query, "min_probability": 2}).is_error


def test_a_search_finds_what_the_library_finds(client: TestClient, library: Path) -> None:
    query = suspect(client)
    actual = client.post("/api/search", json={"query": query, "top": 5, **ANY}).json()
    names = {name: address for address, name in samples.true_names().items()}
    target = f"{samples.FIRMWARE}:{names['process_heartbeat']:#x}"
    with Library.open(library) as index:
        function = find_function(parse_target(target))
        (result,) = scan(index, target, top=5, min_probability=0)
        expected = result.hits
    assert actual["query"]["function"] == function.name
    assert actual["query"]["blocks"] == len(function.blocks)
    assert [hit["reference"] for hit in actual["hits"]] == [f"library:{hit.id}" for hit in expected]
    for rank, (hit, other) in enumerate(zip(actual["hits"], expected, strict=True), start=1):
        assert (hit["rank"], hit["rank_by_distance"]) == (rank, other.rank_by_distance)
        assert hit["distance"] == other.distance
        assert hit["score"] == pytest.approx(other.score, abs=1e-4)
        assert hit["probability"] == pytest.approx(other.probability, abs=1e-4)
    best = actual["hits"][0]
    assert (best["function"], best["tags"]) == ("process_heartbeat", dict([samples.TAG]))


def test_without_rerank_there_is_no_score(client: TestClient) -> None:
    actual = client.post("/api/search", json={"query": suspect(client), "rerank": 0, **ANY}).json()
    assert [hit["score"] for hit in actual["hits"]] == [None] * 10
    probabilities = [hit["probability"] for hit in actual["hits"]]
    assert probabilities == sorted(probabilities, reverse=True)


def test_a_part_of_the_library(client: TestClient) -> None:
    query = suspect(client)
    where = {"function": "process_*", "binary": "", "architecture": "x86-64"}
    actual = client.post("/api/search", json={"query": query, "where": where, **ANY}).json()
    assert actual["hits"]
    assert all(hit["function"].startswith("process_") for hit in actual["hits"])
    nothing = {"architecture": "mips"}
    assert client.post("/api/search", json={"query": query, "where": nothing}).json()["hits"] == []
    tagged = {"tags": dict([samples.TAG])}
    actual = client.post(
        "/api/search", json={"query": query, "where": tagged, "top": 50, **ANY}
    ).json()
    assert {tuple(hit["tags"].items()) for hit in actual["hits"]} == {(samples.TAG,)}


def test_an_entry_finds_itself(client: TestClient) -> None:
    actual = client.post("/api/search", json={"query": "library:1", "rerank": 0}).json()
    assert actual["hits"][0]["distance"] == 0
    assert "library:1" in {hit["reference"] for hit in actual["hits"] if hit["distance"] == 0}


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
    actual = client.post("/api/search", json=request_)
    assert actual.status_code == 400
    assert part in message(actual)


def test_json_that_is_none(client: TestClient) -> None:
    headers = {"content-type": "application/json"}
    assert client.post("/api/search", content=b"{", headers=headers).status_code == 400


def test_a_comparison_is_that_of_the_command_line(client: TestClient, library: Path) -> None:
    query = suspect(client)
    hit = client.post("/api/search", json={"query": query, "top": 1, **ANY}).json()["hits"][0]
    sides = {"left": query, "right": hit["reference"]}
    actual = client.get("/api/comparison", params=sides).json()
    names = {name: address for address, name in samples.true_names().items()}
    left = find_function(parse_target(f"{samples.FIRMWARE}:{names['process_heartbeat']:#x}"))
    right = find_function(parse_target(f"{hit['binary']}:{hit['address']}"))
    with Library.open(library) as index:
        expected = compare_functions(index.model, left, right).document
    assert actual["score"] == pytest.approx(expected.score, abs=1e-4)
    assert actual["probability"] == pytest.approx(expected.probability, abs=1e-4)
    assert actual["distance"] == expected.distance
    assert actual["evidence"]["matched_share"] == pytest.approx(expected.evidence.matched_share)
    assert [tuple(pair[:2]) for pair in actual["evidence"]["pairs"]] == [
        (pair.left, pair.right) for pair in expected.evidence.pairs
    ]
    assert [tuple(word) for word in actual["shared"]] == list(expected.shared or ())
    assert ["num", "1000"] in actual["shared"]
    assert (actual["left"]["reference"], actual["right"]["reference"]) == tuple(sides.values())
    assert actual["right"]["address"] == hit["address"]
    assert actual["left"]["blocks"] == len(left.blocks)


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
    actual = client.post("/api/search", json={"query": query})
    assert actual.status_code == 422
    assert "command line" in message(actual)
    actual = client.get("/api/comparison", params={"left": query, "right": "library:1"})
    assert actual.status_code == 422
    assert "graphkin compare" in message(actual)


def test_too_many_searches_are_sent_away(serve: Serve) -> None:
    client = serve(limits=ServerLimits(waiting=0))
    send(client)
    actual = client.post("/api/search", json={"query": f"upload:{FIRMWARE_ID}:0"})
    assert actual.status_code == 503
    assert actual.headers["retry-after"]


def test_a_search_that_takes_too_long(serve: Serve) -> None:
    client = serve(limits=ServerLimits(request_seconds=1e-4))
    actual = client.post("/api/search", json={"query": "library:1"})
    assert actual.status_code == 504
    assert actual.headers["content-security-policy"]
