"""Functions of many projects, each built in many ways, split by project.

What a user has is code that no model was trained on. So whole projects are set aside: a function
of a test project has never been seen, nor anything that its authors wrote.

The binaries lie in ``PROJECT/CONFIGURATION.so``, as ``graphkin build`` leaves them, and were read
with what their functions say (``graphkin extract --evidence``).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from graphkin._support.settings import check_at_least, check_types
from graphkin.binaries.corpus import FunctionCorpus
from graphkin.errors import ConfigError
from graphkin.graphs import Graph, PairBatch, WordBags
from graphkin.graphs.vocabulary import Vocabulary
from graphkin.graphs.words import KINDS, kinds_of
from graphkin.learning.datasets.splits import check_split, generator, signs
from graphkin.learning.task import EvaluationSet, Mode, Recipe, Split
from graphkin.models.words import WordStatistics
from graphkin.research.tasks.functions.groups import connected, contents_of

NARROW = ("i386", "arm-", "mips-", "mipsel-")
"""How configurations with 32-bit pointers begin."""
TEST = ("libarchive", "libevent", "libxml2", "mbedtls", "opus", "tiff")
VALIDATION = ("c-ares", "flac", "jansson", "pcre2")
PROJECTS_OF_A_BATCH = 4
"""A batch takes its functions from few projects: neighbours are the hardest to tell apart."""
BALANCE = 0.7
"""A project is drawn in proportion to this power of its number of functions."""
ACROSS = 0.4
"""Share of the batches whose pairs are of pointers of different widths."""
KNOWN_WORDS, LEARNED_WORDS = 20_000, 2_000
COPIES = 12
"""Builds of a function, about."""
LISTS: dict[str, Any] = {"mode": "lists", "scale": 1.0, "batch_size": 32, "learning_rate": 1e-3}
"""How matchers are trained."""


class Build(NamedTuple):
    """One graph of a function."""

    configuration: str
    number: int
    """In the corpus."""

    @property
    def is_narrow(self) -> bool:
        return self.configuration.startswith(NARROW)


@dataclass(frozen=True)
class SourceFunction:
    """A function of a project, in all its builds."""

    project: str
    name: str
    builds: tuple[Build, ...]
    group: int = 0
    """Functions of one group share an exact graph, and are not told apart."""


@dataclass(frozen=True)
class ProjectTask:
    """Two builds of one function are similar.

    Args:
        corpus: the folder that ``graphkin extract --evidence`` wrote.
        test: projects to measure on at the end.
        validation: projects by which recipes are chosen; all others are trained on.
        min_nodes: smaller graphs are too much alike to be told apart, and are left out.
        max_nodes: larger graphs are left out of training.
        dropped_kinds: share of the graphs in training from which each kind of words is taken, so
            that functions without strings, or with their imports linked in, are found as well.
        seed: seed of the training data. Splits and evaluation sets do not depend on it.
        evaluation_size: pairs, and triplets, of an evaluation set.
    """

    corpus: str
    test: tuple[str, ...] = TEST
    validation: tuple[str, ...] = VALIDATION
    min_nodes: int = 5
    max_nodes: int = 400
    dropped_kinds: float = 0.1
    seed: int = 0
    evaluation_size: int = 1000

    def __post_init__(self) -> None:
        object.__setattr__(self, "corpus", str(self.corpus))
        for name in ("test", "validation"):
            object.__setattr__(self, name, tuple(getattr(self, name)))
        check_types(self)
        check_at_least(self, 0, "seed", "min_nodes", "max_nodes")
        check_at_least(self, 2, "evaluation_size")
        if not 0 <= self.dropped_kinds < 1:
            raise ConfigError(f"dropped_kinds must lie in [0, 1), got {self.dropped_kinds}")

    def batch(
        self, step: int, size: int, mode: Mode, *, rank: int = 0, world: int = 1
    ) -> PairBatch:
        """The training batch of one step; see :class:`graphkin.learning.task.Task`."""
        if mode != "kin":
            raise ConfigError(f"projects are learned by mode='kin', got {mode!r}")
        rng = generator(self.seed, "training", step)
        drawn = self.drawn(rng, size)
        is_across = bool(rng.random() < ACROSS)
        chosen = _pairs(drawn, is_across, rng) or _pairs(drawn, not is_across, rng)
        chosen = chosen[rank::world]
        graphs = [
            (
                self.without_kinds(self.graph(left), rng),
                self.without_kinds(self.graph(right), rng),
            )
            for (left, right), _ in chosen
        ]
        return PairBatch.pack(graphs, values=[group for _, group in chosen])

    def drawn(self, rng: Generator, size: int) -> list[SourceFunction]:
        """Functions to train on, each once, of few projects."""
        names = list(self._trained)
        shares = np.array([len(self._trained[name]) for name in names]) ** BALANCE
        drawn: dict[tuple[str, str], SourceFunction] = {}
        while len(drawn) < min(size, sum(map(len, self._trained.values()))):
            functions = self._trained[names[rng.choice(len(names), p=shares / shares.sum())]]
            count = min(len(functions), -(-size // PROJECTS_OF_A_BATCH), size - len(drawn))
            for number in rng.choice(len(functions), count, replace=False).tolist():
                item = functions[number]
                drawn[item.project, item.name] = item
        return list(drawn.values())

    def without_kinds(self, graph: Graph, rng: Generator) -> Graph:
        """The graph, now and then without some kinds of words."""
        dropped = np.flatnonzero(rng.random(len(KINDS)) < self.dropped_kinds)
        return without_words(graph, dropped) if len(dropped) else graph

    def evaluation_set(self, split: Split) -> EvaluationSet:
        """Pairs and triplets of any two builds; dissimilar functions are of the same project."""
        rng = generator(0, check_split(split), 0)
        functions = [item for item in self.functions(split) if len(item.builds) > 1]
        by_project = defaultdict(list)
        for item in functions:
            by_project[item.project].append(item)
        labels = signs(self.evaluation_size)
        drawn = [self._triplet(functions, by_project, rng) for _ in range(2 * len(labels))]
        pairs = tuple(
            (graphs[0], graphs[1 if label > 0 else 2])
            for graphs, label in zip(drawn[: len(labels)], labels, strict=True)
        )
        return EvaluationSet(pairs, labels, tuple(drawn[len(labels) :]))

    def _triplet(
        self,
        functions: Sequence[SourceFunction],
        by_project: dict[str, list[SourceFunction]],
        rng: Generator,
    ) -> tuple[Graph, Graph, Graph]:
        while True:
            item = functions[int(rng.integers(len(functions)))]
            near = by_project[item.project]
            other = near[rng.integers(len(near))]
            if other.group != item.group:
                break
        first, second = rng.choice(len(item.builds), 2, replace=False).tolist()
        third = other.builds[rng.integers(len(other.builds))]
        a, b = item.builds[first], item.builds[second]
        return self.graph(a.number), self.graph(b.number), self.graph(third.number)

    def recipe(self, model: str, kind: str = "strong") -> Recipe:
        """Settings that train an embedder, or a matcher on what one confuses."""
        recipes = {
            "gnn": self._embedder_recipe,
            "late": self._late_recipe,
            "gmn": self._matching_recipe,
        }
        if model not in recipes or kind != "strong":
            raise ConfigError(
                f"projects train the models {', '.join(recipes)} by the recipe strong, got "
                f"{model!r} and {kind!r}"
            )
        return recipes[model]()

    def _embedder_recipe(self) -> Recipe:
        statistics = self.statistics
        known = len(statistics.hashes)
        options: dict[str, Any] = {
            "similarity": "cosine",
            "reverse_messages": "separate",
            "propagation": "residual",
            "shared": False,
            "readout": "pooled",
            "node_dim": 96,
            "steps": 4,
            "token_counts": "log",
            "node_degrees": True,
            "node_input": "tokens",
            "node_input_size": len(self.vocabulary),
            "word_dim": 256,
            "offset_dim": 128,
            "words_known": known,
            "words_learned": min(known, LEARNED_WORDS),
            "code_bits": 256,
        }
        training: dict[str, Any] = {
            "mode": "kin",
            "loss": "contrastive",
            "scale": 20.0,
            "batch_size": 192,
            "learning_rate": 2e-3,
            "clip": 1.0,
            "keep": "last",
        }
        return Recipe(options, training, self.vocabulary, statistics)

    def _late_recipe(self) -> Recipe:
        own = self._embedder_recipe()
        left_out = ("similarity", "offset_dim", "words_learned", "code_bits")
        options = {name: value for name, value in own.model.items() if name not in left_out}
        options["word_dim"] = 128
        return Recipe(options, {**own.training, **LISTS}, own.vocabulary, own.words)

    def _matching_recipe(self) -> Recipe:
        """Cross-graph attention in every step; it reads operations alone, no words."""
        options: dict[str, Any] = {
            "similarity": "alignment",
            "alignment_pool": "mean",
            "reverse_messages": "separate",
            "node_dim": 64,
            "token_counts": "log",
            "node_input": "tokens",
            "node_input_size": len(self.vocabulary),
        }
        training = {**self._embedder_recipe().training, **LISTS}
        return Recipe(options, training, self.vocabulary)

    def describe(self) -> dict[str, Any]:
        """The parameters, ready for JSON; the corpus by its content."""
        values = asdict(self) | {"task": "projects", "corpus": self._corpus.digest()}
        return values | {"projects": len(self._trained)}

    @cached_property
    def vocabulary(self) -> Vocabulary:
        """The operations, as the corpus has them."""
        return self._corpus.words

    @cached_property
    def statistics(self) -> WordStatistics:
        """How rare words are in the projects that are trained on."""
        numbers = [b.number for item in self.functions("training") for b in item.builds]
        return WordStatistics.count((self.graph(n) for n in numbers), KNOWN_WORDS, COPIES)

    def graph(self, number: int, vocabulary: Vocabulary | None = None) -> Graph:
        """A graph of the corpus; in the words of a model that was trained on another one."""
        if vocabulary is None:
            return _graph(self.corpus, number)
        return _store(self.corpus).graph(number, vocabulary)

    def trained(self) -> list[SourceFunction]:
        """The functions that training makes pairs of, by project."""
        return [item for functions in self._trained.values() for item in functions]

    def functions_of(self, projects: Collection[str]) -> list[SourceFunction]:
        """The functions of some projects."""
        return [item for item in self._functions if item.project in projects]

    def functions(self, split: str) -> list[SourceFunction]:
        """The functions of ``training``, ``validation`` or ``test``."""
        projects = {"validation": self.validation, "test": self.test}
        if split == "training":
            held_out = {*self.validation, *self.test}
            return [item for item in self._functions if item.project not in held_out]
        return [item for item in self._functions if item.project in projects[check_split(split)]]

    @cached_property
    def _corpus(self) -> FunctionCorpus:
        corpus = FunctionCorpus.open(Path(self.corpus))
        kind = corpus.store.kind
        if kind is None or not kind.has_words:
            raise ConfigError(
                f"{self.corpus} has none of what functions say; make it by: "
                "graphkin extract --evidence PROJECTS -o CORPUS"
            )
        return corpus

    @cached_property
    def _functions(self) -> list[SourceFunction]:
        return source_functions(self._corpus, self.min_nodes)

    @cached_property
    def _trained(self) -> dict[str, list[SourceFunction]]:
        """By project, those that training can make pairs of."""
        sizes = self._corpus.store.node_counts
        trained: dict[str, list[SourceFunction]] = defaultdict(list)
        for item in self.functions("training"):
            largest = self.max_nodes or sizes.max()
            small = [build for build in item.builds if sizes[build.number] <= largest]
            if len(small) > 1:
                trained[item.project].append(replace(item, builds=tuple(small)))
        if len(trained) < 2:
            raise ConfigError(
                f"{self.corpus} has {len(trained)} projects to train on beside those of test and "
                "validation; it needs at least 2"
            )
        return dict(sorted(trained.items()))


@lru_cache(maxsize=1)
def _store(path: str) -> FunctionCorpus:
    return FunctionCorpus.open(Path(path))


@lru_cache(maxsize=1 << 20)
def _graph(path: str, number: int) -> Graph:
    return _store(path).store[number]


def without_words(graph: Graph, kinds: Sequence[int] | NDArray[np.int64]) -> Graph:
    """The graph without words of some kinds, by their positions in ``KINDS``."""
    words = graph.node_words
    if words is None or not len(words.hashes):
        return graph
    kept = ~np.isin(kinds_of(words.hashes), kinds)
    counts = np.concatenate([[0], np.cumsum(kept)])
    return Graph(
        graph.num_nodes,
        graph.edges,
        directed=graph.directed,
        node_tokens=graph.node_tokens,
        node_words=WordBags(words.hashes[kept], counts[words.offsets]),
    )


def _pairs(
    functions: Sequence[SourceFunction], is_across: bool, rng: Generator
) -> list[tuple[tuple[int, int], int]]:
    """Two graphs of each function that has such, and its group."""
    pairs = ((two_builds(item, is_across, rng), item.group) for item in functions)
    return [((pair[0].number, pair[1].number), group) for pair, group in pairs if pair is not None]


def two_builds(item: SourceFunction, is_across: bool, rng: Generator) -> tuple[Build, Build] | None:
    """Two builds, of pointers of different widths or of the same; None without such."""
    first = item.builds[rng.integers(len(item.builds))]
    others = [
        build
        for build in item.builds
        if build != first and (build.is_narrow != first.is_narrow) == is_across
    ]
    return (first, others[rng.integers(len(others))]) if others else None


def source_functions(corpus: FunctionCorpus, min_nodes: int = 1) -> list[SourceFunction]:
    """Every function whose name is there once in a build, in the builds that have it.

    A graph with fewer nodes than ``min_nodes`` is passed over, but its name counts.

    Clones that compilers split off are left out: what they are a part of is not theirs to say.
    """
    numbers: dict[tuple[str, str], dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    for number, entry in enumerate(corpus.entries):
        if entry.name == entry.base_name:
            key = entry.binary.build, entry.name
            numbers[key][entry.binary.library].append(number)
    functions, sizes = [], corpus.store.node_counts
    for (project, name), configurations in sorted(numbers.items()):
        builds = tuple(
            Build(configuration, listed[0])
            for configuration, listed in sorted(configurations.items())
            if len(listed) == 1 and sizes[listed[0]] >= min_nodes
        )
        if builds:
            functions.append(SourceFunction(project, name, builds))
    contents = contents_of(corpus, (build.number for item in functions for build in item.builds))
    groups = connected([[contents[build.number] for build in item.builds] for item in functions])
    return [replace(item, group=group) for item, group in zip(functions, groups, strict=True)]
