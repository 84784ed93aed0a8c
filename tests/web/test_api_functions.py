"""Files that are sent, their functions and their code."""

from __future__ import annotations

import hashlib
import io
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from graphkin._support.files import hash_file
from graphkin.binaries import samples
from graphkin.binaries.targets import list_functions, parse_target
from graphkin.web import references
from graphkin.web.limits import ServerLimits
from graphkin.web.upload_reader import MOST_LETTERS
from graphkin.web.uploads import NAME_BYTES, UNNAMED, safe_name
from tests.binaries.containers.making import deb_of
from tests.web.browser.objects import branching, object_file
from tests.web.conftest import Serve
from tests.web.requests import FIRMWARE, FIRMWARE_ID, message, send, wait_for


def test_a_file_is_read_when_it_arrives(client: TestClient) -> None:
    upload = send(client)
    assert upload.status_code == 201
    binary = upload.json()
    assert (binary["id"], binary["name"], binary["bytes"]) == (
        FIRMWARE_ID,
        "gateway",
        len(FIRMWARE),
    )
    assert (binary["architecture"], binary["format"]) == ("x86-64", "elf")
    assert client.get("/api/binaries").json() == [binary]
    assert client.get(f"/api/binaries/{FIRMWARE_ID}").json() == binary


def test_names_of_cpp_are_there_raw_and_demangled(client: TestClient) -> None:
    content = object_file([("_ZN3foo3barEi", branching(6))])
    binary = send(client, content, "cpp.o").json()
    (row,) = client.get(f"/api/binaries/{binary['id']}/functions").json()["functions"]
    code = client.get(f"/api/functions/upload:{binary['id']}:0").json()
    for document in (row, code):
        assert document["function"] == "_ZN3foo3barEi"
        assert document["demangled"] == "foo::bar(int)"


def test_the_functions_are_those_of_the_file(client: TestClient) -> None:
    send(client)
    rows = client.get(f"/api/binaries/{FIRMWARE_ID}/functions").json()["functions"]
    expected = list(list_functions(parse_target(str(samples.FIRMWARE))))
    assert [row["number"] for row in rows] == list(range(len(expected)))
    assert [
        (row["function"], int(row["address"], 16), row["size"], row["blocks"]) for row in rows
    ] == [(item.name, item.address, item.size, len(item.blocks)) for item in expected]


def test_a_container_gives_the_functions_of_its_members(client: TestClient) -> None:
    package = deb_of({"./usr/bin/gateway": FIRMWARE, "./bad": FIRMWARE[:100], "./text": b"text"})
    upload = send(client, package, "x.deb")
    assert upload.status_code == 201
    binary = upload.json()
    assert (binary["architecture"], binary["format"], binary["skipped"]) == ("x86-64", "elf", 1)
    assert binary["skipped_reasons"][0].startswith("x.deb!bad cannot be read: ")
    rows = client.get(f"/api/binaries/{binary['id']}/functions").json()["functions"]
    expected = list(list_functions(parse_target(str(samples.FIRMWARE))))
    assert [row["function"] for row in rows] == [item.name for item in expected]
    assert {row["member"] for row in rows} == {"usr/bin/gateway"}
    code = client.get(f"/api/functions/upload:{binary['id']}:3").json()
    assert (code["text"], code["binary"]) == ("disassembly", "x.deb!usr/bin/gateway")
    assert len(code["blocks"]) == rows[3]["blocks"]


def test_a_container_without_a_binary_is_refused(client: TestClient) -> None:
    upload = send(client, deb_of({"./text": b"text"}), "x.deb")
    assert upload.status_code == 422
    assert message(upload) == "x.deb has no functions"


def test_the_code_of_a_function(client: TestClient) -> None:
    send(client)
    code = client.get(f"/api/functions/upload:{FIRMWARE_ID}:3").json()
    row = client.get(f"/api/binaries/{FIRMWARE_ID}/functions").json()["functions"][3]
    assert code["text"] == "disassembly"
    assert (code["function"], code["address"], code["binary"]) == (
        row["function"],
        row["address"],
        "gateway",
    )
    assert len(code["blocks"]) == row["blocks"]
    assert any(" " in text for block in code["blocks"] for text in block["instructions"])


def test_the_code_of_an_entry_comes_from_its_file(client: TestClient) -> None:
    entry = client.get("/api/library/functions", params={"function": "process_heartbeat"}).json()
    reference = entry["functions"][0]["reference"]
    code = client.get(f"/api/functions/{reference}").json()
    assert code["text"] == "disassembly"
    assert code["function"] == "process_heartbeat"


def test_an_entry_without_its_file_shows_mnemonics(serve: Serve) -> None:
    client = serve()
    binary = samples.path("gcc-O2/libkinmedia.so").read_bytes()
    sent = send(client, binary, "libgone.so").json()
    job = client.post("/api/library/additions", json={"binary": sent["id"]}).json()
    assert wait_for(client, f"/api/library/additions/{job['id']}")["state"] == "done"
    entry = client.get("/api/library/functions", params={"file_hash": sent["id"]}).json()
    function = entry["functions"][0]
    whole = client.get(f"/api/functions/{function['reference']}").json()
    Path(function["binary"]).unlink()
    other = serve()  # which has not read the file before
    left = other.get(f"/api/functions/{function['reference']}").json()
    assert (whole["text"], left["text"]) == ("disassembly", "mnemonics")
    assert "not at hand" in left["binary"]
    assert left["edges"]
    assert [(e["source"], e["target"]) for e in left["edges"]] == [
        (e["source"], e["target"]) for e in whole["edges"]
    ]
    for block, expected in zip(left["blocks"], whole["blocks"], strict=True):
        # Some instructions, such as padding, are no operation.
        assert len(block["instructions"]) <= len(expected["instructions"])


def test_huge_names_are_cut(client: TestClient) -> None:
    """Symbols may end in one long string each, so that few bytes make many huge names."""
    content = object_file([("n" * 5 * MOST_LETTERS, branching(6))])
    binary = send(client, content, "names.o").json()
    row = client.get(f"/api/binaries/{binary['id']}/functions").json()["functions"][0]
    code = client.get(f"/api/functions/upload:{binary['id']}:0").json()
    assert row["function"] == code["function"] == "n" * MOST_LETTERS + "…"
    listed = client.app.state.server.uploads.functions(binary["id"])[0]  # type: ignore[attr-defined]
    assert listed.nbytes > replace(listed, name="n").nbytes + MOST_LETTERS


def test_too_many_functions_are_left_out(serve: Serve) -> None:
    client = serve(limits=ServerLimits(functions=7))
    binary = send(client).json()
    assert binary["functions"] == 7
    assert "more than 7 functions" in binary["skipped_reasons"][0]


def test_a_file_of_many_names_is_kept_once(client: TestClient) -> None:
    for number in range(4):
        send(client, name=f"name{number}")
    server = client.app.state.server  # type: ignore[attr-defined]
    path = server.uploads.get(FIRMWARE_ID).path
    assert [item.name for item in path.parent.iterdir()] == ["name0"]
    code = client.get(f"/api/functions/upload:{FIRMWARE_ID}:0").json()
    assert code["binary"] == "name3"


def test_a_file_of_two_names_has_the_latest(client: TestClient) -> None:
    send(client, name="first")
    assert send(client, name="second").json()["name"] == "second"
    assert [item["name"] for item in client.get("/api/binaries").json()] == ["second"]
    assert client.get(f"/api/binaries/{FIRMWARE_ID}/functions").status_code == 200


@pytest.mark.parametrize(
    ("content", "part"),
    [
        (b"", "empty"),
        (b"hello", "not an ELF, PE or Mach-O"),
        (FIRMWARE[:200], "cannot be read"),
        (b"\x7fELF" + bytes(5000), "cannot be read"),
    ],
    ids=["empty", "text", "cut off", "zeros"],
)
def test_a_broken_file_is_refused(client: TestClient, content: bytes, part: str) -> None:
    upload = send(client, content, "broken.so")
    assert upload.status_code == 422
    assert part in message(upload)
    assert "/" not in message(upload), "the server's folders are nobody's business"
    assert client.get("/api/binaries").json() == []
    assert send(client).status_code == 201


def test_a_file_that_takes_too_long(serve: Serve) -> None:
    client = serve(limits=ServerLimits(extraction_seconds=0.0))
    upload = send(client)
    assert upload.status_code == 422
    assert "not finished" in message(upload) or "skipped" in message(upload)


def test_a_file_that_takes_too_much_memory(serve: Serve) -> None:
    client = serve(limits=ServerLimits(extraction_bytes=1 << 16))
    upload = send(client)
    assert upload.status_code == 422
    assert "memory" in message(upload)


def test_a_file_that_is_too_large(serve: Serve) -> None:
    client = serve(limits=ServerLimits(upload_bytes=1000))
    assert send(client).status_code == 413

    def without_length() -> Iterator[bytes]:
        yield FIRMWARE[:800]
        yield FIRMWARE[800:1600]

    assert client.post("/api/binaries", content=without_length()).status_code == 413
    assert client.get("/api/binaries").json() == []


def test_old_files_make_room(serve: Serve) -> None:
    client = serve(limits=ServerLimits(kept_bytes=len(FIRMWARE) + 1000))
    send(client)
    other = samples.path("gateway-fixed").read_bytes()
    send(client, other, "fixed")
    digest = hashlib.sha256(other).hexdigest()
    assert [item["id"] for item in client.get("/api/binaries").json()] == [digest]
    gone = client.get(f"/api/binaries/{FIRMWARE_ID}/functions")
    assert gone.status_code == 404
    assert "send it again" in message(gone)


def test_a_file_with_more_functions_than_the_server_keeps(serve: Serve) -> None:
    client = serve(limits=ServerLimits(kept_graphs=20_000))
    binary = send(client).json()
    assert 0 < binary["functions"] < 100
    assert "the rest is left out" in binary["skipped_reasons"][0]
    rows = client.get(f"/api/binaries/{FIRMWARE_ID}/functions").json()["functions"]
    assert len(rows) == binary["functions"]


def test_graphs_that_were_let_go_are_read_again(serve: Serve) -> None:
    client = serve(limits=ServerLimits(kept_graphs=300_000))
    send(client)
    before = client.get(f"/api/binaries/{FIRMWARE_ID}/functions").json()
    send(client, samples.path("gateway-fixed").read_bytes(), "fixed")
    assert client.get(f"/api/binaries/{FIRMWARE_ID}/functions").json() == before


@pytest.mark.parametrize(
    "reference",
    [f"upload:{FIRMWARE_ID}:99999", f"upload:{'0' * 64}:0", "library:999999", "library:0"],
)
def test_what_is_not_there(client: TestClient, reference: str) -> None:
    send(client)
    assert client.get(f"/api/functions/{reference}").status_code == 404


@pytest.mark.parametrize(
    "reference",
    ["", "x", "library:", "library:-1", "library:99999999999999999999", "upload:..:1", "library:१"],
)
def test_what_is_no_reference(client: TestClient, reference: str) -> None:
    actual = client.post("/api/search", json={"query": reference})
    assert actual.status_code == 400
    assert "library:ID" in message(actual)


@pytest.mark.parametrize(
    ("name", "safe"),
    [
        ("libz.so", "libz.so"),
        ("../../etc/passwd", "passwd"),
        ("C:\\tools\\x.exe", "x.exe"),
        ("..", UNNAMED),
        ("", UNNAMED),
        ("a\nb\x1b[2J", "a\\x0ab\\x1b[2J"),
        ("\udcff.so", "\\xff.so"),
    ],
)
def test_names_of_files(name: str, safe: str) -> None:
    actual = safe_name(name)
    assert "/" not in actual
    assert actual == safe


def test_long_names_keep_their_end() -> None:
    actual = safe_name("é" * 500 + ".so")
    assert actual.endswith(".so")
    assert len(actual.encode()) <= NAME_BYTES


@pytest.fixture
def temporary_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    return folder


def test_a_file_that_is_refused_under_load_is_not_kept(serve: Serve, temporary_files: Path) -> None:
    client = serve(limits=ServerLimits(waiting=0))
    assert send(client).status_code == 503
    assert not list(temporary_files.glob("*/incoming-*"))


@pytest.mark.parametrize(("most_bytes", "is_read"), [(1 << 20, True), (1 << 10, False)])
def test_large_files_that_a_library_names_are_not_read(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, most_bytes: int, is_read: bool
) -> None:
    """Their functions are shown by their graphs."""
    read: list[Path] = []
    monkeypatch.setattr(
        references, "hash_file", lambda path: (read.append(path), hash_file(path))[1]
    )
    client = serve(limits=ServerLimits(upload_bytes=most_bytes))
    shown = client.get("/api/functions/library:1").text
    assert ("the file is not at hand" in shown) is not is_read
    assert bool(read) is is_read


def test_coverage_names_members_and_no_copies(client: TestClient) -> None:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr("bin/gateway", samples.FIRMWARE.read_bytes())
        archive.writestr("lib/libkinbeat.so", samples.path("gcc-O2/libkinbeat.so").read_bytes())
    sent = send(client, content.getvalue(), "update.zip").json()
    named = [item["binary"] for item in sent["coverage"]]
    assert [name.rpartition("!")[2] for name in named] == ["bin/gateway", "lib/libkinbeat.so"]
    assert not any("graphkin-" in name for name in named)
