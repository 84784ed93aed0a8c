"""Files that are no libraries, and libraries that something has damaged."""

from __future__ import annotations

import os
import random
import resource
import shutil
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphkin.errors import ConfigError, FormatError, GraphkinError, StorageError
from graphkin.graphs import Graph
from graphkin.graphs.encoding import dump_graph
from graphkin.library.engines.base import Space, UnknownIdError
from graphkin.library.engines.sqlite.engine import SqliteEngine
from graphkin.library.engines.sqlite.file import _remove_half_made
from graphkin.library.engines.sqlite.snapshot import Snapshot, read_snapshot, write_snapshot
from graphkin.library.records import Filter
from tests.library.engines.contract import DOCUMENTS, SPACES, WORDS, sample_rows
from tests.paths import REPOSITORY

SPACE = Space("euclidean", 12)


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A library with a side file, closed in order."""
    path = tmp_path_factory.mktemp("sound") / "library.kin"
    with SqliteEngine.create(path, SPACE, DOCUMENTS) as engine:
        engine.add(sample_rows(SPACE, 250))
        engine.remove(Filter(architecture="arm"))
        engine.compact()
    return path


@pytest.fixture
def path(sound: Path, tmp_path: Path) -> Path:
    for ending in ("", ".cache"):
        shutil.copy(f"{sound}{ending}", tmp_path)
    return tmp_path / sound.name


def content(engine: SqliteEngine) -> list[Any]:
    """All that a person put into a library."""
    stored = list(engine.scan())
    ids = [item.id for item in stored]
    vectors, words = engine.vectors(ids).tolist(), [own.tolist() for own in engine.words(ids)]
    shared = engine.sharing(WORDS, np.ones(len(WORDS), np.float32), 1000)
    actual = [stored, engine.graphs(ids), vectors, engine.signals(ids), words, shared]
    return [*actual, dict(engine.documents())]


def change(path: Path, statement: str, values: Any = ()) -> None:
    connection = sqlite3.connect(path)
    with connection:
        connection.execute(statement, values)
    connection.close()


@pytest.mark.parametrize(
    "data", [b"", b"#!/bin/sh\n", b"SQLite format 3\0", bytes(range(256)) * 64]
)
def test_foreign_files(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "file"
    path.write_bytes(data)
    with pytest.raises(FormatError, match="not a library of graphkin"):
        SqliteEngine.open(path)
    assert path.read_bytes() == data


def test_another_sqlite_file(tmp_path: Path) -> None:
    change(tmp_path / "file", "CREATE TABLE entries (id)")
    with pytest.raises(FormatError, match="is a SQLite file, but not a library"):
        SqliteEngine.open(tmp_path / "file")


def test_no_file(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="there is no library"):
        SqliteEngine.open(tmp_path / "absent")
    with pytest.raises(ConfigError, match="is a folder; a library is a file"):
        SqliteEngine.open(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_newer_version(path: Path) -> None:
    change(path, "PRAGMA user_version = 7")
    with pytest.raises(FormatError, match="version 7"):
        SqliteEngine.open(path)


def test_a_destroyed_first_page(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(random.Random(0).randbytes(4096) + data[4096:])
    with pytest.raises(FormatError, match="not a library of graphkin"):
        SqliteEngine.open(path)
    path.write_bytes(data[:100] + random.Random(0).randbytes(3996) + data[4096:])
    with pytest.raises(FormatError, match="damaged"):
        SqliteEngine.open(path)


@pytest.mark.parametrize("share", [0.2, 0.5, 0.95])
def test_a_file_cut_off(path: Path, share: float) -> None:
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * share)])
    with pytest.raises(FormatError, match="damaged"):
        SqliteEngine.open(path)


@pytest.mark.parametrize(
    ("statement", "named"),
    [
        ("UPDATE entries SET vector = zeroblob(48) WHERE id = 9", "entry 9 is not what was stored"),
        ("UPDATE entries SET vector = x'00' WHERE id = 9", "entry 9 is not what was stored"),
        ("UPDATE entries SET function = 'x' WHERE id = 9", "entry 9 is not what was stored"),
        ("UPDATE entries SET address = 77 WHERE id = 9", "entry 9 is not what was stored"),
        ("UPDATE entries SET graph = 9999 WHERE id = 9", "row 9 of entries refers to a row of"),
        ("UPDATE entries SET tags = 9999 WHERE id = 9", "row 9 of entries refers to a row of"),
        ("UPDATE entries SET signals = 7 WHERE id = 9", "entry 9 is not what was stored"),
        (
            "UPDATE signals SET content = zeroblob(48) WHERE id = 9",
            "signals of entry 9 are not",
        ),
        ("DELETE FROM signals WHERE id = 9", "the signals of entry 9 are not what was stored"),
        ("UPDATE facts SET value = 47 WHERE name = 'signals'", "48 bytes of signals, expected 47"),
        ("UPDATE facts SET value = 'x' WHERE name = 'signals'", "its signals have 'x' bytes"),
        ("INSERT INTO signals VALUES (9999, x'00')", "row 9999 of signals refers to a row of"),
        ("UPDATE words SET content = zeroblob(8) WHERE graph = 6", "the words of graph 6 are not"),
        ("UPDATE words SET content = x'00' WHERE graph = 6", "the words of graph 6 are not"),
        ("DELETE FROM words WHERE graph = 6", "the words of graph 6 are not what was stored"),
        (
            "UPDATE graphs SET words = 7 WHERE id = 6",
            "the words of graph 6 are not what was stored",
        ),
        ("INSERT INTO words VALUES (9999, x'00')", "row 9999 of words refers to a row of graphs"),
        ("DELETE FROM graphs WHERE id = 5", "refers to a row of graphs that is not there"),
        ("DELETE FROM entries WHERE nodes = 30", "belongs to no entry"),
        ("UPDATE graphs SET content = x'00' WHERE id = 5", "graph 5: expected the bytes of a"),
        (
            "UPDATE graphs SET content = substr(content, 1, 30) WHERE id = 5",
            "graph 5: the bytes of",
        ),
        ("UPDATE graphs SET hash = zeroblob(32) WHERE id = 5", "graph 5 is another than its hash"),
        ("UPDATE texts SET value = '{' WHERE value LIKE '{%0160%'", "tags of the library are"),
        ("UPDATE texts SET kind = 17 WHERE id = 1", "text 1: its kind is 17"),
        ("UPDATE texts SET value = 5 WHERE id = 1", "text 1: a text of the library is damaged"),
        ("UPDATE documents SET content = x'00' WHERE name = 'weights'", "document 'weights'"),
        ("UPDATE sqlite_sequence SET seq = 3", "ids of entries up to"),
        ("DROP TABLE documents", "documents cannot be read to the end: no such table"),
    ],
)
def test_damage_is_named(path: Path, statement: str, named: str) -> None:
    change(path, statement)
    with SqliteEngine.open(path) as engine:
        damage = engine.verify().damage
    assert any(named in sentence for sentence in damage), damage


def test_another_graph_of_the_right_form(path: Path) -> None:
    change(path, "UPDATE graphs SET content = ? WHERE id = 5", (dump_graph(Graph(2)),))
    with SqliteEngine.open(path) as engine:
        damage = engine.verify().damage
    assert any("graph 5 is another than its hash" in sentence for sentence in damage)
    assert any("nodes, its graph has 2" in sentence for sentence in damage)


@pytest.mark.parametrize("space", SPACES, ids=lambda space: space.metric)
def test_a_wrong_side_file_is_named(tmp_path: Path, space: Space) -> None:
    path = tmp_path / "library.kin"
    with SqliteEngine.create(path, space, DOCUMENTS) as engine:
        engine.add(sample_rows(space, 60))
        engine.compact()
        assert engine.verify().notes["side_file"] == "used"
        snapshot = read_snapshot(Path(f"{path}.cache"))
        assert snapshot is not None
        for name, array in snapshot.arrays.items():
            other = np.array(array)
            other[20] += 1
            write_snapshot(
                Path(f"{path}.cache"), Snapshot(snapshot.state, {**snapshot.arrays, name: other})
            )
            damage = engine.verify().damage
            assert len(damage) == 1
            assert f"library.kin.cache differs from the library in {name!r}" in damage[0]


def test_long_lists_of_damage_are_cut(path: Path) -> None:
    change(path, "UPDATE entries SET function = 'x'")
    with SqliteEngine.open(path) as engine:
        damage = engine.verify().damage
        assert damage[-1].startswith("entries: ")
        assert damage[-1].endswith("more of the same")
        assert len(damage) == 21


def test_what_is_not_found_is_not_there(sound: Path, path: Path) -> None:
    """Bytes are changed at random: verify names it, or all that was stored is as it was."""
    with SqliteEngine.open(sound) as engine:
        expected = content(engine)
    data = path.read_bytes()
    rng = random.Random(1)
    noticed = 0
    for _ in range(60):
        damaged = bytearray(data)
        for _ in range(rng.choice((1, 1, 30))):
            damaged[rng.randrange(200, len(data))] ^= rng.randrange(1, 256)
        path.write_bytes(damaged)
        try:
            with SqliteEngine.open(path) as engine:
                if engine.verify().damage:
                    noticed += 1
                else:
                    assert content(engine) == expected
        except GraphkinError:
            noticed += 1
    assert noticed > 20


def test_a_new_tag_does_not_hide_damage(path: Path) -> None:
    with SqliteEngine.open(path) as engine:
        damaged = list(engine.scan())[5].id
    change(path, "UPDATE entries SET size = 12345 WHERE id = ?", (damaged,))
    with SqliteEngine.open(path) as engine:
        with pytest.raises(FormatError, match=f"entry {damaged} is not what was stored"):
            engine.tag(Filter(), {"seen": "yes"})
        assert engine.count(Filter(tags={"seen": "*"})) == 0
        assert engine.verify().damage == [f"entry {damaged} is not what was stored"]


def test_lost_signals_are_not_taken_for_none(path: Path) -> None:
    with SqliteEngine.open(path) as engine:
        first = next(engine.scan()).id
    change(path, "DELETE FROM signals")
    with (
        SqliteEngine.open(path) as engine,
        pytest.raises(FormatError, match=f"the signals of entry {first} are not what was"),
    ):
        engine.signals([first])


def searched(path: Path, vectors: Any) -> list[Any]:
    """What a search tells: entries with all that belongs to them, and their distances."""
    with SqliteEngine.open(path) as engine:
        ids, distances = engine.nearest(vectors, 5)
        numbers = ids.ravel().tolist()
        texts = [item.entry for item in engine.fetch(numbers)]
        shared = engine.sharing(WORDS, np.ones(len(WORDS), np.float32), 20)
        own = [word.tolist() for word in engine.words(numbers)]
        exact = engine.vectors(numbers).tolist()
        return [numbers, distances.tolist(), texts, engine.signals(numbers), shared, own, exact]


def damaged_at(path: Path, wanted: bytes, ending: str = "") -> Iterator[None]:
    """A file with one bit of some bytes flipped, wherever those bytes are."""
    file = Path(f"{path}{ending}")
    data = file.read_bytes()
    start = data.find(wanted)
    assert start >= 0
    while start >= 0:
        for offset in {0, len(wanted) // 2, len(wanted) - 1}:
            damaged = bytearray(data)
            damaged[start + offset] ^= 1
            file.write_bytes(damaged)
            yield
        start = data.find(wanted, start + 1)
    file.write_bytes(data)


@pytest.mark.parametrize("with_side_file", [True, False])
def test_a_search_does_not_tell_what_was_not_stored(path: Path, with_side_file: bool) -> None:
    """Names, vectors, ids, signals and words are hit on purpose: the search fails, or is right."""
    side = Path(f"{path}.cache")
    with SqliteEngine.open(path) as engine:
        items = list(engine.scan())[::40]
        ids = [item.id for item in items]
        vectors, signals = engine.vectors(ids), engine.signals(ids)
        words = [own.tobytes() for own in engine.words(ids)]
    expected, kept = searched(path, vectors), side.read_bytes()
    texts = [text for item in items for text in (item.entry.function, item.entry.binary)]
    names = [text.encode("utf-8", "surrogatepass") for text in texts]
    aimed = [*names, *(vector.tobytes() for vector in vectors), *signals, *filter(None, words)]
    noticed = count = 0
    for wanted in aimed:
        for _ in damaged_at(path, wanted):
            side.write_bytes(kept) if with_side_file else side.unlink(missing_ok=True)
            count += 1
            try:
                assert searched(path, vectors) == expected
            except FormatError:
                noticed += 1
    assert noticed > count / 4


PAGE, TABLE_LEAF = 4096, 13
"""Of SQLite: bytes of a page, and its first byte where rows of a table lie in it."""


def number_places(path: Path, key: bytes) -> Iterator[int]:
    """Where the number of an entry lies in the file: in the table, and in the index of keys."""
    data = path.read_bytes()
    start = data.find(key)
    while start >= 0:
        page = start - start % PAGE
        if data[page] == TABLE_LEAF:
            cells = int.from_bytes(data[page + 3 : page + 5])
            places = [page + int.from_bytes(data[page + 8 + 2 * n :][:2]) for n in range(cells)]
            # A cell is the length of its payload, of several bytes but for the last above 127,
            # and the number of the row.
            place = max(place for place in places if place < start)
            while data[place] > 127:
                place += 1
            yield place + 1
        else:
            yield start + len(key)
        start = data.find(key, start + 1)


@pytest.mark.parametrize("with_side_file", [True, False])
def test_damaged_numbers_of_entries(path: Path, with_side_file: bool) -> None:
    side = Path(f"{path}.cache")
    connection = sqlite3.connect(path)
    keys = [row[0] for row in connection.execute("SELECT key FROM entries ORDER BY id")][::40]
    connection.close()
    with SqliteEngine.open(path) as engine:
        vectors = engine.vectors([item.id for item in engine.scan()][::40])
    expected, kept, content = searched(path, vectors), side.read_bytes(), path.read_bytes()
    places = [place for key in keys for place in number_places(path, key)]
    assert len(places) == 2 * len(keys), "a row of the table, and one of the index"
    noticed = 0
    for place in places:
        damaged = bytearray(content)
        damaged[place] ^= 1
        path.write_bytes(damaged)
        side.write_bytes(kept) if with_side_file else side.unlink(missing_ok=True)
        try:
            assert searched(path, vectors) == expected
        except (FormatError, UnknownIdError):
            noticed += 1
        with SqliteEngine.open(path) as engine:
            assert engine.verify().damage
    assert noticed > len(places) / 2


def test_a_damaged_side_file_is_not_used_and_made_anew(path: Path) -> None:
    side = Path(f"{path}.cache")
    snapshot = read_snapshot(side)
    assert snapshot is not None
    kept = side.read_bytes()
    with SqliteEngine.open(path) as engine:
        vectors = engine.vectors([item.id for item in engine.scan()][::40])
    expected = searched(path, vectors)
    for array in snapshot.arrays.values():
        for _ in damaged_at(path, array.tobytes(), ".cache"):
            assert searched(path, vectors) == expected
            assert side.read_bytes() == kept


def test_damaged_documents_are_not_given_out(path: Path) -> None:
    change(path, "UPDATE documents SET content = x'00' WHERE name = 'weights'")
    with (
        SqliteEngine.open(path) as engine,
        pytest.raises(FormatError, match="document 'weights' is not what was stored"),
    ):
        engine.documents()


def test_a_missing_table_is_named(path: Path) -> None:
    change(path, "DROP TABLE finished")
    with SqliteEngine.open(path) as engine:
        assert "the table finished is missing" in engine.verify().damage


KILLED = """
import os, signal, sys
from graphkin.library.engines.sqlite.engine import SqliteEngine
from tests.library.engines.contract import DOCUMENTS, sample_rows
from tests.library.engines.sqlite.test_damage import SPACE
engine = SqliteEngine.create(sys.argv[1], SPACE, DOCUMENTS)
engine.add(sample_rows(SPACE, 100))
os.kill(os.getpid(), signal.SIGKILL)
"""


def leave_a_log(path: Path) -> None:
    """Of a library whose process was killed, and whose file was deleted then."""
    subprocess.run([sys.executable, "-c", KILLED, path], check=False, cwd=REPOSITORY)
    path.unlink()
    assert Path(f"{path}-wal").stat().st_size > 50_000


def test_a_new_library_does_not_take_over_the_log_of_a_deleted_one(tmp_path: Path) -> None:
    path = tmp_path / "library.kin"
    leave_a_log(path)
    with SqliteEngine.create(path, SPACE, DOCUMENTS) as engine:
        assert engine.count() == 0
        assert engine.documents() == DOCUMENTS
        rows = sample_rows(SPACE, 40)
        assert engine.add(rows) == len(rows)
    with SqliteEngine.open(path) as engine:
        assert engine.count() == len(rows)
        assert engine.verify().damage == []


def test_an_old_log_is_gone_for_good_before_a_new_library_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A kill or a power cut between the steps leaves no library with a foreign log."""
    path = tmp_path / "library.kin"
    log = Path(f"{path}-wal")
    leave_a_log(path)
    steps: list[tuple[str, bool]] = []
    flush, move = os.fsync, os.replace

    def watched_flush(handle: int) -> None:
        if stat.S_ISDIR(os.fstat(handle).st_mode):
            steps.append(("flush of the folder", log.exists()))
        flush(handle)

    def watched_move(source: Path, target: Path) -> None:
        steps.append(("move", log.exists()))
        move(source, target)

    monkeypatch.setattr(os, "fsync", watched_flush)
    monkeypatch.setattr(os, "replace", watched_move)
    SqliteEngine.create(path, SPACE, DOCUMENTS).close()
    assert steps == [("flush of the folder", False), ("move", False)]


def test_libraries_created_at_once_in_one_place_are_one(tmp_path: Path) -> None:
    """And the log of who came first is not removed by the others."""
    rows = sample_rows(SPACE, 30)

    def create(path: Path) -> SqliteEngine | str:
        try:
            engine = SqliteEngine.create(path, SPACE, DOCUMENTS)
        except StorageError as error:
            return str(error)
        assert engine.add(rows) == len(rows)
        return engine

    with ThreadPoolExecutor(4) as pool:
        for number in range(15):
            path = tmp_path / f"{number}.kin"
            outcomes = list(pool.map(create, [path] * 4))
            refused = [outcome for outcome in outcomes if isinstance(outcome, str)]
            assert len(refused) == 3
            assert all("exists already" in message for message in refused)
            with SqliteEngine.open(path) as other:
                assert other.count() == len(rows)
            for outcome in outcomes:
                if isinstance(outcome, SqliteEngine):
                    outcome.close()


def test_a_library_that_is_there_keeps_its_log(tmp_path: Path) -> None:
    path = tmp_path / "library.kin"
    with SqliteEngine.create(path, SPACE, DOCUMENTS) as engine:
        engine.add(sample_rows(SPACE, 30))
        log = Path(f"{path}-wal").read_bytes()
        assert log
        with pytest.raises(StorageError, match="exists already"):
            SqliteEngine.create(path, SPACE, DOCUMENTS)
        assert Path(f"{path}-wal").read_bytes() == log


@contextmanager
def files_of_at_most(size: int) -> Iterator[None]:
    """A disk that is full as soon as a file is larger."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("room", [0, 8192])
@pytest.mark.parametrize("left", [(), ("-wal", "-shm")], ids=["clean", "after another attempt"])
def test_a_library_on_a_full_disk_can_be_read(path: Path, room: int, left: tuple[str, ...]) -> None:
    before = sorted(path.parent.iterdir())
    with SqliteEngine.open(path) as engine:
        expected = content(engine)
        count = engine.count()
    for ending in left:
        Path(f"{path}{ending}").touch()
    with files_of_at_most(room), SqliteEngine.open(path) as engine:
        assert content(engine) == expected
        assert engine.verify().damage == []
        assert sorted(path.parent.iterdir()) == before
        with pytest.raises(StorageError, match=r"cannot add to .*its disk was full when it was op"):
            engine.add(sample_rows(SPACE, 300))
    assert sorted(path.parent.iterdir()) == before
    with SqliteEngine.open(path) as engine:
        engine.add(sample_rows(SPACE, 300))
        assert engine.count() > count


def test_a_log_that_a_full_disk_hides_is_not_ignored(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("INSERT INTO finished VALUES ('a', 'b')")
    connection.commit()
    log = Path(f"{path}-wal")
    pending, whole = log.read_bytes(), path.read_bytes()
    connection.close()
    path.write_bytes(whole)
    log.write_bytes(pending)
    with (
        files_of_at_most(0),
        pytest.raises(StorageError, match=r"writes waiting in .*disk is full"),
    ):
        SqliteEngine.open(path)
    assert log.read_bytes() == pending
    with SqliteEngine.open(path) as engine:
        assert ("a", "b") in engine.finished_files()


def test_what_another_connection_uses_stays_when_the_disk_is_full(path: Path) -> None:
    with SqliteEngine.open(path) as engine:
        count = engine.count()
        shared_memory = Path(f"{path}-shm")
        there = shared_memory.stat().st_ino
        _remove_half_made(path)
        assert shared_memory.stat().st_ino == there
        assert engine.add(sample_rows(SPACE, 300)) > 0
        assert engine.count() > count


def test_a_full_disk_while_a_library_is_created_leaves_all_or_nothing(tmp_path: Path) -> None:
    """Whatever the size that files may have."""
    path, refused = tmp_path / "library.kin", 0
    for most_bytes in range(0, 200_000, 3000):
        try:
            with files_of_at_most(most_bytes):
                SqliteEngine.create(path, SPACE, DOCUMENTS).close()
        except StorageError:
            refused += 1
            assert not list(tmp_path.iterdir())
            continue
        with SqliteEngine.open(path) as engine:
            assert engine.verify().damage == []
            assert engine.documents() == DOCUMENTS
        path.unlink()
    assert refused > 20
