"""What every baseline offers, and what they share: a graph that recurs is looked at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from graphkin.errors import GraphError
from graphkin.graphs import Graph

Floats = NDArray[np.float64]
Index = NDArray[np.int64]


class Baseline(Protocol):
    """Scores pairs, and ranks pools. Higher is more similar."""

    def predict(self, pairs: Sequence[tuple[Graph, Graph]]) -> Floats:
        """(P,) float64: the score of each pair."""
        ...

    def scores(self, queries: Sequence[Graph], pool: Sequence[Graph]) -> Floats:
        """(Q, P) float64: every query with every graph of the pool, as ``predict`` scores them."""
        ...


def distinct_graphs(pairs: Sequence[tuple[Graph, Graph]]) -> tuple[list[Graph], Index, Index]:
    """The graphs of pairs, each object once; and (P,) the places of left and right graphs."""
    places: dict[int, int] = {}
    graphs: list[Graph] = []
    index = np.empty((len(pairs), 2), dtype=np.int64)
    for row, pair in enumerate(pairs):
        if len(pair) != 2:
            raise GraphError(f"pair {row} holds {len(pair)} graphs, not 2")
        for column, graph in enumerate(pair):
            place = places.setdefault(id(graph), len(graphs))
            if place == len(graphs):
                graphs.append(graph)
            index[row, column] = place
    return graphs, index[:, 0], index[:, 1]
