"""The number of nodes alone: what any comparison of graphs should beat."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from graphkin.graphs import Graph
from graphkin.graphs.packing import distinct_graphs

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class GraphSize:
    r"""Scores a pair by :math:`-|\ln n_1 - \ln n_2|`, with n the number of nodes: at most 0.

    It takes any graph, and looks at neither edges nor inputs.

    Example:
        >>> GraphSize().predict([(Graph(3), Graph(3)), (Graph(1), Graph(2))]).round(3).tolist()
        [0.0, -0.693]
    """

    def vectors(self, graphs: Sequence[Graph]) -> Floats:
        """(N,) float64: the logarithm of each graph's number of nodes."""
        return np.log([graph.num_nodes for graph in graphs], dtype=np.float64)

    def predict(self, pairs: Sequence[tuple[Graph, Graph]]) -> Floats:
        """(P,) float64: the score of each pair."""
        graphs, left, right = distinct_graphs(pairs)
        sizes = self.vectors(graphs)
        closeness: Floats = 0 - np.abs(sizes[left] - sizes[right])  # -np.abs would give -0.0
        return closeness

    def scores(self, queries: Sequence[Graph], pool: Sequence[Graph]) -> Floats:
        """(Q, P) float64: the score of every query with every graph of the pool."""
        closeness: Floats = 0 - np.abs(self.vectors(queries)[:, None] - self.vectors(pool))
        return closeness
