"""Which classes are easily confused, by what can be counted: size, degrees and tokens."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from sklearn.neighbors import NearestNeighbors

from graphkin.errors import ConfigError
from graphkin.graphs import Graph

NEIGHBOURS = 20


def nearest_classes(
    graphs: Sequence[Graph], classes: Sequence[NDArray[np.int64]], num_tokens: int
) -> NDArray[np.int64]:
    """(C, K) the classes most like each one in the mean of what its graphs count to.

    Args:
        graphs: by graph number.
        classes: the graph numbers of each class, at least one, of at least two classes.
        num_tokens: tokens that nodes may have, the unknown one included.
    """
    if len(classes) < 2:
        raise ConfigError(f"{len(classes)} classes: too few to be confused with each other")
    counts = np.array(
        [
            np.mean([_counts(graphs[int(number)], num_tokens) for number in members], axis=0)
            for members in classes
        ]
    )
    spread = counts.std(axis=0)
    scaled = (counts - counts.mean(axis=0)) / np.where(spread > 0, spread, 1)
    neighbours = min(NEIGHBOURS, len(classes) - 1)
    search = NearestNeighbors(n_neighbors=neighbours).fit(scaled)
    nearest: NDArray[np.int64] = search.kneighbors(return_distance=False).astype(np.int64)
    return nearest


def _counts(graph: Graph, num_tokens: int) -> NDArray[np.float64]:
    tokens = np.zeros(num_tokens)
    if graph.node_tokens is not None:
        tokens += np.bincount(graph.node_tokens.ids, minlength=num_tokens)
    shape = [graph.num_nodes, graph.num_edges]
    # Logarithms: what matters is how many times more, not how many more.
    logarithms: NDArray[np.float64] = np.log1p(np.concatenate([shape, tokens]))
    return logarithms
