"""Which of several candidates is the right one, if any: odds of each against none of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphkin.errors import FormatError

Floats = NDArray[np.float64]
LARGEST = 40.0
"""Logarithm of odds, beyond which a probability is 1 for all purposes."""


@dataclass(frozen=True)
class Odds:
    """z(x) = w.x + b + v.tanh(A x + c): the logarithm of the odds that a candidate is the right one
    against that none is.

    The hidden layer is small, or empty. What it adds to a plain regression is what a feature means
    beside others: how alike two builds of a function are depends on how they were made.
    """

    weights: tuple[float, ...]
    """(F,) w"""
    bias: float
    hidden: tuple[tuple[float, ...], ...] = ()
    """(H, F) A"""
    hidden_bias: tuple[float, ...] = ()
    """(H,) c"""
    output: tuple[float, ...] = ()
    """(H,) v"""

    def __call__(self, features: Floats) -> Floats:
        """(N, F) -> (N,)"""
        total: Floats = features @ np.array(self.weights) + self.bias
        if self.hidden:
            hidden = np.tanh(features @ np.array(self.hidden).T + np.array(self.hidden_bias))
            total = total + hidden @ np.array(self.output)
        return np.clip(total, -LARGEST, LARGEST)

    @classmethod
    def from_json(cls, values: dict[str, Any], count: int) -> Odds:
        """Reads the fields of a document; of so many features."""
        odds = cls(
            _numbers(values["weights"]),
            float(values["bias"]),
            tuple(map(_numbers, values["hidden"])),
            _numbers(values["hidden_bias"]),
            _numbers(values["output"]),
        )
        rows = odds.weights, *odds.hidden
        numbers = [odds.bias, *odds.hidden_bias, *odds.output, *(x for row in rows for x in row)]
        widths = {len(odds.hidden), len(odds.hidden_bias), len(odds.output)}
        if {len(row) for row in rows} != {count} or len(widths) != 1:
            raise FormatError(f"a ranking needs weights of {count} features, got {values}")
        if not np.isfinite(numbers).all():
            raise FormatError(f"a ranking needs finite weights, got {values}")
        return odds


def _numbers(values: Sequence[Any]) -> tuple[float, ...]:
    return tuple(map(float, values))


def best_of_each(values: Floats, identities: Sequence[str]) -> dict[str, float]:
    """The best value of each function."""
    best: dict[str, float] = {}
    for identity, value in zip(identities, values.tolist(), strict=True):
        best[identity] = max(value, best.get(identity, -np.inf))
    return best


def probabilities_of(odds: Floats, identities: Sequence[str]) -> Floats:
    """(N,) logarithms of odds -> (N,) probabilities, which over different functions and none of
    them add up to 1; builds of one function do not compete."""
    against = 1 + sum(np.exp(list(best_of_each(odds, identities).values())))
    probabilities: Floats = np.exp(odds) / against
    return probabilities
