"""Which node of one graph is which of another, out of where nodes look."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from graphkin.graphs.packing import row_slices


@dataclass(frozen=True, eq=False)
class AttentionMaps:
    """Cross-graph attention of one pair after 0, 1, ..., T propagation steps.

    An embedder, and a matcher of late interaction, look at the other graph once, after the last.
    """

    left_to_right: list[NDArray[np.float32]]
    """(n1, n2) for each step: row i says where node i of the first graph looks; rows sum to 1."""
    right_to_left: list[NDArray[np.float32]]
    """(n2, n1) for each step: row j says where node j of the second graph looks."""
    score: float
    """The pair's similarity."""

    @property
    def steps(self) -> int:
        """T, the number of propagation steps; there are T + 1 maps each way."""
        return len(self.left_to_right) - 1


MOST_WEIGHTS = 4_000_000
"""Pairs of nodes of two graphs whose attention is kept in full, by what compares any two graphs."""


@dataclass(frozen=True, eq=False)
class Partners:
    """Where each node of a graph looks most: what is kept of (n, m) attention between large graphs.

    This grows with the number of nodes, attention with its square.
    """

    nodes: NDArray[np.int64]
    """(n,) of the other graph."""
    weights: NDArray[np.float32]
    """(n,) the attention that each gets."""
    shape: tuple[int, int]
    """(n, m) of the attention."""

    @classmethod
    def of(cls, slices: Iterable[NDArray[np.float32]]) -> Self:
        """Those in attention that comes in slices of its rows, at least one of them."""
        nodes, weights, width = [], [], 0
        for attention in slices:
            nodes.append(attention.argmax(axis=1))
            weights.append(attention.max(axis=1))
            width = attention.shape[1]
        joined = np.concatenate(nodes)
        return cls(joined, np.concatenate(weights), (len(joined), width))


@dataclass(frozen=True, eq=False)
class PartnerMaps:
    """What is kept of :class:`AttentionMaps` of two large graphs."""

    left_to_right: list[Partners]
    """Of the first graph's nodes, for each step."""
    right_to_left: list[Partners]
    """Of the second graph's nodes, for each step."""
    score: float
    """The pair's similarity."""

    @classmethod
    def of(cls, maps: AttentionMaps) -> Self:
        """Those in attention that was computed in full."""
        sides = maps.left_to_right, maps.right_to_left
        ahead, back = ([Partners.of([step]) for step in side] for side in sides)
        return cls(ahead, back, maps.score)

    @classmethod
    def by_distance(
        cls, left: NDArray[np.float32], right: NDArray[np.float32], score: float
    ) -> Self:
        """Those in the softmax of minus the squared distances of (n, D) and (m, D) states."""
        ahead, back = (Partners.of(_by_distance(*pair)) for pair in ((left, right), (right, left)))
        return cls([ahead], [back], score)


def _by_distance(
    states: NDArray[np.float32], others: NDArray[np.float32]
) -> Iterator[NDArray[np.float32]]:
    for rows in row_slices(len(states), others.size):
        distances = np.square(states[rows, None] - others[None]).sum(axis=2)
        raised = np.exp(distances.min(axis=1, keepdims=True) - distances)
        yield raised / raised.sum(axis=1, keepdims=True)


class NodeMatch(NamedTuple):
    """A node of one graph and its partner in the other."""

    left: int
    right: int
    weight: float
    """How much the two look at each other, from 0 to 1."""


def assigned(
    left_to_right: NDArray[np.float32], right_to_left: NDArray[np.float32]
) -> list[NodeMatch]:
    """The one-to-one assignment with the largest sum of weights, in the order of the left nodes.

    The weight of two nodes is the geometric mean of their attention both ways.

    Args:
        left_to_right: (n1, n2).
        right_to_left: (n2, n1).
    """
    from scipy.optimize import linear_sum_assignment  # a quarter of a second to load

    weights = np.sqrt(left_to_right * right_to_left.T)
    rows, columns = linear_sum_assignment(weights, maximize=True)
    return [
        NodeMatch(a, b, float(weights[a, b]))
        for a, b in zip(rows.tolist(), columns.tolist(), strict=True)
    ]
