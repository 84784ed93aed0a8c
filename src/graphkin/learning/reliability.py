"""Whether probabilities hold: of the pairs that are called 70% probable, are 70% similar?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from graphkin.errors import ConfigError, ModelError
from graphkin.learning.task import EvaluationSet

if TYPE_CHECKING:
    from graphkin.models.calibration import Logistic
    from graphkin.models.model import GraphModel


@dataclass(frozen=True)
class Bin:
    """Pairs whose probabilities are about the same."""

    low: float
    high: float
    """The probabilities lie in [low, high); in the last bin 1 is included."""
    mean_probability: float
    share_similar: float
    """How many of the pairs are similar, from 0 to 1."""
    count: int
    """Pairs in the bin, at least 1."""


@dataclass(frozen=True)
class Reliability:
    """Probabilities beside what came true."""

    bins: tuple[Bin, ...]
    """Those that hold pairs, the lowest first."""

    @property
    def expected_calibration_error(self) -> float:
        """sum_b n_b / n |share similar in b - mean probability in b|: how far off on average."""
        gaps = [abs(b.share_similar - b.mean_probability) for b in self.bins]
        return float(np.average(gaps, weights=[b.count for b in self.bins]))


def fit_calibration(
    model: GraphModel,
    evaluation_set: EvaluationSet,
    *,
    progress: Callable[[int, int], None] | None = None,
) -> Logistic:
    """The calibration of a model's score by logistic regression (Platt scaling).

    It is for pairs of which half are similar, whatever their share in the set: the offset is
    lowered by the logarithm of the odds there.

    Args:
        model: the model; it is not changed.
        evaluation_set: the pairs, similar and dissimilar ones; take the validation split.
        progress: called as ``progress(done, total)`` while the model scores.

    Returns:
        What the model takes as its ``calibration``.
    """
    from graphkin.models.calibration import Logistic

    if not evaluation_set.pairs:
        raise ConfigError("the evaluation set has no pairs, and a calibration is fitted on pairs")
    # Probabilities are of scores, where a model of target values predicts something else.
    scores = model.similarities(evaluation_set.pairs, progress=progress).astype(np.float64)
    if not np.isfinite(scores).all():
        raise ModelError(
            f"{np.sum(~np.isfinite(scores))} of {len(scores)} scores are not finite; the model's "
            "weights or inputs are broken"
        )
    similar = evaluation_set.labels > 0
    line = Logistic.fit(scores[:, None], similar)
    (slope,) = line.weights
    if slope <= 0:
        raise ModelError(
            f"similar pairs do not score higher than dissimilar ones (slope {slope:.3g}), so a "
            "score says nothing of them; train the model, or choose the task that it was trained on"
        )
    return Logistic(line.weights, line.bias - float(np.log(similar.sum() / (~similar).sum())))


def reliability(probabilities: ArrayLike, labels: ArrayLike, bins: int = 10) -> Reliability:
    """Sorts pairs into bins of equal width by their probability, and counts the similar ones.

    Args:
        probabilities: (P,) from 0 to 1.
        labels: (P,) +1 similar, -1 dissimilar.
        bins: number of bins, at least 1.
    """
    values, signs = np.asarray(probabilities, dtype=np.float64), np.asarray(labels)
    if isinstance(bins, bool) or not isinstance(bins, int) or bins < 1:
        raise ConfigError(f"bins must be a whole number, at least 1, got {bins!r}")
    if values.ndim != 1 or values.shape != signs.shape or not len(values):
        raise ConfigError(
            f"{signs.shape} labels for {values.shape} probabilities; give one for each, "
            "and at least one"
        )
    wrong = values[~((values >= 0) & (values <= 1))]
    if len(wrong):
        raise ConfigError(f"probabilities lie in 0..1, got {wrong[0]}")
    if not np.isin(signs, (-1, 1)).all():
        raise ConfigError(f"labels must be +1 or -1, got {np.unique(signs).tolist()}")
    edges = np.linspace(0, 1, bins + 1)
    bin_numbers = np.searchsorted(edges[1:-1], values, side="right")
    filled = []
    for number in np.unique(bin_numbers).tolist():
        chosen = bin_numbers == number
        mean, share = values[chosen].mean(), (signs[chosen] > 0).mean()
        low, high = edges[number : number + 2].tolist()
        filled.append(Bin(low, high, float(mean), float(share), int(chosen.sum())))
    return Reliability(tuple(filled))
