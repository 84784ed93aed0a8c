"""The library through the API: what is in it, added to it, removed from it."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from graphkin import Library
from graphkin.binaries import samples
from graphkin.library.engines.sqlite.engine import SqliteEngine
from graphkin.library.records import BinarySummary
from tests.web.conftest import INDEXED, Serve
from tests.web.requests import FIRMWARE_ID, events, message, send, suspect, wait_for


def test_what_is_in_it(client: TestClient, library: Path) -> None:
    with Library.open(library) as opened:
        stats = opened.stats()
    body = client.get("/api/library").json()
    assert body["library"] == "samples.kin"
    assert (body["entries"], body["graphs"]) == (stats["entries"], stats["graphs"])
    assert body["architectures"] == {"x86-64": stats["entries"]}
    assert body["tags"] == {"=".join(samples.TAG): body["tags"]["=".join(samples.TAG)]}
    binaries = client.get("/api/library/binaries").json()["binaries"]
    assert [binary["name"] for binary in binaries] == [Path(name).name for name in INDEXED]
    assert sum(binary["functions"] for binary in binaries) == stats["entries"]
    assert list(binaries[0]["tags"]) == ["=".join(samples.TAG)]
    status = client.get("/api/status").json()
    assert (status["library"], status["functions"]) == ("samples.kin", stats["entries"])


def test_binaries_are_counted_without_reading_entries(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A million entries take seconds to read, and a request must not hold up others meanwhile."""
    threads: list[str] = []
    counted = SqliteEngine.binaries

    def watched(engine: SqliteEngine) -> list[BinarySummary]:
        threads.append(threading.current_thread().name)
        return counted(engine)

    def refused(*_: object) -> None:
        raise AssertionError("entries are read one by one")

    expected = client.get("/api/library/binaries").json()
    monkeypatch.setattr(SqliteEngine, "binaries", watched)
    monkeypatch.setattr(SqliteEngine, "scan", refused)
    monkeypatch.setattr("graphkin.library.engines.sqlite.engine.fetch_rows", refused)
    assert client.get("/api/library/binaries").json() == expected
    assert [name.partition("_")[0] for name in threads] == ["browsing"], "a pool with bounds"


def test_its_functions_page_by_page(client: TestClient) -> None:
    everything, after = [], 0
    while after is not None:
        page = client.get("/api/library/functions", params={"after": after, "limit": 7}).json()
        assert len(page["functions"]) <= 7
        everything += page["functions"]
        after = page["next"]
    assert len(everything) == client.get("/api/library").json()["entries"]
    assert len({item["reference"] for item in everything}) == len(everything)
    only = client.get("/api/library/functions", params={"function": "process_h*"}).json()
    assert {item["function"] for item in only["functions"]} == {"process_heartbeat"}


def added(client: TestClient, **request: object) -> dict[str, object]:
    job = client.post("/api/library/additions", json={"binary": FIRMWARE_ID, **request})
    assert job.status_code == 202
    told = events(client.get(f"/api/library/additions/{job.json()['id']}/events"))
    assert told[-1][0] == "end"
    return told[-1][1]  # type: ignore[no-any-return]


def test_a_file_is_added_found_and_removed(client: TestClient, library: Path) -> None:
    query = suspect(client)
    before = client.get("/api/library").json()["entries"]
    end = added(client, tags={"device": "gateway"})
    assert end["state"] == "done"
    assert client.get("/api/library").json()["entries"] == before + int(str(end["added"]))
    best = client.post("/api/search", json={"query": query, "rerank": 0}).json()["hits"][0]
    assert best["distance"] == 0
    where = {"tags": {"device": "gateway"}}
    actual = client.post("/api/search", json={"query": query, "where": where}).json()["hits"]
    assert actual[0]["address"] == client.get(f"/api/functions/{query}").json()["address"]
    kept = Path(actual[0]["binary"])
    assert kept.read_bytes() == samples.FIRMWARE.read_bytes()
    assert kept.is_relative_to(f"{library}.files")
    assert actual[0]["build"] == "uploaded"
    again = added(client)
    assert (again["added"], again["state"]) == (0, "done")
    removal = client.post("/api/library/removals", json={"file_hash": FIRMWARE_ID}).json()
    assert removal == {"removed": end["added"], "entries": before}


@pytest.mark.parametrize(
    "name", ["../../evil.so", "/etc/evil.so", "..\\\\evil.so", "a/../evil.so."]
)
def test_the_name_of_an_upload_does_not_choose_its_folder(
    client: TestClient, library: Path, name: str
) -> None:
    before = set(library.parent.rglob("*"))
    assert send(client, name=name).status_code == 201
    assert added(client)["state"] == "done"
    new = {path for path in library.parent.rglob("*") if path.is_file()} - before
    kept = {path for path in new if not path.name.startswith(library.name)}
    folder = Path(f"{library}.files")
    assert kept == {folder / FIRMWARE_ID[:16] / "uploaded" / "evil.so"}


def test_only_what_is_named_exactly_is_removed(client: TestClient) -> None:
    before = client.get("/api/library").json()["entries"]
    for pattern in ("*", "?" * 64):
        actual = client.post("/api/library/removals", json={"file_hash": pattern, "binary": "*"})
        assert actual.json() == {"removed": 0, "entries": before}
    assert client.post("/api/library/removals", json={}).status_code == 400
    expected = client.get("/api/library/binaries").json()["binaries"][0]
    actual = client.post("/api/library/removals", json={"binary": expected["binary"]}).json()
    assert actual["removed"] == expected["functions"]


def test_a_read_only_server_changes_nothing(serve: Serve) -> None:
    client = serve(read_only=True)
    send(client)
    assert client.get("/api/status").json()["writable"] is False
    for path, body in (
        ("additions", {"binary": FIRMWARE_ID}),
        ("removals", {"file_hash": FIRMWARE_ID}),
    ):
        actual = client.post(f"/api/library/{path}", json=body)
        assert actual.status_code == 403
        assert "--read-only" in message(actual)


def test_an_addition_that_cannot_be_written(client: TestClient, library: Path) -> None:
    send(client)
    Path(f"{library}.files").write_text("in the way")
    end = added(client)
    assert end["state"] == "failed"
    assert "cannot write" in str(end["error"])


@pytest.mark.parametrize("request_", [{"binary": "0" * 64}, {"binary": "x"}])
def test_only_what_was_sent_can_be_added(client: TestClient, request_: dict[str, str]) -> None:
    assert client.post("/api/library/additions", json=request_).status_code == 404


def test_jobs_are_looked_at_by_their_name(client: TestClient) -> None:
    send(client)
    job = client.post("/api/library/additions", json={"binary": FIRMWARE_ID}).json()
    assert wait_for(client, f"/api/library/additions/{job['id']}")["state"] == "done"
    assert client.get("/api/library/additions/none").status_code == 404
