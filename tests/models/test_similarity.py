"""Similarities of vectors and of codes, against their formulas written as loops."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from graphkin.models.codes import hamming_distances, pack_codes
from graphkin.models.similarity import (
    VECTOR_SIMILARITIES,
    cosine_similarity,
    euclidean_similarity,
    hamming_similarity,
)

LEFT = torch.tensor([[1.0, -2.0, 0.5], [0.0, 3.0, -1.0]], dtype=torch.float64)
RIGHT = torch.tensor([[0.5, -1.0, 4.0], [0.0, 3.0, -1.0]], dtype=torch.float64)


def test_euclidean() -> None:
    expected = [-sum((a - b) ** 2 for a, b in zip(x, y, strict=True)) for x, y in rows()]
    assert euclidean_similarity(LEFT, RIGHT).tolist() == pytest.approx(expected)
    assert expected[1] == 0.0


def test_cosine() -> None:
    expected = []
    for x, y in rows():
        dot = sum(a * b for a, b in zip(x, y, strict=True))
        expected.append(dot / math.sqrt(sum(a * a for a in x) * sum(b * b for b in y)))
    assert cosine_similarity(LEFT, RIGHT).tolist() == pytest.approx(expected)
    assert expected[1] == pytest.approx(1.0)


def test_relaxed_hamming() -> None:
    expected = [
        sum(math.tanh(a) * math.tanh(b) for a, b in zip(x, y, strict=True)) / 3 for x, y in rows()
    ]
    assert hamming_similarity(LEFT, RIGHT).tolist() == pytest.approx(expected)


def rows() -> list[tuple[list[float], list[float]]]:
    return list(zip(LEFT.tolist(), RIGHT.tolist(), strict=True))


@pytest.mark.parametrize("name", VECTOR_SIMILARITIES)
def test_shapes_symmetry_and_the_best_match(name: str) -> None:
    similarity = VECTOR_SIMILARITIES[name]
    torch.manual_seed(0)
    x, y = torch.randn(6, 8), torch.randn(6, 8)
    assert similarity(x, y).shape == (6,)
    assert similarity(x[:0], y[:0]).shape == (0,)
    torch.testing.assert_close(similarity(x, y), similarity(y, x))
    assert (similarity(x, x) >= similarity(x, -x)).all()


def test_hamming_similarity_of_saturated_vectors_counts_bits() -> None:
    """Far from zero tanh is a sign, and the mean product is 1 - 2 (differing bits) / bits."""
    signs = torch.tensor([[1.0, -1, 1, -1, 1, 1, -1, -1], [1, 1, 1, 1, -1, -1, -1, -1]]) * 50
    codes = pack_codes(signs.numpy())
    differing = int(hamming_distances(codes[:1], codes[1:])[0, 0])
    assert float(hamming_similarity(signs[:1], signs[1:])[0]) == pytest.approx(
        1 - 2 * differing / 8
    )


def test_the_first_component_is_the_top_bit() -> None:
    vectors = np.array([[1, -1, -1, -1, -1, -1, -1, 2, -1, 3] + [-1.0] * 6], dtype=np.float32)
    assert pack_codes(vectors).tolist() == [[0b1000_0001, 0b0100_0000]]
    assert pack_codes(vectors).dtype == np.uint8


def test_a_component_of_zero_is_no_bit() -> None:
    assert pack_codes(np.zeros((1, 8), dtype=np.float32)).tolist() == [[0]]


@settings(deadline=None, max_examples=50)
@given(data=st.data(), width=st.sampled_from([8, 16, 128]))
def test_packed_distances_are_those_of_the_signs(data: st.DataObject, width: int) -> None:
    values = st.floats(-2, 2, width=32)
    left = data.draw(arrays(np.float32, (data.draw(st.integers(0, 4)), width), elements=values))
    right = data.draw(arrays(np.float32, (data.draw(st.integers(0, 4)), width), elements=values))
    distances = hamming_distances(pack_codes(left), pack_codes(right))
    assert distances.shape == (len(left), len(right))
    assert distances.dtype == np.int64
    for i, x in enumerate(left):
        for j, y in enumerate(right):
            assert distances[i, j] == sum((a > 0) != (b > 0) for a, b in zip(x, y, strict=True))


def test_distances_do_not_wrap_around() -> None:
    """A byte-wise sum of more than 255 differing bits."""
    zeros, ones = np.zeros((1, 128), dtype=np.uint8), np.full((1, 128), 255, dtype=np.uint8)
    assert hamming_distances(zeros, ones).tolist() == [[1024]]


def test_every_byte_is_counted() -> None:
    codes = np.arange(256, dtype=np.uint8)[:, None]
    zero = np.zeros((1, 1), dtype=np.uint8)
    assert hamming_distances(codes, zero)[:, 0].tolist() == [bin(k).count("1") for k in range(256)]
