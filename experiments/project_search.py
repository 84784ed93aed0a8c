"""Searches among functions of projects that nobody trained on, for measuring and for fitting."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from graphkin.binaries.corpus import FunctionCorpus
from graphkin.graphs import Graph
from graphkin.graphs.words import KINDS, kinds_of
from graphkin.library.candidates import score_pairs
from graphkin.library.cascade import NEAREST_CODES, SHARING_WORDS
from graphkin.library.engines.base import COMMON_WORD
from graphkin.library.models import SearchModel
from graphkin.library.ranking import Candidates, Ranking
from graphkin.library.signals import Records, Surroundings, rare_words, signals_of, word_cosines
from graphkin.models import GraphEmbedder
from graphkin.models.similarity import hamming_distances
from graphkin.research.tasks.projects import NARROW, ProjectTask

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
RARE = 5.0
"""Rarity above which a constant says something."""
MATCHED = 20
"""Candidates that the matcher sees."""
CHUNK = 100
"""Queries whose candidates are matched together."""


@dataclass(frozen=True, eq=False)
class Pool:
    """The functions of one configuration, of all projects of a split."""

    task: ProjectTask
    embedder: GraphEmbedder
    numbers: list[int]
    """In the corpus; those of at least five blocks."""
    names: list[tuple[str, str]]
    """Project and name of each."""
    records: Records
    codes: NDArray[np.uint8]

    @cached_property
    def graphs(self) -> list[Graph]:
        return [self.task.graph(number) for number in self.numbers]

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

    @cached_property
    def blocks(self) -> NDArray[np.int64]:
        return np.array([graph.num_nodes for graph in self.graphs])

    @cached_property
    def hashes(self) -> list[str]:
        return [graph.digest() for graph in self.graphs]


class Searches:
    """Searches among the functions of some projects, by direction."""

    def __init__(
        self, task: ProjectTask, model: SearchModel, projects: tuple[str, ...], queries: int = 0
    ) -> None:
        self.task, self.model, self.projects, self.queries = task, model, projects, queries
        self._corpus = FunctionCorpus.open(Path(task.corpus))
        functions = task.functions_of(projects)
        self._named = {
            build.number: (item.project, item.name) for item in functions for build in item.builds
        }
        self._members: dict[str, dict[str, list[int]]] = {}
        for number, entry in enumerate(self._corpus.entries):
            if entry.binary.build in projects:
                by_project = self._members.setdefault(entry.binary.library, {})
                by_project.setdefault(entry.binary.build, []).append(number)
        self._pools: dict[str, Pool] = {}

    def has(self, direction: tuple[str, str]) -> bool:
        """Whether some project has both configurations."""
        return all(build in self._members for build in direction)

    def pool(self, configuration: str) -> Pool:
        if configuration not in self._pools:
            self._pools[configuration] = self._make_pool(configuration)
        return self._pools[configuration]

    def _make_pool(self, configuration: str) -> Pool:
        embedder = self.model.embedder
        numbers: list[int] = []
        names: list[tuple[str, str]] = []
        records, codes = [], []
        for project, members in sorted(self._members[configuration].items()):
            entries = [self._corpus.entry(number) for number in members]
            graphs = [self.task.graph(number) for number in members]
            vectors = embedder.encode(graphs)
            around = [Surroundings(entry.address, entry.callees) for entry in entries]
            narrow = [configuration.startswith(NARROW)] * len(graphs)
            signals = signals_of(embedder, graphs, vectors, narrow, around)
            large = [
                row for row, graph in enumerate(graphs) if graph.num_nodes >= self.task.min_nodes
            ]
            records.append(signals[large])
            codes.append(embedder.codes_of(vectors)[large])
            numbers += [members[row] for row in large]
            names += [(project, entries[row].name) for row in large]
        signals = np.concatenate(records)
        return Pool(self.task, embedder, numbers, names, signals, np.concatenate(codes))

    def answers(self, direction: tuple[str, str]) -> list[tuple[int, int]]:
        """(row of a query, row of its answer), at random if not all are wanted."""
        queries, pool = self.pool(direction[0]), self.pool(direction[1])
        place = {
            self._named[number]: row
            for row, number in enumerate(pool.numbers)
            if number in self._named
        }
        both_rows = [
            (row, place[self._named[number]])
            for row, number in enumerate(queries.numbers)
            if number in self._named and self._named[number] in place
        ]
        if self.queries and len(both_rows) > self.queries:
            chosen = np.random.default_rng(0).choice(len(both_rows), self.queries, replace=False)
            both_rows = [both_rows[row] for row in np.sort(chosen).tolist()]
        return both_rows

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


def without_files(records: Records) -> Records:
    """The same signals as if each function were known by itself."""
    alone = records.copy()
    for name in ("callees", "callers"):
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
    scores: NDArray[np.float32] | None = None
    """(N,) of the matcher, where it was asked."""
    exact_words: NDArray[np.float32] | None = None


def run(
    searches: Searches,
    ranking: Ranking,
    direction: tuple[str, str],
    *,
    in_files: bool,
    matched: bool,
) -> Iterator[Search]:
    """What each query considers: the nearest codes, in the order of vectors, cut and matched."""
    queries, pool = searches.pool(direction[0]), searches.pool(direction[1])
    ours, theirs = (
        side.records if in_files else without_files(side.records) for side in (queries, pool)
    )
    answers = searches.answers(direction)
    for start in range(0, len(answers), CHUNK):
        chunk = [
            _candidates(ranking, queries, pool, ours, theirs, row, answer)
            for row, answer in answers[start : start + CHUNK]
        ]
        yield from _matched(searches.model, pool, chunk) if matched else chunk


def _candidates(
    ranking: Ranking,
    queries: Pool,
    pool: Pool,
    ours: Records,
    theirs: Records,
    row: int,
    answer: int,
) -> Search:
    distances = hamming_distances(queries.codes[row][None], pool.codes)[0]
    near = np.argsort(distances, kind="stable")[:NEAREST_CODES]
    near = np.union1d(near, np.array(pool.sharing(queries.graphs[row]), dtype=np.int64))
    totals = ranking.totals(ours[row], theirs[near])
    rows = near[np.argsort(-totals, kind="stable")[:MATCHED]]
    equal = np.array([pool.hashes[other] == queries.hashes[row] for other in rows])
    identities = ["!".join(pool.names[other]) for other in rows]
    candidates = Candidates(theirs[rows], pool.blocks[rows], equal, identities)
    return Search(ours[row], queries.graphs[row], answer, rows, candidates)


def _matched(model: SearchModel, pool: Pool, chunk: list[Search]) -> list[Search]:
    assert model.matcher is not None, "there is a matcher to ask"
    pairs = [
        (search.graph, search.graph.digest(), pool.graphs[row], pool.hashes[row])
        for search in chunk
        for row in search.rows.tolist()
    ]
    scores = score_pairs(model.matcher, pairs)
    exact = [
        word_cosines(model.embedder, search.graph, [pool.graphs[row] for row in search.rows])
        for search in chunk
    ]
    ends = np.cumsum([len(search.rows) for search in chunk])[:-1]
    return [
        search._replace(scores=own, exact_words=words)
        for search, own, words in zip(chunk, np.split(scores, ends), exact, strict=True)
    ]


def without_answer(search: Search) -> Search:
    """The same search in a library that does not hold the function."""
    kept = np.flatnonzero(search.rows != search.answer)
    scores, words = search.scores, search.exact_words
    return search._replace(
        rows=search.rows[kept],
        candidates=search.candidates.chosen(kept.tolist()),
        scores=None if scores is None else scores[kept],
        exact_words=None if words is None else words[kept],
    )
