"""Attention between two functions, as small as a page needs it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphkin.errors import ConfigError
from graphkin.library.rerank import Attention
from graphkin.results.document import BlockPair

LEAST = 0.01
"""Weights below it are left out."""
MOST_PER_BLOCK = 12
"""Weights that are kept of each block, the largest."""
SCALE = 1000
"""Weights are written as whole numbers, in thousandths."""


def checked(maps: Attention, left: int, right: int) -> int:
    """How many steps there are, if all maps fit functions of so many blocks."""
    forth, back = maps.left_to_right, maps.right_to_left
    if not forth or len(forth) != len(back):
        raise ConfigError(
            f"attention has {len(forth)} maps forth and {len(back)} back; give one each way "
            "for every step"
        )
    for maps_one_way, shape in ((forth, (left, right)), (back, (right, left))):
        for found in maps_one_way:
            if found.shape != shape:
                raise ConfigError(
                    f"attention is {found.shape}, but the functions have {left} and {right} "
                    f"blocks: expected {shape}"
                )
    return len(forth)


def mutual_pairs(forth: NDArray[np.float32], back: NDArray[np.float32]) -> list[BlockPair]:
    """Blocks that look at each other most, in the order of the left ones.

    The weight of a pair is the smaller of the two: both must look firmly.
    """
    partners = forth.argmax(axis=1)
    rows = np.arange(len(forth))
    is_mutual = back.argmax(axis=1)[partners] == rows
    weights = np.minimum(forth[rows, partners], back[partners, rows])
    return [
        BlockPair(int(row), int(partners[row]), float(weights[row]))
        for row in np.flatnonzero(is_mutual)
    ]


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
                for pair in mutual_pairs(forth, back)
            ],
            "forth": sparse(forth),
            "back": sparse(back),
        }
        for forth, back in zip(maps.left_to_right, maps.right_to_left, strict=True)
    ]
