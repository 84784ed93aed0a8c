"""Which node of one graph is which of another, out of where nodes look."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


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
