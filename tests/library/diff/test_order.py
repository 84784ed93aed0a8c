"""Functions in the same place between sure pairs."""

from __future__ import annotations

from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphkin.library.diff.order import longest_rising, order_features
from graphkin.library.diff.pairs import Pairs
from graphkin.library.pairing import ORDER_NAMES


class Count(SimpleNamespace):
    """A side of which only the number of functions is asked."""

    def __len__(self) -> int:
        return int(self.count)


def features_of(
    cells: dict[tuple[int, int], float], left: int, right: int
) -> dict[str, list[float]]:
    ordered = sorted(cells)
    pairs = Pairs(
        Count(count=left),  # type: ignore[arg-type]
        Count(count=right),  # type: ignore[arg-type]
        np.array([row for row, _ in ordered]),
        np.array([column for _, column in ordered]),
    )
    features = order_features(pairs, np.array([cells[cell] for cell in ordered]))
    assert tuple(features) == ORDER_NAMES
    return {name: values.tolist() for name, values in features.items()}


def test_what_lies_between_the_same_sure_pairs() -> None:
    doubtful = {(1, 1): 0.3, (1, 2): 0.4, (2, 1): 0.4, (2, 2): 0.3, (1, 5): 0.2}
    features = features_of({(0, 0): 0.9, **doubtful, (3, 3): 0.9, (4, 6): 0.95}, 5, 7)
    cells = sorted({(0, 0): 0, **doubtful, (3, 3): 0, (4, 6): 0})
    by_cell = {
        cell: {name: values[row] for name, values in features.items()}
        for row, cell in enumerate(cells)
    }
    assert by_cell[1, 1]["order_exact"] == by_cell[2, 2]["order_exact"] == 1
    assert by_cell[1, 2]["order_inside"] == 1
    assert by_cell[1, 2]["order_exact"] == 0
    assert by_cell[1, 2]["order_apart"] == 1
    assert by_cell[1, 5]["order_inside"] == by_cell[1, 5]["order_tight"] == 0
    assert by_cell[1, 5]["order_outside"] == 2, "log2 of one more than 5 is behind 3"
    assert by_cell[0, 0]["order_inside"] == by_cell[4, 6]["order_inside"] == 1, "sure ones, too"


def test_a_pair_out_of_order_is_outside() -> None:
    in_order = {(row, row): 0.99 for row in range(10) if row != 4}
    features = features_of({**in_order, (4, 9): 0.99, (4, 4): 0.2}, 10, 10)
    inside = dict(
        zip(sorted({**in_order, (4, 9): 0, (4, 4): 0}), features["order_inside"], strict=True)
    )
    assert inside[4, 4] == 1
    assert inside[4, 9] == 0
    assert all(inside[cell] == 1 for cell in in_order)


def test_files_in_another_order_are_not_judged_by_it() -> None:
    features = features_of({(row, (row * 7) % 10): 0.9 for row in range(10)}, 10, 10)
    for name, values in features.items():
        assert set(values) == {1.0 if name == "order_inside" else 0.0}


def test_nothing_is_sure() -> None:
    features = features_of({(0, 1): 0.1, (1, 0): 0.1}, 2, 2)
    assert features["order_inside"] == [1, 1]
    assert features["order_exact"] == [0, 0]


@given(st.lists(st.integers(0, 30), max_size=9))
def test_longest_rising(values: list[int]) -> None:
    places = longest_rising(values)
    kept = [values[place] for place in places]
    assert places == sorted(set(places))
    assert _rises(kept)
    longest = max(
        sum(choice >> place & 1 for place in range(len(values)))
        for choice in range(1 << len(values))
        if _rises([values[place] for place in range(len(values)) if choice >> place & 1])
    )
    assert len(places) == longest


def _rises(values: list[int]) -> bool:
    return all(before < after for before, after in pairwise(values))


@pytest.mark.parametrize("values", [[], [5], [2, 1]])
def test_short_sequences(values: list[int]) -> None:
    assert len(longest_rising(values)) == min(len(values), 1)
