"""Scans against brute force: ties, filters, precision, and what lists of rows miss."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from graphkin.errors import ConfigError
from graphkin.library.engines.base import Space
from graphkin.library.engines.sqlite import nearest as scanning
from graphkin.library.engines.sqlite.nearest import (
    VectorIndex,
    make_vector_index,
    most_alike,
)
from tests.library.engines.contract import distances, sample_vectors


def expected(
    space: Space, query: Any, vectors: NDArray[Any], count: int, chosen: NDArray[np.bool_]
) -> tuple[list[int], NDArray[np.float32]]:
    """The smallest of (distance, row)."""
    every = distances(space, query, vectors).astype(np.float32)
    rows = np.flatnonzero(chosen)
    order = rows[np.lexsort((rows, every[rows]))][:count]
    return order.tolist(), every[order]


def filled(space: Space, vectors: NDArray[Any], approximate: bool = False) -> VectorIndex:
    vector_index = make_vector_index(space, approximate)
    half = len(vectors) // 2
    vector_index.add(vectors[:half])
    vector_index.add(vectors[half:])
    return vector_index


@settings(max_examples=60, deadline=None)
@given(
    width=st.sampled_from((8, 16, 64, 128, 160, 256)),
    rows=st.integers(1, 400),
    count=st.integers(1, 450),
    queries=st.integers(1, 40),
    share=st.sampled_from((None, 0.0, 0.3, 1.0)),
    seed=st.integers(0, 2**32 - 1),
)
def test_codes_with_many_ties(
    width: int, rows: int, count: int, queries: int, share: float | None, seed: int
) -> None:
    random = np.random.default_rng(seed)
    space = Space("hamming", width)
    vectors = random.integers(0, 3, (rows, width // 8), dtype=np.uint8)
    queries_list = random.integers(0, 3, (queries, width // 8), dtype=np.uint8)
    chosen = None if share is None else random.random(rows) < share
    nearest = filled(space, vectors).nearest(queries_list, count, chosen)
    among = np.ones(rows, bool) if chosen is None else chosen
    for query, own, near in zip(queries_list, nearest.rows, nearest.distances, strict=True):
        expected_list, exact = expected(space, query, vectors, count, among)
        assert own[: len(expected_list)].tolist() == expected_list
        assert near[: len(expected_list)].tolist() == exact.tolist()
        assert (own[len(expected_list) :] == -1).all()
        assert np.isinf(near[len(expected_list) :]).all()


def test_many_codes_of_few_distances() -> None:
    """More rows than faiss takes at a time, and thousands of ties at the last place."""
    random = np.random.default_rng(0)
    space = Space("hamming", 128)
    vectors = np.repeat(random.integers(0, 256, (40, 16), dtype=np.uint8), 5000, axis=0)
    vectors = random.permutation(vectors)
    vector_index = filled(space, vectors)
    chosen = random.random(len(vectors)) < 0.5
    for query in random.integers(0, 256, (5, 16), dtype=np.uint8):
        for among in (None, chosen):
            nearest = vector_index.nearest(query[None], 100, among)
            everything = np.ones(len(vectors), bool) if among is None else among
            expected_list, _ = expected(space, query, vectors, 100, everything)
            assert nearest.rows[0].tolist() == expected_list


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
@pytest.mark.parametrize("queries", [1, 40])
@pytest.mark.parametrize("width", [3, 16, 37])
def test_equal_float_vectors_come_in_the_order_of_rows(
    metric: Any, queries: int, width: int
) -> None:
    """Some vectors are there hundreds of times, so that ties reach past the last place."""
    random = np.random.default_rng(width)
    space = Space(metric, width)
    kinds = random.standard_normal((30, width)).astype(np.float32) * 3
    which = random.integers(0, 30, 3000)
    queries_list = kinds[random.integers(0, 30, queries)] + np.float32(0.01)
    chosen = random.random(3000) < 0.6
    vector_index = filled(space, kinds[which])
    for among in (None, chosen):
        nearest = vector_index.nearest(queries_list, 150, among)
        everything = np.ones(3000, bool) if among is None else among
        for query, own, near in zip(queries_list, nearest.rows, nearest.distances, strict=True):
            every = distances(space, query, kinds)[which].astype(np.float32)
            rows = np.flatnonzero(everything)
            expected_list = rows[np.lexsort((rows, every[rows]))][:150]
            assert own.tolist() == expected_list.tolist()
            np.testing.assert_allclose(near, every[expected_list], rtol=1e-5, atol=1e-6)


def test_far_from_the_origin_distances_stay_exact() -> None:
    """faiss subtracts squared lengths for many queries, and loses the digits that count here."""
    random = np.random.default_rng(2)
    space = Space("euclidean", 16)
    vectors = (1000 + random.standard_normal((2000, 16))).astype(np.float32)
    nearest = filled(space, vectors).nearest(vectors[:50], 10)
    for row in range(50):
        expected_list, exact = expected(space, vectors[row], vectors, 10, np.ones(2000, bool))
        assert nearest.rows[row].tolist() == expected_list
        np.testing.assert_allclose(nearest.distances[row], exact, rtol=1e-5)


def test_a_vector_without_direction_is_at_distance_one() -> None:
    space = Space("cosine", 4)
    vectors = np.array([[0, 0, 0, 0], [2, 0, 0, 0], [-1, 0, 0, 0]], np.float32)
    nearest = filled(space, vectors).nearest(vectors[1:2], 3)
    assert nearest.rows.tolist() == [[1, 0, 2]]
    np.testing.assert_allclose(nearest.distances, [[0, 1, 2]], atol=1e-6)


@pytest.mark.parametrize("metric", ["hamming", "euclidean", "cosine"])
def test_lists_find_most_and_filters_find_all(metric: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scanning, "LIST_ROWS", 2000)
    random = np.random.default_rng(5)
    space = Space(metric, 32)
    vectors = sample_vectors(space, 5000, random)
    lists, exact = filled(space, vectors, approximate=True), filled(space, vectors)
    assert lists.nbytes == 2 * exact.nbytes
    nearest, true = lists.nearest(vectors[:100], 10), exact.nearest(vectors[:100], 10)
    kept = np.mean(
        [np.mean(a <= b[-1]) for a, b in zip(nearest.distances, true.distances, strict=True)]
    )
    assert kept > 0.5
    for near, own in zip(nearest.distances, nearest.rows, strict=True):
        assert list(zip(near, own, strict=True)) == sorted(zip(near, own, strict=True))
    chosen = random.random(5000) < 0.5
    assert (
        lists.nearest(vectors[:5], 10, chosen).rows.tolist()
        == exact.nearest(vectors[:5], 10, chosen).rows.tolist()
    )


def test_few_rows_are_scanned_even_where_lists_are_wanted() -> None:
    space = Space("hamming", 32)
    vectors = sample_vectors(space, 500, np.random.default_rng(1))
    lists, exact = filled(space, vectors, approximate=True), filled(space, vectors)
    assert (lists.nearest(vectors, 20).rows == exact.nearest(vectors, 20).rows).all()
    assert lists.nbytes == exact.nbytes == 500 * 4


@pytest.mark.parametrize(
    "vectors",
    [
        np.zeros((2, 4), np.float64),
        np.zeros((2, 5), np.float32),
        np.zeros(4, np.float32),
        np.array([[0, 0, np.nan, 0]], np.float32),
        np.array([[0, 0, np.inf, 0]], np.float32),
    ],
)
def test_vectors_of_another_space_are_refused(vectors: NDArray[Any]) -> None:
    with pytest.raises(ConfigError):
        Space("euclidean", 4).check(vectors)


@settings(max_examples=40, deadline=None)
@given(
    rows=st.integers(1, 200),
    count=st.integers(1, 60),
    wider=st.integers(1, 5),
    seed=st.integers(0, 2**32 - 1),
)
def test_codes_that_are_most_like_numbers(rows: int, count: int, wider: int, seed: int) -> None:
    """Against a literal sum over bits; distances and their order stay those of the codes."""
    random = np.random.default_rng(seed)
    codes = random.integers(0, 256, (rows, 4), dtype=np.uint8)
    numbers = random.normal(size=(3, 32)).astype(np.float32)
    queries = np.packbits(numbers > 0, axis=1)
    near = filled(Space("hamming", 32), codes).nearest(queries, wider * count)
    kept = most_alike(near, codes, numbers, count)
    assert kept.rows.shape == (3, count)
    for number, values in enumerate(numbers.astype(np.float64)):
        considered = [row for row in near.rows[number].tolist() if row >= 0]
        signs = {row: np.unpackbits(codes[row]) * 2.0 - 1 for row in considered}
        likeness = {row: float(signs[row] @ values) for row in considered}
        chosen = [row for row in kept.rows[number].tolist() if row >= 0]
        assert len(chosen) == min(count, len(considered)) == len(set(chosen))
        worst = min(likeness[row] for row in chosen)
        assert all(likeness[row] <= worst + 1e-4 for row in considered if row not in chosen)
        assert chosen == [row for row in considered if row in set(chosen)]
        distances_ = dict(zip(considered, near.distances[number].tolist(), strict=False))
        assert kept.distances[number][: len(chosen)].tolist() == [distances_[row] for row in chosen]
        assert np.isinf(kept.distances[number][len(chosen) :]).all()
