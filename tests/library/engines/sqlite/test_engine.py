"""The embedded engine: the contract of all engines, and what only one file must do."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from glob import escape
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphkin.errors import ConfigError, StorageError
from graphkin.library.engines.base import Engine, Space
from graphkin.library.engines.sqlite import cache as sqlite_cache
from graphkin.library.engines.sqlite import nearest as scanning
from graphkin.library.engines.sqlite.engine import SqliteEngine
from graphkin.library.records import Filter, KnownFunction, Row
from tests.library.engines.contract import (
    BINARIES,
    DOCUMENTS,
    SPACES,
    EngineContract,
    Library,
    check_sharing,
    in_order_of_ids,
    sample_graph,
    sample_rows,
    sample_vectors,
)

SPACE = SPACES[0]


class Files:
    """Libraries in files of their own."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._made = folder, 0

    def create(self, space: Space, documents: Mapping[str, bytes]) -> Engine:
        self._made += 1
        return SqliteEngine.create(self._folder / f"{self._made}.kin", space, documents)

    def reopen(self, engine: Engine) -> Engine:
        assert isinstance(engine, SqliteEngine)
        engine.close()
        return SqliteEngine.open(engine.path)


class TestSqliteEngine(EngineContract):
    @pytest.fixture(scope="class")
    @classmethod
    def engine_factory(cls, tmp_path_factory: pytest.TempPathFactory) -> Files:
        return Files(tmp_path_factory.mktemp("libraries"))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "library.kin"


@pytest.fixture
def engine(path: Path) -> Iterator[SqliteEngine]:
    with SqliteEngine.create(path, SPACE, DOCUMENTS) as engine:
        yield engine


def test_the_smallest_ids_win_where_distances_are_equal(engine: SqliteEngine) -> None:
    rows = [row._replace(vector=np.zeros(8, np.uint8)) for row in sample_rows(SPACE, 90)]
    engine.add(rows)
    ids = [stored.id for stored in engine.scan()]
    query = np.zeros((1, 8), np.uint8)
    assert engine.nearest(query, 7).ids[0].tolist() == ids[:7]
    where = Filter(architecture="arm64")
    matching = [stored.id for stored in engine.scan(where)]
    assert engine.nearest(query, 7, where).ids[0].tolist() == matching[:7]


def test_a_graph_is_kept_once_and_goes_with_its_last_entry(engine: SqliteEngine) -> None:
    graph = sample_graph(5)
    rows = [row._replace(graph=graph, graph_hash=graph.digest()) for row in sample_rows(SPACE, 50)]
    engine.add(rows)
    assert engine.stats()["graphs"] == 1
    last = rows[-1].entry.function
    for function in {row.entry.function for row in rows} - {last}:
        engine.remove(Filter(function=escape(function)))
    assert engine.stats()["graphs"] == 1
    assert engine.graphs([stored.id for stored in engine.scan()])[0] == graph
    engine.remove(Filter())
    engine.add(sample_rows(SPACE, 1, seed=3))
    assert engine.stats()["graphs"] == 1
    assert engine.verify().damage == []


def test_one_write_is_all_or_nothing(engine: SqliteEngine) -> None:
    def store(seed: int, ends: bool) -> None:
        with engine.one_write():
            engine.add(sample_rows(SPACE, 4, seed=seed))
            engine.finish_files([(f"file {seed}", "settings")])
            if not ends:
                raise KeyError(seed)

    with pytest.raises(KeyError):
        store(1, ends=False)
    assert (engine.count(), engine.finished_files()) == (0, set())
    store(2, ends=True)
    assert (engine.count(), engine.finished_files()) == (4, {("file 2", "settings")})
    with SqliteEngine.open(engine.path) as other:
        assert other.count() == 4
    assert engine.verify().damage == []


def test_signals_of_another_length_are_refused(engine: SqliteEngine) -> None:
    rows = sample_rows(SPACE, 4)
    engine.add([rows[0]._replace(signals=b"")])
    with pytest.raises(ConfigError, match="must have 48 bytes, got 2; use the model"):
        engine.add([rows[1], rows[2]._replace(signals=b"ab")])
    assert engine.count() == 1
    engine.add([rows[1]._replace(signals=b"ab")])
    with pytest.raises(ConfigError, match="must have 2 bytes, got 48"):
        engine.add(rows[2:])
    assert engine.stats()["bytes"]["signals"] == 2


def test_lists_follow_other_writers(engine: SqliteEngine, path: Path) -> None:
    """However the words reach a reader: at once, piece by piece, or from a side file."""
    rows = sample_rows(SPACE, 400, graphs=300)
    random = np.random.default_rng(3)
    with SqliteEngine.open(path) as reader:
        start = 0
        while start < len(rows):
            stop = start + int(random.integers(1, 60))
            engine.add(rows[start:stop])
            start = stop
            check_words_lead_to(reader, rows[:stop])
        engine.remove(Filter(architecture="arm*"))
        rows = [row for row in rows if not row.entry.architecture.startswith("arm")]
        check_words_lead_to(reader, rows)
        check_words_lead_to(engine, rows)
    with SqliteEngine.open(path) as reader:
        check_words_lead_to(reader, rows)
    engine.compact()
    with SqliteEngine.open(path) as reader:
        assert reader.verify().notes["side_file"] == "used"
        check_words_lead_to(reader, rows)
        more = sample_rows(SPACE, 100, seed=4)
        engine.add(more)
        check_words_lead_to(reader, rows + more)
        assert reader.verify().notes["side_file"] == "used"
        assert reader.verify().damage == []


def check_words_lead_to(engine: SqliteEngine, rows: Sequence[Row]) -> None:
    ids = np.array([stored.id for stored in engine.scan()])
    assert len(ids) == len(rows)
    library = Library(engine, in_order_of_ids(engine, rows), ids)
    for seed in range(3):
        check_sharing(library, seed, 25, Filter())


@settings(max_examples=20, deadline=None)
@given(
    entry=st.builds(
        KnownFunction,
        function=st.text(st.characters()),
        binary=st.text(st.characters()),
        compiler=st.text(st.characters(), max_size=3),
        address=st.none() | st.integers(0, 2**64 - 1),
        size=st.none() | st.integers(0, 2**64 - 1),
        tags=st.dictionaries(st.text(st.characters()), st.text(st.characters()), max_size=2),
    )
)
def test_any_text_and_number_is_kept(shared: SqliteEngine, entry: KnownFunction) -> None:
    shared.add([sample_rows(SPACE, 1)[0]._replace(entry=entry, key=os.urandom(16))])
    where = Filter(function=escape(entry.function), binary=escape(entry.binary))
    *_, stored = shared.scan(where)
    assert stored.entry == entry
    assert shared.count(Filter(tags={tag: escape(text) for tag, text in entry.tags.items()}))


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SqliteEngine]:
    folder = tmp_path_factory.mktemp("shared")
    with SqliteEngine.create(folder / "library.kin", SPACE, DOCUMENTS) as engine:
        yield engine


def test_stats(engine: SqliteEngine, path: Path) -> None:
    rows = sample_rows(SPACE, 200)
    engine.add(rows)
    stats = engine.stats()
    assert stats["binaries"] == len(BINARIES)
    assert stats["graphs"] == 60
    for name, key in (("architecture", "architectures"), ("build", "builds")):
        counted = Counter(getattr(row.entry, name) for row in rows)
        assert stats[key] == counted
        assert list(stats[key].values()) == sorted(counted.values(), reverse=True)
    assert stats["top_binaries"] == Counter(row.entry.binary for row in rows)
    tagged = sum(row.entry.tags.get("cve") == "CVE-2014-0160" for row in rows)
    assert stats["tags"]["cve=CVE-2014-0160"] == tagged
    assert stats["bytes"]["vectors_in_memory"] == 200 * 8
    log = Path(f"{path}-wal").stat().st_size
    assert stats["bytes"]["library"] == path.stat().st_size + log
    engine.compact()
    assert engine.stats()["bytes"]["side_file"] == Path(f"{path}.cache").stat().st_size > 200 * 8


def test_compact_gives_space_back(engine: SqliteEngine, path: Path) -> None:
    engine.add(sample_rows(SPACE, 1000, graphs=1000))
    engine.compact()
    full = path.stat().st_size
    engine.remove(Filter(min_blocks=2))
    engine.compact()
    assert path.stat().st_size < full / 3
    assert Path(f"{path}-wal").stat().st_size == 0
    texts = sqlite3.connect(path).execute("SELECT count(*) FROM texts").fetchone()[0]
    engine.remove(Filter())
    engine.compact()
    assert texts > 0
    assert sqlite3.connect(path).execute("SELECT count(*) FROM texts").fetchone()[0] == 0
    assert engine.add(sample_rows(SPACE, 10)) == 10


@pytest.mark.parametrize("space", SPACES, ids=lambda space: space.metric)
def test_approximate_libraries_say_what_they_miss(
    space: Space, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scanning, "LIST_ROWS", 400)
    rows = sample_rows(space, 500)
    with SqliteEngine.create(path, space, DOCUMENTS, approximate=True) as engine:
        engine.add(rows[:350])
        assert engine.verify().notes["recall@10"] == 1.0
        engine.add(rows[350:])
        verification = engine.verify()
        assert verification.damage == []
        assert 0.3 < verification.notes["recall@10"] <= 1
    with SqliteEngine.open(path) as engine:
        assert engine.approximate
        assert engine.nearest(rows[0].vector[None], 5).ids.min() > 0
        assert engine.remove(Filter(architecture="arm*")) > 0
        assert engine.verify().damage == []


def test_many_threads_may_share_an_engine(engine: SqliteEngine) -> None:
    rows = sample_rows(SPACE, 400)
    queries = np.stack([row.vector for row in rows])

    def work(place: int) -> int:
        if place % 10 == 0:
            engine.add(rows[place : place + 10])
        nearest = engine.nearest(queries[place][None], 3)
        return len(engine.fetch([int(number) for number in nearest.ids[0] if number > 0]))

    with ThreadPoolExecutor(8) as pool:
        assert min(pool.map(work, range(400))) >= 0
    assert engine.count() == 400
    assert engine.verify().damage == []


def test_codes_of_whole_bytes_only(path: Path) -> None:
    with pytest.raises(ConfigError, match="12"):
        SqliteEngine.create(path, Space("hamming", 12), {})


def test_an_existing_file_is_not_touched(path: Path) -> None:
    path.write_bytes(b"mine")
    with pytest.raises(StorageError, match="exists already"):
        SqliteEngine.create(path, SPACE, DOCUMENTS)
    assert path.read_bytes() == b"mine"


def test_a_folder_is_made_and_nothing_else_left_there(tmp_path: Path) -> None:
    path = tmp_path / "new" / "library.kin"
    SqliteEngine.create(path, SPACE, DOCUMENTS).close()
    assert [file.name for file in path.parent.iterdir()] == ["library.kin"]
    with pytest.raises(StorageError, match="cannot write"):
        SqliteEngine.create(path / "below", SPACE, DOCUMENTS)


@pytest.mark.parametrize("rows", [50, 400])
def test_the_side_file_is_written_when_it_pays(
    path: Path, rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_cache, "SAVED_ROWS", 100)
    side, old = Path(f"{path}.cache"), Path(f"{path}.scan")
    old.write_bytes(b"of no use")
    with SqliteEngine.create(path, SPACE, DOCUMENTS) as engine:
        engine.add(sample_rows(SPACE, rows))
    assert side.exists() == (rows >= 100)
    assert old.exists() == (rows < 100), "the side file of the first libraries had another name"
    before = side.exists() and side.stat().st_mtime_ns
    with SqliteEngine.open(path) as engine:
        engine.add(sample_rows(SPACE, 20, seed=1))
        assert engine.count() == rows + 20
    assert (side.exists() and side.stat().st_mtime_ns) == before


@pytest.mark.parametrize("space", SPACES, ids=lambda space: space.metric)
def test_a_side_file_is_used_only_while_it_is_right(
    space: Space, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_cache, "SAVED_ROWS", 10)
    side, copy = Path(f"{path}.cache"), path.with_name("copy")
    rows, queries = sample_rows(space, 300), sample_vectors(space, 5, np.random.default_rng(3))

    def results() -> list[Any]:
        with SqliteEngine.open(path) as engine:
            assert engine.verify().damage == []
            nearest = engine.nearest(queries, 8)
            return [nearest.ids.tolist(), nearest.distances.tolist()]

    with SqliteEngine.create(path, space, DOCUMENTS) as engine:
        engine.add(rows[:200])
        engine.compact()
        older = path.read_bytes()
        engine.add(rows[200:250])
    with_side = results()
    shutil.copy(side, copy)
    for damage in (b"", side.read_bytes()[:1000], b"x" * 5000):
        side.write_bytes(damage)
        assert results() == with_side
    side.unlink()
    assert results() == with_side

    # The library is restored from an older copy, and grows another way.
    newer = path.read_bytes()
    path.write_bytes(older)
    shutil.copy(copy, side)
    with SqliteEngine.open(path) as engine:
        engine.add(rows[250:])
    restored = results()
    side.unlink()
    assert restored == results() != with_side

    # Something is removed, but not the last entry.
    path.write_bytes(newer)
    others = {row.entry.architecture for row in rows} - {rows[249].entry.architecture}
    with SqliteEngine.open(path) as engine:
        for architecture in others:
            assert engine.remove(Filter(architecture=architecture))
    shutil.copy(copy, side)
    stale = results()
    side.unlink()
    assert stale == results() != with_side


def test_a_side_file_from_before_a_tag_is_not_used(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_cache, "SAVED_ROWS", 10)
    side, tagged = Path(f"{path}.cache"), Filter(tags={"seen": "yes"})
    with SqliteEngine.create(path, SPACE, DOCUMENTS) as engine:
        engine.add(sample_rows(SPACE, 100))
    old = side.read_bytes()
    with SqliteEngine.open(path) as engine:
        count = engine.tag(Filter(architecture="arm*"), {"seen": "yes"})
        assert engine.tag(Filter(architecture="arm*"), {"seen": "yes"}) == count > 0
    new = side.read_bytes()
    for content, use in ((old, "stale"), (new, "used")):
        side.write_bytes(content)
        with SqliteEngine.open(path) as engine:
            verification = engine.verify()
            assert (verification.damage, verification.notes["side_file"]) == ([], use)
            assert engine.count(tagged) == count


def test_tags_that_are_there_write_nothing(engine: SqliteEngine, path: Path) -> None:
    engine.add(sample_rows(SPACE, 50))
    engine.tag(Filter(), {"seen": "yes"})
    with SqliteEngine.open(path) as other:
        version = other._file.changes_by_others()
        assert engine.tag(Filter(), {"seen": "yes"}) == 50
        assert other._file.changes_by_others() == version
        engine.tag(Filter(), {"seen": "no"})
        assert other._file.changes_by_others() != version


def test_a_library_that_cannot_be_written_can_be_read() -> None:
    """In a process without rights, because a superuser may write everywhere."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "library.kin"
        with SqliteEngine.create(path, SPACE, DOCUMENTS) as engine:
            engine.add(sample_rows(SPACE, 100))
        path.chmod(0o444)
        path.parent.chmod(0o555)
        child = subprocess.run(
            [sys.executable, "-c", READ_ONLY, path], capture_output=True, text=True, check=False
        )
        assert child.stdout.split("\n")[:2] == ["100 100", "refused"], child.stderr
        assert [file.name for file in path.parent.iterdir()] == ["library.kin"]
        Path(f"{path}-wal").write_bytes(b"what a killed writer left")
        child = subprocess.run(
            [sys.executable, "-c", READ_ONLY, path], capture_output=True, text=True, check=False
        )
        assert "writes waiting in library.kin-wal" in child.stderr


READ_ONLY = """
import os, sys
import numpy as np
from graphkin.errors import StorageError
from graphkin.library.records import Filter
from graphkin.library.engines.sqlite.nearest import faiss
from graphkin.library.engines.sqlite.engine import SqliteEngine
faiss()
if os.geteuid() == 0:
    os.setuid(65534)
engine = SqliteEngine.open(sys.argv[1])
print(engine.count(), len(engine.nearest(np.zeros((1, 8), np.uint8), 100).ids[0]))
try:
    engine.remove(Filter())
except StorageError:
    print("refused")
"""
