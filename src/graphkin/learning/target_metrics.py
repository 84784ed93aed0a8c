"""How far predicted values are from their targets, and whether they put candidates in order.

The rules, which differ between papers: the mean squared error is plain, not halved. Spearman's rho
and Kendall's tau are of the values themselves, as scipy has them: tied values share their mean
rank, and tau is tau-b. Precision at k is the share of the k candidates predicted nearest that are
among the k truly nearest, where all that tie with the k-th of these count; ties of predictions are
cut in the order of the candidates.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from graphkin.errors import ConfigError

CUTOFFS = (10, 20)
LEAST_CANDIDATES = 10
"""Pairs that queries have on average where each is ranked by itself; with fewer, all are ranked
together."""


def target_metrics(
    values: ArrayLike, targets: ArrayLike, queries: ArrayLike, *, is_distance: bool = False
) -> dict[str, float]:
    """Errors and rank correlations of predicted values.

    Args:
        values: (P,) what a model predicts.
        targets: (P,) what is true.
        queries: (P,) pairs of one number are candidates of one query.
        is_distance: whether small values are near, and not large ones.

    Returns:
        ``mse`` and ``mae`` over all pairs; ``rho``, ``tau``, ``p_at_10`` and ``p_at_20`` as means
        over queries. Queries of which all targets are equal have no rho and tau, and those with
        fewer than k + 1 candidates no precision at k. Where queries have few candidates, rho and
        tau are of all pairs together.

    Example:
        >>> metrics = target_metrics([0.0, 0.5, 1.5], [0.0, 1.0, 1.0], [0, 0, 0])
        >>> metrics["mae"], round(metrics["rho"], 3)
        (0.3333333333333333, 0.866)
    """
    predicted, true = (np.asarray(array, dtype=np.float64) for array in (values, targets))
    numbers = np.asarray(queries)
    if not predicted.shape == true.shape == numbers.shape or not predicted.size:
        raise ConfigError(
            f"{predicted.shape} values for {true.shape} targets of {numbers.shape} queries; give "
            "one of each for at least one pair"
        )
    errors = predicted - true
    metrics = {"mse": float(np.mean(errors**2)), "mae": float(np.mean(np.abs(errors)))}
    order = np.argsort(numbers, kind="stable")
    cuts = np.flatnonzero(np.diff(numbers[order])) + 1
    groups = np.split(order, cuts)
    if len(order) < LEAST_CANDIDATES * len(groups):
        groups = [np.arange(len(order))]
    near = predicted if is_distance else -predicted
    nearest = true if is_distance else -true
    measured: dict[str, list[float]] = {}
    for group in groups:
        for name, value in _ranking(near[group], nearest[group]).items():
            measured.setdefault(name, []).append(value)
    return metrics | {name: float(np.mean(found)) for name, found in measured.items()}


def _ranking(near: NDArray[np.float64], nearest: NDArray[np.float64]) -> dict[str, float]:
    """Of one query's candidates, the smallest number first."""
    metrics = {}
    if len(np.unique(nearest)) > 1:
        varied = len(np.unique(near)) > 1
        metrics["rho"] = float(stats.spearmanr(near, nearest)[0]) if varied else 0.0
        metrics["tau"] = float(stats.kendalltau(near, nearest)[0]) if varied else 0.0
    for k in CUTOFFS:
        if len(near) > k:
            first = np.argsort(near, kind="stable")[:k]
            limit = np.partition(nearest, k - 1)[k - 1]
            metrics[f"p_at_{k}"] = float(np.mean(nearest[first] <= limit))
    return metrics
