"""Binary function similarity: are two control-flow graphs compiled from the same function?

Two protocols say what counts. The paper's takes random pairs and triplets of functions as they
are named. The clean one takes the noise out of these labels: functions that headers define are
left out, functions that share an exact graph form one group, no negative comes from the group of
its anchor, and pairs of equal graphs, which anything can recognise, are left out.

Both have the same splits, which go by group: a model that was trained by one protocol has seen no
test function of the other.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property, lru_cache
from itertools import permutations
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from graphkin._support.files import read_file
from graphkin._support.settings import check_at_least, check_types
from graphkin.binaries.corpus import FunctionCorpus
from graphkin.errors import ConfigError
from graphkin.graphs import Graph, PairBatch, TokenBags
from graphkin.graphs.vocabulary import Vocabulary
from graphkin.learning.datasets.sampling import ClassSampler, Index, Negatives, balanced_batches
from graphkin.learning.datasets.splits import (
    SHARES,
    check_recipe,
    check_split,
    generator,
    labelled,
    signs,
    split_by_hash,
    text_hash,
)
from graphkin.learning.task import (
    LIST_NEGATIVES,
    EvaluationSet,
    Mode,
    Recipe,
    RetrievalPool,
    Split,
)
from graphkin.research.tasks.functions.groups import (
    FunctionClass,
    FunctionKey,
    contents_of,
    function_classes,
    grouped,
)
from graphkin.research.tasks.hard_negatives import nearest_by_codes, nearest_classes, read_codes

Protocol = Literal["paper", "clean"]
Features = Literal["mnemonics", "structure"]

RECIPES = ("paper", "strong")
PROTOCOL_NAMES: dict[Protocol, str] = {"paper": "the paper's protocol", "clean": "clean protocol"}
CHUNK = 32
"""Steps whose examples are drawn at once, and divided into batches of equal cost."""


@dataclass(frozen=True)
class FunctionTask:
    """Functions of a corpus, each compiled in several ways.

    Args:
        corpus: the folder that ``graphkin extract`` wrote.
        protocol: ``paper`` or ``clean``, for training and evaluation alike.
        features: whether a node carries its block's mnemonics, or nothing.
        min_builds: builds that a function must have; 0 stands for all builds of the corpus.
        vocabulary_size: mnemonics that get a token of their own, the most frequent ones of the
            training functions; 0 for all of them.
        max_nodes: larger graphs are left out of training, not of evaluation; 0 keeps all.
        hard_negatives: share of the dissimilar graphs in training that come from functions
            that are easily confused: with similar size and mnemonics, or codes.
        codes: a file of codes of all graphs of the corpus (numpy, (G, B) uint8), which says
            what is easily confused instead.
        words: a vocabulary to use instead, as a model brings it.
        seed: seed of the training data. Splits and evaluation sets do not depend on it.
        evaluation_size: pairs, and triplets, of an evaluation set.
        pool: candidates of each query of a retrieval set; 0 takes all functions of the split.
    """

    corpus: str
    protocol: Protocol = "paper"
    features: Features = "mnemonics"
    min_builds: int = 0
    vocabulary_size: int = 0
    max_nodes: int = 0
    hard_negatives: float = 0.0
    codes: str | None = None
    words: tuple[str, ...] | None = None
    seed: int = 0
    evaluation_size: int = 1000
    pool: int = 100

    def __post_init__(self) -> None:
        object.__setattr__(self, "corpus", str(self.corpus))
        if isinstance(self.words, list):
            object.__setattr__(self, "words", tuple(self.words))
        check_types(self)
        if not all(isinstance(word, str) for word in self.words or ()):
            raise ConfigError(f"words must be a list of text, got {str(self.words)[:60]}")
        check_at_least(self, 0, "min_builds", "vocabulary_size", "max_nodes", "seed", "pool")
        check_at_least(self, 2, "evaluation_size")
        if not 0 <= self.hard_negatives <= 1:
            raise ConfigError(f"hard_negatives must lie in 0..1, got {self.hard_negatives}")

    def batch(
        self, step: int, size: int, mode: Mode, *, rank: int = 0, world: int = 1
    ) -> PairBatch:
        """The training batch of one step; see :class:`graphkin.learning.task.Task`.

        Batches are of about equal numbers of nodes; ``size`` is their mean number of examples.
        """
        if mode not in get_args(Mode):
            raise ConfigError(f"mode must be one of {', '.join(get_args(Mode))}; got {mode!r}")
        if step < 0 or not 0 <= rank < world <= size:
            raise ConfigError(
                f"no batch for step {step}, size {size}, rank {rank} of {world}: steps and ranks "
                "count from 0, and every rank needs an example"
            )
        chunk = _chunk(self, self.data.digest, step // CHUNK, size, mode, world)
        examples = chunk[step % CHUNK][rank::world]
        graphs = self._graphs
        if mode == "kin":
            kin = [(graphs[a], graphs[b]) for a, b in examples[:, :2].tolist()]
            groups = [self._group_of[a] for a in examples[:, 0].tolist()]
            return PairBatch.pack(kin, values=groups)
        if mode == "lists":
            lists = [graphs.get_many(row) for row in examples.tolist()]
            return PairBatch.pack([(first, other) for first, *rest in lists for other in rest])
        if mode == "triplets":
            triplets = [tuple(graphs.get_many(row)) for row in examples[:, :3].tolist()]
            return PairBatch.pack_triplets(triplets)  # type: ignore[arg-type]
        labels = examples[:, 3].tolist()
        return PairBatch.pack(labelled(graphs, examples[:, :3].tolist(), labels), labels)

    def evaluation_set(self, split: Split) -> EvaluationSet:
        """The fixed pairs and triplets of a split, with random negatives."""
        return self.evaluation_sets(split)["random negatives"]

    def evaluation_sets(self, split: Split) -> dict[str, EvaluationSet]:
        """All fixed sets of a split, by name.

        Negatives are random in one set, and matched in size in the other, where size alone is
        worth nothing.
        """
        sampler = _sampler(self, self.data.digest, check_split(split))
        return {
            "random negatives": self._drawn(split, sampler, "random", 0),
            "size-matched negatives": self._drawn(split, sampler, "size", 1),
        }

    def retrieval(self, split: Split) -> list[RetrievalPool]:
        """Queries of one build against a pool of another.

        The functions of the split, one of each group, are divided into pools of equal size, with
        two builds for each and functions that both have. By the clean protocol the graphs of a
        function in the two builds differ. Where no two builds share as many functions as
        ``pool`` asks for, a pool has as many as they do.
        """
        rng = generator(0, check_split(split), 2)
        classes = self.classes(split)
        one_each: dict[int, FunctionClass] = {}
        for number in rng.permutation(len(classes)).tolist():
            one_each.setdefault(classes[number].group, classes[number])
        waiting = list(one_each.values())
        pairs = list(permutations(sorted({b for item in classes for b in item.graphs}), 2))
        pairs = [pairs[number] for number in rng.permutation(len(pairs)).tolist()]
        most = max(sum(self._is_query(item, *pair) for item in waiting) for pair in pairs)
        size = min(self.pool or most, most)
        if size < 2:
            raise ConfigError(f"no two builds share two {split} functions to search for")
        pools: list[RetrievalPool] = []
        while True:  # around all pairs of builds, until none fills a pool any more
            before = len(pools)
            for pair in pairs:
                members = [item for item in waiting if self._is_query(item, *pair)][:size]
                if len(members) == size:
                    sides = [[self._graphs[i.graphs[build]] for i in members] for build in pair]
                    pools.append(RetrievalPool(tuple(sides[0]), tuple(sides[1])))
                    used = {item.group for item in members}
                    waiting = [item for item in waiting if item.group not in used]
            if len(pools) == before:
                return pools

    def _is_query(self, item: FunctionClass, query_build: str, pool_build: str) -> bool:
        if not {query_build, pool_build} <= item.graphs.keys():
            return False
        contents = self.data.contents[[item.graphs[query_build], item.graphs[pool_build]]]
        return self.protocol == "paper" or bool(contents[0] != contents[1])

    def recipe(self, model: str, kind: str = "paper") -> Recipe:
        """Settings that train a model well on functions.

        Args:
            model: its name.
            kind: ``paper`` for the losses of the paper; ``strong`` for a contrastive loss, an
                embedder against all graphs of its batch, and a matcher on lists. The matcher's rate
                is for one that starts from an embedder.
        """
        check_recipe(kind, RECIPES)
        options: dict[str, Any] = {"reverse_messages": "separate"}
        training: dict[str, Any] = {"batch_size": 20, "learning_rate": 1e-3}
        if model in ("gcn", "siamese-gcn"):
            options["reverse_messages"] = "shared"
        if not model.startswith("siamese"):
            options["similarity"] = training["loss"] = "hamming"
        if kind == "strong":
            options["node_dim"] = 64
            training |= {"loss": "contrastive", "scale": 80.0, "clip": 1.0}
            if model == "gmn" or model.startswith("siamese"):
                training |= {"mode": "lists", "batch_size": 8, "learning_rate": 2e-4}
                training |= {"keep": "last"}
            else:
                training |= {"mode": "kin", "batch_size": 48, "learning_rate": 1e-3}
        if self.features == "structure":
            return Recipe(options, training)
        options |= {"node_input": "tokens", "node_input_size": len(self.vocabulary)}
        return Recipe(options, training, self.vocabulary)

    def describe(self) -> dict[str, Any]:
        """The parameters, ready for JSON; the corpus by its content."""
        values = asdict(self) | {"task": "functions", "corpus": self.data.digest}
        if self.codes is not None:
            values["codes"] = hashlib.sha256(read_file(self.codes)).hexdigest()
        return values | {"words": text_hash("\0".join(self.vocabulary.words))}

    @cached_property
    def vocabulary(self) -> Vocabulary:
        """The mnemonics that have tokens of their own."""
        if self.words is not None:
            return Vocabulary(self.words)
        counts = np.zeros(len(self.data.corpus.words), dtype=np.int64)
        for item in self.classes("training"):
            for number in item.graphs.values():
                tokens = self.data.corpus.store[number].node_tokens
                if tokens is not None:
                    counts += np.bincount(tokens.ids, minlength=len(counts))
        names = self.data.corpus.words.words
        seen = {word: int(count) for word, count in zip(names, counts[1:], strict=True) if count}
        return Vocabulary.from_counts(seen, size=self.vocabulary_size or None)

    def classes(self, split: str) -> list[FunctionClass]:
        """The functions of ``training``, ``validation`` or ``test``."""
        if split not in SHARES:
            raise ConfigError(f"split must be one of {', '.join(SHARES)}; got {split!r}")
        return self._splits[split]

    def graphs(self, split: str) -> tuple[list[Graph], Index]:
        """Every graph of a split, and (G,) the number of its function."""
        classes = self.classes(split)
        graphs, _ = self.numbered_graphs(split)
        return graphs, np.repeat(np.arange(len(classes)), [len(item.graphs) for item in classes])

    def graphs_of(self, numbers: Iterable[int]) -> list[Graph]:
        """Graphs by their numbers in the corpus, as models see them."""
        return self._graphs.get_many(numbers)

    def numbered_graphs(self, split: str) -> tuple[list[Graph], Index]:
        """Every graph of a split, and (G,) its number in the corpus."""
        numbers = [graph for item in self.classes(split) for graph in item.graphs.values()]
        return self.graphs_of(numbers), np.array(numbers)

    def identical_share(self, split: Split) -> float:
        """Share of the pairs of builds of one function whose graphs are exactly equal."""
        equal = total = 0
        for item in self.classes(split):
            repeats = Counter(self.data.contents[list(item.graphs.values())].tolist())
            equal += sum(count * (count - 1) // 2 for count in repeats.values())
            total += len(item.graphs) * (len(item.graphs) - 1) // 2
        return equal / max(total, 1)

    @cached_property
    def data(self) -> _FunctionData:
        """The corpus and its functions, whatever the protocol."""
        corpus = FunctionCorpus.open(Path(self.corpus))
        if self.features == "mnemonics" and corpus.words.reads == "evidence":
            raise ConfigError(
                f"{self.corpus} holds evidence of functions: operations, and no mnemonics; extract "
                "the binaries again without --evidence, or take --features structure"
            )
        return _load(corpus.path.absolute(), corpus.digest())

    @cached_property
    def _splits(self) -> dict[str, list[FunctionClass]]:
        least = self.min_builds or self.data.num_builds
        classes = [item for item in self.data.classes if len(item.graphs) >= least]
        if self.protocol == "clean":
            classes = [item for item in classes if not item.in_header]
        splits: dict[str, list[FunctionClass]] = {name: [] for name in SHARES}
        for item in classes:
            splits[self.data.split_of[item.group]].append(item)
        for name, items in splits.items():
            if len({item.group for item in items}) < 2:
                raise ConfigError(
                    f"{self.corpus} has {len(classes)} functions in at least {max(least, 2)} "
                    f"builds, too few to split: {name} gets {len(items)}. The corpus has "
                    f"{self.data.num_builds} in all: add more, or lower min_builds (2 is the least)"
                )
        if self.protocol == "paper":
            # Every function is its own group.
            for items in splits.values():
                items[:] = [replace(item, group=number) for number, item in enumerate(items)]
        return splits

    @cached_property
    def _group_of(self) -> dict[int, int]:
        """The group of each graph that is trained on."""
        training = self.classes("training")
        return {graph: item.group for item in training for graph in item.graphs.values()}

    @cached_property
    def _graphs(self) -> _Graphs:
        return _Graphs(self.data.corpus, self.vocabulary if self.features == "mnemonics" else None)

    def _drawn(
        self, split: Split, sampler: ClassSampler, negatives: Negatives, stream: int
    ) -> EvaluationSet:
        rng = generator(0, split, stream)
        labels = signs(self.evaluation_size)
        drawn = sampler.triplets(rng, self.evaluation_size, negatives).tolist()
        graphs = self._graphs
        pairs = labelled(graphs, drawn, labels)
        drawn = sampler.triplets(rng, self.evaluation_size, negatives).tolist()
        triplets = [(graphs[a], graphs[b], graphs[c]) for a, b, c in drawn]
        return EvaluationSet(tuple(pairs), labels, tuple(triplets))


@dataclass(frozen=True, eq=False)
class _FunctionData:
    """What does not depend on the settings of a task."""

    corpus: FunctionCorpus
    digest: str
    """Of the corpus."""
    classes: list[FunctionClass]
    """The functions that at least two builds have, in groups."""
    contents: Index
    """(G,) equal for graphs of equal content; -1 for those of no function here."""
    split_of: dict[int, str]
    """The split of each group."""
    num_builds: int


@lru_cache(maxsize=2)
def _load(path: Path, digest: str) -> _FunctionData:
    """The digest is a key of the cache: the folder may hold another corpus next time."""
    corpus = FunctionCorpus.open(path)
    classes = function_classes(corpus, 2)
    contents = contents_of(corpus, (graph for item in classes for graph in item.graphs.values()))
    classes = grouped(classes, contents)
    num_builds = len({binary.build for binary in corpus.binaries})
    return _FunctionData(corpus, digest, classes, contents, _split_of(classes), num_builds)


def _split_of(classes: Sequence[FunctionClass]) -> dict[int, str]:
    """The split of each group, by the hash of the first of its names.

    So that the names decide, and not what else the corpus holds: the same functions in other
    builds, or beside other libraries, fall into the same splits, but for a few at the cuts.
    """
    first: dict[int, FunctionKey] = {}
    for item in classes:  # which are sorted by their keys
        first.setdefault(item.group, item.key)
    names = {group: "\0".join(key) for group, key in first.items()}
    split_of = split_by_hash(names.values())
    return {group: split_of[name] for group, name in names.items()}


# Tasks are equal where their settings are, so the digest of the corpus is part of the key.
@lru_cache(maxsize=8)
def _sampler(task: FunctionTask, digest: str, split: str) -> ClassSampler:
    corpus, classes = task.data.corpus, task.classes(split)
    sizes = corpus.store.node_counts
    largest = task.max_nodes if split == "training" and task.max_nodes else sizes.max()
    members = [np.array(list(item.graphs.values())) for item in classes]
    members = [numbers[sizes[numbers] <= largest] for numbers in members]
    groups = np.array([item.group for item in classes])[[len(numbers) > 0 for numbers in members]]
    members = [numbers for numbers in members if len(numbers)]
    near = near_graphs = None
    if split == "training" and task.hard_negatives and task.codes is None:
        near = nearest_classes(corpus.store, members, len(corpus.words))
    elif split == "training" and task.hard_negatives and task.codes is not None:
        codes = read_codes(task.codes, len(corpus.store))[np.concatenate(members)]
        counts = [len(numbers) for numbers in members]
        near_graphs = nearest_by_codes(codes, np.repeat(groups, counts))
    contents = task.data.contents if task.protocol == "clean" else None
    return ClassSampler(
        members, sizes, groups=groups, contents=contents, near=near, near_graphs=near_graphs
    )


@lru_cache(maxsize=2)
def _chunk(
    task: FunctionTask, digest: str, number: int, size: int, mode: Mode, world: int
) -> list[Index]:
    """For each step of a chunk (B, 4): three graph numbers, and the label of the pair.

    Where the mode is ``lists``, (B, 2 + LIST_NEGATIVES) graph numbers.
    """
    rng = generator(task.seed, "training", number)
    count = CHUNK * size
    sampler = _sampler(task, digest, "training")
    counts = task.data.corpus.store.node_counts
    if mode == "lists":
        lists = sampler.lists(rng, count, LIST_NEGATIVES, hard=task.hard_negatives)
        costs = counts[lists[:, 1:]].sum(axis=1) + (1 + LIST_NEGATIVES) * counts[lists[:, 0]]
        return [lists[b] for b in balanced_batches(rng, costs.astype(np.float64), CHUNK, world)]
    triplets = sampler.triplets(rng, count, hard=task.hard_negatives)
    labels = np.where(np.arange(count) % 2, -1, 1)
    sizes = counts[triplets]
    if mode == "triplets":
        costs = 2 * sizes[:, 0] + sizes[:, 1] + sizes[:, 2]
    elif mode == "kin":
        costs = sizes[:, 0] + sizes[:, 1]
    else:
        costs = sizes[:, 0] + np.where(labels > 0, sizes[:, 1], sizes[:, 2])
    examples = np.column_stack([triplets, labels])
    batches = balanced_batches(rng, costs.astype(np.float64), CHUNK, world)
    return [examples[batch] for batch in batches]


class _Graphs:
    """Graphs by number, as the models see them; each is made once."""

    def __init__(self, corpus: FunctionCorpus, vocabulary: Vocabulary | None) -> None:
        self._corpus = corpus
        self._tokens = (
            None
            if vocabulary is None
            else vocabulary.encode(corpus.words.decode(token) for token in range(len(corpus.words)))
        )
        self._made: dict[int, Graph] = {}

    def __getitem__(self, number: int) -> Graph:
        made = self._made.get(number)
        if made is None:
            made = self._made[number] = self._make(number)
        return made

    def get_many(self, numbers: Iterable[int]) -> list[Graph]:
        return [self[number] for number in numbers]

    def _make(self, number: int) -> Graph:
        graph = self._corpus.store[number]
        bags = None
        if self._tokens is not None and graph.node_tokens is not None:
            bags = TokenBags(self._tokens[graph.node_tokens.ids], graph.node_tokens.offsets)
        return Graph(graph.num_nodes, graph.edges, directed=True, node_tokens=bags)
