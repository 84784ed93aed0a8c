"""Attention between two functions, as small as a page needs it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphkin.errors import ConfigError
from graphkin.results.evidence import Attention, mutual_pairs

LEAST = 0.01
"""Weights below it are left out."""
MOST_PER_BLOCK = 12
"""Weights that are kept of each block, the largest."""
SCALE = 1000
"""Weights are written as whole numbers, in thousandths."""


def checked(maps: Attention, left: int, right: int) -> int:
    """How many steps there are, if all maps fit functions of so many blocks."""
    left_to_right, right_to_left = maps.left_to_right, maps.right_to_left
    if not left_to_right or len(left_to_right) != len(right_to_left):
        raise ConfigError(
            f"attention has {len(left_to_right)} maps from left to right and {len(right_to_left)} "
            "from right to left; give one each way for every step"
        )
    for one_way, shape in ((left_to_right, (left, right)), (right_to_left, (right, left))):
        for weights in one_way:
            if weights.shape != shape:
                raise ConfigError(
                    f"attention is {weights.shape}, but the functions have {left} and {right} "
                    f"blocks: expected {shape}"
                )
    return len(left_to_right)


def sparse(weights: NDArray[np.float32]) -> dict[str, Any]:
    """The largest weights of each row, largest first: counts of the rows, then all in one list."""
    rows, columns = np.nonzero(weights >= LEAST)
    values = weights[rows, columns]
    order = np.lexsort((-values, rows))
    rows, columns, values = rows[order], columns[order], values[order]
    starts = np.searchsorted(rows, np.arange(len(weights)))
    is_kept = np.arange(len(rows)) - starts[rows] < MOST_PER_BLOCK
    return {
        "counts": np.bincount(rows[is_kept], minlength=len(weights)).tolist(),
        "targets": columns[is_kept].tolist(),
        "weights": np.rint(values[is_kept] * SCALE).astype(int).tolist(),
    }


def steps(maps: Attention) -> list[dict[str, Any]]:
    """What a page shows of each step: the pairs, and where every block looks.

    Weights of pairs are rounded down, so that none passes a threshold that it is below.
    """
    return [
        {
            "pairs": [
                [pair.left, pair.right, int(pair.weight * SCALE)]
                for pair in mutual_pairs(left_to_right, right_to_left)
            ],
            "forth": sparse(left_to_right),
            "back": sparse(right_to_left),
        }
        for left_to_right, right_to_left in zip(maps.left_to_right, maps.right_to_left, strict=True)
    ]
