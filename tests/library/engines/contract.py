"""What every engine must do, whatever holds its rows.

A subclass provides ``engine_factory``, a class method that is a fixture of scope ``class``; see
:class:`EngineFactory`.
Engines are made few times, and rows are few, because some engines are slow at both.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, Protocol

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from graphkin.errors import ConfigError
from graphkin.graphs import Graph
from graphkin.library.engines import base
from graphkin.library.engines.base import Engine, Space, UnknownIdError
from graphkin.library.records import Filter, KnownFunction, Row, Vector, WordArray

SPACES = (Space("hamming", 64), Space("euclidean", 12), Space("cosine", 12))
DOCUMENTS = {"config.json": b"{}", "weights": bytes(range(256)) * 300}

FUNCTIONS = ("main", "memcpy", "ssl3_read[part.0]", "nom\u00e9", "odd\udc80\udcff", "a*b", "")
BINARIES = ("/lib/libssl.so", "/lib/libz.so", "libx.a(one.o)", "C:\\d\u00e9\udcb0.dll", 'it\'s "q"')
ARCHITECTURES = ("x86-64", "arm64", "arm", "")
COMPILERS = ("gcc 12", "clang 15", "")
BUILDS = ("gcc-12-O2", "gcc-12-O0", "")
FILE_HASHES = ("aa" * 32, "bb" * 32, "cd" * 32, "")
TAGS: tuple[Mapping[str, str], ...] = (
    {},
    {"cve": "CVE-2014-0160"},
    {"cve": "CVE-2021-3711", "team": "caf\u00e9 \udcaa"},
    {"team": ""},
)
SIGNALS = 48
"""Bytes of the signals of a row."""
WORDS = np.random.default_rng(0).integers(0, 2**64, 40, dtype=np.uint64, endpoint=False)
WORDS[:2] = 0, 2**64 - 1
NUMBERS = (None, 0, 1, 0x401000, 2**63 - 1, 2**63, 2**64 - 1)


class EngineFactory(Protocol):
    """Makes engines of the kind under test, and ends with whatever it started."""

    def create(self, space: Space, documents: Mapping[str, bytes]) -> Engine:
        """An engine with a new, empty library."""

    def reopen(self, engine: Engine) -> Engine:
        """Closes an engine, and opens its library again."""


class Library(NamedTuple):
    engine: Engine
    rows: list[Row]
    ids: NDArray[np.int64]
    """(R,) of each row, rising."""

    def fitting(self, where: Filter) -> NDArray[np.bool_]:
        """(R,) by what the filter says itself."""
        return np.array([where.matches(row.entry, row.graph.num_nodes) for row in self.rows])


def sample_graph(number: int) -> Graph:
    nodes = 1 + number % 30
    edges = [(i, i + 1) for i in range(nodes - 1)]
    return Graph(nodes, edges, directed=True, node_tokens=[[number]] * nodes)


def sample_words(number: int) -> WordArray:
    """Few different words, of which few graphs have many; some have none."""
    random = np.random.default_rng(number)
    return WORDS[random.permutation(len(WORDS))[: max(0, random.integers(-2, 12))]]


def sample_vectors(space: Space, count: int, random: np.random.Generator) -> NDArray[Any]:
    """(count, columns) around few centres, many of them equal, so that distances tie."""
    which = random.integers(0, 12, count)
    if space.metric == "hamming":
        centres = random.integers(0, 256, (12, space.columns), dtype=np.uint8)
        flips = np.packbits(random.random((count, space.width)) < 0.03, axis=1)
        return centres[which] ^ flips * (random.random((count, 1)) < 0.5).astype(np.uint8)
    centres = random.standard_normal((12, space.columns))
    noise = random.standard_normal((count, space.columns)) * (random.random((count, 1)) < 0.5)
    return (centres[which] + 0.2 * noise).astype(np.float32)


def sample_rows(space: Space, count: int, seed: int = 0, graphs: int = 60) -> list[Row]:
    """Rows with all kinds of metadata, several for each graph, each with a key of its own."""
    random, random_signals = np.random.default_rng(seed), np.random.default_rng([seed, 1])
    vectors = sample_vectors(space, count, random)

    def any_of(values: Sequence[Any]) -> Any:
        return values[random.integers(len(values))]

    rows = []
    for number in range(count):
        entry = KnownFunction(
            function=f"{any_of(FUNCTIONS)}{any_of(('', number))}",
            binary=any_of(BINARIES),
            address=any_of(NUMBERS),
            size=any_of(NUMBERS),
            architecture=any_of(ARCHITECTURES),
            compiler=any_of(COMPILERS),
            build=any_of(BUILDS),
            file_hash=any_of(FILE_HASHES),
            tags=any_of(TAGS),
        )
        which = 1000 * seed + number % graphs
        graph = sample_graph(which)
        key = np.array([seed, number], dtype="<u8").tobytes()
        content = graph.digest(), graph, vectors[number], random_signals.bytes(SIGNALS)
        rows.append(Row(key, entry, *content, sample_words(which)))
    return rows


def in_order_of_ids(engine: Engine, rows: Sequence[Row]) -> list[Row]:
    """The rows that an engine holds, as a scan returns them: ids need not follow the adding."""

    def content(entry: KnownFunction, graph_hash: str, vector: Vector) -> tuple[str, str, bytes]:
        ordered = replace(entry, tags=dict(sorted(entry.tags.items())))
        return repr(ordered), graph_hash, vector.tobytes()

    by_content = defaultdict(list)
    for row in rows:
        by_content[content(row.entry, row.graph_hash, row.vector)].append(row)
    stored = list(engine.scan())
    vectors = engine.vectors([item.id for item in stored])
    rows_in_order = []
    for item, vector in zip(stored, vectors, strict=True):
        same = by_content[content(item.entry, item.graph_hash, vector)]
        assert same, f"{item} was not added, or not so often"
        rows_in_order.append(same.pop())
    return rows_in_order


def distances(space: Space, query: Vector, vectors: NDArray[Any]) -> NDArray[np.float64]:
    """(N,) of one query, by the definition."""
    if space.metric == "hamming":
        return np.unpackbits(query ^ vectors, axis=1).sum(axis=1).astype(np.float64)
    wide, others = query.astype(np.float64), vectors.astype(np.float64)
    if space.metric == "euclidean":
        return np.square(others - wide).sum(axis=1)
    lengths = np.linalg.norm(wide) * np.linalg.norm(others, axis=1)
    return 1 - (others @ wide) / np.where(lengths > 0, lengths, 1)


def check_nearest(library: Library, queries: NDArray[Any], count: int, where: Filter) -> None:
    """Compares with a search by hand: distances, not ids, because ties are everywhere."""
    engine, rows, ids = library
    space, chosen = engine.space, library.fitting(where)
    stored = np.stack([row.vector for row in rows])
    nearest = engine.nearest(queries, count, None if where.is_empty() else where)
    assert nearest.ids.shape == nearest.distances.shape == (len(queries), count)
    assert nearest.ids.dtype == np.int64
    assert nearest.distances.dtype == np.float32
    for query, own_ids, own in zip(queries, nearest.ids, nearest.distances, strict=True):
        every = distances(space, query, stored)
        filled = min(count, int(chosen.sum()))
        assert np.isinf(own[filled:]).all()
        assert (own_ids[filled:] == -1).all()
        own_ids, own = own_ids[:filled], own[:filled]
        np.testing.assert_allclose(own, np.sort(every[chosen])[:filled], rtol=1e-4, atol=1e-5)
        positions = np.searchsorted(ids, own_ids)
        assert (ids[positions] == own_ids).all()
        assert chosen[positions].all()
        assert len(set(own_ids.tolist())) == filled
        np.testing.assert_allclose(own, every[positions], rtol=1e-4, atol=1e-5)
        assert list(zip(own, own_ids, strict=True)) == sorted(zip(own, own_ids, strict=True))


def sharing_by_hand(
    library: Library, words: WordArray, weights: NDArray[np.float32], count: int, where: Filter
) -> list[tuple[int, float]]:
    """What :meth:`Engine.sharing` must find."""
    weight_of = dict(zip(words.tolist(), weights.astype(np.float64).tolist(), strict=True))
    graphs: defaultdict[int, set[str]] = defaultdict(set)
    for row in library.rows:
        for word in row.words.tolist() if row.words is not None else ():
            graphs[word].add(row.graph_hash)
    rare = {word for word in weight_of if len(graphs[word]) <= base.COMMON_WORD}
    shared = []
    for row, own, fits in zip(library.rows, library.ids, library.fitting(where), strict=True):
        both = rare & set(row.words.tolist() if row.words is not None else ())
        if both and fits:
            # In the order of the query, as an engine adds them up.
            shared.append((int(own), sum(weight_of[word] for word in weight_of if word in both)))
    return sorted(shared, key=lambda pair: (-pair[1], pair[0]))[:count]


def check_sharing(library: Library, seed: int, count: int, where: Filter) -> None:
    random = np.random.default_rng(seed)
    words = np.append(random.choice(WORDS, 8, replace=False), np.uint64(12345))
    weights = random.choice(np.array([0.5, 1, 2.25], np.float32), len(words))
    actual = library.engine.sharing(words, weights, count, None if where.is_empty() else where)
    assert actual == sharing_by_hand(library, words, weights, count, where)


def beside_by_hand(library: Library, own: list[int], reach: int, where: Filter) -> list[int]:
    """What :meth:`Engine.beside` must find."""
    order = np.argsort(library.ids, kind="stable").tolist()
    files = [library.rows[at].entry.file_hash for at in order]
    fitting = library.fitting(where)
    near = set()
    for place in (order.index(list(library.ids).index(number)) for number in own):
        for at in range(max(0, place - reach), min(len(order), place + reach + 1)):
            if files[at] == files[place] and fitting[order[at]]:
                near.add(int(library.ids[order[at]]))
    return sorted(near)


def patterns(values: Sequence[str]) -> st.SearchStrategy[str | None]:
    """Whole values, and values with a part replaced by wildcards; None most of the time."""
    wild = st.sampled_from(("*", "?", "[a-m]*", "[!a]*", "*[0-9]"))
    cut = st.tuples(st.sampled_from(values), st.integers(0, 3), wild)
    made = st.sampled_from(values) | cut.map(lambda drawn: drawn[0][: drawn[1]] + drawn[2])
    return st.none() | st.none() | made


FILTERS = st.builds(
    Filter,
    function=patterns(FUNCTIONS),
    binary=patterns(BINARIES),
    architecture=patterns(ARCHITECTURES),
    compiler=patterns(COMPILERS),
    build=patterns(BUILDS),
    file_hash=patterns(FILE_HASHES),
    address=st.sampled_from((None, None, None, *NUMBERS)),
    tags=st.dictionaries(
        st.sampled_from(("cve", "team", "none")),
        st.sampled_from(("*", "CVE-2014-0160", "CVE-*", "", "caf?*")),
        max_size=1,
    ),
    min_blocks=st.sampled_from((0, 0, 5, 20)),
    max_blocks=st.sampled_from((None, None, 4, 25)),
)


class EngineContract:
    has_lists = True
    """Whether the engine finds what shares words."""
    has_order = True
    """Whether it finds what was added side by side."""

    @pytest.fixture(scope="class", params=SPACES, ids=lambda space: space.metric)
    @classmethod
    def library(
        cls, request: pytest.FixtureRequest, engine_factory: EngineFactory
    ) -> Iterator[Library]:
        """300 rows that no test changes."""
        space: Space = request.param
        engine = engine_factory.create(space, DOCUMENTS)
        rows = sample_rows(space, 300)
        assert engine.add(rows[:200]) == 200
        assert engine.add(rows[200:]) == 100
        ids = np.array([stored.id for stored in engine.scan()])
        yield Library(engine, in_order_of_ids(engine, rows), ids)
        engine.close()

    @pytest.fixture
    def empty(self, engine_factory: EngineFactory) -> Iterator[Engine]:
        """A library of codes that a test may change."""
        engine = engine_factory.create(SPACES[0], DOCUMENTS)
        yield engine
        engine.close()

    def test_rows_come_out_as_they_went_in(self, library: Library) -> None:
        engine, rows, ids = library
        assert len(ids) == len(rows)
        assert (np.diff(ids) > 0).all()
        for row, stored in zip(rows, engine.fetch(ids.tolist()), strict=True):
            assert stored.entry == row.entry
            assert stored.nodes == row.graph.num_nodes
            assert stored.graph_hash == row.graph_hash
        assert [stored.id for stored in engine.fetch(ids.tolist())] == ids.tolist()

    def test_any_order_of_ids(self, library: Library) -> None:
        engine, rows, ids = library
        positions = [17, 250, 3, 17, 0]
        queries = ids[positions].tolist()
        assert [stored.id for stored in engine.fetch(queries)] == queries
        assert engine.graphs(queries) == [rows[position].graph for position in positions]
        vectors = engine.vectors(queries)
        assert vectors.dtype == engine.space.dtype
        np.testing.assert_array_equal(
            vectors, np.stack([rows[position].vector for position in positions])
        )
        self.check_signals_and_words(engine, queries, [rows[position] for position in positions])

    def check_signals_and_words(
        self, engine: Engine, ids: Sequence[int], rows: Sequence[Row]
    ) -> None:
        assert engine.signals(ids) == [row.signals for row in rows]
        for row, words in zip(rows, engine.words(ids), strict=True):
            assert words.dtype == np.uint64
            assert row.words is not None
            np.testing.assert_array_equal(words, np.sort(row.words))

    def test_no_ids(self, library: Library) -> None:
        engine = library.engine
        assert engine.fetch([]) == []
        assert engine.graphs([]) == []
        assert engine.vectors([]).shape == (0, engine.space.columns)
        assert engine.signals([]) == []
        assert engine.words([]) == []

    def test_an_unknown_id_is_named(self, library: Library) -> None:
        missing = int(library.ids[-1]) + 12345
        engine = library.engine
        for call in (engine.fetch, engine.graphs, engine.vectors, engine.signals, engine.words):
            with pytest.raises(UnknownIdError, match=str(missing)):
                call([int(library.ids[0]), missing])

    def test_documents(self, library: Library) -> None:
        assert dict(library.engine.documents()) == DOCUMENTS

    def test_known_keys(self, library: Library) -> None:
        known = {row.key for row in library.rows}
        assert library.engine.known([*known, b"another key of 16"[:16]]) == known
        assert library.engine.known([]) == set()

    @pytest.mark.parametrize("count", [1, 10, 299, 305])
    def test_nearest(self, library: Library, count: int) -> None:
        random = np.random.default_rng(count)
        stored = np.stack([row.vector for row in library.rows[::20]])
        queries = np.concatenate([stored, sample_vectors(library.engine.space, 15, random)])
        check_nearest(library, queries, count, Filter())

    def test_one_query_and_many_agree(self, library: Library) -> None:
        queries = sample_vectors(library.engine.space, 40, np.random.default_rng(7))
        together = library.engine.nearest(queries, 10)
        for number, query in enumerate(queries):
            alone = library.engine.nearest(query[None], 10)
            np.testing.assert_allclose(
                alone.distances[0], together.distances[number], rtol=1e-4, atol=1e-5
            )

    def test_no_queries(self, library: Library) -> None:
        space = library.engine.space
        nearest = library.engine.nearest(np.zeros((0, space.columns), space.dtype), 5)
        assert nearest.ids.shape == nearest.distances.shape == (0, 5)

    def test_queries_of_another_space_are_refused(self, library: Library) -> None:
        space = library.engine.space
        for wrong in (
            np.zeros((1, space.columns + 1), space.dtype),
            np.zeros(space.columns, space.dtype),
            np.zeros((1, space.columns), np.int64),
        ):
            with pytest.raises(ConfigError):
                library.engine.nearest(wrong, 5)
        with pytest.raises(ConfigError, match="0"):
            library.engine.nearest(np.zeros((1, space.columns), space.dtype), 0)

    @pytest.mark.parametrize("common", [500, 12])
    def test_sharing(self, library: Library, common: int, monkeypatch: pytest.MonkeyPatch) -> None:
        if not self.has_lists:
            assert library.engine.sharing(WORDS, np.ones(len(WORDS), np.float32), 10) == []
            return
        monkeypatch.setattr(base, "COMMON_WORD", common)
        for seed, count in enumerate((1, 7, 50, 1000)):
            check_sharing(library, seed, count, Filter())
            check_sharing(library, seed, count, Filter(architecture="arm*", min_blocks=4))
            check_sharing(library, seed, count, Filter(build="nothing is called so"))
        unknown = np.array([12345], np.uint64)
        assert library.engine.sharing(unknown, np.ones(1, np.float32), 5) == []
        assert library.engine.sharing(unknown[:0], np.ones(0, np.float32), 5) == []

    def test_beside(self, library: Library) -> None:
        nowhere = int(library.ids.max()) + 1
        assert library.engine.beside([nowhere], 3).tolist() == []
        assert library.engine.beside([], 3).tolist() == []
        if not self.has_order:
            assert library.engine.beside(library.ids[:5].tolist(), 3).tolist() == []
            return
        random = np.random.default_rng(0)
        for reach in (0, 1, 6):
            for where in (Filter(), Filter(architecture="arm*"), Filter(min_blocks=4)):
                own = [*random.choice(library.ids, 5).tolist(), int(library.ids[0])]
                actual = library.engine.beside([*own, nowhere], reach, where).tolist()
                assert actual == beside_by_hand(library, own, reach, where)
        ends = [int(library.ids.min()), int(library.ids.max())]
        assert library.engine.beside(ends, 2).tolist() == beside_by_hand(library, ends, 2, Filter())

    def test_sharing_takes_only_words(self, library: Library) -> None:
        word, weight = np.zeros(1, np.uint64), np.ones(1, np.float32)
        for words, weights, count in (
            (word.astype(np.int64), weight, 1),
            (word[None], weight[None], 1),
            (word, np.ones(2, np.float32), 1),
            (word, weight, 0),
        ):
            with pytest.raises(ConfigError):
                library.engine.sharing(words, weights, count)

    @settings(max_examples=40, deadline=None)
    @given(where=FILTERS)
    def test_filters(self, library: Library, where: Filter) -> None:
        fitting = library.ids[library.fitting(where)].tolist()
        assert [stored.id for stored in library.engine.scan(where)] == fitting
        assert library.engine.count(where) == len(fitting)
        queries = np.stack([row.vector for row in library.rows[:3]])
        check_nearest(library, queries, 10, where)

    def test_filters_by_each_condition(self, library: Library) -> None:
        for where in (
            Filter(function="main"),
            Filter(function="*\udc80*"),
            Filter(function="a[*]b*"),
            Filter(binary="*.so"),
            Filter(binary="C:\\*"),
            Filter(binary="it's*"),
            Filter(architecture="arm*"),
            Filter(architecture=""),
            Filter(compiler="GCC*"),
            Filter(build="gcc-12-O[!0]"),
            Filter(file_hash="b" * 64),
            Filter(address=0),
            Filter(address=2**64 - 1),
            Filter(address=40),
            Filter(address=2**64),
            Filter(address=-1),
            Filter(tags={"cve": "*"}),
            Filter(tags={"team": "*\udcaa", "cve": "*"}),
            Filter(tags={"absent": "*"}),
            Filter(min_blocks=10, max_blocks=12),
            Filter(min_blocks=2**40),
        ):
            fitting = library.ids[library.fitting(where)].tolist()
            assert [stored.id for stored in library.engine.scan(where)] == fitting, where
            check_nearest(library, library.rows[0].vector[None], 5, where)

    def test_scan_goes_on_after_an_id(self, library: Library) -> None:
        engine, _, ids = library
        where = Filter(architecture="arm*")
        fitting = ids[library.fitting(where)]
        for after in (0, int(ids[0]), int(ids[150]), int(ids[-1])):
            assert [stored.id for stored in engine.scan(after=after)] == ids[ids > after].tolist()
            actual = [stored.id for stored in engine.scan(where, after=after)]
            assert actual == fitting[fitting > after].tolist()

    def test_count_and_stats(self, library: Library) -> None:
        assert library.engine.count() == 300
        stats = library.engine.stats()
        assert json.loads(json.dumps(stats)) == stats
        assert stats["entries"] == 300

    def test_binaries_are_counted(self, library: Library) -> None:
        summaries = {(item.binary, item.file_hash): item for item in library.engine.binaries()}
        stored = list(library.engine.scan())
        assert set(summaries) == {(item.entry.binary, item.entry.file_hash) for item in stored}
        for (binary, file_hash), summary in summaries.items():
            own = [
                item.entry
                for item in stored
                if (item.entry.binary, item.entry.file_hash) == (binary, file_hash)
            ]
            tags = Counter(f"{tag}={value}" for entry in own for tag, value in entry.tags.items())
            assert (summary.functions, summary.tags) == (len(own), tags)
            first = own[0]
            assert (summary.architecture, summary.compiler, summary.build) == (
                first.architecture,
                first.compiler,
                first.build,
            )

    def test_a_sound_library_is_verified(self, library: Library) -> None:
        verification = library.engine.verify()
        assert verification.damage == []
        assert verification.entries == 300

    def test_an_empty_library(self, empty: Engine) -> None:
        nearest = empty.nearest(np.zeros((2, empty.space.columns), np.uint8), 3)
        assert empty.binaries() == []
        assert (nearest.ids == -1).all()
        assert np.isinf(nearest.distances).all()
        assert empty.count() == 0
        assert list(empty.scan()) == []
        assert empty.remove(Filter()) == 0
        assert empty.add([]) == 0
        assert empty.sharing(WORDS, np.ones(len(WORDS), np.float32), 3) == []
        assert empty.verify().damage == []

    def test_rows_without_signals_and_words(self, empty: Engine) -> None:
        rows = sample_rows(empty.space, 20, graphs=20)
        bare = [row._replace(signals=b"", words=None) for row in rows[:10]]
        assert empty.add([*bare, *rows[10:]]) == 20
        rows = in_order_of_ids(empty, [*bare, *rows[10:]])
        ids = [stored.id for stored in empty.scan()]
        assert empty.signals(ids) == [row.signals for row in rows]
        words = [[] if row.words is None else sorted(row.words.tolist()) for row in rows]
        assert [own.tolist() for own in empty.words(ids)] == words
        assert empty.verify().damage == []

    def test_a_key_is_held_once(self, empty: Engine) -> None:
        rows = sample_rows(empty.space, 30)
        assert empty.add([*rows[:10], rows[3], rows[3]]) == 10
        assert empty.add(rows[5:20]) == 10
        assert empty.add(rows[5:20]) == 0
        assert empty.count() == 20
        assert empty.known(row.key for row in rows) == {row.key for row in rows[:20]}
        entries = [stored.entry for stored in empty.scan()]
        assert sorted(map(repr, entries)) == sorted(repr(row.entry) for row in rows[:20])

    def test_wrong_vectors_add_nothing(self, empty: Engine) -> None:
        good = sample_rows(empty.space, 3)
        for wrong in (np.zeros(9, np.uint8), np.zeros(8, np.float32), np.zeros((1, 8), np.uint8)):
            with pytest.raises(ConfigError):
                empty.add([*good, good[0]._replace(key=b"k" * 16, vector=wrong)])
        other = good[0]._replace(words=np.zeros(3, np.int64))
        with pytest.raises(ConfigError, match="words must be"):
            empty.add([*good[1:], other])
        assert empty.count() == 0

    def test_finished_files_are_kept_until_something_of_them_goes(
        self, empty: Engine, engine_factory: EngineFactory
    ) -> None:
        empty.add(sample_rows(empty.space, 100))
        first, second, third, _ = FILE_HASHES
        hashes = (first, second, "99" * 32, first)
        empty.finish_files((file_hash, "settings \u00fc") for file_hash in hashes)
        empty.finish_files([(first, "settings \u00fc"), (first, "other")])
        empty.finish_files([])
        every = {
            (first, "settings \u00fc"), (first, "other"),
            (second, "settings \u00fc"), ("99" * 32, "settings \u00fc"),
        }  # fmt: skip
        assert empty.finished_files() == every
        empty.remove(Filter(file_hash=third))
        assert empty.finished_files() == every
        empty.remove(Filter(file_hash=first, architecture="arm64"))
        assert empty.finished_files() == {pair for pair in every if pair[0] != first}

    def test_tags_are_added_to_what_fits(
        self, empty: Engine, engine_factory: EngineFactory
    ) -> None:
        rows = sample_rows(empty.space, 120)
        empty.add(rows)
        for where, tags in (
            (Filter(architecture="arm*"), {"seen": "it's \u00e9 \udcab", "team": "red"}),
            (Filter(tags={"cve": "CVE-2014-*"}), {"cve": "CVE-2021-3711"}),
            (Filter(tags={"cve": "CVE-2021-3711"}), {"cve": "CVE-2021-3711"}),
            (Filter(function="nothing is called so"), {"seen": "never"}),
            (Filter(tags={"seen": "*"}, min_blocks=10), {"seen": "twice", "*": "[x]"}),
        ):
            fitting = [where.matches(row.entry, row.graph.num_nodes) for row in rows]
            rows = [
                row._replace(entry=replace(row.entry, tags={**row.entry.tags, **tags}))
                if fits
                else row
                for row, fits in zip(rows, fitting, strict=True)
            ]
            assert empty.tag(where, tags) == sum(fitting)
            self.check_tags(empty, rows)
        assert empty.tag(Filter(tags={"seen": "never"}), {"seen": "now"}) == 0
        engine = engine_factory.reopen(empty)
        self.check_tags(engine, rows)
        assert engine.tag(Filter(), {"all": "of them"}) == 120
        assert engine.count(Filter(tags={"all": "of*"})) == 120
        assert engine.count(Filter(tags={"seen": "twice", "all": "*"})) > 0
        engine.close()

    def check_tags(self, engine: Engine, rows: Sequence[Row]) -> None:
        """Entries, filters and searches know the tags of the rows; nothing else is changed."""
        rows = in_order_of_ids(engine, rows)
        library = Library(engine, rows, np.array([stored.id for stored in engine.scan()]))
        for where in (
            Filter(tags={"seen": "*"}),
            Filter(tags={"seen": "it's*"}),
            Filter(tags={"seen": "t[vw]ice"}),
            Filter(tags={"cve": "CVE-2014-0160"}),
            Filter(tags={"cve": "*3711", "team": "*"}),
            Filter(tags={"team": "red"}, architecture="arm"),
        ):
            fitting = library.ids[library.fitting(where)].tolist()
            assert [stored.id for stored in engine.scan(where)] == fitting, where
            check_nearest(library, rows[0].vector[None], 5, where)
        assert engine.graphs(library.ids.tolist()) == [row.graph for row in rows]
        self.check_signals_and_words(engine, library.ids.tolist(), rows)
        assert engine.verify().damage == []

    def test_remove_then_add_compact_and_reopen(self, engine_factory: EngineFactory) -> None:
        """One life of a library, so that engines that are slow to make are made once."""
        space = SPACES[0]
        engine = engine_factory.create(space, DOCUMENTS)
        rows = sample_rows(space, 200)
        engine.add(rows)
        rows = in_order_of_ids(engine, rows)
        before = [stored.id for stored in engine.scan()]
        where = Filter(architecture="arm*")
        gone = np.array([where.matches(row.entry, row.graph.num_nodes) for row in rows])
        kept = [row for row, away in zip(rows, gone, strict=True) if not away]
        query = rows[int(np.argmax(gone))].vector[None]

        assert engine.remove(where) == gone.sum()
        assert engine.remove(where) == 0
        ids = np.array(before)[~gone]
        self.check_found(Library(engine, kept, ids), query)
        with pytest.raises(UnknownIdError):
            engine.fetch([before[int(np.argmax(gone))]])
        assert engine.known(row.key for row in rows) == {row.key for row in kept}

        engine.compact()
        self.check_found(Library(engine, kept, ids), query)
        engine = engine_factory.reopen(engine)
        assert engine.space == space
        assert dict(engine.documents()) == DOCUMENTS
        self.check_found(Library(engine, kept, ids), query)
        assert engine.graphs(ids.tolist()) == [row.graph for row in kept]

        more = sample_rows(space, 50, seed=1)
        assert engine.add(more) == 50
        now = np.array([stored.id for stored in engine.scan()])
        new_ids = set(now.tolist()) - set(ids.tolist())
        assert len(new_ids) == 50, "ids are stable"
        assert not new_ids & set(before), "an id never comes to mean another row"
        every = in_order_of_ids(engine, kept + more)
        self.check_found(Library(engine, every, now), query)
        assert engine.verify().damage == []

        assert engine.remove(Filter()) == len(now)
        assert engine.count() == 0
        assert (engine.nearest(query, 3).ids == -1).all()
        assert engine.verify().damage == []
        engine.close()

    def check_found(self, library: Library, query: NDArray[Any]) -> None:
        """What is found after a change, by vector and by words, is what is there."""
        check_nearest(library, query, 10, Filter())
        self.check_signals_and_words(library.engine, library.ids.tolist(), library.rows)
        if self.has_lists:
            check_sharing(library, 0, 20, Filter())
