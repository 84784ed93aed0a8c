"""Codes: the signs of vectors as bits, and how many of them differ."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

CODE_SCALE = 8.0
"""Factor ahead of the tanh that a code is learned through: components of a vector are small."""


def pack_codes(vectors: NDArray[np.float32]) -> NDArray[np.uint8]:
    """The sign bits of graph vectors: (N, G) -> (N, G / 8), the first component in the top bit."""
    return np.packbits(vectors > 0, axis=1)


def hamming_distances(left: NDArray[np.uint8], right: NDArray[np.uint8]) -> NDArray[np.int64]:
    """Differing bits of every code on the left with every one on the right: (A, B)."""
    different = left[:, None, :] ^ right[None, :, :]
    counts: NDArray[np.int64] = np.bitwise_count(different).sum(axis=2, dtype=np.int64)
    return counts
