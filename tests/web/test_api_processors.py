"""Code for a processor that the model was not trained on gets a warning in every answer."""

from __future__ import annotations

from fastapi.testclient import TestClient

from tests.binaries.compiling import Compile
from tests.web.requests import send, suspect, wait_for

SOURCE = """
int call(int);
int loops(int n) { while (n > 3) { if (n & 1) call(n); else if (n == 8) call(2); n--; } return n; }
"""
WARNING = "was trained on code for x86-64, not for x86:"


def test_every_answer_warns(client: TestClient, compile_c: Compile) -> None:
    content = compile_c(SOURCE, "-m32", "-O1", "-c").read_bytes()
    binary = send(client, content, "old.o").json()
    assert binary["architecture"] == "x86"
    one = f"upload:{binary['id']}:0"
    answer = client.post("/api/search", json={"query": one, "rerank": 0}).json()
    comparison = client.get("/api/comparison", params={"left": one, "right": "library:1"}).json()
    scan = client.post("/api/scans", json={"binary": binary["id"], "rerank": 0}).json()["id"]
    ended = wait_for(client, f"/api/scans/{scan}")
    report = client.get(f"/api/scans/{scan}/report").json()
    added = client.post("/api/library/additions", json={"binary": binary["id"]}).json()["id"]
    addition = wait_for(client, f"/api/library/additions/{added}")
    for document in (answer, comparison, ended, report, addition):
        (warning,) = document["warnings"]
        assert WARNING in warning


def test_code_that_the_model_knows_gets_none(client: TestClient) -> None:
    answer = client.post("/api/search", json={"query": suspect(client), "rerank": 0}).json()
    assert answer["warnings"] == []
