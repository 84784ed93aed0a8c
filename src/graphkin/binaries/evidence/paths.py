"""What registers hold, along the forward branches of a function."""

from __future__ import annotations

import sys
from collections.abc import Sequence


class Value:
    """What a register holds: a constant, or an address."""

    __slots__ = ("is_address", "is_noted", "position", "value")

    def __init__(self, value: int, position: int, is_address: bool, is_noted: bool) -> None:
        self.value = value
        self.position = position
        """Where it was made."""
        self.is_address = is_address
        self.is_noted = is_noted
        """Whether the function says it; not so for what only serves to make another."""


class Paths:
    """Takes what registers hold along forward branches.

    Args:
        branches: positions of branches, rising, where they go, and whether they may run on.
        known: what registers hold, which is changed in place.
    """

    def __init__(self, branches: Sequence[tuple[int, int, bool]], known: dict[str, Value]) -> None:
        self._known = known
        self._saved: dict[int, dict[str, Value]] = {}
        self._ends = {at: (target, runs_on) for at, target, runs_on in branches}
        events = {at + 1 for at in self._ends} | {target for _, target, _ in branches}
        self._events = sorted(events, reverse=True)
        self._is_reached = True

    def pass_by(self, position: int) -> int:
        """Brings what registers hold up to a position; gives the next one where that changes."""
        known, events = self._known, self._events
        while events and events[-1] <= position:
            at = events.pop()
            end = self._ends.get(at - 1)
            if end is not None:
                target, self._is_reached = end
                if target >= at:
                    self._saved[target] = {**known, **self._saved.get(target, {})}
            saved = self._saved.pop(at, None)
            if saved is not None:
                if not self._is_reached:
                    known.update(saved)
                    self._is_reached = True
                else:
                    for register, value in saved.items():
                        known.setdefault(register, value)
        return events[-1] if events else sys.maxsize
