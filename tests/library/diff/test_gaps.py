"""Functions that are left over between pairs."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from graphkin.library.diff.gaps import PROBABILITY, with_gaps
from graphkin.library.diff.pairs import Paired
from graphkin.library.diff.side import Side
from graphkin.library.models import SearchModel
from graphkin.library.signals import record_kind

MODEL = SearchModel.load("functions")


def side(vectors: list[int], names: list[str] | None = None, files: str = "") -> Side:
    """Functions whose vectors all point along one of a few axes, and say nothing."""
    records = np.zeros(len(vectors), record_kind(MODEL.embedder))
    for row, axis in enumerate(vectors):
        records["graph"][row, axis] = 127
    records["graph_scale"] = 1 / 127
    names = names or [f"sub_{row:x}" for row in range(len(vectors))]
    functions = [
        SimpleNamespace(name=name, binary=binary)
        for name, binary in zip(names, files or "a" * len(vectors), strict=True)
    ]
    calls = [()] * len(vectors)
    return Side(functions, [], [], records, calls)  # type: ignore[arg-type]


def sure(*places: tuple[int, int]) -> list[Paired]:
    return [Paired(row, column, 0.9, 0.9) for row, column in places]


def added(left: Side, right: Side, paired: list[Paired], **options: bool) -> set[tuple[int, int]]:
    """The new pairs; all that were there must be there still, in the order of the left side."""
    result = with_gaps(left, right, paired, **options)
    assert set(paired) <= set(result)
    assert [item.row for item in result] == sorted({item.row for item in result})
    assert len({item.column for item in result}) == len(result)
    new = set(result) - set(paired)
    assert {item.probability for item in new} <= {PROBABILITY}
    return {(item.row, item.column) for item in new}


def test_one_function_between_two_pairs() -> None:
    """However little alike they are."""
    left, right = side([0, 1, 2]), side([0, 3, 2])
    assert added(left, right, sure((0, 0), (2, 2))) == {(1, 1)}
    assert added(left, right, sure((0, 0))) == set()
    assert added(left, right, []) == set()


def test_two_functions_are_paired_by_their_likeness() -> None:
    left, right = side([0, 1, 2, 3]), side([0, 2, 1, 3])
    assert added(left, right, sure((0, 0), (3, 3))) == {(1, 2), (2, 1)}


def test_gaps_of_different_sizes_and_large_ones_tell_nothing() -> None:
    left, right = side([0, 1, 2]), side([0, 1, 1, 2])
    assert added(left, right, sure((0, 0), (2, 3))) == set()
    same = side([0, 1, 2, 3, 4])
    assert added(same, same, sure((0, 0), (4, 4))) == set()


def test_gaps_lie_between_sure_pairs_in_one_order() -> None:
    left, right = side([0, 1, 2]), side([0, 3, 2])
    doubtful = [Paired(0, 0, 0.4, 0.4), *sure((2, 2))]
    assert added(left, right, doubtful) == set()
    assert added(left, right, sure((0, 2), (2, 0))) == set()
    # The function between has moved there from elsewhere.
    left, right = side([0, 1, 2, 3]), side([0, 3, 2])
    assert added(left, right, sure((0, 0), (2, 2), (3, 1))) == set()


def test_a_pair_that_is_none_gives_way() -> None:
    left, right = side([0, 1, 2, 3]), side([0, 3, 2, 1])
    improbable = Paired(1, 3, 0.06, 0.06)
    result = with_gaps(left, right, [*sure((0, 0), (2, 2)), improbable])
    assert improbable not in result
    assert (1, 1) in {item[:2] for item in result}


def test_names_that_differ_are_no_pair_unless_they_do_not_count() -> None:
    left = side([0, 1, 2], ["first", "old", "last"])
    right = side([0, 3, 2], ["first", "new", "last"])
    paired = sure((0, 0), (2, 2))
    assert added(left, right, paired) == set()
    assert added(left, right, paired, by_name=False) == {(1, 1)}
    unnamed = side([0, 3, 2], ["first", "sub_1", "last"])
    assert added(left, unnamed, paired) == {(1, 1)}


def test_gaps_do_not_reach_over_members_of_an_archive() -> None:
    left, right = side([0, 1, 2], files="aab"), side([0, 3, 2], files="aab")
    assert added(left, right, sure((0, 0), (2, 2))) == set()


@pytest.mark.parametrize("strength", [2.0, 50.0])
def test_functions_that_say_much_and_nothing_alike_are_different_ones(strength: float) -> None:
    left, right = side([0, 1, 2]), side([0, 3, 2])
    for own, axis in ((left, 0), (right, 1)):
        signals = own.signals.copy()
        signals["words"][1, axis] = 127
        signals["words_scale"] = 1 / 127
        signals["strength"] = strength
        changed = replace(own, signals=signals)
        left, right = (changed, right) if own is left else (left, changed)
    expected = {(1, 1)} if strength < 10 else set()
    assert added(left, right, sure((0, 0), (2, 2))) == expected
