"""Lines of a source that functions of the same program pass to each other.

What an assertion or a log says beside a line tells that it is one. A function that passes its line
to another function of the program says nothing else. But who adds lines to a source shifts all
that stand behind them, by as much: so a number is a line if it shifts as other functions' do.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from graphkin.binaries.function import Block, Function, Token
from graphkin.binaries.operations import OPERATION
from graphkin.library.line_numbers import FIRST_LINE, is_shift

CALLS = frozenset({OPERATION["call"], OPERATION["call_indirect"]})


class Shift(NamedTuple):
    """A number that two versions of a function have in the same place."""

    before: int
    after: int

    @property
    def lines(self) -> int:
        """By how many it grew."""
        return self.after - self.before


def shifts_of(left: Function, right: Function) -> frozenset[Shift]:
    """The numbers that tell two functions apart, where all of them may be lines, and nothing else
    does; offsets of fields do not count. Else none.

    Args:
        left: a function.
        right: another one, with as many blocks.
    """
    shifts: set[Shift] = set()
    for ours, theirs in zip(left.blocks, right.blocks, strict=True):
        own, other = _said(ours), _said(theirs)
        old, new = list((own - other).elements()), list((other - own).elements())
        if not old and not new:
            continue
        if len(old) != 1 or len(new) != 1 or not CALLS & set(ours.operations or b""):
            return frozenset()
        if old[0].kind != "num" or new[0].kind != "num":
            return frozenset()
        shift = Shift(int(old[0].text), int(new[0].text))
        if min(shift) < FIRST_LINE or not is_shift(*shift):
            return frozenset()
        shifts.add(shift)
    return frozenset(shifts)


def _said(block: Block) -> Counter[Token]:
    return Counter(token for token in block.evidence or () if token.kind != "off")


def functions_that_shift(shifts: Mapping[int, Collection[Shift]]) -> set[int]:
    """The functions all of whose shifts others confirm.

    A shift is confirmed by an equal one in another function, or by the nearest before it and the
    nearest behind it in others, if it lies between theirs.

    Args:
        shifts: of each function, by number.
    """
    points = sorted(
        (shift.before, shift.lines, row) for row, own in shifts.items() for shift in own
    )
    by_lines: dict[int, set[int]] = {}
    for _, lines, row in points:
        by_lines.setdefault(lines, set()).add(row)
    starts = [before for before, _, _ in points]
    confirmed = set()
    for row, own in shifts.items():
        for shift in own:
            if by_lines[shift.lines] - {row}:
                continue
            earlier = _nearest(reversed(points[: bisect_right(starts, shift.before)]), row)
            later = _nearest(points[bisect_left(starts, shift.before) :], row)
            if earlier is None or later is None:
                break
            if not min(earlier, later) <= shift.lines <= max(earlier, later):
                break
        else:
            if own:
                confirmed.add(row)
    return confirmed


def _nearest(points: Iterable[tuple[int, int, int]], row: int) -> int | None:
    """The lines of the first point of another function."""
    return next((lines for _, lines, own in points if own != row), None)
