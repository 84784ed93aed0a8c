"""Scans: progress and results by events, reports, and how they end."""

from __future__ import annotations

import csv
import json
import time
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from graphkin.binaries import samples
from graphkin.library.indexing.index import index_paths
from graphkin.library.library import Library
from graphkin.library.scan import scan
from graphkin.web.http_errors import BusyError
from graphkin.web.jobs import Job, JobQueue
from graphkin.web.limits import MOST_WAITING_JOBS
from tests.web.conftest import Serve
from tests.web.requests import FIRMWARE_ID, events, message, send, suspect, wait_for

SCAN = {"binary": FIRMWARE_ID, "min_probability": 0.1, "where": {"tags": dict([samples.TAG])}}


def scanned(client: TestClient, **options: object) -> str:
    send(client)
    started = client.post("/api/scans", json={**SCAN, **options})
    assert started.status_code == 202
    return str(started.json()["id"])


def test_a_scan_tells_what_it_finds_while_it_runs(client: TestClient) -> None:
    scan = scanned(client)
    stream = client.get(f"/api/scans/{scan}/events")
    assert stream.headers["content-type"].startswith("text/event-stream")
    told = events(stream)
    names = [name for name, _ in told]
    assert names[-1] == "end"
    assert names.count("end") == 1
    assert "progress" in names
    done = [document["done"] for name, document in told if name == "progress"]
    assert done == sorted(done)
    end = told[-1][1]
    assert (end["state"], end["done"]) == ("done", end["total"])
    results = [item for name, document in told if name == "results" for item in document["results"]]
    assert len(results) == end["found"] > 0
    best = max(results, key=lambda result: result["hits"][0]["probability"])
    assert best["query"]["reference"] == suspect(client)
    assert best["hits"][0]["function"] == "process_heartbeat"
    assert 0 < best["hits"][0]["evidence"]["matched_share"] <= 1
    assert client.get(f"/api/scans/{scan}").json()["state"] == "done"
    assert [item["id"] for item in client.get("/api/scans").json()] == [scan]


def test_who_comes_late_or_again_misses_nothing(client: TestClient) -> None:
    scan = scanned(client, min_probability=0)
    wait_for(client, f"/api/scans/{scan}")
    everything = events(client.get(f"/api/scans/{scan}/events"))
    assert [name for name, _ in everything] == ["results", "end"]
    headers = {"last-event-id": "1"}
    rest = events(client.get(f"/api/scans/{scan}/events", headers=headers))
    assert rest[0][1]["results"] == everything[0][1]["results"][1:]
    for wrong in ("-1", "x", "9" * 30):
        again = events(client.get(f"/api/scans/{scan}/events", headers={"last-event-id": wrong}))
        assert again == everything


def test_reports(client: TestClient) -> None:
    scan = scanned(client)
    end = wait_for(client, f"/api/scans/{scan}")
    report = {
        form: client.get(f"/api/scans/{scan}/report", params={"format": form})
        for form in ("json", "csv", "sarif", "html")
    }
    for form, actual in report.items():
        assert actual.headers["content-disposition"] == f'attachment; filename="scan-{scan}.{form}"'
    document = report["json"].json()
    components = client.get(f"/api/scans/{scan}").json()["components"]
    assert document["components"] == components
    results = document["results"]
    assert (document["tool"]["name"], document["library"]) == ("graphkin", "samples.kin")
    assert document["options"]["min_probability"] == SCAN.get("min_probability", 0.5)
    assert len(results) == end["total"]
    assert sum(bool(result["hits"]) for result in results) == end["found"]
    rows = list(csv.DictReader(report["csv"].text.splitlines()))
    assert len(rows) == sum(len(result["hits"]) for result in results)
    assert {row["query_binary"] for row in rows} == {"gateway"}
    assert report["sarif"].json()["version"] == "2.1.0"
    assert "<table" in report["html"].text
    wrong = client.get(f"/api/scans/{scan}/report", params={"format": "pdf"})
    assert wrong.status_code == 400
    assert "sarif" in message(wrong)


def test_small_functions_are_left_out(client: TestClient) -> None:
    send(client)
    rows = client.get(f"/api/binaries/{FIRMWARE_ID}/functions").json()["functions"]
    for least in (1, 30):
        scan = client.post("/api/scans", json={**SCAN, "min_blocks": least}).json()["id"]
        end = wait_for(client, f"/api/scans/{scan}")
        assert end["total"] == sum(row["blocks"] >= least for row in rows)


def test_a_scan_is_cancelled_and_forgotten(client: TestClient) -> None:
    scan = scanned(client)
    assert client.delete(f"/api/scans/{scan}").status_code == 204
    assert wait_for(client, f"/api/scans/{scan}")["state"] in ("cancelled", "done")
    assert client.delete(f"/api/scans/{scan}").status_code == 204
    assert client.get(f"/api/scans/{scan}").status_code == 404


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        ({**SCAN, "binary": "0" * 64}, 404),
        ({**SCAN, "top": 10**6}, 400),
        ({**SCAN, "min_probability": 2}, 400),
        ({}, 400),
    ],
)
def test_wrong_scans(client: TestClient, request_: dict[str, object], status: int) -> None:
    send(client)
    assert client.post("/api/scans", json=request_).status_code == status


def test_an_unknown_scan(client: TestClient) -> None:
    for path in ("", "/events", "/report"):
        assert client.get(f"/api/scans/none{path}").status_code == 404


class Counting(Job):
    """Counts until it is told to stop."""

    def work(self) -> None:
        while True:
            self.checkpoint()


class Failing(Job):
    def work(self) -> None:
        raise ZeroDivisionError


def test_jobs_wait_their_turn_and_can_be_cancelled() -> None:
    jobs: JobQueue[Job] = JobQueue("test", remembered=3)
    first = jobs.add(Counting())
    while first.state == "waiting":
        time.sleep(0.01)
    rest = [jobs.add(Counting()) for _ in range(MOST_WAITING_JOBS)]
    with pytest.raises(BusyError, match="jobs are waiting"):
        jobs.add(Counting())
    assert {job.state for job in rest} == {"waiting"}
    for job in rest:
        jobs.drop(job.id)
    assert {job.state for job in rest} == {"cancelled"}
    jobs.drop(first.id)
    failing = jobs.add(Failing())
    jobs.close()
    assert first.state == "cancelled"
    assert failing.state in ("failed", "cancelled")


def test_an_unexpected_failure_ends_a_job_not_the_queue() -> None:
    jobs: JobQueue[Job] = JobQueue("test", remembered=3)
    for _ in range(2):
        job = jobs.add(Failing())
        while not job.is_over:
            time.sleep(0.01)
        assert job.state == "failed"
        assert job.error is not None
        assert "log" in job.error
    jobs.close()


def test_a_report_says_what_the_command_line_says(library: Path, serve: Serve) -> None:
    """Hits in their context, and whether they are repaired."""
    with Library.open(library) as opened:
        for build in ("gcc-O0", "clang-O1"):
            file = samples.path(f"{build}/libkinbeat-fixed.so")
            index_paths(opened, [f"{file}:process_heartbeat"], tags={"fixed": samples.TAG[1]})
    client = serve()
    send(client)
    started = client.post("/api/scans", json={"binary": FIRMWARE_ID})
    wait_for(client, f"/api/scans/{started.json()['id']}")
    url = f"/api/scans/{started.json()['id']}/report"
    results = client.get(url, params={"format": "json"}).json()["results"]
    by_command = list(scan(library, samples.FIRMWARE))
    assert len(results) == len(by_command)
    patches = 0
    for ours, theirs in zip(results, by_command, strict=True):
        expected = json.loads(theirs.model_dump_json())
        assert [hit["id"] for hit in ours["hits"]] == [hit["id"] for hit in expected["hits"]]
        for hit, other in zip(ours["hits"], expected["hits"], strict=True):
            assert hit["probability"] == pytest.approx(other["probability"], abs=1e-3)
        assert [item["verdict"] for item in ours["patches"]] == [
            item["verdict"] for item in expected["patches"]
        ]
        patches += len(ours["patches"])
    assert patches
