"""Distances between vectors, and probabilities from distances and scores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphkin.graphs import Graph
from graphkin.library.engines.base import Space
from graphkin.library.models import SearchModel
from graphkin.models.calibration import pair_features
from graphkin.models.codes import hamming_distances


def distances(space: Space, query: NDArray[Any], others: NDArray[Any]) -> NDArray[np.float32]:
    """(N,) distances of one vector (columns,) to others (N, columns), as engines have them."""
    measured: NDArray[Any]
    if space.metric == "hamming":
        measured = hamming_distances(query[None], others)[0]
    elif space.metric == "euclidean":
        measured = np.square(others - query).sum(axis=1)
    else:
        lengths = np.linalg.norm(query) * np.linalg.norm(others, axis=1)
        measured = 1 - (others @ query) / np.maximum(lengths, 1e-12)
    return measured.astype(np.float32)


def probabilities(
    model: SearchModel,
    query: Graph,
    others: Sequence[tuple[int, str]],
    query_distances: NDArray[np.float32],
    scores: NDArray[np.float32] | None = None,
) -> list[float | None]:
    """Of each of N graphs, the probability that it is kin of the query.

    Args:
        model: without a calibration the answer is None.
        query: the graph that was asked for.
        others: nodes and hash of each of the others.
        query_distances: (N,) their distances to the query.
        scores: (N,) what the matcher says of them, where it was asked.
    """
    if model.calibration is None or not others:
        return [None] * len(others)
    features = features_of(model.space, query, others, query_distances)
    if scores is None:
        return model.calibration.by_distance(features).tolist()  # type: ignore[no-any-return]
    return model.calibration.by_score(features, scores).tolist()  # type: ignore[no-any-return]


def features_of(
    space: Space,
    query: Graph,
    others: Sequence[tuple[int, str]],
    query_distances: NDArray[np.float32],
) -> NDArray[np.float64]:
    """What a calibration looks at; see :func:`graphkin.models.calibration.pair_features`."""
    largest = space.width if space.metric == "hamming" else 1.0
    nodes, hashes = zip(*others, strict=True)
    own = query.digest()
    equal = [content == own for content in hashes]
    return pair_features(query_distances, largest, query.num_nodes, nodes, equal)
