"""The hashes that name patterns, against plain integers."""

from __future__ import annotations

import numpy as np

from graphkin.research.baselines.hashing import mixed, segment_sums
from tests.research.baselines.small_programs import literal_mixed


def test_mixed_is_splitmix64():
    values = [0, 1, 2, 2**63, 2**64 - 1]
    got = mixed(np.array(values, dtype=np.uint64)).tolist()
    assert got == [literal_mixed(value) for value in values]
    assert got[0] == 0xE220A8397B1DCDAF  # the first output of SplitMix64 from seed 0


def test_segment_sums_wrap_around():
    values = np.array([2**64 - 1, 2, 5, 7], dtype=np.uint64)
    assert segment_sums(values, np.array([0, 2, 2, 4])).tolist() == [1, 0, 12]
    assert segment_sums(values[:0], np.array([0, 0])).tolist() == [0]
