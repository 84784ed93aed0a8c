"""Pairs in sorted runs give what a dictionary would."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from graphkin.library.engines.sqlite.lists import KEY, VALUE, InvertedLists

BATCHES = st.lists(st.lists(st.integers(0, 9), max_size=30), max_size=12)


@given(batches=BATCHES, most=st.none() | st.integers(0, 12))
def test_values_of_keys(batches: list[list[int]], most: int | None) -> None:
    lists, expected = InvertedLists(), defaultdict[int, list[int]](list)
    last = 0
    for batch in batches:
        values = range(last, last + len(batch))
        lists.add(np.array(batch, KEY), np.array(values, VALUE))
        last += len(batch)
        for key, value in zip(batch, values, strict=True):
            expected[key].append(value)
    queries = np.array([3, 11, 0, 3, 9], KEY)
    for _ in range(2):
        assert len(lists) == last
        positions, values_found = lists.find(queries, most)
        for number, key in enumerate(queries.tolist()):
            own = expected[key] if most is None or len(expected[key]) <= most else []
            assert values_found[positions == number].tolist() == own
        lists.replace(lists.whole())


def test_many_small_additions_make_few_runs() -> None:
    lists = InvertedLists()
    random = np.random.default_rng(0)
    for number in range(3000):
        lists.add(random.integers(0, 2**63, 3, dtype=np.uint64), np.full(3, number, VALUE))
    assert len(lists._runs) < 15
