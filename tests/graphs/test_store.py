"""The corpus on disk: round trips, crashes at every step, damage, and speed of opening."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import pickle
import random
import resource
import shutil
import signal
import struct
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphkin.errors import FormatError, GraphError, StorageError
from graphkin.graphs.graph import Graph, TokenBags
from graphkin.graphs.store import FILES, INDEX, TEXTS, WORDS, GraphStore
from tests.graphs.graph_strategies import EDGE_KINDS, NODE_KINDS, graphs

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)  # fmt: skip


@st.composite
def graphs_of_one_kind(draw: st.DrawFn) -> list[Graph]:
    traits: dict[str, Any] = {
        "directed": draw(st.booleans()),
        "node_kind": draw(st.sampled_from(NODE_KINDS)),
        "edge_kind": draw(st.sampled_from(EDGE_KINDS)),
        "widths": draw(st.tuples(st.integers(1, 3), st.integers(1, 3))),
        "words": draw(st.booleans()),
    }
    return draw(st.lists(graphs(**traits), min_size=1, max_size=5))


def path_graph(nodes: int) -> Graph:
    return Graph(
        nodes,
        [(i, i + 1) for i in range(nodes - 1)],
        directed=True,
        node_tokens=[[nodes] * (i % 3) for i in range(nodes)],
    )


def numbered(start: int, stop: int) -> dict[str, Any]:
    """Graphs start..stop of a sequence in which each can be told from every other."""
    numbers = range(start, stop)
    return {
        "graphs": [path_graph(1 + i % 9) for i in numbers],
        "names": [f"function {i}" for i in numbers],
        "metadata": [{"number": i} for i in numbers],
    }


def assert_numbered(store: GraphStore, length: int, start: int = 0) -> None:
    """The store has ``length`` graphs, good checksums, and the sequence from ``start`` on."""
    assert len(store) == length
    store.verify()
    expected = numbered(start, length)
    assert store[start:] == expected["graphs"]
    assert [store.name(i) for i in range(start, length)] == expected["names"]
    assert [store.metadata(i) for i in range(start, length)] == expected["metadata"]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "corpus.graphs"


@pytest.fixture
def store(path: Path) -> GraphStore:
    store = GraphStore.create(path)
    store.append(**numbered(0, 20))
    return store


@settings(max_examples=25)
@given(corpus=graphs_of_one_kind(), data=st.data())
def test_what_comes_out_is_what_went_in(corpus: list[Graph], data: st.DataObject) -> None:
    count = len(corpus)
    names = data.draw(st.lists(st.text(), min_size=count, max_size=count))
    metadata = data.draw(
        st.lists(st.dictionaries(st.text(), JSON, max_size=3), min_size=count, max_size=count)
    )
    cut = data.draw(st.integers(0, count))
    with tempfile.TemporaryDirectory() as folder:
        written = GraphStore.create(Path(folder) / "a")
        assert written.append(corpus[:cut], names[:cut], metadata[:cut]) == range(cut)
        assert written.append(corpus[cut:], names[cut:], metadata[cut:]) == range(cut, count)
        store = GraphStore.open(str(Path(folder) / "a"))
        for seen in (written, store):
            assert list(seen) == corpus
        assert [store.name(i) for i in range(count)] == names
        assert [store.metadata(i) for i in range(count)] == metadata
        assert store.node_counts.tolist() == [graph.num_nodes for graph in corpus]
        assert store.edge_counts.tolist() == [graph.num_edges for graph in corpus]
        for graph, read in zip(corpus, store, strict=True):
            for name, array in graph.arrays().items():
                assert read.arrays()[name].shape == array.shape
                assert read.arrays()[name].dtype == array.dtype
        store.verify()
        at_once = GraphStore.create(Path(folder) / "b")
        at_once.append(iter(corpus), iter(names), iter(metadata))
        assert at_once.digest() == store.digest() == written.digest()


def test_access_by_index_slice_and_list(store: GraphStore) -> None:
    graphs = numbered(0, 20)["graphs"]
    assert store[3:15:4] == graphs[3:15:4]
    assert store[::-1] == graphs[::-1]
    assert store[-1] == graphs[-1]
    assert store[np.int64(4)] == graphs[4]
    assert store.fetch([7, 0, -2, 7]) == [graphs[i] for i in (7, 0, -2, 7)]
    assert store.name(-1) == "function 19"
    for read in (store.__getitem__, store.name, store.metadata):
        for index in (20, -21):
            with pytest.raises(IndexError, match="of a store of 20 graphs"):
                read(index)


def test_names_and_metadata_may_be_left_out(path: Path) -> None:
    store = GraphStore.create(path)
    assert len(store) == 0
    assert list(store) == []
    assert store.kind is None
    assert store.append([]) == range(0)
    assert store.kind is None
    store.append([Graph(1)])
    assert (store.name(0), store.metadata(0)) == ("", {})


def test_counts_follow_an_append(store: GraphStore) -> None:
    assert len(store.node_counts) == len(store.edge_counts) == 20
    store.append(**numbered(20, 23))
    assert store.node_counts.tolist() == [1 + i % 9 for i in range(23)]
    assert store.edge_counts.tolist() == [i % 9 for i in range(23)]


def test_graphs_outlive_the_store(store: GraphStore, path: Path) -> None:
    graph = GraphStore.open(path)[5]
    shutil.rmtree(path)
    assert graph == path_graph(6)
    assert not graph.edges.flags.writeable


def test_digest_depends_on_all_content(tmp_path: Path) -> None:
    one, two = path_graph(3), path_graph(4)
    variants: list[tuple[Any, ...]] = [
        ([one, two],),
        ([two, one],),
        ([one, two], ["a", "b"]),
        ([one, two], ["c", "b"]),
        ([one, two], ["a", "c"]),
        ([one, two], ["ab", ""]),
        ([one, two], None, [{"a": 1}, {}]),
        ([one],),
        ([Graph(3), Graph(4)],),
        ([Graph(3, directed=True), Graph(4, directed=True)],),
    ]
    digests = set()
    for i, variant in enumerate(variants):
        store = GraphStore.create(tmp_path / str(i))
        store.append(*variant)
        digests.add(store.digest())
        assert len(store.digest()) == 64
    assert len(digests) == len(variants)


@pytest.mark.parametrize(
    ("other", "named"),
    [
        (Graph(2, node_tokens=[[1], []]), "directed=False"),
        (Graph(2, directed=True), "node_kind='constant'"),
        (Graph(2, directed=True, node_features=[[1.0], [2.0]]), "node_kind='dense'"),
        (
            Graph(2, [(0, 1)], directed=True, node_tokens=[[], []], edge_types=[1]),
            "edge_kind='types'",
        ),
    ],
)
def test_a_store_holds_one_kind(store: GraphStore, other: Graph, named: str) -> None:
    with pytest.raises(GraphError, match="graph 1 of the append is") as caught:
        store.append([path_graph(2), other])
    assert named in str(caught.value)
    assert "directed=True, node_kind='tokens'" in str(caught.value)
    assert_numbered(store, 20)


def test_feature_widths_belong_to_the_kind(path: Path) -> None:
    store = GraphStore.create(path)
    store.append([Graph(1, node_features=[[1.0, 2.0]])])
    with pytest.raises(GraphError, match=r"node_width=3.*node_width=2"):
        store.append([Graph(1, node_features=[[1.0, 2.0, 3.0]])])


@pytest.mark.parametrize(
    ("names", "metadata", "message"),
    [
        (["one"], None, "entry 1 .* got Graph, NoneType, dict"),
        (["one", "two", "three"], None, "entry 2 .* got NoneType, str, dict"),
        (None, [{}], "entry 1 .* got Graph, str, NoneType"),
        ([], None, "entry 0"),
        ([b"one", b"two"], None, "got Graph, bytes, dict"),
        (None, [{}, {"x": float("nan")}], "metadata of graph 1 are not JSON"),
        (None, [{}, {"x": {1, 2}}], "metadata of graph 1 are not JSON"),
    ],
)
def test_wrong_entries_are_refused_whole(
    store: GraphStore, names: Any, metadata: Any, message: str
) -> None:
    with pytest.raises(GraphError, match=message):
        store.append([path_graph(1), path_graph(2)], names, metadata)
    with pytest.raises(GraphError, match="got str, str, dict"):
        store.append(["not a graph"])  # type: ignore[list-item]
    assert_numbered(store, 20)


def test_a_failing_source_of_graphs_is_not_a_storage_error(store: GraphStore, path: Path) -> None:
    def graphs() -> Iterator[Graph]:
        yield path_graph(2)
        raise FileNotFoundError(errno.ENOENT, "no such binary")

    with pytest.raises(FileNotFoundError, match="no such binary"):
        store.append(graphs())
    assert_numbered(GraphStore.open(path), 20)


def test_readers_keep_the_state_as_of_open(store: GraphStore, path: Path) -> None:
    reader = GraphStore.open(path)
    digest = reader.digest()
    store.append(**numbered(20, 30))
    assert_numbered(reader, 20)
    assert reader.digest() == digest != store.digest()
    assert_numbered(GraphStore.open(path), 30)


def test_writers_in_turn_continue_each_other(store: GraphStore, path: Path) -> None:
    other = GraphStore.open(path)
    assert store.append(**numbered(20, 25)) == range(20, 25)
    assert other.append(**numbered(25, 30)) == range(25, 30)
    assert_numbered(other, 30)


def test_a_second_writer_is_refused(store: GraphStore, path: Path) -> None:
    def graphs() -> Iterator[Graph]:
        with pytest.raises(StorageError, match="another writer"):
            GraphStore.open(path).append(**numbered(20, 21))
        assert in_child(lambda: GraphStore.open(path).append(**numbered(20, 21))) == "StorageError"
        yield path_graph(1 + 20 % 9)

    store.append(graphs(), ["function 20"], [{"number": 20}])
    assert_numbered(store, 21)


def test_a_process_forked_meanwhile_does_not_keep_the_lock(store: GraphStore) -> None:
    children = []

    def graphs() -> Iterator[Graph]:
        children.append(os.fork())
        if children[-1] == 0:
            time.sleep(30)
            os._exit(0)
        yield path_graph(1)

    try:
        store.append(graphs())
        store.append([path_graph(1)])
    finally:
        os.kill(children[0], signal.SIGKILL)
        os.waitpid(children[0], 0)
    assert len(store) == 22


def test_a_worker_gets_the_path_and_not_the_arrays(store: GraphStore) -> None:
    store.append(**numbered(20, 500))
    sent = pickle.dumps(store)
    assert len(sent) < 1000
    assert_numbered(pickle.loads(sent), 500)


def test_the_manifest_stays_small(store: GraphStore, path: Path) -> None:
    before = (path / "manifest.json").stat().st_size
    for i in range(20, 40):
        store.append(**numbered(i, i + 1))
    assert (path / "manifest.json").stat().st_size < before + 30
    assert_numbered(GraphStore.open(path), 40)


def test_create_refuses_what_exists(store: GraphStore, path: Path) -> None:
    with pytest.raises(StorageError, match="exists"):
        GraphStore.create(path)
    assert_numbered(GraphStore.open(path), 20)


# Interrupted appends.


def in_child(work: Callable[[], object]) -> str:
    """Runs ``work`` in a process of its own; "ok", the class of its error, or its signal."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            work()
            os.write(writer, b"ok")
        except BaseException as error:
            os.write(writer, type(error).__name__.encode())
        finally:
            os._exit(0)
    os.close(writer)
    status = os.waitpid(child, 0)[1]
    with open(reader, "rb") as pipe:
        said = pipe.read().decode()
    return signal.Signals(os.WTERMSIG(status)).name if os.WIFSIGNALED(status) else said


def at_call(
    monkeypatch: pytest.MonkeyPatch, name: str, number: int, act: Callable[..., object]
) -> None:
    """Lets ``act`` run in place of call ``number`` of a function of ``os``."""
    real, calls = getattr(os, name), iter(range(1, 1000))

    def instead(*arguments: Any) -> object:
        return act(real, *arguments) if next(calls) == number else real(*arguments)

    monkeypatch.setattr(os, name, instead)


STEPS = [
    *(("write", number) for number in range(1, 4)),
    *(("fsync", number) for number in range(1, 6)),
    ("replace", 1),
]


@pytest.mark.parametrize(("name", "number"), STEPS)
def test_a_kill_at_any_step_keeps_the_old_corpus(
    store: GraphStore, path: Path, monkeypatch: pytest.MonkeyPatch, name: str, number: int
) -> None:
    def half_then_die(real: Callable[..., object], *arguments: Any) -> None:
        if name == "write":
            real(arguments[0], arguments[1][: len(arguments[1]) // 2])
        os.kill(os.getpid(), signal.SIGKILL)

    with monkeypatch.context() as patch:
        at_call(patch, name, number, half_then_die)
        assert in_child(lambda: store.append(**numbered(20, 40))) == "SIGKILL"
    # Only the last sync comes after the commit.
    length = 40 if (name, number) == ("fsync", 5) else 20
    assert_numbered(GraphStore.open(path), length)
    store.append(**numbered(length, 45))
    assert_numbered(GraphStore.open(path), 45)


def test_kills_at_random_moments(path: Path) -> None:
    store, batch, rng = GraphStore.create(path), 5, random.Random(0)
    for _ in range(10):
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            mine = GraphStore.open(path)
            while True:
                mine.append(**numbered(len(mine), len(mine) + batch))
                os.write(writer, b".")
        os.close(writer)
        os.read(reader, 1)
        time.sleep(rng.uniform(0, 0.06))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        before = len(store)
        with open(reader, "rb") as pipe:
            promised = before + (1 + len(pipe.read())) * batch
        store = GraphStore.open(path)
        # The last append may have been killed between its commit and its report.
        assert len(store) in (promised, promised + batch)
        assert_numbered(store, len(store), start=before)
        store.append(**numbered(len(store), len(store) + batch))
    assert_numbered(GraphStore.open(path), len(store))


@pytest.mark.parametrize(("name", "number"), STEPS)
def test_a_full_disk_loses_nothing(
    store: GraphStore, path: Path, monkeypatch: pytest.MonkeyPatch, name: str, number: int
) -> None:
    def full(real: Callable[..., object], *arguments: Any) -> None:
        if name == "write":
            real(arguments[0], arguments[1][: len(arguments[1]) // 2])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    sizes = [(path / file).stat().st_size for file in FILES]
    with monkeypatch.context() as patch:
        at_call(patch, name, number, full)
        with pytest.raises(StorageError, match=r"No space left.*committed is intact") as caught:
            store.append(**numbered(20, 40))
    committed = (name, number) == ("fsync", 5)
    assert ("graphs are in" in str(caught.value)) == committed
    if not committed:
        assert [(path / file).stat().st_size for file in FILES] == sizes
        assert_numbered(store, 20)
    length = 40 if committed else 20
    assert_numbered(GraphStore.open(path), length)
    store.append(**numbered(length, 45))
    assert_numbered(GraphStore.open(path), 45)


def test_an_interrupt_after_the_commit_does_not_undo_it(
    store: GraphStore, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(real: Callable[..., object], *arguments: Any) -> None:
        real(*arguments)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        at_call(patch, "replace", 1, interrupted)
        with pytest.raises(KeyboardInterrupt):
            store.append(**numbered(20, 40))
    assert_numbered(GraphStore.open(path), 40)


def test_a_real_limit_on_file_size(store: GraphStore, path: Path) -> None:
    def append_a_lot() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (5_000, 5_000))
        store.append(**numbered(20, 300))

    assert in_child(append_a_lot) == "StorageError"
    assert_numbered(GraphStore.open(path), 20)
    store.append(**numbered(20, 300))
    assert_numbered(store, 300)


def test_writes_may_be_cut_into_pieces(
    store: GraphStore, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.write
    monkeypatch.setattr(os, "write", lambda handle, data: real(handle, data[:37]))
    store.append(**numbered(20, 40))
    assert_numbered(GraphStore.open(path), 40)


# Damaged and foreign files.


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("kept", [None, 0.0, 0.5, 0.999])
def test_open_refuses_truncated_files(
    store: GraphStore, path: Path, name: str, kept: float | None
) -> None:
    size = (path / name).stat().st_size
    left = int(size * (kept or 0))
    if kept is None:
        (path / name).unlink()
    else:
        os.truncate(path / name, left)
    message = f"{name} is truncated: expected {size} bytes, found {left}; restore"
    with pytest.raises(FormatError, match=message):
        GraphStore.open(path)
    with pytest.raises(FormatError, match=message):
        store.append(**numbered(20, 21))


def test_open_refuses_what_is_no_store(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"\x7fELF")
    for i, manifest in enumerate([None, "", "[1]", "{}", "null", "[" * 100_000, "\xff"]):
        (tmp_path / str(i)).mkdir()
        if manifest is not None:
            (tmp_path / str(i) / "manifest.json").write_text(manifest, encoding="latin-1")
    for name in ("absent", "file", *map(str, range(7))):
        with pytest.raises(FormatError, match=f"{name} is not a graph store.*check the path"):
            GraphStore.open(tmp_path / name)


def test_open_refuses_another_version(store: GraphStore, path: Path) -> None:
    manifest = json.loads((path / "manifest.json").read_text())
    (path / "manifest.json").write_text(json.dumps(manifest | {"version": 2}))
    with pytest.raises(FormatError, match=r"'version': 1}, got .*'version': 2}.*graphkin that"):
        GraphStore.open(path)


def test_open_refuses_a_changed_manifest(store: GraphStore, path: Path) -> None:
    text = (path / "manifest.json").read_text()
    manifest = json.loads(text)
    changes: list[dict[str, Any]] = [
        {"graphs": 19},
        {"kind": None},
        {"kind": manifest["kind"] | {"directed": False}},
        {"kind": {"directed": False}},
        {"lengths": manifest["lengths"][:2]},
        {"crc32": [0, 0, 0]},
        {"digest": "0"},
        {"unknown": 1},
    ]
    for change in changes:
        (path / "manifest.json").write_text(json.dumps(manifest | change))
        with pytest.raises(FormatError, match=r"manifest.json is damaged.*restore"):
            GraphStore.open(path)
    (path / "manifest.json").write_text(text)
    assert_numbered(GraphStore.open(path), 20)


def test_a_manifest_that_lies_is_a_format_error(store: GraphStore, path: Path) -> None:
    manifest = json.loads((path / "manifest.json").read_text())
    del manifest["digest"]
    index, words, texts = manifest["lengths"]
    changes: list[dict[str, Any]] = [
        {},
        {"graphs": 21},
        {"graphs": -1},
        {"graphs": "20"},
        {"kind": None},
        {"kind": None, "lengths": [index, 0, texts]},
        {"kind": manifest["kind"] | {"node_width": 2}},
        {"kind": manifest["kind"] | {"node_width": "1"}},
        {"lengths": [index, words, texts - 1]},
        {"lengths": [index, words - 4, texts]},
        {"lengths": [index - 32, words, texts]},
        {"lengths": [-8, words, texts]},
        {"lengths": ["x", words, texts]},
        {"lengths": [index]},
    ]
    for change in changes:
        changed = manifest | change
        digest = hashlib.sha256(json.dumps(changed, sort_keys=True).encode()).hexdigest()
        (path / "manifest.json").write_text(json.dumps(changed | {"digest": digest}))
        if not change:
            assert_numbered(GraphStore.open(path), 20)
            continue
        with pytest.raises(FormatError, match=r"is damaged.*restore"):
            GraphStore.open(path)


@pytest.mark.parametrize("value", [-1, 2**40, -(2**63), 2**63 - 1, 0])
@pytest.mark.parametrize("column", range(4))
def test_offsets_that_lie_are_format_errors(
    store: GraphStore, path: Path, column: int, value: int
) -> None:
    with open(path / INDEX, "r+b") as handle:
        handle.seek((11 * 4 + column) * 8)
        handle.write(struct.pack("<q", value))
    damaged = GraphStore.open(path)
    for index in (10, 11) if value else (10,):
        for read in (damaged.__getitem__, damaged.name, damaged.metadata):
            with pytest.raises(FormatError, match=f"{INDEX} is damaged: graph {index}"):
                read(index)
    assert damaged[9] == path_graph(1)
    with pytest.raises(FormatError, match=f"{INDEX} is damaged: expected CRC-32"):
        damaged.verify()


@pytest.mark.parametrize("column", range(4))
def test_a_last_offset_that_lies_is_found_at_open(
    store: GraphStore, path: Path, column: int
) -> None:
    with open(path / INDEX, "r+b") as handle:
        handle.seek((20 * 4 + column) * 8)
        handle.write(struct.pack("<q", 2**61))
    with pytest.raises(FormatError, match=f"{INDEX} is damaged"):
        GraphStore.open(path)


def test_damage_anywhere_is_found_and_crashes_nothing(store: GraphStore, path: Path) -> None:
    rng = random.Random(0)
    for name in FILES:
        intact = (path / name).read_bytes()
        # The last row of the index is checked at open, by the test above.
        end = len(intact) - 32 if name == INDEX else len(intact)
        for _ in range(30):
            spot = rng.randrange(end)
            changed = bytes([intact[spot] ^ (1 << rng.randrange(8))])
            (path / name).write_bytes(intact[:spot] + changed + intact[spot + 1 :])
            damaged = GraphStore.open(path)
            with pytest.raises(FormatError, match=f"{name} is damaged.*restore"):
                damaged.verify()
            for i in range(20):
                for read in (damaged.__getitem__, damaged.name, damaged.metadata):
                    with suppress(FormatError):
                        read(i)
        (path / name).write_bytes(intact)
    assert_numbered(GraphStore.open(path), 20)


def test_wrong_words_and_texts_name_the_graph(store: GraphStore, path: Path) -> None:
    (path / WORDS).write_bytes(b"\xff" * (path / WORDS).stat().st_size)
    (path / TEXTS).write_bytes(b"?" * (path / TEXTS).stat().st_size)
    damaged = GraphStore.open(path)
    with pytest.raises(FormatError, match=f"{WORDS} is damaged: graph 3: edge 0"):
        damaged[3]
    for read in (damaged.name, damaged.metadata):
        with pytest.raises(FormatError, match=f"{TEXTS} is damaged: graph 3"):
            read(3)


# Size.


def test_a_large_store_opens_at_once(path: Path) -> None:
    count = 200_000
    tiny = [Graph(n, [(0, n - 1)]) for n in (1, 2, 3, 4)]
    store = GraphStore.create(path)
    store.append(tiny[i % 4] for i in range(count))
    times = []
    for _ in range(5):
        start = time.perf_counter()
        opened = GraphStore.open(path)
        times.append(time.perf_counter() - start)
    assert min(times) < 0.05
    assert len(opened) == count
    assert opened[count - 1] == tiny[3]
    assert opened.node_counts.sum() == count // 4 * 10
    assert sum(file.stat().st_size for file in path.iterdir()) < count * 64


def test_large_graphs_pass_through(path: Path) -> None:
    rng = np.random.default_rng(0)
    offsets = np.cumsum([0, *rng.integers(0, 5, 50_000)])
    large = Graph(
        50_000,
        rng.integers(0, 50_000, (100_000, 2)),
        node_tokens=TokenBags(rng.integers(0, 1000, offsets[-1]).astype(np.int32), offsets),
    )
    small = Graph(2, [(0, 1)], node_tokens=[[1], [2, 3]])
    store = GraphStore.create(path)
    store.append([large, small, large])
    assert store[:] == [large, small, large]
    store.verify()


@pytest.mark.parametrize(
    "change",
    [
        {"graphs": "1"},
        {"graphs": -1},
        {"content": 5},
        {"lengths": 5},
        {"crc32": ["x", 0, 0]},
        {"kind": {"node_width": "tokens"}},
        {"kind": {"edge_width": 2**40}},
        {"kind": {"node_kind": ["tokens"]}},
        {"kind": {"directed": 1}},
    ],
    ids=str,
)
def test_a_manifest_made_by_others(tmp_path: Path, change: dict[str, Any]) -> None:
    """Whoever makes a store can make a digest that fits, whatever the store says."""
    path = tmp_path / "c"
    GraphStore.create(path).append([Graph(2, [(0, 1)])])
    manifest = json.loads((path / "manifest.json").read_text())
    del manifest["digest"]
    change = {"kind": manifest["kind"] | change["kind"]} if "kind" in change else change
    manifest |= change
    text = json.dumps(manifest, sort_keys=True)
    manifest["digest"] = hashlib.sha256(text.encode()).hexdigest()
    (path / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(FormatError, match=r"manifest\.json is damaged: its values are not"):
        GraphStore.open(path)
