"""Examples of two or three graphs: labelled pairs, pairs with target values, triplets."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from graphkin.errors import ConfigError, GraphError
from graphkin.graphs import Graph, PairBatch
from graphkin.graphs.collections import listed
from graphkin.graphs.labels import similarity_labels
from graphkin.graphs.vocabulary import Vocabulary
from graphkin.learning.datasets.dataset import Dataset, check_part
from graphkin.learning.datasets.splits import (
    SHARES,
    check_split,
    generator,
    given_splits,
    split_by_hash,
)
from graphkin.learning.task import EvaluationSet, Mode, Split, TargetSet

Index = NDArray[np.int64]
LEAST = 2
"""Examples, or graphs, in validation and test, where there are enough."""


class _Examples(Dataset):
    """Examples of graphs that may recur."""

    width: ClassVar[int]

    def __init__(
        self,
        examples: Iterable[Sequence[Any]],
        splits: Iterable[Any] | None,
        vocabulary: Vocabulary | None,
        origin: dict[str, Any] | None,
        options: dict[str, Any],
    ) -> None:
        rows = listed(examples, self.kind)
        for place, row in enumerate(rows):
            # A graph of NetworkX has a length too, and is no row of graphs.
            count = len(row) if isinstance(row, tuple | list | np.ndarray) else 1
            if count != self.width:
                raise GraphError(
                    f"example {place} of {self.kind} holds {count} graphs, not {self.width}"
                )
        # A graph that recurs is the same object, or equal; either is there once.
        graphs: dict[int, Any] = {id(graph): graph for row in rows for graph in row}
        number_of = {key: number for number, key in enumerate(graphs)}
        super().__init__(graphs.values(), options, vocabulary, origin)
        numbers = [[number_of[id(graph)] for graph in row] for row in rows]
        self.examples: Index = np.array(numbers, dtype=np.int64)
        """(E, 2 or 3) the numbers of the graphs of each example."""
        self._given_splits = None if splits is None else given_splits(splits, len(rows))

    @cached_property
    def split_by(self) -> str:
        """``given``, ``graph`` or ``pair``."""
        if self._given_splits is not None:
            return "given"
        if self.options.split != "auto":
            return self.options.split
        _, uses = np.unique(self._contents[self.examples], return_counts=True)
        return "graph" if (uses > 1).any() else "pair"

    @cached_property
    def splits(self) -> NDArray[np.str_]:
        """(E,) the split of each example.

        By graph, that of its least known graph: in a test example at least one is unseen.
        """
        if self._given_splits is not None:
            return self._given_splits
        fold, names = self.options.fold, list(SHARES)
        if self.split_by == "class":
            raise ConfigError(f"{self.kind} are split by graph or by pair, not by class")
        if self.split_by == "pair":
            keys = [" ".join(self.digests[n] for n in row) for row in self.examples.tolist()]
            split_of = split_by_hash(keys, fold, LEAST)
            return np.array([split_of[key] for key in keys])
        split_of = split_by_hash(self.digests, fold, LEAST)
        ranks = np.array([names.index(split_of[digest]) for digest in self.digests])
        splits: NDArray[np.str_] = np.array(names)[ranks[self.examples].max(axis=1)]
        return splits

    def rows(self, split: str) -> Index:
        """The numbers of the examples of a split, rising."""
        check_part(split)
        rows = np.flatnonzero(self.splits == split)
        if not len(rows):
            raise ConfigError(
                f"{len(self.examples)} {self.kind} of {len(self._given)} graphs are too few to "
                f"split by {self.split_by}: {split} gets none. Give more, or splits of your own"
            )
        return rows

    def numbers(self, split: str) -> Index:
        """The numbers of the graphs that occur in a split, rising."""
        return np.unique(self.examples[self.rows(split)])

    def _chosen(self, rows: Index) -> list[tuple[Graph, ...]]:
        return [tuple(self.graphs[n] for n in row) for row in self.examples[rows].tolist()]

    @cached_property
    def _contents(self) -> Index:
        """(G,) equal for equal graphs."""
        return np.unique(self.digests, return_inverse=True)[1].astype(np.int64)

    def _evaluated(self, split: Split) -> Index:
        """The examples of a split to evaluate on: all, or ``evaluation_size`` of them."""
        rows, size = self.rows(check_split(split)), self.options.evaluation_size
        if len(rows) <= size:
            return rows
        return np.sort(generator(0, split, 0).choice(rows, size, replace=False))

    @abstractmethod
    def _drawn(self, rng: np.random.Generator, size: int) -> Index:
        """(size,) training examples of one batch."""


class PairDataset(_Examples):
    """Pairs of graphs that are similar or not.

    Args:
        pairs: of graphs of graphkin, NetworkX or PyG, all of one kind; a graph may recur.
        labels: of each pair: 1 and -1, 1 and 0, or booleans.
        splits: of each pair, where you decide: training, validation or test.
        vocabulary: what labels of nodes are tokens; by default those of the training graphs.
        origin: further facts for the description, ready for JSON.
        options: split, seed, evaluation_size and fold.
    """

    kind: ClassVar[str] = "pairs"
    modes: ClassVar[tuple[Mode, ...]] = ("pairs",)
    width: ClassVar[int] = 2

    def __init__(
        self,
        pairs: Iterable[Sequence[Any]],
        labels: ArrayLike,
        *,
        splits: Iterable[Any] | None = None,
        vocabulary: Vocabulary | None = None,
        origin: dict[str, Any] | None = None,
        **options: Any,
    ) -> None:
        super().__init__(pairs, splits, vocabulary, origin, options)
        self.labels = similarity_labels(labels)
        _check_count(self.labels, len(self.examples), "labels")

    def answers(self) -> Iterable[Any]:
        return [*self.examples.ravel().tolist(), *self.labels.tolist()]

    def batch(
        self, step: int, size: int, mode: Mode, *, rank: int = 0, world: int = 1
    ) -> PairBatch:
        """Similar and dissimilar pairs, half of each where there are both."""
        self._check_batch(step, size, mode, rank, world)
        rows = self._drawn(generator(self.options.seed, "training", step), size)[rank::world]
        return PairBatch.pack([(a, b) for a, b in self._chosen(rows)], self.labels[rows].tolist())

    def _drawn(self, rng: np.random.Generator, size: int) -> Index:
        similar, others = self._by_label
        share = (size + 1) // 2
        drawn = np.concatenate([rng.choice(similar, share), rng.choice(others, size - share)])
        return rng.permutation(drawn)

    @cached_property
    def _by_label(self) -> tuple[Index, Index]:
        rows = self.rows("training")
        similar, others = rows[self.labels[rows] > 0], rows[self.labels[rows] < 0]
        if not len(similar) or not len(others):
            kind = "dissimilar" if len(similar) else "similar"
            raise ConfigError(f"none of the {len(rows)} training pairs is {kind}; both are needed")
        return similar, others

    def evaluation_set(self, split: Split) -> EvaluationSet:
        """The fixed pairs of a split: the same for every ``seed``."""
        rows = self._evaluated(split)
        if len(np.unique(self.labels[rows])) < 2:
            raise ConfigError(
                f"all {len(rows)} pairs of {split} have one label, so that nothing can be "
                "measured on them; give more pairs, or splits of your own"
            )
        return EvaluationSet(tuple((a, b) for a, b in self._chosen(rows)), self.labels[rows], ())


class TripletDataset(_Examples):
    """Triplets (G1, G2, G3) where G1 is closer to G2 than to G3.

    Args:
        triplets: of graphs of graphkin, NetworkX or PyG, all of one kind; a graph may recur.
        splits: of each triplet, where you decide: training, validation or test.
        vocabulary: what labels of nodes are tokens; by default those of the training graphs.
        origin: further facts for the description, ready for JSON.
        options: split, seed, evaluation_size and fold.
    """

    kind: ClassVar[str] = "triplets"
    modes: ClassVar[tuple[Mode, ...]] = ("triplets",)
    width: ClassVar[int] = 3

    def __init__(
        self,
        triplets: Iterable[Sequence[Any]],
        *,
        splits: Iterable[Any] | None = None,
        vocabulary: Vocabulary | None = None,
        origin: dict[str, Any] | None = None,
        **options: Any,
    ) -> None:
        super().__init__(triplets, splits, vocabulary, origin, options)

    def answers(self) -> Iterable[Any]:
        return self.examples.ravel().tolist()

    def batch(
        self, step: int, size: int, mode: Mode, *, rank: int = 0, world: int = 1
    ) -> PairBatch:
        """Triplets drawn at random."""
        self._check_batch(step, size, mode, rank, world)
        rows = self._drawn(generator(self.options.seed, "training", step), size)[rank::world]
        return PairBatch.pack_triplets([(a, b, c) for a, b, c in self._chosen(rows)])

    def _drawn(self, rng: np.random.Generator, size: int) -> Index:
        return rng.choice(self.rows("training"), size)

    def evaluation_set(self, split: Split) -> EvaluationSet:
        """The fixed triplets of a split: the same for every ``seed``."""
        chosen = self._chosen(self._evaluated(split))
        return EvaluationSet((), np.zeros(0, np.float32), tuple((a, b, c) for a, b, c in chosen))

    def training_options(self, model: str, kind: str) -> tuple[dict[str, Any], dict[str, Any]]:
        """A margin of 1, as the paper has it for triplets."""
        return {}, {"mode": "triplets", "margin": 0.5 if kind == "strong" else 1.0}


class TargetDataset(_Examples):
    """Pairs of graphs with values to predict: similarities or distances.

    Similarities lie in 0..1, 1 for equal graphs; distances begin at 0, for equal graphs. Values of
    which one is above 1 are distances. Where all lie in 0..1, pairs of equal graphs tell; without
    such pairs they are taken as similarities, and a remark says so.

    Args:
        pairs: of graphs of graphkin, NetworkX or PyG, all of one kind; a graph may recur.
        values: of each pair, finite numbers.
        splits: of each pair, where you decide: training, validation or test.
        vocabulary: what labels of nodes are tokens; by default those of the training graphs.
        origin: further facts for the description, ready for JSON.
        options: split, seed, evaluation_size, fold, batch_graphs, and ``distances``, which says
            whether values are distances, True, or similarities, False.
    """

    kind: ClassVar[str] = "targets"
    modes: ClassVar[tuple[Mode, ...]] = ("pairs",)
    width: ClassVar[int] = 2

    def __init__(
        self,
        pairs: Iterable[Sequence[Any]],
        values: ArrayLike,
        *,
        splits: Iterable[Any] | None = None,
        vocabulary: Vocabulary | None = None,
        origin: dict[str, Any] | None = None,
        **options: Any,
    ) -> None:
        super().__init__(pairs, splits, vocabulary, origin, options)
        self.values = _finite(values)
        _check_count(self.values, len(self.examples), "values")
        if self.values.min() < 0:
            raise ConfigError(
                f"the lowest target is {self.values.min():g}; targets are similarities in 0..1 or "
                "distances from 0 on. Shift and scale them"
            )
        if self.options.distances is False and self.values.max() > 1:
            raise ConfigError(
                f"the highest target is {self.values.max():g}, and similarities lie in 0..1; scale "
                "them, or say that they are distances"
            )
        said = self.options.distances
        self.are_distances: bool = self._guessed() if said is None else said
        """Whether the smallest value is the nearest."""

    def _guessed(self) -> bool:
        """Whether values are distances, by what they are for equal graphs."""
        if self.values.max() > 1:
            return True
        left, right = self._contents[self.examples].T
        equal = self.values[left == right]
        if len(equal):
            return bool(equal.mean() < 0.5)
        self.remarks.append(
            f"the {len(self.values)} values lie in 0..1 and no pair is of equal graphs, so they "
            "are taken as similarities, 1 for equal graphs; if they are distances, say so with "
            "distances=True, or --distances on the command line"
        )
        return False

    def answers(self) -> Iterable[Any]:
        return [*self.examples.ravel().tolist(), *self.values.tolist()]

    def batch(
        self, step: int, size: int, mode: Mode, *, rank: int = 0, world: int = 1
    ) -> PairBatch:
        """Pairs drawn at random, with their values as labels.

        With ``batch_graphs`` they are pairs of that many graphs, each of which is there once.
        """
        self._check_batch(step, size, mode, rank, world)
        rows = self._drawn(generator(self.options.seed, "training", step), size)[rank::world]
        pack = PairBatch.pack_distinct if self.options.batch_graphs else PairBatch.pack
        return pack([(a, b) for a, b in self._chosen(rows)], values=self.values[rows])

    def _drawn(self, rng: np.random.Generator, size: int) -> Index:
        known, rows = self._known
        if not self.options.batch_graphs:
            return rng.choice(rows, size)
        chosen = np.zeros(len(self._given), dtype=bool)
        chosen[rng.choice(known, min(self.options.batch_graphs, len(known)), replace=False)] = True
        left, right = self.examples[rows].T
        among = rows[chosen[left] & chosen[right]]
        if len(among) >= size:
            return rng.choice(among, size, replace=False)
        # Where few graphs are paired with each other, other pairs fill the batch.
        return np.concatenate([among, rng.choice(rows, size - len(among))])

    @cached_property
    def _known(self) -> tuple[Index, Index]:
        """The numbers of the training graphs, and of the training pairs."""
        return self.numbers("training"), self.rows("training")

    @cached_property
    def queries(self) -> Index:
        """(E,) the graph of each pair that asks: the one that training has not seen, if any."""
        known = np.isin(self.examples, self.numbers("training"))
        asks = np.where(known[:, 0] & ~known[:, 1], self.examples[:, 1], self.examples[:, 0])
        return asks.astype(np.int64)

    def evaluation_set(self, split: Split) -> TargetSet:
        """The fixed pairs of a split: all of a query's, for as many queries as fit."""
        rows, size = self.rows(check_split(split)), self.options.evaluation_size
        if len(rows) > size:
            asking = np.unique(self.queries[rows])
            order = generator(0, split, 0).permutation(asking)
            counts = np.cumsum([np.sum(self.queries[rows] == query) for query in order.tolist()])
            chosen = order[: max(1, int(np.searchsorted(counts, size, side="right")))]
            rows = rows[np.isin(self.queries[rows], chosen)]
        pairs = tuple((a, b) for a, b in self._chosen(rows))
        return TargetSet(pairs, self.values[rows], self.queries[rows], self.are_distances)

    def training_options(self, model: str, kind: str) -> tuple[dict[str, Any], dict[str, Any]]:
        """A link to the unit of the values, and the mean squared error."""
        options: dict[str, Any] = {"link": "exp"}
        if self.are_distances:
            scale = float(f"{max(self.values[self.rows('training')].mean(), 1e-6):.3g}")
            options = {"link": "distance", "target_scale": scale}
        if kind == "strong" and model in ("gnn", "gmn"):
            # An alignment fits training pairs better, and unseen graphs worse.
            options |= {"similarity": "euclidean"}
            if self.are_distances:
                options |= {"link": "root", "readout": "nodes"}
        return options, {"loss": "mse", "clip": 1.0}


def _finite(values: ArrayLike) -> NDArray[np.float64]:
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ConfigError(f"targets must be numbers: {error}") from error
    if array.ndim != 1 or not array.size:
        raise ConfigError(f"targets must be a flat list of numbers, got shape {array.shape}")
    broken = np.flatnonzero(~np.isfinite(array))
    if len(broken):
        raise ConfigError(f"target {broken[0]} is {array[broken[0]]}; targets must be finite")
    return array


def _check_count(values: NDArray[Any], count: int, what: str) -> None:
    if len(values) != count:
        raise ConfigError(f"{len(values)} {what} for {count} pairs; give one for each")
