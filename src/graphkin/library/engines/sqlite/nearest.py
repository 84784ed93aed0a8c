"""Vectors in memory, and the nearest of them: faiss scans them all, or few lists of them.

Rows are numbered from 0 in the order in which they were added. Results come in the order of
(distance, row), and are exactly the smallest of that order, however many distances are equal;
only :class:`ListIndex` may miss some.
"""

from __future__ import annotations

import os
from functools import cache
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from graphkin.library.engines.base import Space

Chosen = NDArray[np.bool_]
"""(R,) which rows may be found."""

LIST_ROWS = 100_000
"""Below so many rows a scan of all is fast enough, and lists of them only lose."""
TRAINING_ROWS = 100_000
LISTS_PER_ROOT = 1.0
"""Lists for each square root of the rows: faiss's advice."""
SHARE_SEEN = 1 / 8
"""The part of the lists that a query looks into."""
SPARE = 8
"""Float vectors that are looked at beyond those asked for, to see whether distances tie."""
ROUNDING = 4e-6
"""Of the squared lengths: how far faiss may be from the true distance of float vectors."""


class NearestRows(NamedTuple):
    """The nearest rows of each query."""

    rows: NDArray[np.int64]
    """(Q, K), -1 where there are fewer than K."""
    distances: NDArray[np.float32]
    """(Q, K), infinite where there are fewer than K."""


class VectorIndex(Protocol):
    """What every index of vectors can do."""

    def __len__(self) -> int: ...

    @property
    def nbytes(self) -> int: ...

    def add(self, vectors: NDArray[Any]) -> None: ...

    def vectors(self) -> NDArray[Any]:
        """(R, columns) a view of all rows as faiss has them, until more are added."""

    def nearest(
        self, queries: NDArray[Any], count: int, chosen: Chosen | None = None
    ) -> NearestRows: ...


def make_vector_index(space: Space, approximate: bool = False) -> VectorIndex:
    """An index without vectors."""
    if approximate:
        return ListIndex(space)
    return CodeIndex(space) if space.metric == "hamming" else FloatIndex(space)


class CodeIndex:
    """Codes, compared by the bits that differ."""

    def __init__(self, space: Space) -> None:
        self._space = space
        self._index = faiss().IndexBinaryFlat(space.width)

    def __len__(self) -> int:
        return int(self._index.ntotal)

    @property
    def nbytes(self) -> int:
        return len(self) * int(self._index.code_size)

    def add(self, vectors: NDArray[Any]) -> None:
        self._index.add(self.prepared(vectors))

    def prepared(self, vectors: NDArray[Any]) -> NDArray[np.uint8]:
        """Vectors as faiss takes them."""
        return np.ascontiguousarray(vectors)

    def vectors(self) -> NDArray[np.uint8]:
        if not len(self):
            return np.zeros((0, self._space.columns), np.uint8)
        flat = faiss().rev_swig_ptr(self._index.xb.data(), self.nbytes)
        return np.asarray(flat).reshape(len(self), self._space.columns)

    def nearest(
        self, queries: NDArray[Any], count: int, chosen: Chosen | None = None
    ) -> NearestRows:
        # faiss takes rows in their order into a heap of (distance, row), and a later row only
        # for a smaller distance: equal distances are won by the lower row. A test holds it to
        # that, because asking for all rows of the last distance would scan twice.
        _use_threads(len(queries))
        distances, rows = self._index.search(
            self.prepared(queries), count, params=_parameters(chosen)
        )
        return NearestRows(rows, np.where(rows < 0, np.inf, distances).astype(np.float32))


class FloatIndex:
    """Float vectors, by squared Euclidean distance or by 1 - cosine.

    faiss rounds differently from one kernel to another, so that equal vectors may come out at
    different distances. What it finds is measured again, with as many more as may tie.
    """

    def __init__(self, space: Space) -> None:
        self._cosine = space.metric == "cosine"
        make = faiss().IndexFlatIP if self._cosine else faiss().IndexFlatL2
        self._index = make(space.width)
        self._width = space.width

    def __len__(self) -> int:
        return int(self._index.ntotal)

    @property
    def nbytes(self) -> int:
        return len(self) * self._width * 4

    def add(self, vectors: NDArray[Any]) -> None:
        self._index.add(self.prepared(vectors))

    def nearest(
        self, queries: NDArray[Any], count: int, chosen: Chosen | None = None
    ) -> NearestRows:
        _use_threads(len(queries))
        queries = self.prepared(queries)
        parameters = _parameters(chosen)
        candidate_count = min(count + SPARE, max(len(self), 1))
        _, candidates = self._index.search(queries, candidate_count, params=parameters)
        nearest = _nothing(len(queries), count)
        for number, query in enumerate(queries):
            rows, distances = self._measured(query, candidates[number])
            if len(rows) == candidate_count < len(self) and self._may_tie(query, distances, count):
                near = self._within(query, distances[count - 1], parameters)
                rows, distances = self._measured(query, near)
            _fill(nearest, number, rows, distances)
        return nearest

    def prepared(self, vectors: NDArray[Any]) -> NDArray[np.float32]:
        """Vectors as faiss takes them: of length 1 for the cosine, but for those of length 0."""
        vectors = np.ascontiguousarray(vectors, dtype=np.float32)
        if not self._cosine:
            return vectors
        lengths = np.linalg.norm(vectors.astype(np.float64), axis=1, keepdims=True)
        # What has been prepared once comes out of a second time as it went in.
        done = (lengths == 0) | (abs(lengths - 1) < 1e-6)
        return (vectors / np.where(done, 1, lengths)).astype(np.float32)

    def _measured(
        self, query: NDArray[np.float32], rows: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Rows in order, and their distances: 64 bits hide in which order numbers are summed."""
        rows = rows[rows >= 0]
        wide = self.vectors()[rows].astype(np.float64)
        if self._cosine:
            distances = np.maximum(1 - wide @ query.astype(np.float64), 0).astype(np.float32)
        else:
            distances = np.square(wide - query).sum(axis=1).astype(np.float32)
        order = np.lexsort((rows, distances))
        return rows[order], distances[order]

    def vectors(self) -> NDArray[np.float32]:
        if not len(self):
            return np.zeros((0, self._width), np.float32)
        flat = faiss().rev_swig_ptr(self._index.get_xb(), len(self) * self._width)
        return np.asarray(flat).reshape(len(self), self._width)

    def _may_tie(
        self, query: NDArray[np.float32], distances: NDArray[np.float32], count: int
    ) -> bool:
        """Whether a row that was not found may be as near as the last one asked for."""
        return bool(distances[-1] <= distances[count - 1] + 2 * self._slack(query, distances[-1]))

    def _slack(self, query: NDArray[np.float32], distance: np.float32) -> float:
        if self._cosine:
            return ROUNDING
        # The length of the other vector is at most that of the query plus the distance.
        return ROUNDING * (3 * float(query @ query) + 2 * float(distance))

    def _within(
        self, query: NDArray[np.float32], distance: np.float32, parameters: Any
    ) -> NDArray[np.int64]:
        reach = float(distance) + 2 * self._slack(query, distance)
        radius = 1 - reach if self._cosine else reach
        _, _, rows = self._index.range_search(query[None], radius, params=parameters)
        return np.asarray(rows)


class ListIndex:
    """Looks only into the lists whose centres are nearest to a query: fast, but it misses some.

    With few rows, or where only some may be found, it scans all instead. The lists are
    made anew whenever rows have doubled since.
    """

    def __init__(self, space: Space) -> None:
        self._space = space
        self.exact = CodeIndex(space) if space.metric == "hamming" else FloatIndex(space)
        self._lists: Any = None
        self._trained = 0

    def __len__(self) -> int:
        return len(self.exact)

    @property
    def nbytes(self) -> int:
        return self.exact.nbytes * (1 if self._lists is None else 2)

    def vectors(self) -> NDArray[Any]:
        return self.exact.vectors()

    def add(self, vectors: NDArray[Any]) -> None:
        self.exact.add(vectors)
        if len(self) >= max(LIST_ROWS, 2 * self._trained):
            self._train()
        elif self._lists is not None:
            self._lists.add(self.exact.prepared(vectors))

    def nearest(
        self, queries: NDArray[Any], count: int, chosen: Chosen | None = None
    ) -> NearestRows:
        if self._lists is None or chosen is not None:
            return self.exact.nearest(queries, count, chosen)
        _use_threads(len(queries))
        distances, rows = self._lists.search(self.exact.prepared(queries), count)
        nearest = _nothing(len(queries), count)
        for number in range(len(queries)):
            own = rows[number] >= 0
            near = distances[number][own].astype(np.float32)
            near = np.maximum(1 - near, 0) if self._space.metric == "cosine" else near
            order = np.lexsort((rows[number][own], near))
            _fill(nearest, number, rows[number][own][order], near[order])
        return nearest

    def _train(self) -> None:
        vectors = self.exact.vectors()
        count = int(LISTS_PER_ROOT * len(vectors) ** 0.5)
        size = min(len(vectors), TRAINING_ROWS)
        sample = np.random.default_rng(0).choice(len(vectors), size, replace=False)
        lists = self._empty_lists(count)
        lists.train(vectors[np.sort(sample)])
        lists.add(vectors)
        lists.nprobe = max(1, int(count * SHARE_SEEN))
        self._lists, self._trained = lists, len(vectors)

    def _empty_lists(self, count: int) -> Any:
        library, width = faiss(), self._space.width
        if self._space.metric == "hamming":
            return library.IndexBinaryIVF(library.IndexBinaryFlat(width), width, count)
        if self._space.metric == "cosine":
            metric = library.METRIC_INNER_PRODUCT
            return library.IndexIVFFlat(library.IndexFlatIP(width), width, count, metric)
        return library.IndexIVFFlat(library.IndexFlatL2(width), width, count)


def most_alike(
    near: NearestRows, codes: NDArray[np.uint8], unrounded: NDArray[np.float32], count: int
) -> NearestRows:
    """Those of the nearest codes that are most like numbers which were not rounded, by distance.

    Args:
        near: of each of Q queries.
        codes: (R, columns) of all rows.
        unrounded: (Q, bits) numbers whose signs are the codes of the queries.
        count: how many to keep.
    """
    kept = _nothing(len(near.rows), count)
    for number, values in enumerate(unrounded):
        rows = near.rows[number][near.rows[number] >= 0]
        # A set bit counts as 1 and another as -1; that is twice the sum of the set ones, less all.
        likeness = np.unpackbits(codes[rows], axis=1).astype(np.float32) @ values
        best = np.sort(np.argsort(-likeness, kind="stable")[:count])
        _fill(kept, number, rows[best], near.distances[number][best])
    return kept


def _nothing(queries: int, count: int) -> NearestRows:
    return NearestRows(
        np.full((queries, count), -1, dtype=np.int64),
        np.full((queries, count), np.inf, dtype=np.float32),
    )


def _fill(
    nearest: NearestRows, number: int, rows: NDArray[np.int64], distances: NDArray[np.float32]
) -> None:
    count = min(nearest.rows.shape[1], len(rows))
    nearest.rows[number, :count] = rows[:count]
    nearest.distances[number, :count] = distances[:count]


def _parameters(chosen: Chosen | None) -> Any:
    if chosen is None:
        return None
    bits = np.packbits(chosen, bitorder="little")
    return faiss().SearchParameters(sel=faiss().IDSelectorBitmap(bits))


def _use_threads(queries: int) -> None:
    # faiss shares out queries, not rows: a second thread can only get in the way of one query.
    most = _threads()
    faiss().omp_set_num_threads(1 if queries < 2 else most)


@cache
def _threads() -> int:
    """How many OpenMP was set to use before this module ever changed it."""
    return int(faiss().omp_get_max_threads())


@cache
def faiss() -> Any:
    """The library, imported on first use: it takes a while."""
    # Threads that spin while they wait take the cores from those that work.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    import faiss as library

    return library
