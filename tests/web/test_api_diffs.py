"""Diffs: progress by events, reports, refusals."""

from __future__ import annotations

import csv
import hashlib

from fastapi.testclient import TestClient

from graphkin.binaries import samples
from graphkin.results.document import Diff
from graphkin.web.limits import ServerLimits
from tests.web.conftest import Serve
from tests.web.requests import FIRMWARE_ID, events, message, number_of, send, suspect, wait_for

FIXED = samples.path("gateway-fixed").read_bytes()
FIXED_ID = hashlib.sha256(FIXED).hexdigest()
REQUEST = {"left": FIRMWARE_ID, "right": FIXED_ID}


def diffed(client: TestClient, **options: object) -> str:
    send(client)
    send(client, FIXED, "gateway-fixed")
    started = client.post("/api/diffs", json={**REQUEST, **options})
    assert started.status_code == 202, started.text
    return str(started.json()["id"])


def test_a_diff_tells_how_far_it_is(client: TestClient) -> None:
    diff = diffed(client)
    told = events(client.get(f"/api/diffs/{diff}/events"))
    assert told[-1][0] == "end"
    done = [document["done"] for name, document in told if name == "progress"]
    assert done == sorted(done)
    end = told[-1][1]
    assert (end["state"], end["error"]) == ("done", None)
    assert end["done"] == end["total"] == 2 * len(samples.true_names())
    counts = {"identical": 118, "same": 0, "changed": 1, "removed": 0, "added": 0}
    assert end["counts"] == counts
    assert [item["id"] for item in client.get("/api/diffs").json()] == [diff]


def test_reports(client: TestClient) -> None:
    diff = diffed(client)
    wait_for(client, f"/api/diffs/{diff}")
    document = Diff.model_validate(client.get(f"/api/diffs/{diff}/report").json())
    (changed,) = (pair for pair in document.pairs if pair.verdict == "changed")
    assert changed.left.reference == suspect(client)
    assert changed.left.binary == document.left.binary == "gateway"
    number = number_of(client, FIXED_ID, changed.right.address or 0)
    assert changed.right.reference == f"upload:{FIXED_ID}:{number}"
    rows = client.get(f"/api/diffs/{diff}/report", params={"format": "csv"})
    assert rows.headers["content-type"].startswith("text/csv")
    assert len(list(csv.reader(rows.text.splitlines()))) == len(document.pairs) + 1
    page = client.get(f"/api/diffs/{diff}/report", params={"format": "html"}).text
    assert "equal instructions" in page
    assert "graphkin-serve-" not in page + rows.text
    wrong = client.get(f"/api/diffs/{diff}/report", params={"format": "idc"})
    assert wrong.status_code == 400
    assert "choose one of" in message(wrong)


def test_refusals(client: TestClient, serve: Serve) -> None:
    assert client.post("/api/diffs", json=REQUEST).status_code == 404
    assert client.get("/api/diffs/none").status_code == 404
    small = serve(limits=ServerLimits(diff_functions=10))
    send(small)
    refused = small.post("/api/diffs", json={"left": FIRMWARE_ID, "right": FIRMWARE_ID})
    assert refused.status_code == 400
    assert "at most 10" in message(refused)


def test_a_diff_that_was_cancelled_has_no_report(client: TestClient) -> None:
    first, second = diffed(client), diffed(client)  # which waits for the first
    assert client.delete(f"/api/diffs/{second}").status_code == 204
    assert wait_for(client, f"/api/diffs/{second}")["state"] == "cancelled"
    refused = client.get(f"/api/diffs/{second}/report")
    assert refused.status_code == 400
    assert "not done" in message(refused)
    assert wait_for(client, f"/api/diffs/{first}")["state"] == "done"
