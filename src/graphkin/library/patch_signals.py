"""Which of two versions of a known function another one is nearer to, by several signals.

The two versions differ by a few instructions, other compilers change many more, and may shift a
signal for either version alike. So where several builds of both are known, each build also plays
the unknown one: what a signal says of versions that are known tells where the middle between them
is, and how much the signal is worth.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from graphkin.graphs import Graph
from graphkin.graphs.packing import row_slices
from graphkin.graphs.words import KIND_SHIFT, KINDS, OFFSETS
from graphkin.library.line_numbers import line_numbers
from graphkin.library.records import Stored
from graphkin.models.answering import Matcher
from graphkin.results.shared_words import have_same_width

Floats = NDArray[np.float64]
SIGNALS = ("distinct", "words", "score", "blocks")
"""By the words that only one version says; by how often words are said; by the matcher, as a share
of what tells the versions apart themselves; by the blocks that only one version has."""
USUAL_GAP = np.array([0.942, 0.970, 0.873, 0.332])
"""What a signal says of the repaired version, less what it says of the other: means over the
patches of ``experiments/fit_patches.py``, as is the next."""
USUAL_VARIANCE = np.array([0.313, 0.335, 0.150, 0.053])
"""Of each version, around the mean."""
CLOSENESS = 2.0
"""Scores of the matcher by which a known build is nearer to the unknown one, to count e times as
much for what is to be expected of it."""


class VersionPair(NamedTuple):
    """A known function before and after its repair, made by one compiler."""

    vulnerable: Stored
    fixed: Stored
    vulnerable_graph: Graph
    fixed_graph: Graph

    @property
    def architecture(self) -> str:
        """Processor of both."""
        return self.vulnerable.entry.architecture


class Signals(NamedTuple):
    """What S functions say of P pairs: below 0 for the vulnerable one, above for the repaired."""

    values: Floats
    """(S, P, 4) over ``SIGNALS``."""
    scores: Floats
    """(S, P, 2) of the matcher, with the vulnerable one and with the repaired one."""

    @property
    def closeness(self) -> Floats:
        """(S, P) the better score of the matcher."""
        best: Floats = self.scores.max(axis=2)
        return best


class KnownVersions:
    """Pairs of builds of one known function, and what they say of each other."""

    def __init__(self, matcher: Matcher, pairs: Sequence[VersionPair]) -> None:
        self.pairs = pairs
        self._matcher = matcher
        graphs = [graph for pair in pairs for graph in (pair.vulnerable_graph, pair.fixed_graph)]
        self._states = [_unit(states) for states in matcher.node_states(graphs)]
        count = len(pairs)
        scores = self._scores(graphs)
        between = scores.reshape(count, 2, count, 2)[np.arange(count), :, np.arange(count)]
        self._separations = (np.trace(between, axis1=1, axis2=2) * 2 - between.sum(axis=(1, 2))) / 2
        processors = [pair.architecture for pair in pairs for _ in range(2)]
        own = self._signals(graphs, processors, self._states, scores)
        self.values = own.values.reshape(count, 2, count, len(SIGNALS))
        """(P, 2, P, 4) of the vulnerable and the repaired version of each, as to each pair."""
        self._closeness = own.closeness.reshape(count, 2, count).mean(axis=1)

    def compared(self, graphs: Sequence[Graph], processors: Sequence[str]) -> Signals:
        """The signals of some functions as they are."""
        states = [_unit(own) for own in self._matcher.node_states(graphs)]
        return self._signals(graphs, processors, states, self._scores(graphs))

    def _signals(
        self,
        graphs: Sequence[Graph],
        processors: Sequence[str],
        all_states: Sequence[Floats],
        scores: Floats,
    ) -> Signals:
        values = np.zeros((len(graphs), len(self.pairs), len(SIGNALS)))
        for row, (graph, processor, states) in enumerate(
            zip(graphs, processors, all_states, strict=True)
        ):
            for column, pair in enumerate(self.pairs):
                bags = version_bags(graph, processor, pair)
                values[row, column] = (
                    _nearer_by(_set_distance, *bags),
                    _nearer_by(_distance, *bags),
                    _nearer(
                        -scores[row, column, 0], -scores[row, column, 1], self._separations[column]
                    ),
                    _nearer_blocks(states, *self._states[2 * column : 2 * column + 2]),
                )
        return Signals(values, scores)

    def _scores(self, graphs: Sequence[Graph]) -> Floats:
        """(S, P, 2) of the matcher."""
        known = [graph for pair in self.pairs for graph in (pair[2], pair[3])]
        couples = [(graph, other) for graph in graphs for other in known]
        scores: Floats = self._matcher.predict(couples).astype(np.float64)
        return scores.reshape(len(graphs), len(self.pairs), 2)

    def weighed(self, signals: Signals) -> Floats:
        """(P, 4) the signals of one function, each from the middle between the versions, and by
        how well it tells them apart, as far as the other known builds say."""
        weighed = np.empty((len(self.pairs), len(SIGNALS)))
        for column in range(len(self.pairs)):
            others = np.arange(len(self.pairs)) != column
            # (O, 2, 4) of the vulnerable and of the repaired version of each other build
            known = self.values[others, :, column]
            nearness = -np.abs(self._closeness[others, column] - signals.closeness[0, column])
            shares = np.exp(nearness / CLOSENESS)
            total = 1 + shares.sum()
            gap = (shares @ (known[:, 1] - known[:, 0]) + USUAL_GAP) / total
            middle = shares @ known.mean(axis=1) / total
            means = np.tensordot(shares, known, 1) / max(total - 1, 1e-9)
            spread = np.tensordot(shares, (known - means) ** 2, 1).mean(axis=0)
            variance = (spread + USUAL_VARIANCE) / total
            apart = signals.values[0, column] - middle
            weighed[column] = apart * np.maximum(gap, 0) / variance
        return weighed


def version_bags(
    graph: Graph, processor: str, pair: VersionPair
) -> tuple[Counter[int], Counter[int], Counter[int]]:
    """The words of a function, and of both versions, without lines; offsets only where pointers
    are equally wide."""
    same_width = have_same_width(processor, pair.architecture)
    lines = _lines(pair.vulnerable_graph, pair.fixed_graph)
    graphs = (graph, pair.vulnerable_graph, pair.fixed_graph)
    first, second, third = (_bag(own, lines, same_width) for own in graphs)
    return first, second, third


@lru_cache(maxsize=64)
def _lines(vulnerable: Graph, fixed: Graph) -> frozenset[int]:
    """Kept, because every function is compared with the same pairs."""
    return frozenset(line_numbers(vulnerable, fixed))


def _bag(graph: Graph, lines: Collection[int], with_offsets: bool) -> Counter[int]:
    if graph.node_words is None:
        return Counter()
    words = Counter(graph.node_words.hashes.tolist())
    return Counter(
        {
            word: count
            for word, count in words.items()
            if word not in lines and (with_offsets or KINDS[word >> KIND_SHIFT] != OFFSETS)
        }
    )


def _nearer_by(
    distance: Callable[[Counter[int], Counter[int]], int],
    ours: Counter[int],
    vulnerable: Counter[int],
    fixed: Counter[int],
) -> float:
    return _nearer(distance(ours, vulnerable), distance(ours, fixed), distance(vulnerable, fixed))


def _nearer(to_vulnerable: float, to_fixed: float, between: float) -> float:
    """-1 for what is all on the side of the vulnerable one, 1 for the other."""
    if between <= 1e-3:
        return 0.0
    return max(-1.0, min(1.0, (to_vulnerable - to_fixed) / between))


def _distance(left: Counter[int], right: Counter[int]) -> int:
    return sum(abs(left[word] - right[word]) for word in left.keys() | right.keys())


def _set_distance(left: Counter[int], right: Counter[int]) -> int:
    return len(left.keys() ^ right.keys())


def _nearer_blocks(ours: Floats, vulnerable: Floats, fixed: Floats) -> float:
    """How well the blocks that only the repaired version has are found, less those of the other.

    Each is (N, W), states of blocks of length 1.
    """
    found = []
    for own, other in ((vulnerable, fixed), (fixed, vulnerable)):
        new = np.maximum(1 - _nearest(own, other), 0)
        if new.sum() < 1e-6:
            return 0.0
        found.append(float(new @ _nearest(own, ours) / new.sum()))
    return found[1] - found[0]


def _nearest(own: Floats, others: Floats) -> Floats:
    """(n,) the largest cosine of each block with one of many others."""
    slices = row_slices(len(own), len(others))
    return np.concatenate([(own[rows] @ others.T).max(axis=1) for rows in slices])


def _unit(states: NDArray[np.float32]) -> Floats:
    lengths = np.linalg.norm(states, axis=1, keepdims=True)
    rows: Floats = (states / np.maximum(lengths, 1e-9)).astype(np.float64)
    return rows
