"""The cases of jump tables in functions whose ends are not known yet."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphkin.binaries.image import Image
from graphkin.binaries.recovery.architecture import Architecture
from graphkin.binaries.recovery.listing import Listing
from graphkin.binaries.starts.sweep import CodeFacts

DECODED_AHEAD = 4096
"""Bytes decoded behind an indirect jump, for the next one of the same function."""
MAX_FAILURES = 8
"""Indirect jumps without a table in one function, after which it is taken to have none."""


class SwitchTables:
    """Reads jump tables; keeps what it decoded of the last function."""

    def __init__(self, image: Image, facts: CodeFacts, starts: NDArray[np.int64]) -> None:
        self._image = image
        self._facts = facts
        self._starts = starts
        self._function = -1
        self._failures = 0
        self._listing: _Window | None = None
        self._targets: dict[tuple[int, int], list[int]] = {}

    def targets(self, start: int, jump: int, limit: int) -> list[int]:
        """Where an indirect jump leads to; none for a call, or where that is not known.

        Args:
            start: of the function.
            jump: address of the jump.
            limit: where the next function starts, at the latest.
        """
        key = (start, jump)
        if key not in self._targets:
            self._targets[key] = self._read_targets(start, jump, limit)
        return self._targets[key]

    def _read_targets(self, start: int, jump: int, limit: int) -> list[int]:
        if start != self._function:
            self._function, self._failures = start, 0
            self._forget()
        if self._failures > MAX_FAILURES:
            return []
        listing = self._listing
        if listing is None or listing.end <= jump:
            self._forget()
            end = min(limit, jump + max(DECODED_AHEAD, jump - start))
            listing = _Window(self._image, self._facts.architecture, self._starts, limit)
            self._listing = listing
            listing.add_range(start, end)
            listing.end = end
            self._read = self._facts.architecture.tables(self._image)
        position = listing.decoded(jump)
        if position is None:
            return []
        targets = self._read(listing, position, False)
        if targets is None:
            targets = self._read(listing, position, True)
        self._failures = 0 if targets else self._failures + 1
        return targets or []

    def _forget(self) -> None:
        self._listing = None


class _Window(Listing):
    """A function whose end is not known: decoded up to some address, and beyond it whatever the
    sweep has as an instruction may be a part of it."""

    def __init__(
        self,
        image: Image,
        architecture: Architecture,
        starts: NDArray[np.int64],
        limit: int,
    ) -> None:
        super().__init__(image, architecture)
        self._sweep_starts = starts
        self._limit = limit
        self.end = 0

    def covers(self, address: int) -> bool:
        return bool(self.ranges) and self.ranges[0][0] <= address < self._limit

    def decoded(self, address: int) -> int | None:
        """The position of an instruction."""
        return super().position(address)

    def position(self, address: int) -> int | None:
        position = super().position(address)
        if position is not None or not self.covers(address):
            return position
        row = int(np.searchsorted(self._sweep_starts, address))
        is_start = row < len(self._sweep_starts) and self._sweep_starts[row] == address
        return 0 if is_start else None
