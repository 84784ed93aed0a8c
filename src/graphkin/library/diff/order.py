"""What the order of functions tells of a pair: two builds of a source rarely change it."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from graphkin.library.diff.pairs import Pairs
from graphkin.library.pairing import ORDER_NAMES, Floats

SURE = 0.8
"""Pairs that are as probable stand between which others are looked for."""
ORDERED = 0.8
"""Share of them that must be in one order, or the order says nothing: somebody linked the files in
another one."""


def order_features(pairs: Pairs, probabilities: Floats) -> dict[str, Floats]:
    """Whether both functions of a pair lie between the same two sure pairs, and as far from them.

    Args:
        pairs: P of them.
        probabilities: (P,) of each, as far as they are known.
    """
    rows, columns, is_ordered = _anchors(pairs, probabilities)
    if not is_ordered:
        ones, zeros = np.ones(len(pairs)), np.zeros(len(pairs))
        return dict(zip(ORDER_NAMES, (ones, zeros, zeros, zeros, zeros), strict=True))
    rows = np.concatenate([[-1], rows, [len(pairs.left)]])
    columns = np.concatenate([[-1], columns, [len(pairs.right)]])
    # A pair that is sure itself lies between the ones before and behind it.
    before = np.searchsorted(rows, pairs.rows, "left") - 1
    behind = np.searchsorted(rows, pairs.rows, "right")
    first, last = columns[before], columns[behind]
    is_inside = (first < pairs.columns) & (pairs.columns < last)
    from_first = np.abs((pairs.rows - rows[before]) - (pairs.columns - first))
    from_last = np.abs((rows[behind] - pairs.rows) - (last - pairs.columns))
    outside = np.maximum(first - pairs.columns, pairs.columns - last) + 1
    widths = np.maximum(rows[behind] - rows[before], last - first)
    return {
        "order_inside": is_inside.astype(np.float64),
        "order_apart": np.log2(1.0 + np.where(is_inside, np.minimum(from_first, from_last), 0)),
        "order_outside": np.log2(1.0 + np.where(is_inside, 0, outside)),
        "order_exact": (is_inside & (from_first == 0) & (from_last == 0)).astype(np.float64),
        "order_tight": is_inside / np.log2(1.0 + np.maximum(widths, 1)),
    }


def _anchors(
    pairs: Pairs, probabilities: Floats
) -> tuple[NDArray[np.int64], NDArray[np.int64], bool]:
    """Rows and columns of sure pairs, both rising, and whether most sure pairs are among them."""
    sure = np.flatnonzero(probabilities >= SURE)
    sure = sure[np.lexsort((-probabilities[sure], pairs.rows[sure]))]
    sure = sure[np.diff(pairs.rows[sure], prepend=-1) != 0]
    kept = sure[longest_rising(pairs.columns[sure].tolist())]
    return pairs.rows[kept], pairs.columns[kept], len(kept) >= ORDERED * len(sure)


def longest_rising(values: Sequence[int]) -> list[int]:
    """Places of the longest part of a sequence whose values rise."""
    ends: list[int] = []
    places: list[int] = []
    previous = [-1] * len(values)
    for place, value in enumerate(values):
        length = bisect_left(ends, value)
        if length == len(ends):
            ends.append(value)
            places.append(place)
        else:
            ends[length], places[length] = value, place
        previous[place] = places[length - 1] if length else -1
    rising = []
    place = places[-1] if places else -1
    while place >= 0:
        rising.append(place)
        place = previous[place]
    return rising[::-1]
