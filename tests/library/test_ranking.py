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
from graphkin.library.ranking import (
    UNIQUE_EQUAL,
    VARIANTS,
    Candidates,
    Ranking,
    is_small,
)
from graphkin.library.signals import Records, record_kind
from graphkin.models.calibration import Logistic
from tests.library.sample_models import RANKING, evidence_embedder

KIND = record_kind(evidence_embedder())
BLOCKS = 12
SURE = replace(
    RANKING,
    regressions={name: Logistic((0.0,) * len(of), 2.0) for name, of in VARIANTS.items()},
)
"""Finds every candidate probable, at 0.88."""


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


# --- Files ------------------------------------------------------------------------------------


def test_json_and_back() -> None:
    assert Ranking.from_json(RANKING.to_json()) == RANKING


def changed(**values: Any) -> str:
    return json.dumps({**json.loads(RANKING.to_json()), **values})


REGRESSIONS = json.loads(RANKING.to_json())["regressions"]
DAMAGED = {
    "no JSON": "{",
    "no object": "[]",
    "another format": changed(format="graphkin calibration"),
    "a later version": changed(version=2),
    "no order": changed(order={}),
    "an order that is not finite": changed(order={**RANKING.order, "words": float("nan")}),
    "a weight too large": RANKING.to_json().replace("-4.0", "1" + 400 * "0"),
    "a text for a weight": changed(order={**RANKING.order, "words": "many"}),
    "no regressions": changed(regressions=[]),
    "a regression missing": changed(regressions={"alone": REGRESSIONS["alone"]}),
    "weights missing": changed(regressions={**REGRESSIONS, "pair": {"weights": [], "bias": 0}}),
}


@pytest.mark.parametrize("text", DAMAGED.values(), ids=DAMAGED)
def test_damaged_files_are_refused(text: str) -> None:
    with pytest.raises(FormatError, match="ranking"):
        Ranking.from_json(text)


# --- Features ---------------------------------------------------------------------------------


def test_builds_of_one_function_do_not_compete() -> None:
    query, pool = candidates([0.9, 0.8, 0.5], ["f", "f", "g"])
    scores = np.array([3.0, 4.0, 1.0], np.float32)
    features = RANKING.features(query, BLOCKS, pool, scores, scores)
    total = features["total"]
    assert features["margin"] == pytest.approx([total[0] - total[2], total[1] - total[2],
                                                total[2] - total[0]])  # fmt: skip
    assert features["score_margin"] == pytest.approx([2, 3, -3])


def test_a_function_without_rivals_is_above_nothing() -> None:
    query, pool = candidates([0.9], ["f"])
    features = RANKING.features(query, BLOCKS, pool)
    assert features["margin"] == pytest.approx(features["total"])


def test_two_that_are_level_have_no_margin() -> None:
    query, pool = candidates([0.9, 0.9], ["f", "g"])
    assert RANKING.features(query, BLOCKS, pool)["margin"].tolist() == [0, 0]


def test_offsets_count_between_pointers_of_one_width() -> None:
    query, pool = candidates([0.5, 0.5], ["f", "g"])
    for record in (query, *pool.records):
        record["offsets"][0], record["offsets_scale"] = 127, 1 / 127
    pool.records["narrow"] = [0, 1]
    features = RANKING.features(query, BLOCKS, pool)
    assert features["offsets"] == pytest.approx([1, 0])
    assert features["widths_differ"].tolist() == [0, 1]
    totals = RANKING.totals(query, pool.records)
    assert totals[0] - totals[1] == pytest.approx(RANKING.order["offsets"], abs=1e-5)


def test_numbers_of_callers_count_where_files_are_known() -> None:
    query, pool = candidates([0.5, 0.5, 0.5], ["f", "g", "h"])
    query["in_file"], query["caller_count"] = 1, 7
    pool.records["in_file"] = [1, 1, 0]
    pool.records["caller_count"] = [7, 0, 0]
    same, fewer, unknown = RANKING.totals(query, pool.records).tolist()
    assert same == unknown
    assert same - fewer == pytest.approx(3 * RANKING.order["caller_count"], abs=1e-5)


def test_what_is_known_of_a_candidate_decides_its_regression() -> None:
    probability_of = {"alone": 0.1, "alone in files": 0.2, "matched": 0.3, "matched in files": 0.4}
    regressions = {
        name: Logistic((0.0,) * len(VARIANTS[name]), float(np.log(p / (1 - p))))
        for name, p in probability_of.items()
    }
    ranking = replace(RANKING, regressions=regressions)
    query, pool = candidates([0.5, 0.5], ["f", "g"])
    query["in_file"], pool.records["in_file"] = 1, [0, 1]
    scores = np.zeros(2, np.float32)
    assert ranking.probabilities(query, BLOCKS, pool) == pytest.approx([0.1, 0.2])
    assert ranking.probabilities(query, BLOCKS, pool, scores, scores) == pytest.approx([0.3, 0.4])


# --- Probabilities ----------------------------------------------------------------------------


def test_unique_equal_code_is_nearly_certain() -> None:
    """However probable others are, and several builds of it are one function."""
    names, equal = ["f", "f", "f", "g", "h"], [True, True, False, False, False]
    query, pool = candidates([1.0, 1.0, 0.9, 0.99, 0.99], names, equal)
    for ranking in (RANKING, SURE):
        probabilities = ranking.probabilities(query, BLOCKS, pool)
        assert (probabilities[:2] >= UNIQUE_EQUAL).all()
        assert (probabilities[3:] <= 1 - UNIQUE_EQUAL).all()


def test_equal_functions_of_different_names_share_it() -> None:
    query, pool = candidates([1.0] * 4, ["f", "g", "h", "i"], [True] * 4)
    for ranking in (RANKING, SURE):
        probabilities = ranking.probabilities(query, BLOCKS, pool)
        assert (probabilities >= UNIQUE_EQUAL / 4).all()
        assert probabilities == pytest.approx([probabilities[0]] * 4)
        assert probabilities.sum() <= 1 + 1e-9


def test_small_silent_functions_are_as_probable_as_there_are_likes_of_them() -> None:
    likeness, names = [1.0, 1.0, 0.999, 0.2], ["f", "g", "h", "i"]
    query, pool = candidates(likeness, names, strength=1.0)
    assert is_small(query, 3)
    caps = np.array([1 / 3, 1 / 3, 1 / 3, 1 / 4])
    assert SURE.probabilities(query, 3, pool) == pytest.approx(caps / caps.sum())
    assert not is_small(query, BLOCKS)
    equal = pool._replace(equal=np.array([True, False, False, False]))
    assert SURE.probabilities(query, 3, equal)[0] == pytest.approx(1 / 3)
    query, pool = candidates(likeness, names, [True, False, False, False], strength=100.0)
    assert not is_small(query, 3)
    assert SURE.probabilities(query, 3, pool)[0] >= UNIQUE_EQUAL


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
    query, pool = candidates(likeness, names, equal, strength=strength)
    regressions = {name: replace(of, bias=bias) for name, of in RANKING.regressions.items()}
    ranking = replace(RANKING, regressions=regressions)
    probabilities = ranking.probabilities(query, blocks, pool)
    best = {
        name: max(p for p, other in zip(probabilities, names, strict=True) if other == name)
        for name in names
    }
    assert probabilities.min() >= 0
    assert sum(best.values()) <= 1 + 1e-9


def test_a_pair_by_itself() -> None:
    query, pool = candidates([0.9], [""])
    unlikely = RANKING.pair_probability(query, BLOCKS, pool, 1.0, 0.9)
    assert 0 < unlikely < RANKING.pair_probability(query, BLOCKS, pool, 5.0, 0.9) < 1
    equal = pool._replace(equal=np.array([True]))
    assert RANKING.pair_probability(query, BLOCKS, equal, -9.0, 0.9) >= UNIQUE_EQUAL
