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
def library(processors: tuple[str, ...], tmp_path: Path) -> Path:
    """One of that model, in place of the one that other tests have."""
    path = tmp_path / "samples.kin"
    with Library.create(path, search_model(processors=processors)) as opened:
        index_paths(opened, [samples.path("gcc-O2/libkinproto.so")])
    return path


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


def test_every_answer_warns(serve: Serve) -> None:
    for warnings in warnings_of(serve()):
        assert len(warnings) == 1
        assert "was trained on code for arm, not for x86-64:" in warnings[0]


@pytest.mark.parametrize("processors", [("arm", "x86-64")])
def test_code_that_the_model_knows_gets_none(serve: Serve) -> None:
    assert warnings_of(serve()) == [[]] * 5
