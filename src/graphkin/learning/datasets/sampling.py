"""Pairs and triplets of graphs that fall into classes: same class, similar."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from graphkin.errors import ConfigError

Index = NDArray[np.int64]
Negatives = Literal["random", "size"]

SIZE_RATIO = 1.1
"""Largest ratio between the node counts of graphs that are matched in size."""
LEAST_CHOICE = 16
"""Graphs to choose from, at least, where few are of the right size."""
ROUNDS = 64
"""Draws before all graphs of other groups are listed; few groups are so large."""


class ClassSampler:
    """Draws triplets (G1, G2, G3) of graph numbers: G2 of the class of G1, G3 of another group.

    Args:
        classes: the graph numbers of each class.
        sizes: (G,) number of nodes of every graph, by graph number.
        groups: the group of each class; classes of one group are never negatives of each
            other. By default every class is its own.
        contents: (G,) equal for graphs of equal content; when given, G1 and G2 always differ.
        near: (C, K) for each class others that are easily confused with it, for
            ``hard`` negatives.
        near_graphs: the same for each graph, by its position in ``classes`` laid end to end:
            positions of graphs, -1 for none.
    """

    def __init__(
        self,
        classes: Sequence[Index],
        sizes: Index,
        *,
        groups: Index | None = None,
        contents: Index | None = None,
        near: Index | None = None,
        near_graphs: Index | None = None,
    ) -> None:
        self._counts = np.array([len(members) for members in classes], dtype=np.int64)
        self._starts = np.concatenate([[0], np.cumsum(self._counts)[:-1]])
        self._graphs = np.concatenate([*classes, np.zeros(0, dtype=np.int64)]).astype(np.int64)
        self._class_of = np.repeat(np.arange(len(classes)), self._counts)
        self._groups = np.arange(len(classes)) if groups is None else groups
        self._contents = contents
        self._near, self._near_graphs = near, near_graphs
        anchors = [
            number
            for number, members in enumerate(classes)
            if len(members if contents is None else np.unique(contents[members])) > 1
        ]
        self._anchors = np.array(anchors, dtype=np.int64)
        self._sizes = sizes[self._graphs]
        self._by_size = np.argsort(self._sizes, kind="stable")
        self._sorted_sizes = self._sizes[self._by_size]
        if not len(anchors) or len(np.unique(self._groups)) < 2:
            raise ConfigError(
                f"{len(classes)} classes, {len(anchors)} of them with two different graphs, in "
                f"{len(np.unique(self._groups))} groups: too few to draw similar and dissimilar "
                "graphs from"
            )

    def triplets(
        self, rng: Generator, count: int, negatives: Negatives = "random", hard: float = 0.0
    ) -> Index:
        """(count, 3) graph numbers.

        Args:
            rng: the random generator.
            count: how many.
            negatives: whether G3 is any graph of another group, or one as large as G2.
            hard: share of the triplets in which G3 is of a class near to that of G1.
        """
        return self.lists(rng, count, 1, negatives, hard)

    def lists(
        self,
        rng: Generator,
        count: int,
        others: int,
        negatives: Negatives = "random",
        hard: float = 0.0,
    ) -> Index:
        """(count, 2 + others) graph numbers: triplets with as many G3."""
        chosen = self._anchors[rng.integers(0, len(self._anchors), count)]
        first, second = self._positives(rng, chosen)
        repeated, partners = np.repeat(chosen, others), np.repeat(second, others)
        anchors = np.repeat(first, others)
        third = self._dissimilar(rng, repeated, anchors, partners, negatives, hard)
        return np.column_stack(
            [self._graphs[part] for part in (first, second, third.reshape(count, others))]
        )

    def _dissimilar(
        self,
        rng: Generator,
        chosen: Index,
        first: Index,
        second: Index,
        negatives: Negatives,
        hard: float,
    ) -> Index:
        """Positions of graphs of other groups than the chosen classes."""
        third = np.full(len(chosen), -1)
        is_hard = self._hard(rng, len(chosen), hard)
        for attempt in range(ROUNDS):
            open_ = np.flatnonzero(third < 0)
            if not len(open_):
                break
            # Where nothing near or of the right size is in another group, look further.
            widening = 1 + attempt // 8
            drawn = self._negatives(rng, chosen[open_], second[open_], negatives, widening)
            confused = is_hard[open_] & (attempt < ROUNDS // 2)
            if confused.any():
                drawn = self._confused(rng, chosen[open_], first[open_], drawn, confused)
            fits = self._groups[self._class_of[drawn]] != self._groups[chosen[open_]]
            third[open_[fits]] = drawn[fits]
        for row in np.flatnonzero(third < 0).tolist():
            third[row] = self._listed(rng, int(chosen[row]), int(second[row]), negatives)
        return third

    def _hard(self, rng: Generator, count: int, share: float) -> NDArray[np.bool_]:
        """(count,) which negatives are to be hard."""
        if self._near is not None or self._near_graphs is not None:
            return rng.random(count) < share
        if share > 0:
            raise ConfigError(f"a share of {share} hard negatives needs near classes")
        return np.zeros(count, dtype=np.bool_)

    def _positives(self, rng: Generator, chosen: Index) -> tuple[Index, Index]:
        """Positions of two different members of each chosen class."""
        counts, starts = self._counts[chosen], self._starts[chosen]
        first, second = np.empty_like(chosen), np.empty_like(chosen)
        todo = np.arange(len(chosen))
        while len(todo):
            left = rng.integers(0, counts[todo])
            right = (left + rng.integers(1, counts[todo])) % counts[todo]
            first[todo], second[todo] = starts[todo] + left, starts[todo] + right
            if self._contents is None:
                break
            graphs = self._graphs[first[todo]], self._graphs[second[todo]]
            todo = todo[self._contents[graphs[0]] == self._contents[graphs[1]]]
        return first, second

    def _negatives(
        self, rng: Generator, chosen: Index, second: Index, kind: Negatives, widening: int
    ) -> Index:
        """Positions of graphs that may still be of the same group."""
        if kind == "random":
            return self._members(rng, rng.integers(0, len(self._counts), len(chosen)))
        ratio = SIZE_RATIO**widening
        sizes = self._sizes[second]
        low = np.searchsorted(self._sorted_sizes, sizes / ratio)
        high = np.searchsorted(self._sorted_sizes, sizes * ratio, side="right")
        lack = np.maximum(LEAST_CHOICE * widening - (high - low), 0)
        low = np.maximum(low - (lack + 1) // 2, 0)
        high = np.minimum(high + (lack + 1) // 2, len(self._by_size))
        positions: Index = self._by_size[rng.integers(low, high)]
        return positions

    def _listed(self, rng: Generator, chosen: int, second: int, kind: Negatives) -> int:
        """The position of a graph of another group, where most graphs are of this one."""
        others = np.flatnonzero(self._groups != self._groups[chosen])
        if kind == "random":
            return int(self._members(rng, rng.choice(others, 1))[0])
        positions = np.flatnonzero(np.isin(self._class_of, others))
        distances = np.abs(np.log(self._sizes[positions] / self._sizes[second]))
        return int(rng.choice(positions[np.argsort(distances, kind="stable")[:LEAST_CHOICE]]))

    def _confused(
        self, rng: Generator, chosen: Index, first: Index, drawn: Index, replaced: NDArray[np.bool_]
    ) -> Index:
        """Positions as drawn, but for those replaced: there, of graphs that are easily confused."""
        if self._near_graphs is not None:
            rows = self._near_graphs[first]
            positions = rows[np.arange(len(rows)), rng.integers(0, rows.shape[1], len(rows))]
            return np.where(replaced & (positions >= 0), positions, drawn)
        assert self._near is not None, "hard negatives are drawn only where near classes are known"
        near = self._near[chosen[replaced]]
        picked = near[np.arange(len(near)), rng.integers(0, near.shape[1], len(near))]
        drawn[replaced] = self._members(rng, picked)
        return drawn

    def _members(self, rng: Generator, classes: Index) -> Index:
        positions: Index = self._starts[classes] + rng.integers(0, self._counts[classes])
        return positions


def balanced_batches(
    rng: Generator, costs: NDArray[np.float64], batches: int, least: int
) -> list[Index]:
    """Divides examples into batches of about equal cost, large and small ones mixed.

    A few large graphs hold half of all nodes, so that batches of equal length would differ
    many times over in time and memory. The dearest example goes first, each to the batch that
    has cost least so far.

    Args:
        rng: decides the order of the batches.
        costs: (N,) of each example.
        batches: how many to make.
        least: examples that every batch has at least, which N must allow for.
    """
    # No example may fill a batch alone, so that each gets at least its number.
    capped = np.minimum(costs, costs.sum() / batches / max(least, 2))
    order = np.argsort(-capped, kind="stable")
    loads = np.zeros(batches)
    counts = np.zeros(batches, dtype=np.int64)
    members: list[list[int]] = [[] for _ in range(batches)]
    for left, example in zip(range(len(order), 0, -1), order.tolist(), strict=True):
        wanting = np.maximum(least - counts, 0)
        position = int(np.argmax(wanting)) if wanting.sum() >= left else int(np.argmin(loads))
        members[position].append(example)
        loads[position] += capped[example]
        counts[position] += 1
    return [np.sort(np.array(members[position])) for position in rng.permutation(batches).tolist()]
