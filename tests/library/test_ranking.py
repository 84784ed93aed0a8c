"""From signals to probabilities: what competes, what is certain, and what nobody can tell."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphkin.errors import FormatError
from graphkin.library.odds import Odds, probabilities_of
from graphkin.library.ranking import (
    MOST_AMONG_FEW,
    TOO_SMALL,
    UNIQUE_EQUAL,
    Candidates,
    MatchedGraphs,
    Ranking,
    is_small,
    ordered_by,
    variants,
)
from graphkin.library.signals import CALLS, ComparedGraphs, Records, record_kind
from tests.library.sample_models import RANKING, evidence_embedder

KIND = record_kind(evidence_embedder())
BLOCKS = 12
SURE = replace(
    RANKING,
    regressions={name: Odds((0.0,) * len(of), 5.0) for name, of in variants().items()},
)
"""Finds every candidate probable: a single one has 0.993."""


def records(likeness: list[float], strength: float = 100.0) -> Records:
    """Of functions whose words are so much like those of the first, which is the query."""
    made = np.zeros(len(likeness), KIND)
    for row, cosine in enumerate(likeness):
        made[row]["words"][:2] = np.rint(127 * np.array([cosine, np.sqrt(1 - cosine**2)]))
    made["words_scale"] = 1 / 127
    made["strength"] = strength
    return made


def candidates(
    likeness: list[float], names: list[str], equal: list[bool] | None = None, **options: Any
) -> tuple[np.void, Candidates]:
    """A query, and what may be the same."""
    query, *_ = own = records([1.0, *likeness], **options)
    flags = np.array(equal or [False] * len(names))
    return query, Candidates(own[1:], np.full(len(names), BLOCKS), flags, names)


def seen(scores: list[float], words: float = 0.5) -> MatchedGraphs:
    """What a matcher and graphs may tell."""
    count = len(scores)
    graphs = ComparedGraphs(
        np.full(count, words, np.float32),
        np.zeros(count, np.float32),
        0.1,
        np.linspace(0, 1, count, dtype=np.float32),
    )
    return MatchedGraphs(np.array(scores, np.float32), graphs)


# --- Files ------------------------------------------------------------------------------------


def test_json_and_back() -> None:
    assert Ranking.from_json(RANKING.to_json()) == RANKING


def test_a_ranking_of_before_neighbours_compares_calls_alone() -> None:
    order = {name: RANKING.order[name] for name in ordered_by(CALLS)}
    regressions = {name: Odds((0.5,) * len(of), -1.0) for name, of in variants(CALLS).items()}
    old = Ranking(order, regressions, {})
    assert json.loads(old.to_json())["version"] == 2
    assert Ranking.from_json(old.to_json()) == old
    assert old.around == CALLS
    query, others = candidates([0.9, 0.2], ["a", "b"])
    records = np.zeros(2, record_kind(evidence_embedder(), CALLS))
    for name in records.dtype.names or ():
        records[name] = others.records[name]
    for own in (others.records, records):
        own["in_file"] = 1
    query["in_file"] = 1
    as_before = old.probabilities(query, BLOCKS, others._replace(records=records))
    np.testing.assert_array_equal(old.probabilities(query, BLOCKS, others), as_before)


def changed(**values: Any) -> str:
    return json.dumps({**json.loads(RANKING.to_json()), **values})


REGRESSIONS = json.loads(RANKING.to_json())["regressions"]
HIDDEN = {"hidden": [[0.0] * len(variants()["pair"])], "hidden_bias": [0.0], "output": [1.0]}
DAMAGED = {
    "no JSON": "{",
    "no object": "[]",
    "another format": changed(format="graphkin calibration"),
    "a later version": changed(version=4),
    "no order": changed(order={}),
    "an order that is not finite": changed(order={**RANKING.order, "words": float("nan")}),
    "a weight too large": RANKING.to_json().replace("-4.0", "1" + 400 * "0"),
    "a text for a weight": changed(order={**RANKING.order, "words": "many"}),
    "no regressions": changed(regressions=[]),
    "a regression missing": changed(regressions={"alone": REGRESSIONS["alone"]}),
    "weights missing": changed(
        regressions={**REGRESSIONS, "pair": {**REGRESSIONS["pair"], "weights": []}}
    ),
    "a hidden layer of other features": changed(
        regressions={**REGRESSIONS, "pair": {**REGRESSIONS["pair"], **HIDDEN, "hidden": [[1.0]]}}
    ),
    "a hidden layer without an output": changed(
        regressions={**REGRESSIONS, "pair": {**REGRESSIONS["pair"], **HIDDEN, "output": []}}
    ),
    "a bias that is not finite": changed(
        regressions={**REGRESSIONS, "pair": {**REGRESSIONS["pair"], "bias": float("inf")}}
    ),
}


@pytest.mark.parametrize("text", DAMAGED.values(), ids=DAMAGED)
def test_damaged_files_are_refused(text: str) -> None:
    with pytest.raises(FormatError, match="ranking"):
        Ranking.from_json(text)


# --- Features ---------------------------------------------------------------------------------


def test_builds_of_one_function_do_not_compete() -> None:
    query, found = candidates([0.9, 0.8, 0.5], ["f", "f", "g"])
    features = RANKING.features(query, BLOCKS, found, seen([3.0, 4.0, 1.0]))
    total = features["total"]
    assert features["margin"] == pytest.approx([total[0] - total[2], total[1] - total[2],
                                                total[2] - total[0]])  # fmt: skip
    assert features["score_margin"] == pytest.approx([2, 3, -3])
    assert features["on_stack_there"] == pytest.approx([0, 0.5, 1])


def test_a_function_without_rivals_is_above_nothing() -> None:
    query, found = candidates([0.9], ["f"])
    features = RANKING.features(query, BLOCKS, found)
    assert features["margin"] == pytest.approx(features["total"])


def test_two_that_are_level_have_no_margin() -> None:
    query, found = candidates([0.9, 0.9], ["f", "g"])
    assert RANKING.features(query, BLOCKS, found)["margin"].tolist() == [0, 0]


def test_offsets_count_between_pointers_of_one_width() -> None:
    query, found = candidates([0.5, 0.5], ["f", "g"])
    for record in (query, *found.records):
        record["offsets"][0], record["offsets_scale"] = 127, 1 / 127
    found.records["narrow"] = [0, 1]
    features = RANKING.features(query, BLOCKS, found)
    assert features["offsets"] == pytest.approx([1, 0])
    assert features["widths_differ"].tolist() == [0, 1]
    totals = RANKING.totals(query, found.records)
    assert totals[0] - totals[1] == pytest.approx(RANKING.order["offsets"], abs=1e-5)


def test_numbers_of_callers_count_where_files_are_known() -> None:
    query, found = candidates([0.5, 0.5, 0.5], ["f", "g", "h"])
    query["in_file"], query["caller_count"] = 1, 7
    found.records["in_file"] = [1, 1, 0]
    found.records["caller_count"] = [7, 0, 0]
    same, fewer, unknown = RANKING.totals(query, found.records).tolist()
    assert same == unknown
    assert same - fewer == pytest.approx(3 * RANKING.order["caller_count"], abs=1e-5)


def test_callers_and_their_number_are_features_of_their_own() -> None:
    query, found = candidates([0.5, 0.5], ["f", "g"])
    for record in (query, *found.records):
        record["callers"][0], record["callers_scale"], record["caller_count"] = 127, 1 / 127, 3
    found.records["caller_count"] = [3, 7]
    features = RANKING.features(query, BLOCKS, found)
    assert features["callers"] == pytest.approx([1, 1])
    assert features["caller_count"] == pytest.approx([0, 1])


def test_what_is_known_of_a_candidate_decides_its_regression() -> None:
    odds = {"alone": 0.5, "alone in files": 1.5, "matched": 3.0, "matched in files": 5.0}
    regressions = {
        name: Odds((0.0,) * len(variants()[name]), float(np.log(value)))
        for name, value in odds.items()
    }
    ranking = replace(RANKING, regressions=regressions)
    query, found = candidates([0.5, 0.5], ["f", "g"])
    query["in_file"], found.records["in_file"] = 1, [0, 1]
    assert ranking.probabilities(query, BLOCKS, found) == pytest.approx([0.5 / 3, 1.5 / 3])
    probabilities = ranking.probabilities(query, BLOCKS, found, seen([0.0, 0.0]))
    assert probabilities == pytest.approx([3 / 9, 5 / 9])


# --- Probabilities ----------------------------------------------------------------------------


def test_odds_with_a_hidden_layer() -> None:
    odds = Odds((1.0, 0.0), -1.0, ((0.0, 2.0),), (0.5,), (3.0,))
    expected = 4.0 - 1.0 + 3 * np.tanh(2 * 0.25 + 0.5)
    assert odds(np.array([[4.0, 0.25]])) == pytest.approx([expected])
    assert odds(np.array([[1e9, 0.0]])) == 40.0


def test_none_of_them_may_be_the_right_one() -> None:
    """Builds of one function do not compete; each has the probability of its own odds."""
    probabilities = probabilities_of(np.log([2.0, 1.0, 1.0]), ["f", "f", "g"])
    assert probabilities == pytest.approx([2 / 4, 1 / 4, 1 / 4])


def test_unique_equal_code_is_nearly_certain() -> None:
    """However probable others are, and several builds of it are one function."""
    names, equal = ["f", "f", "f", "g", "h"], [True, True, False, False, False]
    query, found = candidates([1.0, 1.0, 0.9, 0.99, 0.99], names, equal)
    for ranking in (RANKING, SURE):
        probabilities = ranking.probabilities(query, BLOCKS, found)
        assert (probabilities[:2] >= UNIQUE_EQUAL).all()
        assert (probabilities[3:] <= 1 - UNIQUE_EQUAL).all()


def test_equal_functions_of_different_names_share_it() -> None:
    query, found = candidates([1.0] * 4, ["f", "g", "h", "i"], [True] * 4)
    for ranking in (RANKING, SURE):
        probabilities = ranking.probabilities(query, BLOCKS, found)
        assert (probabilities >= UNIQUE_EQUAL / 4).all()
        assert probabilities == pytest.approx([probabilities[0]] * 4)
        assert probabilities.sum() <= 1 + 1e-9


def test_small_silent_functions_are_as_probable_as_there_are_likes_of_them() -> None:
    likeness, names = [1.0, 1.0, 0.999, 0.2], ["f", "g", "h", "i"]
    query, found = candidates(likeness, names, strength=1.0)
    assert is_small(query, 3)
    by_score = Odds(tuple(float(name == "score") for name in variants()["matched"]), 0.0)
    leaning = replace(RANKING, regressions={"matched": by_score})
    matched = seen([20.0, 0.0, 0.0, 0.0])
    assert leaning.probabilities(query, 3, found, matched)[0] == pytest.approx(1 / 3)
    assert not is_small(query, BLOCKS)
    assert leaning.probabilities(query, BLOCKS, found, matched)[0] > 0.99
    equal = found._replace(equal=np.array([True, False, False, False]))
    assert SURE.probabilities(query, 3, equal)[0] == pytest.approx(1 / 3)
    query, found = candidates(likeness, names, [True, False, False, False], strength=100.0)
    assert not is_small(query, 3)
    assert SURE.probabilities(query, 3, found)[0] >= UNIQUE_EQUAL


def test_a_small_library_does_not_make_a_small_silent_function_unique() -> None:
    """That nothing else is like it there says nothing; the same place in both files does."""
    query, alone = candidates([0.9], ["f"], strength=1.0)
    few = alone._replace(compared=2)
    assert SURE.probabilities(query, 3, alone)[0] > 0.99
    assert SURE.probabilities(query, 3, few)[0] == MOST_AMONG_FEW < 0.5
    assert SURE.probabilities(query, 3, few._replace(equal=np.array([True])))[0] == MOST_AMONG_FEW
    assert SURE.probabilities(query, BLOCKS, few)[0] > 0.99
    speaking, hits = candidates([0.9], ["f"], strength=100.0)
    assert SURE.probabilities(speaking, 3, hits._replace(compared=2))[0] > 0.99
    around = few._replace(records=few.records.copy())
    for record in (query, around.records[0]):
        record["callers"][:1], record["callers_scale"] = 127, 1 / 127
    assert SURE.probabilities(query, 3, around)[0] > 0.99


@settings(deadline=None, max_examples=50)
@given(
    st.lists(
        st.tuples(st.floats(0, 1), st.sampled_from("abcdef"), st.booleans()),
        min_size=1,
        max_size=20,
    ),
    st.floats(-5, 5),
    st.sampled_from([2, BLOCKS]),
    st.sampled_from([1.0, 100.0]),
)
def test_probabilities_of_different_functions_add_up_to_at_most_1(
    drawn: list[tuple[float, str, bool]], bias: float, blocks: int, strength: float
) -> None:
    likeness, names, equal = (list(column) for column in zip(*drawn, strict=True))
    query, found = candidates(likeness, names, equal, strength=strength)
    regressions = {name: replace(of, bias=bias) for name, of in RANKING.regressions.items()}
    ranking = replace(RANKING, regressions=regressions)
    probabilities = ranking.probabilities(query, blocks, found)
    best = {
        name: max(p for p, other in zip(probabilities, names, strict=True) if other == name)
        for name in names
    }
    assert probabilities.min() >= 0
    assert sum(best.values()) <= 1 + 1e-9


def test_a_pair_by_itself() -> None:
    query, found = candidates([0.9], [""])
    one, note = RANKING.pair_probability(query, BLOCKS, found, seen([1.0]))
    assert 0 < one < RANKING.pair_probability(query, BLOCKS, found, seen([5.0])).probability < 1
    assert note is None
    equal = found._replace(equal=np.array([True]))
    same, note = RANKING.pair_probability(query, BLOCKS, equal, seen([-9.0]))
    assert same >= UNIQUE_EQUAL
    assert note is None


def test_a_pair_of_which_either_is_small_and_silent_is_never_certain() -> None:
    query, found = candidates([0.9], [""], strength=1.0)
    capped = (MOST_AMONG_FEW, TOO_SMALL)
    for is_equal in (False, True):
        small = found._replace(equal=np.array([is_equal]), blocks=np.array([3]))
        assert SURE.pair_probability(query, 3, small, seen([1.0])) == capped
    assert SURE.pair_probability(query, BLOCKS, small, seen([1.0])) == capped
    assert SURE.pair_probability(query, 3, found, seen([1.0])) == capped
    query, speaking = candidates([0.9], [""], [True], strength=100.0)
    small = speaking._replace(blocks=np.array([3]))
    probability, note = SURE.pair_probability(query, 3, small, seen([1.0]))
    assert probability >= UNIQUE_EQUAL
    assert note is None
