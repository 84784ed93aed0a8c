"""Calibration curves: values worked out by hand, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from graphkin.errors import ConfigError, ModelError
from graphkin.graphs import Graph
from graphkin.learning.reliability import fit_calibration, reliability
from graphkin.learning.task import EvaluationSet
from graphkin.models import ModelConfig, build_model
from graphkin.models.model import GraphModel

CHAIN, RING = Graph(3, [(0, 1), (1, 2)]), Graph(3, [(0, 1), (1, 2), (2, 0)])
ALIKE, UNLIKE = (CHAIN, CHAIN), (CHAIN, RING)


def small_model() -> GraphModel:
    return build_model(ModelConfig.named("gnn", node_dim=4, message_dim=6, graph_dim=8))


def pairs_of(alike: tuple[int, int], unlike: tuple[int, int]) -> EvaluationSet:
    """So many similar and dissimilar pairs of equal graphs, and of different ones."""
    pairs = [ALIKE] * sum(alike) + [UNLIKE] * sum(unlike)
    labels = [1] * alike[0] + [-1] * alike[1] + [1] * unlike[0] + [-1] * unlike[1]
    return EvaluationSet(tuple(pairs), np.array(labels, dtype=np.float32), ())


def test_a_curve_by_hand() -> None:
    probabilities = [0.0, 0.1, 0.2, 0.25, 0.6, 0.74, 0.75, 1.0]
    curve = reliability(probabilities, [-1, -1, 1, -1, 1, 1, 1, -1], bins=4)
    assert [(b.low, b.high, b.count) for b in curve.bins] == [
        (0.0, 0.25, 3), (0.25, 0.5, 1), (0.5, 0.75, 2), (0.75, 1.0, 2),
    ]  # fmt: skip
    assert [b.mean_probability for b in curve.bins] == pytest.approx([0.1, 0.25, 0.67, 0.875])
    assert [b.share_similar for b in curve.bins] == pytest.approx([1 / 3, 0, 1, 0.5])
    # 3/8 (1/3 - 0.1) + 1/8 0.25 + 2/8 0.33 + 2/8 0.375
    assert curve.expected_calibration_error == pytest.approx(0.295)


def test_bins_without_pairs_are_left_out() -> None:
    curve = reliability([0.05, 0.95, 0.95], [-1, 1, 1])
    assert [(round(b.low, 9), b.count) for b in curve.bins] == [(0.0, 1), (0.9, 2)]
    assert curve.expected_calibration_error == pytest.approx(0.05)


def test_right_probabilities_have_a_small_error_and_wrong_ones_a_large_one() -> None:
    rng = np.random.default_rng(0)
    probabilities = rng.random(20_000)
    labels = np.where(rng.random(20_000) < probabilities, 1, -1)
    assert reliability(probabilities, labels).expected_calibration_error < 0.02
    # Too sure of itself: the odds squared.
    sure = probabilities**2 / (probabilities**2 + (1 - probabilities) ** 2)
    assert reliability(sure, labels).expected_calibration_error > 0.08


@pytest.mark.parametrize(
    ("chances", "labels", "bins", "message"),
    [
        ([0.5, 1.5], [1, -1], 10, "1.5"),
        ([0.5, float("nan")], [1, -1], 10, "nan"),
        ([0.5], [1, -1], 10, "one for each"),
        ([], [], 10, "at least one"),
        ([0.5, 0.5], [1, 0], 10, r"\+1 or -1"),
        ([0.5], [1], 0, "bins"),
        ([0.5], [1], 2.5, "bins"),
    ],
)
def test_what_is_refused(chances: list[float], labels: list[int], bins: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        reliability(chances, labels, bins)


def test_a_fit_by_hand() -> None:
    # With two scores the likeliest line goes through the share of similar pairs at each.
    model = small_model()
    model.calibration = fit_calibration(model, pairs_of((6, 2), (2, 6)))
    probabilities = model.predict([ALIKE, UNLIKE], probability=True)
    assert probabilities == pytest.approx([0.75, 0.25], abs=1e-3)


@pytest.mark.parametrize("link", ["distance", "root", "exp"])
def test_a_model_of_target_values_is_calibrated_by_its_scores(link: Any) -> None:
    # The smaller a distance that it predicts, the more alike a pair is.
    model = build_model(replace(small_model().config, link=link))
    model.load_state_dict(small_model().state_dict(), strict=False)
    calibration = fit_calibration(model, pairs_of((6, 2), (2, 6)))
    assert calibration == fit_calibration(small_model(), pairs_of((6, 2), (2, 6)))


def test_a_fit_is_for_even_odds() -> None:
    # With 6 similar pairs weighing as much as 10 dissimilar ones:
    # (3/6) / (3/6 + 1/10) = 5/6, and (3/6) / (3/6 + 9/10) = 5/14.
    model = small_model()
    model.calibration = fit_calibration(model, pairs_of((3, 1), (3, 9)))
    probabilities = model.predict([ALIKE, UNLIKE], probability=True)
    assert probabilities == pytest.approx([5 / 6, 5 / 14], abs=2e-3)


def test_a_fit_that_is_refused() -> None:
    model = small_model()
    with pytest.raises(ModelError, match="do not score higher"):
        fit_calibration(model, pairs_of((2, 6), (6, 2)))
    with pytest.raises(ConfigError, match="both kinds"):
        fit_calibration(model, pairs_of((2, 0), (2, 0)))
    with pytest.raises(ConfigError, match="no pairs"):
        fit_calibration(model, pairs_of((0, 0), (0, 0)))
    for parameter in model.parameters():
        parameter.data.fill_(float("nan"))
    with pytest.raises(ModelError, match="16 of 16 scores are not finite"):
        fit_calibration(model, pairs_of((6, 2), (2, 6)))
    assert model.calibration is None
