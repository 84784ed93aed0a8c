"""A server over a library of somebody's own graphs."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

import networkx as nx
import pytest
from fastapi.testclient import TestClient

from graphkin import Library
from graphkin.library.models import SearchModel
from graphkin.library.own_graphs import index_graphs
from graphkin.web.app import create_app
from graphkin.web.server import Options
from tests.graph_samples import molecule_models, write_molecules
from tests.web.conftest import HERE
from tests.web.requests import message, send, wait_for


@pytest.fixture
def lines(tmp_path: Path) -> Path:
    return write_molecules(tmp_path / "molecules.jsonl")


@pytest.fixture(params=[True, False], ids=["matcher", "embedder"])
def client(request: pytest.FixtureRequest, lines: Path, tmp_path: Path) -> Iterator[TestClient]:
    embedder, matcher = molecule_models()
    model = SearchModel.of(embedder, matcher if request.param else None)
    with Library.create(tmp_path / "library.kin", model) as library:
        index_graphs(library, [lines])
        app = create_app(library, Options(str(tmp_path / "library.kin")))
        with TestClient(app, base_url=HERE, raise_server_exceptions=False) as client:
            yield client


def uploaded(client: TestClient, lines: Path) -> str:
    answer = send(client, lines.read_bytes(), "molecules.jsonl")
    assert answer.status_code == 201, answer.text
    assert (answer.json()["format"], answer.json()["functions"]) == ("jsonl", 12)
    return hashlib.sha256(lines.read_bytes()).hexdigest()


def test_search(client: TestClient, lines: Path) -> None:
    status = client.get("/api/status").json()
    assert (status["kind"], status["functions"]) == ("graphs", 12)
    binary = uploaded(client, lines)
    rows = client.get(f"/api/binaries/{binary}/functions").json()["functions"]
    assert (rows[3]["function"], rows[3]["label"], rows[3]["address"]) == ("m3", "nitro", None)
    answer = client.post("/api/search", json={"query": f"upload:{binary}:3"})
    assert answer.status_code == 200, answer.text
    assert answer.json()["query"]["kind"] == "graph"
    best = answer.json()["hits"][0]
    assert (best["function"], best["tags"]) == ("m3", {"label": "nitro"})
    assert (best["score"] is not None) == status["can_rerank"]


def test_compare_what_was_sent_with_what_is_known(client: TestClient, lines: Path) -> None:
    binary = uploaded(client, lines)
    known = client.get("/api/library/functions").json()["functions"]
    sides = {"left": f"upload:{binary}:3", "right": known[3]["reference"]}
    compared = client.get("/api/comparison", params=sides).json()
    assert compared["evidence"]["matched_share"] == pytest.approx(1.0)
    page = client.get("/api/comparison.html", params=sides)
    assert page.status_code == 200
    assert page.text.count('class="block node"') == 2 * known[3]["blocks"]


def test_one_graph(client: TestClient, lines: Path) -> None:
    """With its labels, also where the library alone has it."""
    binary = uploaded(client, lines)
    graph = client.get(f"/api/functions/upload:{binary}:3").json()
    assert (graph["kind"], graph["label"]) == ("graph", "nitro")
    known = client.get("/api/library/functions").json()["functions"][3]
    stored = client.get(f"/api/functions/{known['reference']}").json()
    assert stored["nodes"] == graph["nodes"]
    assert stored["edges"] == graph["edges"]
    assert set(graph["nodes"]) <= {"C", "N", "O"}
    picture = client.get(f"/api/graphs/upload:{binary}:3/picture.svg")
    assert picture.headers["content-type"].startswith("image/svg+xml")
    assert picture.text.count('class="n"') == len(graph["nodes"])


def test_scan(client: TestClient, lines: Path) -> None:
    scan = client.post("/api/scans", json={"binary": uploaded(client, lines)}).json()
    over = wait_for(client, f"/api/scans/{scan['id']}")
    assert (over["state"], over["total"], over["found"]) == ("done", 12, 12)


def test_add(client: TestClient, tmp_path: Path) -> None:
    other = write_molecules(tmp_path / "more.jsonl", 20)
    binary = send(client, other.read_bytes(), "more.jsonl").json()["id"]
    addition = client.post("/api/library/additions", json={"binary": binary, "tags": {"set": "b"}})
    over = wait_for(client, f"/api/library/additions/{addition.json()['id']}")
    assert (over["state"], over["added"]) == ("done", 20)
    assert client.get("/api/status").json()["functions"] == 32


def test_what_does_not_fit(client: TestClient, lines: Path, tmp_path: Path) -> None:
    nx.write_gml(nx.path_graph(3), tmp_path / "g.gml")
    refused = send(client, (tmp_path / "g.gml").read_bytes(), "g.gml")
    assert refused.status_code == 422, refused.text
    assert "its nodes say nothing" in message(refused)
    broken = send(client, b"{", "x.jsonl")
    assert broken.status_code == 422
    assert str(tmp_path) not in message(broken)
    binary = uploaded(client, lines)
    diff = client.post("/api/diffs", json={"left": binary, "right": binary})
    assert diff.status_code == 400
    assert "library of graphs" in message(diff)
