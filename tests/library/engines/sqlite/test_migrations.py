"""Libraries of earlier versions: the first one still opens, and changes of the tables are carried
through."""

from __future__ import annotations

import json
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphkin import Graph, Library
from graphkin.binaries.call_graph import CallGraph, FunctionNode
from graphkin.errors import FormatError
from graphkin.library.engines.base import Space
from graphkin.library.engines.sqlite import file as sqlite_file
from graphkin.library.engines.sqlite.engine import SqliteEngine
from graphkin.library.records import Filter, Row

HERE = Path(__file__).parent
RECORDED: dict[str, Any] = json.loads((HERE / "library-v1.json").read_text())
"""What the graphkin that wrote ``library-v1.kin`` said of it; ids were hashes of files then."""


NEWEST = sqlite_file.FIRST_VERSION + len(sqlite_file.MIGRATIONS)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return Path(shutil.copy(HERE / "library-v1.kin", tmp_path / "library.kin"))


def user_version(path: Path) -> int:
    connection = sqlite3.connect(path)
    try:
        return int(connection.execute("PRAGMA user_version").fetchone()[0])
    finally:
        connection.close()


def add_notes(connection: sqlite3.Connection) -> None:
    connection.execute("ALTER TABLE entries ADD COLUMN note TEXT")
    connection.execute("UPDATE entries SET note = 'from version 1'")


def break_down(connection: sqlite3.Connection) -> None:
    connection.execute("DELETE FROM entries")
    raise sqlite3.OperationalError("no such column: nothing")


def test_a_library_of_version_1(path: Path) -> None:
    with Library.open(path) as library:
        stored = json.loads(library.engine.documents()["pin.json"])["weights"]
        assert stored == RECORDED["id"] != library.model_id.weights
        assert len(library) == RECORDED["entries"]
        assert library.stats()["tags"] == RECORDED["tags"]
        assert library.verify().damage == []
        for search in RECORDED["searches"]:
            (graph,) = library.engine.graphs([search["query"]])
            hits = library.search(graph, 6, rerank=search["rerank"])
            assert [[hit.id, hit.function, hit.distance] for hit in hits] == [
                hit[:3] for hit in search["hits"]
            ]
            for hit, (*_, score, probability) in zip(hits, search["hits"], strict=True):
                assert hit.score == (score and pytest.approx(score, rel=1e-4, abs=1e-5))
                assert hit.probability == pytest.approx(probability, rel=1e-4, abs=1e-6)
        # What was stored long ago still has the key that it would have today.
        item = next(library.engine.scan())
        assert library.add(library.engine.graphs([item.id]), [item.entry]) == 0
    assert user_version(path) == NEWEST


def test_a_library_of_version_1_takes_signals_and_words(path: Path) -> None:
    words = np.array([3, 2**64 - 1], np.uint64)
    with SqliteEngine.open(path) as engine:
        ids = [item.id for item in engine.scan()]
        assert engine.signals(ids) == [b""] * len(ids)
        assert [own.tolist() for own in engine.words(ids)] == [[]] * len(ids)
        assert engine.sharing(words, np.ones(2, np.float32), 5) == []
        (item,), (graph,), vectors = (
            engine.fetch(ids[:1]), engine.graphs(ids[:1]), engine.vectors(ids[:1])
        )  # fmt: skip
        again = Row(b"k" * 16, item.entry, item.graph_hash, graph, vectors[0], b"sig", words)
        other = Graph(3, [(0, 1)], directed=True)
        new = again._replace(key=b"l" * 16, graph_hash=other.digest(), graph=other, words=words[:1])
        assert engine.add([again, new]) == 2
        engine.tag(Filter(), {"seen": "again"})
    with SqliteEngine.open(path) as engine:
        first, second = [item.id for item in engine.scan(after=ids[-1])]
        assert engine.signals([ids[0], first, second]) == [b"", b"sig", b"sig"]
        # The graph was there before, without words: whatever has it is found by them now.
        same = [item.id for item in engine.scan() if item.graph_hash == again.graph_hash]
        shared = engine.sharing(words, np.ones(2, np.float32), 99)
        assert shared == [*((own, 2.0) for own in same), (second, 1.0)]
        assert engine.verify().damage == []


def test_a_library_of_version_1_takes_call_graphs(path: Path) -> None:
    content = CallGraph((FunctionNode("", 16, "f"),), ("puts",), ()).to_bytes()
    with SqliteEngine.open(path) as engine:
        (first, *_) = {item.entry.file_hash for item in engine.scan()}
        assert engine.call_graph_files() == []
        assert engine.call_graph(first) is None
        engine.keep_call_graphs({first: content})
    with SqliteEngine.open(path) as engine:
        call_graph = engine.call_graph(first)
        assert call_graph is not None
        assert call_graph.imports == ("puts",)
        assert engine.stats()["call_graphs"] == 1
        assert engine.verify().damage == []
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE call_graphs SET content = x'00'")
    with SqliteEngine.open(path) as engine:
        assert engine.verify().damage == [f"the call graph of {first} is not what was stored"]
        engine.remove(Filter(file_hash=first))
        assert engine.call_graph_files() == []


def test_words_of_an_old_graph_reach_who_has_the_library_open(path: Path) -> None:
    words, weights = np.array([3], np.uint64), np.ones(1, np.float32)
    with SqliteEngine.open(path) as reader, SqliteEngine.open(path) as engine:
        assert reader.sharing(words, weights, 5) == []
        (item,), (graph,), vectors = engine.fetch([1]), engine.graphs([1]), engine.vectors([1])
        row = Row(b"k" * 16, item.entry, item.graph_hash, graph, vectors[0], words=words)
        engine.add([row])
        assert {1, engine.count()} <= {own for own, _ in reader.sharing(words, weights, 99)}


def test_a_change_of_the_tables(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with SqliteEngine.open(path) as engine:
        ids = [item.id for item in engine.scan()]
    monkeypatch.setattr(sqlite_file, "MIGRATIONS", [*sqlite_file.MIGRATIONS, add_notes])
    with SqliteEngine.open(path) as engine:
        assert [item.id for item in engine.scan()] == ids
        assert engine.verify().damage == []
    assert user_version(path) == NEWEST + 1
    connection = sqlite3.connect(path)
    notes = connection.execute("SELECT DISTINCT note FROM entries").fetchall()
    connection.close()
    assert notes == [("from version 1",)]
    SqliteEngine.open(path).close()  # not a second time: the column is there
    assert user_version(path) == NEWEST + 1
    monkeypatch.undo()
    message = f"version {NEWEST + 1}, this graphkin reads versions 1 to {NEWEST}"
    with pytest.raises(FormatError, match=message):
        SqliteEngine.open(path)


def test_new_libraries_have_the_newest_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_file, "MIGRATIONS", [*sqlite_file.MIGRATIONS, add_notes])
    SqliteEngine.create(tmp_path / "new.kin", Space("hamming", 64), {}).close()
    assert user_version(tmp_path / "new.kin") == NEWEST + 1


def test_old_libraries_get_the_tables_of_new_ones(path: Path, tmp_path: Path) -> None:
    SqliteEngine.open(path).close()
    SqliteEngine.create(tmp_path / "new.kin", Space("hamming", 64), {}).close()
    assert columns(path) == columns(tmp_path / "new.kin")


def columns(path: Path) -> list[Any]:
    connection = sqlite3.connect(path)
    tables = "SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name"
    names = [name for (name,) in connection.execute(tables)]
    actual = [connection.execute(f"PRAGMA table_info({name})").fetchall() for name in names]
    connection.close()
    return [names, actual]


def test_a_migration_that_fails_changes_nothing(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_file, "MIGRATIONS", [*sqlite_file.MIGRATIONS, add_notes, break_down])
    with pytest.raises(FormatError, match="no such column"):
        SqliteEngine.open(path)
    monkeypatch.undo()
    assert user_version(path) == 1
    with SqliteEngine.open(path) as engine:
        assert engine.count() == RECORDED["entries"]
        assert engine.verify().damage == []


def test_an_earlier_library_that_cannot_be_written() -> None:
    """In a process without rights, because a superuser may write everywhere."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(shutil.copy(HERE / "library-v1.kin", folder))
        path.chmod(0o444)
        path.parent.chmod(0o555)
        child = subprocess.run(
            [sys.executable, "-c", READ_ONLY, path], capture_output=True, text=True, check=False
        )
        assert "earlier version, and it cannot be written" in child.stdout, child.stderr
        assert user_version(path) == 1


READ_ONLY = """
import os, sys
from graphkin.errors import StorageError
from graphkin.library.engines.sqlite.engine import SqliteEngine
if os.geteuid() == 0:
    os.setuid(65534)
try:
    SqliteEngine.open(sys.argv[1])
except StorageError as error:
    print(error)
"""
