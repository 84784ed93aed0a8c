"""Measures of predicted values, by hand and against scipy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from graphkin.errors import ConfigError
from graphkin.learning.evaluation import evaluate
from graphkin.learning.target_metrics import target_metrics
from graphkin.learning.task import TargetSet
from tests.graph_samples import edit_pairs


def test_errors_are_plain_means() -> None:
    metrics = target_metrics([1.0, 2.0], [0.0, 4.0], [0, 1])
    assert (metrics["mse"], metrics["mae"]) == (2.5, 1.5)


def test_ranks_are_means_over_queries() -> None:
    rng = np.random.default_rng(0)
    true = rng.integers(0, 6, (4, 30)).astype(float)
    guess = true + rng.normal(0, 2, true.shape)
    queries = np.repeat(np.arange(4), 30)
    metrics = target_metrics(guess.ravel(), true.ravel(), queries)
    rho = np.mean([stats.spearmanr(a, b)[0] for a, b in zip(guess, true, strict=True)])
    tau = np.mean([stats.kendalltau(a, b)[0] for a, b in zip(guess, true, strict=True)])
    assert metrics["rho"] == pytest.approx(rho)
    assert metrics["tau"] == pytest.approx(tau)
    # In whichever order pairs are listed, and also as distances.
    order = rng.permutation(120)
    shuffled = target_metrics(guess.ravel()[order], true.ravel()[order], queries[order])
    assert shuffled["rho"] == pytest.approx(rho)
    distances = target_metrics(guess.ravel(), true.ravel(), queries, is_distance=True)
    assert distances["tau"] == pytest.approx(tau)


def test_ties_of_the_truth_are_right_answers() -> None:
    true = np.array([0.0] * 12 + [1.0] * 10)
    guess = np.arange(22.0)
    metrics = target_metrics(guess[::-1], true, np.zeros(22), is_distance=True)
    # The ten predicted nearest are the last ten, all truly far; twelve tie for the ten nearest.
    assert metrics["p_at_10"] == 0.0
    assert target_metrics(guess, true, np.zeros(22), is_distance=True)["p_at_10"] == 1.0
    moved = np.concatenate([guess[2:12], guess[:2], guess[12:]])
    assert target_metrics(moved, true, np.zeros(22), is_distance=True)["p_at_10"] == 1.0
    assert target_metrics(-guess, -true, np.zeros(22))["p_at_10"] == 1.0


def test_few_candidates_are_ranked_together() -> None:
    guess, true = np.array([1.0, 2.0, 3.0, 5.0]), np.array([1.0, 3.0, 2.0, 4.0])
    metrics = target_metrics(guess, true, [0, 1, 2, 3])
    assert metrics["rho"] == pytest.approx(stats.spearmanr(guess, true)[0])
    assert "p_at_10" not in metrics
    # Nothing can be ranked where all is equal.
    assert "rho" not in target_metrics([1.0, 2.0], [1.0, 1.0], [0, 0])
    assert target_metrics([1.0, 1.0], [1.0, 2.0], [0, 0])["rho"] == 0.0


def test_a_set_of_targets_is_evaluated() -> None:
    pairs, values = edit_pairs(40)

    class Exact:
        def predict(self, given: list[object]) -> list[float]:
            return [abs(a.num_nodes - b.num_nodes) for a, b in given]  # type: ignore[misc]

    data = TargetSet(tuple(pairs), np.array(values), np.zeros(40, np.int64), is_distance=True)
    metrics = evaluate(Exact(), data)  # type: ignore[arg-type]
    assert metrics["mse"] == 0
    assert metrics["rho"] == pytest.approx(1)
    assert data.score(metrics) == 0


def test_shapes_must_agree() -> None:
    with pytest.raises(ConfigError, match="give one of each"):
        target_metrics([1.0], [1.0, 2.0], [0])
    with pytest.raises(ConfigError, match="give one of each"):
        target_metrics([], [], [])
