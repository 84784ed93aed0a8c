"""The contract of engines, and what is particular to Milvus, against a real server."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from graphkin.errors import ConfigError, FormatError, MissingDependencyError, StorageError
from graphkin.library.engines.milvus import (
    client as milvus_client,
)
from graphkin.library.engines.milvus import (
    collection as milvus_schema,
)
from graphkin.library.engines.milvus import (
    compaction as milvus_compaction,
)
from graphkin.library.engines.milvus import (
    engine as milvus_engine,
)
from graphkin.library.engines.milvus import (
    filters as milvus_filters,
)
from graphkin.library.engines.milvus import (
    rows as milvus_rows,
)
from graphkin.library.engines.milvus.engine import MilvusEngine
from graphkin.library.engines.milvus.payloads import dump_payload
from graphkin.library.records import Filter, KnownFunction
from tests.library.engines.contract import (
    DOCUMENTS,
    SPACES,
    EngineContract,
    Library,
    check_nearest,
    in_order_of_ids,
    sample_rows,
)
from tests.library.engines.milvus.libraries import Factory, raw_client
from tests.library.engines.milvus.server import milvus_address
from tests.paths import REPOSITORY

CODES = SPACES[0]


@pytest.fixture(scope="class")
def engine_factory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Factory]:
    factory = Factory(milvus_address(), tmp_path_factory.mktemp("graphs"))
    yield factory
    factory.drop()


class TestContract(EngineContract):
    has_lists = False
    has_order = False


@pytest.fixture(scope="module")
def factory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Factory]:
    factory = Factory(milvus_address(), tmp_path_factory.mktemp("graphs"))
    yield factory
    factory.drop()


@pytest.fixture(scope="module")
def shared(factory: Factory) -> Iterator[MilvusEngine]:
    """A library of codes in two shards, which tests leave empty."""
    url = f"{factory.url()}?shards=2&graphs-folder={factory.graphs_folder}"
    with MilvusEngine.create(url, CODES, DOCUMENTS) as engine:
        yield engine


@pytest.fixture
def engine(shared: MilvusEngine) -> Iterator[MilvusEngine]:
    yield shared
    shared.remove(Filter())


def test_a_url_alone_finds_the_graphs(engine: MilvusEngine) -> None:
    rows = sample_rows(CODES, 20)
    engine.add(rows)
    with MilvusEngine.open(str(engine.address)) as again:
        assert again.space == CODES
        assert again.documents() == DOCUMENTS
        ids = [stored.id for stored in again.scan()]
        assert set(again.graphs(ids)) == {row.graph for row in rows}


def test_graphs_that_were_moved(factory: Factory, engine: MilvusEngine, tmp_path: Path) -> None:
    engine.add(sample_rows(CODES, 20))
    elsewhere = tmp_path / "mounted elsewhere"
    factory.graphs_folder.rename(elsewhere)
    try:
        with pytest.raises(StorageError, match=f"not at {engine.bundles.folder}; mount that"):
            MilvusEngine.open(str(engine.address))
        with MilvusEngine.open(str(engine.address), graphs_folder=elsewhere) as again:
            assert again.verify().damage == []
        with MilvusEngine.open(f"{engine.address}?payloads={elsewhere}") as again:
            assert again.documents() == DOCUMENTS
        url = f"{engine.address}?graphs-folder={elsewhere}"
        with MilvusEngine.open(url, graphs_folder=tmp_path) as again:
            assert again.documents() == DOCUMENTS, "the address knows better than an option"
    finally:
        elsewhere.rename(factory.graphs_folder)


def test_a_folder_without_the_graphs_has_no_effect(engine: MilvusEngine, tmp_path: Path) -> None:
    """It is meant for the other library of a copy."""
    with MilvusEngine.open(str(engine.address), graphs_folder=tmp_path) as again:
        assert again.bundles.folder == engine.bundles.folder


def test_what_is_no_library(factory: Factory, engine: MilvusEngine) -> None:
    missing, foreign = factory.url(), factory.url()
    assert not MilvusEngine.exists(missing)
    with pytest.raises(FormatError, match="there is no library milvus://"):
        MilvusEngine.open(missing)
    client = raw_client(factory.address)
    client.create_collection(foreign.rpartition("/")[2], schema=milvus_schema.records_schema())
    client.close()
    assert MilvusEngine.exists(foreign)
    with pytest.raises(FormatError, match="something else than graphkin"):
        MilvusEngine.open(foreign)
    for url in (foreign, str(engine.address)):
        with pytest.raises(StorageError, match="exists already"):
            MilvusEngine.create(url, CODES, {}, graphs_folder=factory.graphs_folder)
    with pytest.raises(ConfigError, match="needs a folder for its graphs"):
        MilvusEngine.create(missing, CODES, {})


@pytest.mark.parametrize("listens", [False, True], ids=["nobody listens", "nobody answers"])
def test_a_server_that_is_not_there_is_noticed_soon(listens: bool) -> None:
    with socket.socket() as own:
        own.bind(("127.0.0.1", 0))
        if listens:
            own.listen()
        url = f"milvus://127.0.0.1:{own.getsockname()[1]}/library"
        start = time.monotonic()
        with pytest.raises(StorageError, match=f"cannot reach .*{own.getsockname()[1]}"):
            MilvusEngine.open(url)
        assert time.monotonic() - start < 15


def test_without_the_package_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pymilvus", None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'graphkin\[milvus\]'"):
        MilvusEngine.open("milvus://localhost/library")


def test_another_client_sees_at_once_what_was_acknowledged(engine: MilvusEngine) -> None:
    with MilvusEngine.open(str(engine.address)) as other:
        for number, row in enumerate(sample_rows(CODES, 5), start=1):
            engine.add([row])
            assert other.count() == number
            assert other.nearest(row.vector[None], 1).distances[0, 0] == 0
            assert other.known([row.key]) == {row.key}


def test_pages_of_a_scan_over_shards_are_in_order(
    engine: MilvusEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(milvus_client, "PAGE", 30)
    rows = sample_rows(CODES, 300)
    engine.add(rows)
    engine._rows.flush()
    engine.add(more := sample_rows(CODES, 100, seed=1))
    ids = [stored.id for stored in engine.scan()]
    assert ids == sorted(milvus_rows.candidate_ids(row.key)[0] for row in rows + more)
    assert [stored.id for stored in engine.fetch(ids[::-1])] == ids[::-1]


def test_ids_decide_among_many_that_are_as_far(engine: MilvusEngine) -> None:
    rows = sample_rows(CODES, 900)
    near = rows[0].vector
    for number, row in enumerate(rows):
        rows[number] = row._replace(vector=near if number % 2 else ~near)
    engine.add(rows)
    equal = sorted(milvus_rows.candidate_ids(row.key)[0] for row in rows[1::2])
    nearest = engine.nearest(near[None], 200)
    assert nearest.ids[0].tolist() == equal[:200]
    assert (nearest.distances == 0).all()
    assert engine.nearest(near[None], 450).ids[0].tolist() == equal


def test_patterns_with_too_many_texts_are_checked_row_by_row(
    engine: MilvusEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(milvus_filters, "MOST_TEXTS", 1)
    monkeypatch.setattr(milvus_engine, "IDS_AT_ONCE", 20)
    rows = sample_rows(CODES, 200)
    engine.add(rows)
    rows = in_order_of_ids(engine, rows)
    library = Library(engine, rows, np.array([stored.id for stored in engine.scan()]))
    for where in (
        Filter(binary="*lib*"),
        Filter(binary="/lib/lib[!s]*", build="gcc*O?"),
        Filter(tags={"cve": "CVE-20??-*"}),
        Filter(function="*m*", tags={"cve": "CVE-20??-*"}, min_blocks=10),
    ):
        expected = milvus_filters.condition(where, engine._texts)
        assert not expected.rest.is_empty(), "the server must not have been able to decide it"
        fitting = library.ids[library.fitting(where)].tolist()
        assert [stored.id for stored in engine.scan(where)] == fitting
        assert engine.count(where) == len(fitting) > 0
        check_nearest(library, rows[0].vector[None], 15, where)


def test_ids_belong_to_keys(engine: MilvusEngine) -> None:
    rows = sample_rows(CODES, 30)
    engine.add(rows)
    before = [stored.id for stored in engine.scan()]
    gone = engine.remove(Filter(architecture="arm*"))
    assert gone > 0
    assert engine.add(rows) == gone
    assert [stored.id for stored in engine.scan()] == before


def test_keys_that_want_the_same_id(engine: MilvusEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [
        row._replace(entry=KnownFunction(function=f"f{number}"))
        for number, row in enumerate(sample_rows(CODES, 4))
    ]
    pairs = {
        row.key: pair for row, pair in zip(rows, [(5, 6), (5, 7), (5, 7), (8, 5)], strict=True)
    }
    monkeypatch.setattr(milvus_rows, "candidate_ids", pairs.__getitem__)
    assert engine.add([rows[0], rows[1]]) == 2
    assert engine.add([rows[1], rows[0], rows[3]]) == 1
    assert [stored.id for stored in engine.scan()] == [5, 7, 8]
    assert [stored.entry for stored in engine.scan()] == [rows[i].entry for i in (0, 1, 3)]
    assert engine.known(pairs) == {rows[i].key for i in (0, 1, 3)}
    with pytest.raises(StorageError, match=f"key {rows[2].key.hex()} are taken"):
        engine.add([rows[2]])
    assert engine.remove(Filter(function="f0")) == 1
    assert engine.add([rows[1]]) == 0, "its id stays the second"
    assert engine.add([rows[2]]) == 1
    assert engine.count() == 3


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        (KnownFunction(function="x" * 65_536), "65536 bytes"),
        (KnownFunction(binary="\N{SNOWMAN}" * 30_000), "90000 bytes"),
        (KnownFunction(tags={"note": "x" * 65_530}), "65542 bytes"),
        (KnownFunction(tags={f"tag{number}": "" for number in range(2001)}), "2001 tags"),
        (KnownFunction(function="\U0010ffff"), "leave it out"),
    ],
)
def test_what_milvus_cannot_hold_adds_nothing(
    engine: MilvusEngine, entry: KnownFunction, message: str
) -> None:
    rows = sample_rows(CODES, 1100)
    with pytest.raises(ConfigError, match=message):
        engine.add([*rows, rows[0]._replace(key=b"k" * 16, entry=entry)])
    assert engine.count() == 0


@pytest.mark.parametrize(
    ("tags", "message"),
    [
        ({"note": "x" * 65_530}, "65542 bytes"),
        ({f"tag{number}": "" for number in range(2001)}, "2001 tags"),
        ({"note": "\U0010ffff"}, "leave it out"),
    ],
)
def test_tags_that_milvus_cannot_hold_change_nothing(
    engine: MilvusEngine, tags: dict[str, str], message: str
) -> None:
    engine.add(rows := sample_rows(CODES, 20))
    with pytest.raises(ConfigError, match=message):
        engine.tag(Filter(), tags)
    assert in_order_of_ids(engine, rows)


def test_the_longest_that_milvus_holds(engine: MilvusEngine) -> None:
    odd = "\0\x01\x7f\r\n'\"\\ \N{SNOWMAN}\U0001f600"
    tags = {f"tag{number}": str(number) for number in range(2000)}
    rows = [
        row._replace(
            entry=KnownFunction("x" * 65_535, odd, address=index, tags=tags if not index else {})
        )
        for index, row in enumerate(sample_rows(CODES, 150))
    ]
    assert engine.add(rows) == 150, "some 10 MB, more than goes into one call"
    rows = in_order_of_ids(engine, rows)
    items = list(engine.scan(Filter(function="xx*", binary=odd)))
    assert [stored.entry for stored in items] == [row.entry for row in rows]
    assert engine.count(Filter(tags={"tag1999": "1999", "tag7": "[7]"})) == 1


def test_compaction_gives_back_bundles(factory: Factory, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = factory.create(CODES, DOCUMENTS)
    rows = sample_rows(CODES, 300, graphs=300)
    for start in range(0, 300, 30):
        engine.add(rows[start : start + 30])
    documents = {bundle.name for bundle in engine.bundles} - {
        row["bundle"] for row in engine._rows.scan("", ["bundle"], after=0)
    }
    assert len(documents) == len(DOCUMENTS)
    engine.remove(Filter(architecture="arm*"))
    kept = [row for row in rows if not row.entry.architecture.startswith("arm")]

    engine.compact()
    assert len(list(engine.bundles)) == 13, "what is young stays, beside a new one"
    monkeypatch.setattr(milvus_compaction, "GRACE_SECONDS", -60)
    engine.compact()
    bundles = {bundle.name: bundle.size for bundle in engine.bundles}
    assert len(bundles.keys() - documents) == 1
    assert sum(bundles[name] for name in bundles.keys() - documents) == sum(
        len(dump_payload(row)) for row in kept
    )
    assert engine.documents() == DOCUMENTS
    assert engine.verify().damage == []
    ids = [stored.id for stored in engine.scan()]
    kept = in_order_of_ids(engine, kept)
    assert engine.graphs(ids) == [row.graph for row in kept]
    check_nearest(Library(engine, kept, np.array(ids)), kept[0].vector[None], 10, Filter())
    engine.close()


def test_verify_names_damage(engine: MilvusEngine) -> None:
    rows = sample_rows(CODES, 30)
    engine.add(rows[:10])
    engine.add(rows[10:])
    every = {row["id"]: row for row in engine._rows.scan("", ["bundle", "start"], after=0)}
    bundles = {row["bundle"] for row in every.values()}
    first, second = (engine.bundles.folder / name[:2] / name for name in sorted(bundles))
    contents = {path: path.read_bytes() for path in (first, second)}
    try:
        first.unlink()
        broken = bytearray(contents[second])
        broken[10] ^= 1
        second.write_bytes(broken)
        verification = engine.verify()
        assert verification.entries == 30
        lost = {own for own, row in every.items() if row["bundle"] == first.name}
        hurt = {
            own for own, row in every.items() if row["bundle"] == second.name and not row["start"]
        }
        assert hurt
        named = [int(sentence.split()[1].strip(":")) for sentence in verification.damage]
        assert sorted(named) == sorted(lost | hurt)
        assert sum(f"{first.name} is missing" in line for line in verification.damage) == len(lost)
        with pytest.raises(FormatError, match=first.name):
            engine.graphs([min(lost)])
    finally:
        for path, content in contents.items():
            path.write_bytes(content)
    assert engine.verify().damage == []


ADDER = """
import sys
sys.path.insert(0, sys.argv[2])
from tests.library.engines.contract import SPACES, sample_rows
from graphkin.graphs.encoding import dump_graph
from graphkin.library.engines.milvus.engine import MilvusEngine
engine = MilvusEngine.open(sys.argv[1])
rows = sample_rows(SPACES[0], 1000)
print("ready", flush=True)
for start in range(0, 1000, 20):
    engine.add(rows[start : start + 20])
    print(start + 20, flush=True)
"""


def test_a_killed_writer_loses_nothing_that_was_acknowledged(engine: MilvusEngine) -> None:
    command = [sys.executable, "-c", ADDER, str(engine.address), str(REPOSITORY)]
    rows = sample_rows(CODES, 1000)
    for seconds in (0.1, 0.7):
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        time.sleep(seconds)
        process.kill()
        told = process.communicate()[0].splitlines()
        acknowledged = rows[: int(told[-1])] if told else []
        assert engine.known(row.key for row in acknowledged) == {row.key for row in acknowledged}
    assert engine.verify().damage == [], "rows that were not acknowledged are whole as well"
    known = engine.count()
    assert 0 < known < 1000, "it was killed in the middle"
    assert engine.add(rows) == 1000 - known
    assert engine.count() == 1000
