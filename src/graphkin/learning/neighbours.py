"""Classification by the nearest neighbour: is the most similar graph of the same class?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from graphkin.errors import ModelError
from graphkin.graphs import Graph

SCORED_AT_ONCE = 5_000
"""Pairs in one call of a scorer, which may look at a graph once in a call."""


@dataclass(frozen=True, eq=False)
class Neighbours:
    """Queries, and a pool in which the nearest graph should be of the query's class.

    Example:
        >>> graph = Graph(2, [(0, 1)])
        >>> right, own = np.array([[True, True, False]]), np.array([[True, False, False]])
        >>> neighbours = Neighbours((graph,), (graph,) * 3, right, own)
        >>> neighbours.accuracy([[9.0, 0.5, 0.2]]), neighbours.accuracy([[9.0, 0.2, 0.5]])
        (1.0, 0.0)
    """

    queries: tuple[Graph, ...]
    pool: tuple[Graph, ...]
    right: NDArray[np.bool_]
    """(Q, P) which graphs of the pool are of the class of a query."""
    own: NDArray[np.bool_]
    """(Q, P) which graph of the pool is the query, and does not count."""

    def accuracy(self, scores: ArrayLike) -> float:
        """Share of queries whose nearest graph is of their class; a tie counts as wrong.

        Args:
            scores: (Q, P) of every query with every graph of the pool; higher is more similar.
        """
        values = np.asarray(scores, dtype=np.float64)
        if values.shape != self.right.shape or not np.isfinite(values).all():
            raise ModelError(
                f"scores must be finite and of shape {self.right.shape}, one for each query and "
                f"graph of the pool; got shape {values.shape}"
            )
        best = np.where(self.right & ~self.own, values, -np.inf).max(axis=1)
        other = np.where(self.right, -np.inf, values).max(axis=1)
        return float(np.mean(best > other))

    def scores(
        self,
        predict: Callable[[Sequence[tuple[Graph, Graph]]], ArrayLike],
        progress: Callable[[int, int], None] | None = None,
    ) -> NDArray[np.float64]:
        """(Q, P) scores of all pairs, by whatever scores pairs.

        For an embedder ``similarity(encode(queries), encode(pool))`` is much quicker.

        Args:
            predict: such as ``predict`` of a model or a baseline.
            progress: called as ``progress(done, total)``, in pairs scored.
        """
        found = np.empty(self.right.shape)
        at_once = max(1, SCORED_AT_ONCE // len(self.pool))
        for start in range(0, len(self.queries), at_once):
            queries = self.queries[start : start + at_once]
            scores = np.asarray(predict([(one, other) for one in queries for other in self.pool]))
            found[start : start + at_once] = scores.reshape(len(queries), -1)
            if progress is not None:
                progress((start + len(queries)) * len(self.pool), found.size)
        return found
