"""Sums over runs of rows, against plain loops."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from graphkin.models.light.run_sums import RunSums


@given(st.lists(st.lists(st.integers(0, 5), max_size=6), max_size=8))
def test_sums_of_chosen_rows(runs: list[list[int]]) -> None:
    values = np.arange(18, dtype=np.float32).reshape(6, 3)
    offsets = np.cumsum([0, *map(len, runs)])
    rows = np.array([row for run in runs for row in run], dtype=np.int64)
    expected = [sum((values[row] for row in run), np.zeros(3, np.float32)) for run in runs]
    assert RunSums(offsets, rows)(values).tolist() == [total.tolist() for total in expected]


@given(st.lists(st.integers(0, 5), max_size=8))
def test_sums_of_rows_in_turn(lengths: list[int]) -> None:
    values = np.arange(2 * sum(lengths), dtype=np.float32).reshape(-1, 2)
    offsets = np.cumsum([0, *lengths])
    expected = [values[a:b].sum(axis=0).tolist() for a, b in itertools.pairwise(offsets)]
    assert RunSums(offsets)(values).tolist() == expected
