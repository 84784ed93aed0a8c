"""Probabilities: the fit, the features they come from, and the file they are kept in."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphkin.errors import ConfigError, FormatError
from graphkin.models.calibration import Calibration, Logistic, pair_features

CALIBRATION = Calibration(
    Logistic((-8.0, 0.5, -1.0, 3.0), 2.0),
    Logistic((-4.0, 0.5, -1.0, 3.0, 6.0), 1.0),
    pool=1000,
    queries=100,
    data="ab" * 32,
)


def test_a_fit_finds_the_weights_that_made_the_labels():
    rng = np.random.default_rng(0)
    features = rng.normal([3.0, -2.0, 10.0], [1.0, 4.0, 0.1], size=(20_000, 3))
    truth = Logistic((1.5, -0.5, 8.0), -80.0)
    labels = rng.random(20_000) < truth(features)
    line = Logistic.fit(features, labels)
    assert line.weights == pytest.approx(truth.weights, rel=0.1)
    probabilities = line(features)
    for low in np.arange(0, 1, 0.2):
        chosen = (probabilities >= low) & (probabilities < low + 0.2)
        assert labels[chosen].mean() == pytest.approx(probabilities[chosen].mean(), abs=0.06)


def test_a_fit_needs_both_kinds():
    with pytest.raises(ConfigError, match="both kinds"):
        Logistic.fit(np.zeros((4, 3)), [True] * 4)


@given(st.floats(-1e308, 1e308))
def test_probabilities_stay_in_bounds(value):
    (probability,) = Logistic((1.0,), 0.0)(np.array([[value]]))
    assert 0 <= probability <= 1


def test_features_by_hand():
    actual = pair_features([0, 64], 128, 8, [32, 8], [True, False])
    assert actual.tolist() == [[0.0, 3.0, 2.0, 1.0], [0.5, 3.0, 0.0, 0.0]]


def test_nearer_larger_and_more_alike_is_more_probable():
    other = [False, False]
    near, far = CALIBRATION.by_distance(pair_features([2, 40], 128, 32, [32, 32], other))
    assert near > far
    large, small = (
        CALIBRATION.by_distance(pair_features([20], 128, n, [n], [False]))[0] for n in (64, 5)
    )
    assert large > small
    high, low = CALIBRATION.by_score(pair_features([9, 9], 128, 9, [9, 9], other), [0.9, 0.1])
    assert high > low
    equal, same = CALIBRATION.by_distance(pair_features([0, 0], 128, 9, [9, 9], [True, False]))
    assert equal > same


def test_a_calibration_comes_back_from_its_file():
    assert Calibration.from_json(CALIBRATION.to_json()) == CALIBRATION


@pytest.mark.parametrize(
    "change",
    [
        {"format": "another"},
        {"version": 2},
        {"distance": {"weights": [1, 2], "bias": 0}},
        {"matched": {"weights": [1, 2, 3, 4, "x"], "bias": 0}},
        {"distance": {"weights": [1, 2, 3, float("nan")], "bias": 0}},
        {"distance": None},
        {"more": 1},
    ],
)
def test_a_damaged_file_is_refused(change):
    with pytest.raises(FormatError):
        Calibration.from_json(json.dumps(json.loads(CALIBRATION.to_json()) | change))
    with pytest.raises(FormatError):
        Calibration.from_json("[")
