"""From the features of a pair to the probability that two graphs are similar.

Logistic regression on few features: the distance of the codes, the score of the matcher, the size
of the smaller graph (small ones look alike by accident) and how much the sizes differ.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from graphkin.errors import ConfigError, FormatError, ModelError

FORMAT = {"format": "graphkin calibration", "version": 1}
FEATURES = ("distance", "log2_nodes", "log2_ratio", "equal")
"""Of a pair: the distance as a share of the largest, log2 of the nodes of the smaller graph, how
many times larger the other is, as log2, and 1 where the graphs are exactly equal."""
MATCHED_FEATURES = (*FEATURES, "score")
SCORE_KEYS = {"slope", "offset"}

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Logistic:
    """A probability from a weighted sum."""

    weights: tuple[float, ...]
    bias: float

    def __call__(self, features: Floats) -> Floats:
        """(N, F) -> (N,)"""
        exponents = features @ np.array(self.weights) + self.bias
        # Beyond these a probability is 0 or 1 to the last bit, and exp would overflow.
        probabilities: Floats = 1 / (1 + np.exp(-np.clip(exponents, -700, 700)))
        return probabilities

    @classmethod
    def from_dict(cls, values: dict[str, Any], count: int) -> Logistic:
        """Reads weights and bias from JSON; they must be finite, and as many as features.

        Raises:
            FormatError: where they are not.
        """
        logistic = cls(tuple(map(float, values["weights"])), float(values["bias"]))
        if (
            len(logistic.weights) != count
            or not np.isfinite([*logistic.weights, logistic.bias]).all()
        ):
            raise FormatError(f"a calibration needs {count} finite weights, got {values}")
        return logistic

    @classmethod
    def fit(cls, features: Floats, labels: ArrayLike) -> Logistic:
        """The most likely weights, with hardly any pull towards 0."""
        from sklearn.linear_model import LogisticRegression
        from sklearn.preprocessing import StandardScaler

        if len(np.unique(np.asarray(labels))) != 2:
            raise ConfigError("a calibration needs examples of both kinds, similar and dissimilar")
        scaler = StandardScaler().fit(features)
        fitted = LogisticRegression(C=1e3, max_iter=1000).fit(scaler.transform(features), labels)
        weights = fitted.coef_[0] / scaler.scale_
        bias = float(fitted.intercept_[0] - weights @ scaler.mean_)
        return cls(tuple(weights.tolist()), bias)


@dataclass(frozen=True)
class Calibration:
    """Probabilities of an embedder alone, and of one with a matcher.

    They are those of the best hit of a query; of another hit they say what they would be if it
    were the best. They hold for libraries like the one that they were fitted on: among many more
    functions, accidental likeness is more frequent.
    """

    distance: Logistic
    """Over ``FEATURES``."""
    matched: Logistic
    """Over ``MATCHED_FEATURES``."""
    pool: int
    """Graphs in the library that it was fitted on."""
    queries: int
    """Functions that were looked for there."""
    data: str
    """SHA-256 of the corpus."""

    def by_distance(self, features: Floats) -> Floats:
        """(N, 4) features -> (N,) probabilities."""
        return self.distance(features)

    def by_score(self, features: Floats, scores: ArrayLike) -> Floats:
        """(N, 4) features and (N,) scores of the matcher -> (N,) probabilities."""
        return self.matched(np.column_stack([features, np.asarray(scores, dtype=np.float64)]))

    def to_json(self) -> str:
        return json.dumps({**FORMAT, **asdict(self)}, indent=2)

    @classmethod
    def from_json(cls, text: str | bytes) -> Calibration:
        """Reads what :meth:`to_json` wrote."""
        try:
            values = json.loads(text)
            kind = {name: values.pop(name, None) for name in FORMAT}
            if kind != FORMAT:
                raise FormatError(f"this is not a calibration that this graphkin reads: {kind}")
            distance = Logistic.from_dict(values.pop("distance"), len(FEATURES))
            matched = Logistic.from_dict(values.pop("matched"), len(MATCHED_FEATURES))
            return cls(distance, matched, **values)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            if isinstance(error, FormatError):
                raise
            raise FormatError(f"a calibration is damaged: {error}") from error


def check_score_calibration(calibration: Logistic) -> None:
    """Refuses a calibration of other features than the score, or that falls where the score rises.

    Such a calibration of a model holds where similar and dissimilar pairs are equally many. Among
    the many candidates of a search they are not: there :class:`Calibration` counts.
    """
    numbers = (*calibration.weights, calibration.bias) if isinstance(calibration, Logistic) else ()
    if len(numbers) != 2 or not np.isfinite(numbers).all() or numbers[0] <= 0:
        raise ModelError(
            "a calibration of scores is a Logistic of one finite weight above 0 and a finite "
            f"bias, got {calibration!r}"
        )


def score_calibration_to_json(calibration: Logistic) -> dict[str, float]:
    """A calibration of the score alone, ready for JSON."""
    (slope,) = calibration.weights
    return {"slope": slope, "offset": calibration.bias}


def score_calibration_from_json(values: Any) -> Logistic:
    """Reads what :func:`score_calibration_to_json` made."""
    known = isinstance(values, dict) and set(values) == SCORE_KEYS
    if not known or not all(type(value) in (int, float) for value in values.values()):
        raise FormatError(f"a calibration holds the numbers slope and offset, got {values!r:.80}")
    try:
        calibration = Logistic((float(values["slope"]),), float(values["offset"]))
        check_score_calibration(calibration)
    except (OverflowError, ModelError) as error:
        raise FormatError(f"a calibration is damaged: {error}") from error
    return calibration


def pair_features(
    distances: ArrayLike, largest: float, left: int, right: Sequence[int], equal: Sequence[bool]
) -> Floats:
    """(N, 4) ``FEATURES`` of one graph with N others.

    Args:
        distances: (N,)
        largest: what a distance is a share of: the bits of a code, for example.
        left: nodes of the one graph.
        right: nodes of each of the others.
        equal: whether each of the others is exactly equal to it.
    """
    shares = np.asarray(distances, dtype=np.float64) / largest
    ours, theirs = np.log2(left), np.log2(np.asarray(right, dtype=np.float64))
    smaller, ratios = np.minimum(ours, theirs), np.abs(ours - theirs)
    return np.column_stack([shares, smaller, ratios, np.asarray(equal, dtype=np.float64)])
