"""Hashes of 64 bits over whole arrays: what the baselines name their patterns with."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Hashes = NDArray[np.uint64]


def mixed(values: Hashes) -> Hashes:
    """The finaliser of SplitMix64: spreads every input bit over all 64."""
    values = values + np.uint64(0x9E3779B97F4A7C15)
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


def segment_sums(values: Hashes, offsets: NDArray[Any]) -> Hashes:
    """(S,) sums modulo 2^64 of ``values[offsets[i]:offsets[i + 1]]``: of mixed values, a hash
    of each multiset."""
    totals = np.zeros(len(values) + 1, dtype=np.uint64)
    np.cumsum(values, out=totals[1:])
    sums: Hashes = np.diff(totals[offsets])
    return sums
