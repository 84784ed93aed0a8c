"""The direction of a word, made of the bits of its hash."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphkin.graphs.graph import WordArray

SPLITMIX = (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB)
"""Constants of the generator SplitMix64, which makes more bits out of a hash."""
BITS = 64
NO_WORDS = (
    "the model reads what functions say, and these graphs were made without it; read the binaries "
    "again"
)
"""What is wrong with graphs without words."""


def direction_bits(hashes: WordArray, dim: int) -> NDArray[np.uint8]:
    """(M,) hashes -> (M, dim) of 0 and 1, the bits of SplitMix64 seeded by the hash."""
    step, first, second = (np.uint64(value) for value in SPLITMIX)
    state = hashes[:, None] + step * np.arange(1, dim // BITS + 1, dtype=np.uint64)
    state = (state ^ (state >> np.uint64(30))) * first
    state = (state ^ (state >> np.uint64(27))) * second
    state ^= state >> np.uint64(31)
    return np.unpackbits(state.astype("<u8").view(np.uint8), axis=1)
