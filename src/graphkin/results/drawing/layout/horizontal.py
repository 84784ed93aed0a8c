"""Horizontal coordinates: lines run as straight as the distances between nodes allow.

As Graphviz does it (Gansner and others, A Technique for Drawing Directed Graphs, 1993): the
least sum of |x(a) - x(b)| over the edges, under the distances that neighbours of a row keep.
It is a linear program. In large drawings a few lanes on top of each other are one variable,
which keeps the program small.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from math import inf

import numpy as np
from numpy.typing import NDArray

from graphkin.results.drawing.layout.ordering import Rows

LANE_WEIGHT = 3.0
"""An edge between a box and a lane against one between boxes; between lanes it is the square."""

FREE_LIMIT = 3_000
"""Nodes up to which every lane has a variable of its own."""
LONGEST_RUN = 8
"""Lanes that share a variable beyond it."""

Distance = Callable[[int, int], float]
"""How far apart the centres of two nodes, side by side, must be at least."""
Pairs = dict[tuple[int, int], float]


def place(arranged: Rows, distance: Distance) -> list[float]:
    """The centre of each node. Within a row, every pair of neighbours keeps its distance."""
    group = _straight_runs(arranged, 1 if len(arranged.row_of) <= FREE_LIMIT else LONGEST_RUN)
    gaps: Pairs = {}
    for row in arranged.rows:
        for left, right in pairwise(row):
            pair = (group[left], group[right])
            gaps[pair] = max(gaps.get(pair, 0.0), distance(left, right))
    weights: Pairs = {}
    for node, others in enumerate(arranged.below):
        for other in others:
            if group[node] != group[other]:
                pair = (group[node], group[other])
                lanes = arranged.is_lane(node) + arranged.is_lane(other)
                weights[pair] = weights.get(pair, 0.0) + LANE_WEIGHT**lanes
    x = _solve(max(group) + 1, weights, gaps)
    return [float(x[number]) for number in group]


def _straight_runs(arranged: Rows, longest: int) -> list[int]:
    """A number for each node: runs of lanes on top of each other share one.

    Runs never cross, and that keeps the distances free of contradictions. Where two would, the
    one further right is cut.
    """
    positions = arranged.positions()
    group = [-1] * len(arranged.row_of)
    lengths: list[int] = []
    for row in arranged.rows:
        furthest = -1
        for node in row:
            above = arranged.above[node] if arranged.is_lane(node) else ()
            over = next((neighbour for neighbour in above if arranged.is_lane(neighbour)), None)
            if over is None or positions[over] < furthest or lengths[group[over]] >= longest:
                group[node] = len(lengths)
                lengths.append(1)
            else:
                group[node] = group[over]
                lengths[group[over]] += 1
                furthest = positions[over]
    return group


def _solve(count: int, weights: Pairs, gaps: Pairs) -> NDArray[np.float64]:
    """Coordinates by linear programming, of the dual program: it has far fewer rows.

    The dual is a flow. Through the pair of an edge runs at most its weight, either way; from left
    to right through a pair of neighbours any amount, which is worth its distance; and at every
    node as much comes in as goes out. The prices of the nodes are the coordinates.
    """
    from scipy.optimize import linprog
    from scipy.sparse import csr_array

    number, total = len(weights), len(weights) + len(gaps)
    if not total:
        return np.zeros(count)
    first, second = _columns(weights)
    left, right = _columns(gaps)
    columns = np.arange(total)
    ones = np.ones(total)
    matrix = csr_array(
        (
            np.concatenate([ones, -ones]),
            (
                np.concatenate([first, left, second, right]),
                np.concatenate([columns, columns]),
            ),
        ),
        shape=(count, total),
    )
    worth = np.concatenate([np.zeros(number), np.fromiter(gaps.values(), float, len(gaps))])
    most = np.concatenate([np.fromiter(weights.values(), float, number), np.full(len(gaps), inf)])
    least = np.concatenate([-most[:number], np.zeros(len(gaps))])
    solution = linprog(
        -worth,
        A_eq=matrix,
        b_eq=np.zeros(count),
        bounds=np.column_stack([least, most]),
        method="highs-ds",
        options={"presolve": False},
    )
    assert solution.status == 0, solution.message
    # The solver keeps distances up to its tolerance, which is far below a pixel.
    coordinates: NDArray[np.float64] = solution.eqlin.marginals
    return coordinates.round(3)


def _columns(pairs: Pairs) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    array = np.array(list(pairs), dtype=np.int64).reshape(-1, 2)
    return array[:, 0], array[:, 1]
