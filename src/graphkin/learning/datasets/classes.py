"""Graphs in classes: those of one class are similar."""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from graphkin.errors import ConfigError
from graphkin.graphs import PairBatch
from graphkin.graphs.collections import listed
from graphkin.graphs.vocabulary import Vocabulary
from graphkin.learning.datasets.dataset import Augment, Dataset, check_part
from graphkin.learning.datasets.sampling import ClassSampler, Index
from graphkin.learning.datasets.splits import (
    check_split,
    generator,
    given_splits,
    labelled,
    signs,
    split_classes,
)
from graphkin.learning.evaluation import Neighbours
from graphkin.learning.task import LIST_NEGATIVES, EvaluationSet, Mode, Split

LEAST = 2
"""Classes, or graphs of a class, in validation and test, where there are enough: a pair of similar
graphs takes two."""


class ClassDataset(Dataset):
    """Graphs and the class of each.

    Args:
        graphs: of graphkin, NetworkX or PyG, all of one kind.
        labels: the class of each, text or numbers.
        splits: of each graph, where you decide: training, validation or test.
        vocabulary: what labels of nodes are tokens; by default those of the training graphs.
        augment: changes a training graph each time that it is drawn.
        name: what the dataset is called in errors.
        origin: further facts for the description, ready for JSON.
        options: split, seed, evaluation_size and fold.

    Example:
        >>> from graphkin import Graph
        >>> ring = lambda n: Graph(n, [(i, (i + 1) % n) for i in range(n)])
        >>> star = lambda n: Graph(n, [(0, i) for i in range(1, n)])
        >>> graphs = [kind(n) for kind in (ring, star) for n in range(4, 24)]
        >>> dataset = ClassDataset(graphs, ["ring"] * 20 + ["star"] * 20)
        >>> [len(dataset.numbers(split)) for split in ("training", "validation", "test")]
        [32, 4, 4]
    """

    kind: ClassVar[str] = "classes"
    modes: ClassVar[tuple[Mode, ...]] = ("pairs", "triplets", "lists", "kin")

    def __init__(
        self,
        graphs: Iterable[Any],
        labels: Iterable[Any],
        *,
        splits: Iterable[Any] | None = None,
        vocabulary: Vocabulary | None = None,
        augment: Augment | None = None,
        name: str = "the dataset",
        origin: dict[str, Any] | None = None,
        **options: Any,
    ) -> None:
        super().__init__(graphs, options, vocabulary, origin)
        self.name, self._augment = name, augment
        values = [_class_of(label, place) for place, label in enumerate(listed(labels, "labels"))]
        if len(values) != len(self._given):
            raise ConfigError(f"{len(values)} labels for {len(self._given)} graphs; give one each")
        kinds = sorted(set(values), key=lambda value: (isinstance(value, str), value))
        places = {value: place for place, value in enumerate(kinds)}
        self.labels = [str(value) for value in kinds]
        """The name of each class."""
        self.classes: Index = np.array([places[value] for value in values])
        """(G,) the number of each graph's class, from 0."""
        self._given_splits = None if splits is None else given_splits(splits, len(values))
        self._samplers: dict[str, ClassSampler] = {}

    def answers(self) -> Iterable[Any]:
        yield from (self.labels[number] for number in self.classes.tolist())
        if self._given_splits is not None:
            yield from self._given_splits.tolist()

    @cached_property
    def split_by(self) -> str:
        """``given``, ``class`` or ``graph``."""
        if self.options.split != "auto":
            return self.options.split
        if self._given_splits is not None:
            return "given"
        enough = np.bincount(self.classes) >= 3 * LEAST
        return "graph" if enough.sum() > 1 else "class"

    @cached_property
    def splits(self) -> NDArray[np.str_]:
        """(G,) the split of each graph."""
        if self._given_splits is not None:
            return self._given_splits
        if self.split_by == "pair":
            raise ConfigError("graphs in classes are split by graph or by class, not by pair")
        classes, fold = self.classes, self.options.fold
        return split_classes(classes, self.labels, self.digests, self.split_by, fold, LEAST)

    def numbers(self, split: str) -> Index:
        """The numbers of the graphs of ``training``, ``validation`` or ``test``, rising."""
        check_part(split)
        return np.flatnonzero(self.splits == split)

    def batch(
        self, step: int, size: int, mode: Mode, *, rank: int = 0, world: int = 1
    ) -> PairBatch:
        """The training batch of one step; see :class:`graphkin.learning.task.Task`.

        Pairs are similar and dissimilar in turn.
        """
        self._check_batch(step, size, mode, rank, world)
        rng = generator(self.options.seed, "training", step)
        others = LIST_NEGATIVES if mode == "lists" else 1
        numbers = self._sampler("training").lists(rng, size, others)
        rows = np.arange(numbers.size).reshape(numbers.shape)[rank::world].tolist()
        graphs = [self.graphs[number] for number in numbers.ravel().tolist()]
        if self._augment is not None:
            graphs = [self._augment(graph, rng) for graph in graphs]
        if mode == "kin":
            pairs = [(graphs[a], graphs[b]) for a, b, _ in rows]
            return PairBatch.pack(pairs, values=self.classes[numbers[rank::world, 0]])
        if mode == "pairs":
            labels = signs(size)[rank::world]
            return PairBatch.pack(labelled(graphs, rows, labels), labels.tolist())
        return PairBatch.pack([(graphs[a], graphs[b]) for a, *rest in rows for b in rest])

    def evaluation_set(self, split: Split) -> EvaluationSet:
        """The fixed pairs and triplets of a split: the same for every ``seed``."""
        rng = generator(0, check_split(split), 0)
        sampler, graphs, size = self._sampler(split), self.graphs, self.options.evaluation_size
        labels = signs(size)
        pairs, triplets = (sampler.triplets(rng, size).tolist() for _ in range(2))
        return EvaluationSet(
            tuple(labelled(graphs, pairs, labels)),
            labels,
            tuple((graphs[a], graphs[b], graphs[c]) for a, b, c in triplets),
        )

    def neighbours(self, split: Split) -> Neighbours:
        """The graphs of a split, and those among which their nearest is looked for.

        Where whole classes are unseen, all others of the split; else the training graphs.
        """
        queries, known = self.numbers(check_split(split)), self.numbers("training")
        unseen = not np.isin(self.classes[queries], self.classes[known]).any()
        pool = queries if unseen else known
        return Neighbours(
            tuple(self.graphs[number] for number in queries.tolist()),
            tuple(self.graphs[number] for number in pool.tolist()),
            right=self.classes[queries, None] == self.classes[None, pool],
            own=queries[:, None] == pool[None],
        )

    def training_options(self, model: str, kind: str) -> tuple[dict[str, Any], dict[str, Any]]:
        """Embedders by a contrastive loss against their whole batch, matchers by pairs."""
        if kind == "paper" or model not in ("gnn", "gcn", "deepset"):
            return {}, {}
        contrastive = {"mode": "kin", "loss": "contrastive", "scale": 20.0, "clip": 1.0}
        return {"similarity": "cosine"}, contrastive

    def _sampler(self, split: str) -> ClassSampler:
        """What draws graphs of a split; those of a split that nobody asks for may be missing."""
        if split not in self._samplers:
            numbers = self.numbers(split)
            present = np.unique(self.classes[numbers])
            if len(present) < 2:
                raise ConfigError(self._too_few(split, len(present)))
            members = [numbers[self.classes[numbers] == number] for number in present.tolist()]
            sizes = np.array([graph.num_nodes for graph in self._given])
            contents = np.unique(self.digests, return_inverse=True)[1]
            self._samplers[split] = ClassSampler(members, sizes, contents=contents)
        return self._samplers[split]

    def _too_few(self, split: str, classes: int) -> str:
        """Why a split has no two classes, and what would give it some."""
        about = f"{self.name} has {len(self.labels)} classes of {len(self._given)} graphs"
        if len(self.labels) < 2:
            return f"{about}, and at least 2 classes are needed to learn what tells them apart"
        own = "splits of your own: splits= in Python, or a column 'split'"
        if self.split_by == "given":
            return f"{about}, and {split} has {classes} of them in your splits; give it 2 or more"
        if self.split_by == "graph":
            advice = f"Give more graphs of each class, at least {3 * LEAST}"
        elif len(self.labels) >= 3 * LEAST:
            advice = f"Give more than {len(self.labels)} classes, or split by graph"
        else:
            advice = f"Give at least {3 * LEAST} graphs of two classes, or {3 * LEAST} classes"
        return (
            f"{about}, too few to split by {self.split_by}: {split} gets {classes} classes, and "
            f"needs 2. {advice}; or {own}"
        )


def _class_of(label: Any, place: int) -> str | int | float:
    value = label.item() if hasattr(label, "item") else label
    broken = isinstance(value, float) and not math.isfinite(value)
    if broken or not isinstance(value, str | int | float | bool):
        raise ConfigError(f"label {place} is {label!r}; the class of a graph is text or a number")
    whole = isinstance(value, bool) or (isinstance(value, float) and value.is_integer())
    return int(value) if whole else value
