"""Pairs, their surroundings and the assignment, against slow plain loops."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import permutations
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphkin.errors import FormatError
from graphkin.library.diff.code import CodeForm
from graphkin.library.diff.context import ROUNDS_OF_SHARING, context_features
from graphkin.library.diff.pairs import (
    MOST_ALIKE,
    Pairs,
    likely_pairs,
    own_features,
    same_names,
    with_related,
)
from graphkin.library.diff.rounds import (
    CONTRADICTED,
    IDENTICAL,
    LEAST_PROBABILITY,
    SAME_NAME,
    assigned,
    pair,
    round_probabilities,
    with_identical,
    with_names,
)
from graphkin.library.diff.side import Side
from graphkin.library.models import SearchModel
from graphkin.library.pairing import (
    CONTEXT_NAMES,
    INLINING_NAMES,
    ORDER_NAMES,
    OWN_NAMES,
    Pairing,
)
from graphkin.library.signals import record_kind

MODEL = SearchModel.load("functions")


def side(count: int, seed: int, *, narrow: bool = False, copies: int = 0) -> Side:
    """Functions with random signals and calls, whose graphs nobody looks at."""
    rng = np.random.default_rng(seed)
    records = np.zeros(count, record_kind(MODEL.embedder))
    for name in ("graph", "words", "offsets", "callees", "callers"):
        records[name] = rng.integers(-20, 20, records[name].shape)
        records[f"{name}_scale"] = rng.random(count) * 0.01
    for name in ("callee_count", "caller_count", "edges", "operations"):
        records[name] = rng.integers(0, 9, count)
    records["strength"] = rng.random(count) * 20
    records["narrow"] = narrow
    calls = [
        tuple(other for other in rng.integers(0, count, 3).tolist() if other != row)
        for row in range(count)
    ]
    calls = [tuple(dict.fromkeys(own)) for own in calls]
    names = [b"copy" if row < copies else b"%d-%d" % (seed, row) for row in range(count)]
    code = [CodeForm((name,), name, name, name, name) for name in names]
    graphs = [
        SimpleNamespace(num_nodes=int(blocks), digest=lambda row=row: f"{seed}-{row}")
        for row, blocks in enumerate(rng.integers(1, 30, count))
    ]
    functions = [SimpleNamespace(name=f"f{row}") for row in range(count)]
    return Side(functions, code, graphs, records, calls)  # type: ignore[arg-type]


def some_pairs(left: int, right: int, seed: int) -> tuple[Pairs, np.ndarray]:
    rng = np.random.default_rng(seed)
    rows, columns = np.nonzero(rng.random((left, right)) < 0.4)
    pairs = Pairs(side(left, seed), side(right, seed + 1000), rows, columns)
    return pairs, rng.random(len(rows))


@given(st.integers(1, 8), st.integers(1, 8), st.integers(0, 10_000))
@settings(max_examples=40, deadline=None)
def test_margins_and_ranks(left: int, right: int, seed: int) -> None:
    pairs, values = some_pairs(left, right, seed)
    values = np.round(values, 1)
    by_row, by_column = pairs.margins(values)
    for number in range(len(pairs)):
        for owners, margins in ((pairs.rows, by_row), (pairs.columns, by_column)):
            others = [
                values[other]
                for other in range(len(pairs))
                if other != number and owners[other] == owners[number]
            ]
            expected = values[number] - max(others) if others else 1.0
            assert margins[number] == pytest.approx(expected)
        above = [
            sum(values[owners == owners[number]] > values[number])
            for owners in (pairs.rows, pairs.columns)
        ]
        level = [
            sum(values[owners == owners[number]] >= values[number])
            for owners in (pairs.rows, pairs.columns)
        ]
        assert min(above) <= pairs.ranks(values)[number] < max(level)


def shares_by_loops(pairs: Pairs, probabilities: np.ndarray) -> np.ndarray:
    table = np.zeros((len(pairs.left), len(pairs.right)))
    table[pairs.rows, pairs.columns] = np.where(probabilities < 0.01, 0, probabilities)
    for _ in range(ROUNDS_OF_SHARING):
        table /= np.maximum(1, table.sum(1, keepdims=True))
        table /= np.maximum(1, table.sum(0, keepdims=True))
    return table


@given(st.integers(2, 7), st.integers(2, 7), st.integers(0, 10_000))
@settings(max_examples=40, deadline=None)
def test_surroundings_agree_as_loops_say(left: int, right: int, seed: int) -> None:
    pairs, probabilities = some_pairs(left, right, seed)
    features = context_features(pairs, probabilities)
    assert set(features) == set(CONTEXT_NAMES)
    shares = shares_by_loops(pairs, probabilities)
    ours, theirs = pairs.left, pairs.right
    fame = [
        [sum(row in own for own in each.calls) for row in range(len(each))]
        for each in (ours, theirs)
    ]
    weights = [[1 / np.log2(2 + count) for count in own] for own in fame]
    for number, (row, column) in enumerate(zip(pairs.rows, pairs.columns, strict=True)):
        agreed = sum(
            np.sqrt(weights[0][a] * weights[1][b]) * shares[a, b]
            for a in ours.calls[row]
            for b in theirs.calls[column]
        )
        most = max(
            sum(weights[0][a] for a in ours.calls[row]),
            sum(weights[1][b] for b in theirs.calls[column]),
        )
        assert features["callees_agree"][number] == pytest.approx(np.log1p(agreed))
        assert features["callees_share"][number] == pytest.approx(agreed / max(most, 1e-9))
        same = sum(
            shares[row + a, column + b] / abs(a * b)
            for a in range(-4, 5)
            for b in range(-4, 5)
            if a * b > 0 and 0 <= row + a < left and 0 <= column + b < right
        )
        crossed = sum(
            shares[row + a, column + b] / abs(a * b)
            for a in range(-4, 5)
            for b in range(-4, 5)
            if a * b < 0 and 0 <= row + a < left and 0 <= column + b < right
        )
        assert features["neighbours"][number] == pytest.approx(np.log1p(same))
        assert features["neighbours_crossed"][number] == pytest.approx(np.log1p(crossed))


@given(st.integers(1, 5), st.integers(1, 5), st.integers(0, 10_000))
@settings(max_examples=60, deadline=None)
def test_the_assignment_is_the_best_of_all(left: int, right: int, seed: int) -> None:
    pairs, probabilities = some_pairs(left, right, seed)
    chosen = assigned(pairs, probabilities)
    rows, columns = pairs.rows[chosen].tolist(), pairs.columns[chosen].tolist()
    assert len(set(rows)) == len(rows)
    assert len(set(columns)) == len(columns)
    least = np.log(LEAST_PROBABILITY / (1 - LEAST_PROBABILITY))
    gains = np.zeros((left, right + left))
    odds = np.log(probabilities / (1 - probabilities)) - least
    gains[pairs.rows, pairs.columns] = np.maximum(odds, 0)
    best = max(
        sum(gains[row, column] for row, column in enumerate(order))
        for order in permutations(range(right + left), left)
    )
    assert sum(gains[row, column] for row, column in zip(rows, columns, strict=True)) == (
        pytest.approx(best)
    )


def test_nothing_probable_gives_no_pair() -> None:
    pairs, probabilities = some_pairs(4, 4, 1)
    assert not len(assigned(pairs, probabilities * 0))


def test_likely_pairs_are_the_best_of_rows_and_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    left, right = side(60, 1), side(45, 2)
    monkeypatch.setattr("graphkin.library.diff.pairs.ROWS_AT_ONCE", 17)
    pairs = likely_pairs(MODEL, left, right)
    every = Pairs(left, right, *map(np.ravel, np.indices((60, 45))))
    monkeypatch.setattr("graphkin.library.diff.pairs._matched", lambda *_: {"score": _zeros(every)})
    totals = own_features(MODEL, every)["total"].reshape(60, 45)
    expected = {(row, at) for row in range(60) for at in np.argsort(-totals[row])[:MOST_ALIKE]}
    expected |= {(row, at) for at in range(45) for row in np.argsort(-totals[:, at])[:MOST_ALIKE]}
    assert set(zip(pairs.rows.tolist(), pairs.columns.tolist(), strict=True)) == {
        (int(row), int(column)) for row, column in expected
    }


def _zeros(pairs: Pairs) -> np.ndarray:
    return np.zeros(len(pairs))


def test_offsets_do_not_count_between_widths(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "graphkin.library.diff.pairs._matched", lambda model, pairs, _: {"score": _zeros(pairs)}
    )
    for narrow in (False, True):
        left, right = side(5, 1), side(5, 2, narrow=narrow)
        features = own_features(MODEL, Pairs(left, right, np.arange(5), np.arange(5)))
        assert features["offsets"].any() != narrow


def test_identical_code_is_nearly_certain_and_shared_by_its_copies() -> None:
    left, right = side(4, 1, copies=1), side(4, 2, copies=2)
    pairs = Pairs(left, right, np.array([0, 0, 3]), np.array([0, 1, 3]))
    probabilities = with_identical(pairs, np.array([0.1, 0.9, 0.2]))
    assert probabilities.tolist() == [IDENTICAL / 2, 0.9, 0.2]


def test_what_is_around_a_probable_pair_is_paired() -> None:
    left, right = side(6, 1), side(6, 2)
    pairs = Pairs(left, right, np.array([2]), np.array([3]))
    more = with_related(pairs, np.array([0.9]))
    keys = set(zip(more.rows.tolist(), more.columns.tolist(), strict=True))
    assert {(2, 3), (1, 2), (3, 4)} <= keys
    assert {(a, b) for a in left.calls[2] for b in right.calls[3]} <= keys
    assert len(with_related(pairs, np.array([0.1]))) == 1


def test_files_of_one_function() -> None:
    pairs = Pairs(side(1, 1), side(1, 2), np.array([0]), np.array([0]))
    assert context_features(pairs, np.array([0.9]))["neighbours"].tolist() == [0.0]


def test_names_that_both_have_once_make_pairs() -> None:
    left, right = side(4, 1), side(4, 2)
    for own, names in ((left, "f g sub_10 g"), (right, "g f sub_10 h")):
        for function, name in zip(own.functions, names.split(), strict=True):
            function.name = name  # type: ignore[misc]
    assert same_names(left, right) == {0: 1}
    pairs = Pairs(left, right, np.array([0, 0, 1, 2]), np.array([0, 1, 1, 2]))
    probabilities = with_names(pairs, np.array([0.9, 0.1, 0.8, 0.7]), {0: 1})
    assert probabilities.tolist() == [0.0, SAME_NAME, 0.0, 0.7]


def test_two_that_say_much_and_nothing_alike_are_no_pair() -> None:
    assert MODEL.pairing is not None
    left, right = side(1, 1), side(1, 2)
    pairs = Pairs(left, right, np.array([0]), np.array([0]))
    names = OWN_NAMES + CONTEXT_NAMES
    likely = {name: np.array([5.0]) for name in names} | {"least_strength": np.array([9.0])}
    contradicted = likely | {"words": np.array([0.0]), "graph": np.array([0.1])}
    own = MODEL.pairing.rounds[1]
    sure = replace(own, known=replace(own.known, weights=(0.0,) * len(names), bias=12.0))
    assert round_probabilities(pairs, likely, sure, 1)[0] > 0.9
    assert round_probabilities(pairs, contradicted, sure, 1)[0] == CONTRADICTED


def test_a_pairing_adds_up_as_in_its_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the ranking beside it weighs."""
    monkeypatch.setattr(
        "graphkin.library.diff.pairs._matched", lambda model, pairs, _: {"score": _zeros(pairs)}
    )
    assert MODEL.ranking is not None
    pairs, _ = some_pairs(3, 4, 0)
    other = replace(MODEL.ranking, order=dict.fromkeys(MODEL.ranking.order, 9.0))
    features = [
        own_features(model, pairs)["total"]
        for model in (MODEL, replace(MODEL, ranking=other), replace(MODEL, pairing=None))
    ]
    np.testing.assert_array_equal(features[0], features[1])
    assert (features[0] != features[2]).any()


def test_an_empty_side_has_no_pairs() -> None:
    assert pair(MODEL, side(0, 1), side(3, 2)) == []
    assert pair(MODEL, side(3, 1), side(0, 2)) == []


def test_a_pairing_survives_json_and_damage_is_refused() -> None:
    assert MODEL.pairing is not None
    text = MODEL.pairing.to_json()
    assert Pairing.from_json(text) == MODEL.pairing
    assert len(MODEL.pairing.rounds[0].known.weights) == len(OWN_NAMES)
    for damaged in (
        "{}",
        "[]",
        text.replace("graphkin pairing", "graphkin ranking"),
        text.replace('"bias":', '"bias_":', 1),
        replace(MODEL.pairing, rounds=()).to_json(),
        replace(MODEL.pairing, order={"graph": float("nan")}).to_json(),
    ):
        with pytest.raises(FormatError):
            Pairing.from_json(damaged)


def test_a_pairing_without_late_rounds_is_read_as_before() -> None:
    assert MODEL.pairing is not None
    values = json.loads(MODEL.pairing.to_json())
    first = [own for own in values["rounds"] if not own.pop("is_late")]
    assert 0 < len(first) < len(values["rounds"]), "what ships has late rounds"
    pairing = Pairing.from_json(json.dumps(values | {"rounds": first}))
    assert pairing.rounds == MODEL.pairing.rounds[: len(first)]
    late = MODEL.pairing.rounds[-1]
    assert late.is_late
    assert len(late.known.weights) == len(OWN_NAMES + CONTEXT_NAMES + INLINING_NAMES + ORDER_NAMES)
    with pytest.raises(FormatError):
        Pairing.from_json(MODEL.pairing.to_json().replace('"is_late": true', '"is_late": false'))
