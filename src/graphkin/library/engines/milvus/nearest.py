"""The nearest of a vector in a Milvus collection, ties in the order of ids."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphkin.errors import ConfigError
from graphkin.library.engines.base import Nearest, Space
from graphkin.library.engines.milvus.client import MOST_HITS, Collection

SPARE_HITS = 64
"""Asked for beyond those wanted: a server cuts anywhere among equal distances."""

Hits = list[tuple[float, int]]
"""(distance, id) in order."""


def nearest(
    rows: Collection,
    space: Space,
    vectors: NDArray[Any],
    count: int,
    expressions: Iterable[str],
) -> Nearest:
    """The nearest ``count`` of each vector, among what matches any of some expressions."""
    if not 1 <= count <= MOST_HITS:
        raise ConfigError(f"a Milvus server finds 1 to {MOST_HITS} at a time, not {count}")
    nearest_hits: list[Hits] = [[] for _ in vectors]
    for expression in expressions if len(vectors) else ():
        for own, hits in zip(nearest_hits, _search(rows, vectors, count, expression), strict=True):
            own += hits
    ids = np.full((len(vectors), count), -1, dtype=np.int64)
    distances = np.full((len(vectors), count), np.inf, dtype=np.float32)
    for query, hits in enumerate(nearest_hits):
        measured = [(np.float32(_distance(space, value)), own) for value, own in hits]
        best = sorted(measured)[:count]
        distances[query, : len(best)] = [distance for distance, _ in best]
        ids[query, : len(best)] = [own for _, own in best]
    return Nearest(ids, distances)


def _search(rows: Collection, vectors: NDArray[Any], count: int, expression: str) -> list[Hits]:
    """At least the nearest ``count`` of each vector.

    Where the last that was asked for is as far as the last that is wanted, others as far may have
    been cut off, and more are asked for, so that ids decide among all of them.
    """
    limit = min(count + SPARE_HITS, MOST_HITS)
    nearest_hits = rows.search(vectors, limit, expression)
    cut: Sequence[int] = range(len(vectors))
    while limit < MOST_HITS:
        cut = [query for query in cut if _is_cut(nearest_hits[query], count, limit)]
        if not cut:
            break
        limit = min(8 * limit, MOST_HITS)
        again = rows.search(vectors[cut], limit, expression)
        for query, hits in zip(cut, again, strict=True):
            nearest_hits[query] = hits
    return nearest_hits


def _is_cut(hits: Hits, count: int, limit: int) -> bool:
    return len(hits) == limit and hits[-1][0] == hits[count - 1][0]


def _distance(space: Space, value: float) -> float:
    """What Milvus measured, as a distance: for cosine it returns the likeness."""
    return 1.0 - value if space.metric == "cosine" else value
