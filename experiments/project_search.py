"""Searches among functions of projects that nobody trained on, for measuring and for fitting."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from graphkin.binaries.corpus import FunctionCorpus
from graphkin.graphs import Graph
from graphkin.graphs.words import KIND_SHIFT, KINDS, kinds_of
from graphkin.library.candidates import score_pairs
from graphkin.library.cascade import BESIDE, NEAREST_CODES, NEIGHBOUR_CODES, SHARING_WORDS
from graphkin.library.engines.base import COMMON_WORD, WIDER
from graphkin.library.models import SearchModel
from graphkin.library.ranking import Candidates, MatchedGraphs, Ranking
from graphkin.library.signals import (
    AROUND,
    NEIGHBOURS,
    ComparedGraphs,
    Records,
    Surroundings,
    compared_graphs,
    rare_words,
    signals_of,
)
from graphkin.models import GraphEmbedder
from graphkin.models.codes import hamming_distances, pack_codes
from graphkin.research.tasks.projects import NARROW, ProjectTask, without_words

DIRECTIONS = {
    "XO+XC": ("x86_64-gcc-O0", "x86_64-clang-O3"),
    "XC": ("x86_64-clang-O1", "x86_64-gcc-O3"),
    "same level": ("x86_64-gcc-O2", "x86_64-clang-O2"),
    "XA 64": ("x86_64-gcc-O2", "aarch64-gcc-O2"),
    "XM": ("aarch64-gcc-O0", "x86_64-clang-O3"),
    "XA 32 ARM": ("x86_64-gcc-O2", "arm-gcc-O2"),
    "XB": ("x86_64-gcc-O2", "i386-gcc-O2"),
    "XA 32/64": ("arm-gcc-O0", "aarch64-gcc-O2"),
    "XA MIPS": ("x86_64-gcc-O2", "mipsel-gcc-O2"),
    "MIPS endian": ("mips-gcc-O2", "mipsel-gcc-O2"),
}
IMPORTS = KINDS.index("imp")
RARE = 5.0
"""Rarity above which a constant says something."""
MATCHED = 20
"""Candidates that the matcher sees."""
CHUNK = 100
"""Queries whose candidates are matched together."""


@dataclass(frozen=True, eq=False)
class Pool:
    """The functions of one configuration, of all projects of a split."""

    embedder: GraphEmbedder
    numbers: list[int]
    """In the corpus; those of at least five blocks."""
    names: list[tuple[str, str]]
    """Project and name of each; a project has one file."""
    addresses: list[int]
    graphs: list[Graph]
    records: Records
    codes: NDArray[np.uint8]
    unrounded: NDArray[np.float32]
    """(N, bits) numbers whose signs are the codes."""

    @cached_property
    def words(self) -> dict[int, list[int]]:
        """The rows of each rare word."""
        rows: dict[int, list[int]] = defaultdict(list)
        for row, graph in enumerate(self.graphs):
            for word in rare_words(self.embedder, graph)[0].tolist():
                rows[word].append(row)
        return rows

    def sharing(self, graph: Graph) -> list[int]:
        """The rows that share most rare words with a function, as a library finds them."""
        sums: Counter[int] = Counter()
        for word, weight in zip(*rare_words(self.embedder, graph), strict=True):
            rows = self.words.get(int(word), [])
            if len(rows) <= COMMON_WORD:
                sums.update(dict.fromkeys(rows, float(weight)))
        return sorted(sums, key=lambda row: (-sums[row], row))[:SHARING_WORDS]

    def beside(self, row: int, reach: int) -> list[int]:
        """The rows of functions on either side of one in its file."""
        place = self._place[row]
        near = self._order[max(0, place - reach) : place + reach + 1]
        return [
            other for other in near if other != row and self._file_of(other) == self._file_of(row)
        ]

    def _file_of(self, row: int) -> str:
        return self.names[row][0]

    @cached_property
    def _order(self) -> list[int]:
        """Rows as they lie in their files."""
        return sorted(
            range(len(self.names)), key=lambda row: (self._file_of(row), self.addresses[row])
        )

    @cached_property
    def _place(self) -> dict[int, int]:
        return {row: place for place, row in enumerate(self._order)}

    @cached_property
    def blocks(self) -> NDArray[np.int64]:
        return np.array([graph.num_nodes for graph in self.graphs])

    @cached_property
    def hashes(self) -> list[str]:
        return [graph.digest() for graph in self.graphs]


class Searches:
    """Searches among the functions of some projects, by direction."""

    def __init__(
        self,
        task: ProjectTask,
        model: SearchModel,
        projects: tuple[str, ...],
        queries: int = 0,
        others: tuple[str, ...] = (),
        linked: float = 0.0,
    ) -> None:
        """Queries are functions of some projects; pools hold those of other projects as well.

        A share of the queries, ``linked``, is as in a program that holds the libraries it uses:
        what they import are functions of the same file, and no names.
        """
        self.task, self.model, self.projects, self.queries = task, model, projects, queries
        self.others, self.linked = others, linked
        self._corpus = FunctionCorpus.open(Path(task.corpus))
        functions = task.functions_of(projects)
        self._named = {
            build.number: (item.project, item.name) for item in functions for build in item.builds
        }
        self._members: dict[str, dict[str, list[int]]] = {}
        for number, entry in enumerate(self._corpus.entries):
            if entry.binary.build in {*projects, *others}:
                by_project = self._members.setdefault(entry.binary.library, {})
                by_project.setdefault(entry.binary.build, []).append(number)
        self._pools: dict[tuple[str, bool], Pool] = {}
        self._near: dict[tuple[tuple[str, str], int], NDArray[np.int64]] = {}
        self._nearest: dict[tuple[tuple[str, str], int], NDArray[np.int64]] = {}

    def has(self, direction: tuple[str, str]) -> bool:
        """Whether some project has both configurations."""
        return all(build in self._members for build in direction)

    def pool(self, configuration: str) -> Pool:
        """The functions that are searched."""
        return self._pool(configuration, is_asked=False)

    def asked(self, configuration: str) -> Pool:
        """The functions that are looked up."""
        return self._pool(configuration, is_asked=bool(self.others) or self.linked > 0)

    def _pool(self, configuration: str, is_asked: bool) -> Pool:
        key = configuration, is_asked
        if key not in self._pools:
            self._pools[key] = self._make_pool(configuration, is_asked)
        return self._pools[key]

    def _make_pool(self, configuration: str, is_asked: bool) -> Pool:
        embedder = self.model.embedder
        rng = np.random.default_rng(0)
        numbers: list[int] = []
        names: list[tuple[str, str]] = []
        addresses: list[int] = []
        kept: list[Graph] = []
        records, unrounded = [], []
        for project, members in sorted(self._members[configuration].items()):
            if is_asked and project not in self.projects:
                continue
            entries = [self._corpus.entry(number) for number in members]
            graphs = [self.task.graph(number, self.model.vocabulary) for number in members]
            around = [Surroundings(entry.address, entry.callees) for entry in entries]
            if is_asked:
                for row in np.flatnonzero(rng.random(len(graphs)) < self.linked).tolist():
                    graphs[row], around[row] = linked_in(graphs[row], around[row])
            vectors = embedder.encode(graphs)
            narrow = [configuration.startswith(NARROW)] * len(graphs)
            signals = signals_of(embedder, graphs, vectors, narrow, around)
            large = [
                row for row, graph in enumerate(graphs) if graph.num_nodes >= self.task.min_nodes
            ]
            records.append(signals[large])
            unrounded.append(embedder.unrounded_codes(vectors)[large])
            numbers += [members[row] for row in large]
            names += [(project, entries[row].name) for row in large]
            addresses += [entries[row].address for row in large]
            kept += [graphs[row] for row in large]
        signals, values = np.concatenate(records), np.concatenate(unrounded)
        return Pool(embedder, numbers, names, addresses, kept, signals, pack_codes(values), values)

    def answers(self, direction: tuple[str, str]) -> list[tuple[int, int]]:
        """(row of a query, row of its answer), at random if not all are wanted."""
        asked, pool = self.asked(direction[0]), self.pool(direction[1])
        place = {
            self._named[number]: row
            for row, number in enumerate(pool.numbers)
            if number in self._named
        }
        both_rows = [
            (row, place[self._named[number]])
            for row, number in enumerate(asked.numbers)
            if number in self._named and self._named[number] in place
        ]
        if self.queries and len(both_rows) > self.queries:
            chosen = np.random.default_rng(0).choice(len(both_rows), self.queries, replace=False)
            both_rows = [both_rows[row] for row in np.sort(chosen).tolist()]
        return both_rows

    def near(self, direction: tuple[str, str], row: int) -> NDArray[np.int64]:
        """The rows of the pool that a query considers: the nearest codes, and rare words."""
        key = direction, row
        if key not in self._near:
            asked, pool = self.asked(direction[0]), self.pool(direction[1])
            nearest = np.argsort(-code_likeness(asked, pool, row), kind="stable")[:NEAREST_CODES]
            sharing = np.array(pool.sharing(asked.graphs[row]), dtype=np.int64)
            self._near[key] = np.union1d(nearest, sharing)
        return self._near[key]

    def near_in_files(
        self, ranking: Ranking, direction: tuple[str, str], row: int
    ) -> NDArray[np.int64]:
        """The same, and what lies beside those that the query's own neighbours are most like."""
        return np.union1d(self.near(direction, row), self.beside(ranking, direction, row))

    def beside(self, ranking: Ranking, direction: tuple[str, str], row: int) -> NDArray[np.int64]:
        """The rows of the pool beside those that the neighbours of a query are most like."""
        asked, pool = self.asked(direction[0]), self.pool(direction[1])
        rows: set[int] = set()
        for other in asked.beside(row, NEIGHBOURS):
            near = self._nearest_codes(direction, other)
            totals = ranking.totals(asked.records[other], pool.records[near])
            most_like = int(near[np.argmax(totals)])
            rows.update([most_like, *pool.beside(most_like, BESIDE)])
        return np.array(sorted(rows), dtype=np.int64)

    def _nearest_codes(self, direction: tuple[str, str], row: int) -> NDArray[np.int64]:
        """A few rows of the pool whose codes are most like a function's."""
        key = direction, row
        if key not in self._nearest:
            likeness = code_likeness(self.asked(direction[0]), self.pool(direction[1]), row)
            self._nearest[key] = np.argsort(-likeness, kind="stable")[:NEIGHBOUR_CODES]
        return self._nearest[key]

    def says_nothing(self, graph: Graph) -> bool:
        """Whether a function has no string, import or table, and no rare constant."""
        words = graph.node_words
        if words is None or not len(words.hashes):
            return True
        kinds = kinds_of(words.hashes)
        if np.isin(kinds, [KINDS.index(kind) for kind in ("str", "imp", "dat")]).any():
            return False
        rarity = self.model.embedder.words.rarity_of(words.hashes[kinds == KINDS.index("num")])
        return not (rarity > RARE).any()


def code_likeness(asked: Pool, pool: Pool, row: int) -> NDArray[np.float32]:
    """(N,) how much the codes of a pool are like the numbers of a query that were not rounded; only
    the nearest codes are compared, as a library does it, and the others come behind them."""
    distances = hamming_distances(asked.codes[row][None], pool.codes)[0].astype(np.float32)
    likeness = -distances - 1e6
    near = np.argsort(distances, kind="stable")[: WIDER * NEAREST_CODES]
    bits = np.unpackbits(pool.codes[near], axis=1).astype(np.float32)
    likeness[near] = bits @ asked.unrounded[row]
    return likeness


def linked_in(graph: Graph, around: Surroundings) -> tuple[Graph, Surroundings]:
    """A function of a program that holds what it would import."""
    imports = [] if graph.node_words is None else np.unique(graph.node_words.hashes).tolist()
    imports = [word for word in imports if word >> KIND_SHIFT == IMPORTS]
    # Their addresses are those of no function that is known.
    callees = (*around.callees, *(-1 - number for number in range(len(imports))))
    return without_words(graph, [IMPORTS]), around._replace(callees=callees)


def without_files(records: Records) -> Records:
    """The same signals as if each function were known by itself."""
    alone = records.copy()
    for name in AROUND:
        alone[f"{name}_scale"] = 0
    alone["in_file"] = 0
    return alone


class Search(NamedTuple):
    """One query, and the functions that were considered, the most alike by vectors first."""

    query: np.void
    graph: Graph
    answer: int
    """The right row of the pool."""
    rows: NDArray[np.int64]
    """(N,) of the pool."""
    candidates: Candidates
    seen: MatchedGraphs | None = None
    """Where the matcher was asked."""


def run(
    searches: Searches,
    ranking: Ranking,
    direction: tuple[str, str],
    *,
    in_files: bool,
    matched: bool,
) -> Iterator[Search]:
    """What each query considers: the nearest codes, in the order of vectors, cut and matched."""
    asked, pool = searches.asked(direction[0]), searches.pool(direction[1])
    ours, theirs = (
        side.records if in_files else without_files(side.records) for side in (asked, pool)
    )
    answers = searches.answers(direction)
    near = partial(searches.near_in_files, ranking) if in_files else searches.near
    for start in range(0, len(answers), CHUNK):
        chunk = [
            _candidates(ranking, asked, pool, ours, theirs, near(direction, row), row, answer)
            for row, answer in answers[start : start + CHUNK]
        ]
        yield from _matched(searches.model, pool, chunk) if matched else chunk


def _candidates(
    ranking: Ranking,
    asked: Pool,
    pool: Pool,
    ours: Records,
    theirs: Records,
    near: NDArray[np.int64],
    row: int,
    answer: int,
) -> Search:
    totals = ranking.totals(ours[row], theirs[near])
    rows = near[np.argsort(-totals, kind="stable")[:MATCHED]]
    equal = np.array([pool.hashes[other] == asked.hashes[row] for other in rows])
    identities = ["!".join(pool.names[other]) for other in rows]
    candidates = Candidates(theirs[rows], pool.blocks[rows], equal, identities)
    return Search(ours[row], asked.graphs[row], answer, rows, candidates)


def _matched(model: SearchModel, pool: Pool, chunk: list[Search]) -> list[Search]:
    assert model.matcher is not None, "there is a matcher to ask"
    pairs = [
        (search.graph, search.graph.digest(), pool.graphs[row], pool.hashes[row])
        for search in chunk
        for row in search.rows.tolist()
    ]
    scores = score_pairs(model.matcher, pairs)
    compared = [
        compared_graphs(model.embedder, search.graph, [pool.graphs[row] for row in search.rows])
        for search in chunk
    ]
    ends = np.cumsum([len(search.rows) for search in chunk])[:-1]
    return [
        search._replace(seen=MatchedGraphs(own, graphs))
        for search, own, graphs in zip(chunk, np.split(scores, ends), compared, strict=True)
    ]


def without_answer(search: Search) -> Search:
    """The same search in a library that does not hold the function."""
    kept = np.flatnonzero(search.rows != search.answer)
    seen = search.seen
    if seen is not None:
        words, apart, on_stack, there = seen.graphs
        graphs = ComparedGraphs(words[kept], apart[kept], on_stack, there[kept])
        seen = MatchedGraphs(seen.scores[kept], graphs)
    return search._replace(
        rows=search.rows[kept], candidates=search.candidates.chosen(kept.tolist()), seen=seen
    )
