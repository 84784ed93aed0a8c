"""What baselines share: a graph that recurs is looked at once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from graphkin.errors import GraphError
from graphkin.graphs import Graph

Floats = NDArray[np.float64]
Index = NDArray[np.int64]


def distinct_graphs(pairs: Sequence[tuple[Graph, Graph]]) -> tuple[list[Graph], Index, Index]:
    """The graphs of pairs, each object once; and (P,) the numbers of left and right graphs."""
    numbers: dict[int, int] = {}
    graphs: list[Graph] = []
    index = np.empty((len(pairs), 2), dtype=np.int64)
    for row, pair in enumerate(pairs):
        if len(pair) != 2:
            raise GraphError(f"pair {row} holds {len(pair)} graphs, not 2")
        for column, graph in enumerate(pair):
            number = numbers.setdefault(id(graph), len(graphs))
            if number == len(graphs):
                graphs.append(graph)
            index[row, column] = number
    return graphs, index[:, 0], index[:, 1]
