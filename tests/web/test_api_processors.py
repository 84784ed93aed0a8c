"""Code for a processor that the model was not trained on gets a warning in every answer."""

from __future__ import annotations

from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from graphkin import Library
from graphkin.binaries import samples
from graphkin.library.indexing.index import index_paths
from tests.library.sample_models import search_model
from tests.web.conftest import Serve
from tests.web.requests import FIRMWARE_ID, suspect, wait_for


@pytest.fixture
def processors() -> tuple[str, ...]:
    """Those of the model's training; the samples are for x86-64."""
    return ("arm",)


@pytest.fixture
def library(processors: tuple[str, ...], foreign: tuple[Path, ...], tmp_path: Path) -> Path:
    """One of that model, in place of the one that other tests have."""
    path = tmp_path / "samples.kin"
    with Library.create(path, search_model(processors=processors)) as opened:
        index_paths(opened, [samples.path("gcc-O2/libkinproto.so"), *foreign])
    return path


@pytest.fixture
def foreign() -> tuple[Path, ...]:
    """Files of the library for other processors."""
    return ()


def warnings_of(client: TestClient) -> list[list[str]]:
    """Those of a search, a comparison, a scan and its report, and an addition."""
    query = suspect(client)
    scan = client.post("/api/scans", json={"binary": FIRMWARE_ID, "rerank": 0}).json()["id"]
    added = client.post("/api/library/additions", json={"binary": FIRMWARE_ID}).json()["id"]
    answers = [
        client.post("/api/search", json={"query": query, "rerank": 0}).json(),
        client.get("/api/comparison", params={"left": query, "right": "library:1"}).json(),
        wait_for(client, f"/api/scans/{scan}"),
        client.get(f"/api/scans/{scan}/report").json(),
        wait_for(client, f"/api/library/additions/{added}"),
    ]
    return [answer["warnings"] for answer in answers]


def contents_of(client: TestClient) -> list[list[str]]:
    """Those on what the library holds."""
    return [client.get(path).json()["warnings"] for path in ("/api/status", "/api/library")]


def test_every_answer_warns(serve: Serve) -> None:
    for warnings in warnings_of(serve()):
        assert len(warnings) == 1
        assert "was trained on code for arm, not for x86-64:" in warnings[0]


@pytest.mark.parametrize("processors", [("arm", "x86-64")])
def test_code_that_the_model_knows_gets_none(serve: Serve) -> None:
    client = serve()
    assert warnings_of(client) == [[]] * 5
    assert contents_of(client) == [[]] * 2


@pytest.mark.parametrize("processors", [("arm", "x86-64")])
@pytest.mark.parametrize("foreign", [(samples.ELF / "gateway-aarch64",)])
def test_hits_that_the_model_does_not_know(serve: Serve) -> None:
    client = serve()
    request = {"query": suspect(client), "rerank": 0, "top": 50, "min_probability": 0}
    found = client.post("/api/search", json=request).json()
    assert {"aarch64"} <= {hit["architecture"] for hit in found["hits"]}
    scan = client.post("/api/scans", json={"binary": FIRMWARE_ID, "rerank": 0}).json()["id"]
    scanned = wait_for(client, f"/api/scans/{scan}")
    for warnings in (found["warnings"], scanned["warnings"], *contents_of(client)):
        assert len(warnings) == 1
        assert "was trained on code for arm and x86-64, not for aarch64:" in warnings[0]
