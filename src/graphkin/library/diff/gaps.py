"""Functions that are left over between pairs: what lies in the same place is likely the same.

Where levels differ, a function may be so unlike its other build that nothing of it tells. But
between the same two neighbours there is often one such function in either file, and then these are
a pair.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np
from scipy.optimize import linear_sum_assignment

from graphkin.binaries.function import is_unnamed
from graphkin.library.diff.pairs import Paired, contradicted
from graphkin.library.diff.side import Side
from graphkin.library.signals import OWN, cosines

LARGEST = 2
"""Functions of a gap, as many in either file: of the pairs in gaps of three little more than half
were right, and fewer in those of different sizes."""
SURE = 0.5
"""Probability of the pairs on either side of a gap, at least."""
DOUBTFUL = 0.1
"""Pairs that are less probable are none; their functions are left over."""
PROBABILITY = 0.85
"""Of a pair in a gap: of 73 in five directions between builds of 16 projects, 63 were right."""


def with_gaps(
    left: Side, right: Side, paired: Sequence[Paired], *, by_name: bool = True
) -> list[Paired]:
    """The pairs, and those of functions in gaps between them, in the order of the left side.

    Args:
        left: the old binary.
        right: the new one.
        paired: what is paired already.
        by_name: functions of two different names are no pair; else names do not count.
    """
    certain = [item for item in paired if item.probability >= DOUBTFUL]
    added = [
        Paired(row, column, PROBABILITY, 0.0)
        for rows, columns in _gaps(left, right, certain)
        for row, column in _most_alike(left, right, rows, columns)
        if not (by_name and _have_other_names(left, right, row, column))
    ]
    rows, columns = {item.row for item in added}, {item.column for item in added}
    kept = [item for item in paired if item.row not in rows and item.column not in columns]
    return sorted(kept + added)


def _gaps(left: Side, right: Side, paired: Sequence[Paired]) -> Iterator[tuple[range, range]]:
    """Stretches of as many functions in either file, between two pairs, of which none is paired."""
    taken = {item.column for item in paired}
    for before, behind in pairwise(sorted(paired)):
        rows = range(before.row + 1, behind.row)
        columns = range(before.column + 1, behind.column)
        if (
            0 < len(rows) == len(columns) <= LARGEST
            and min(before.probability, behind.probability) >= SURE
            and taken.isdisjoint(columns)
            and _in_one_file(left, before.row, behind.row)
            and _in_one_file(right, before.column, behind.column)
        ):
            yield rows, columns


def _in_one_file(side: Side, first: int, last: int) -> bool:
    """Whether two functions are of the same member of an archive."""
    return side.functions[first].binary == side.functions[last].binary


def _most_alike(left: Side, right: Side, rows: range, columns: range) -> Iterator[tuple[int, int]]:
    """Each function of a gap with one of the other side, where nothing speaks against it."""
    ours = left.signals[rows.start : rows.stop]
    theirs = right.signals[columns.start : columns.stop]
    graph, words = (np.stack([cosines(own, theirs, name) for own in ours]) for name in OWN[:2])
    strengths = np.log1p(np.minimum(ours["strength"][:, None], theirs["strength"]))
    are_others = contradicted(strengths, words, graph)
    for own, other in zip(*linear_sum_assignment(-graph - words), strict=True):
        if not are_others[own, other]:
            yield rows[own], columns[other]


def _have_other_names(left: Side, right: Side, row: int, column: int) -> bool:
    """Whether two functions have names that differ."""
    names = left.functions[row].name, right.functions[column].name
    return names[0] != names[1] and not any(map(is_unnamed, names))
