"""What unpacking may cost: bombs are small files that hold more than any disk does."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Budget:
    """Bounds for one container, together with all containers inside it."""

    total_bytes: int = 16 << 30
    """Unpacked; a layer inside another counts as well."""
    member_bytes: int = 2 << 30
    """Of one member; a larger one is skipped."""
    members: int = 200_000
    """That are looked at."""
    depth: int = 8
    """Layers, one inside the other. A ``.tar.gz`` has two, a Debian package three."""
    ratio: int = 200
    """Unpacked bytes for each byte of the file."""
    free_bytes: int = 1 << 30
    """Unpacked bytes from which on the ratio counts: small files may be all zeros."""


class OverBudget(Exception):
    """A bound is reached; the message is the reason, in words for a person."""


class Meter:
    """Counts what one container has cost so far."""

    def __init__(self, budget: Budget, file_bytes: int) -> None:
        self.budget = budget
        self._file_bytes = file_bytes
        self._bytes = 0
        self._members = 0

    def spend(self, size: int) -> None:
        """Counts unpacked bytes.

        Raises:
            OverBudget: where these are too many.
        """
        self._bytes += size
        budget = self.budget
        if self._bytes > budget.total_bytes:
            raise OverBudget(
                f"more than {budget.total_bytes:,} bytes unpacked; the rest is skipped"
            )
        if self._bytes > max(budget.free_bytes, budget.ratio * self._file_bytes):
            raise OverBudget(
                f"more than {budget.ratio} bytes unpacked for each byte of the file, which looks "
                "like a bomb; the rest is skipped"
            )

    def member(self) -> None:
        """Counts a member.

        Raises:
            OverBudget: where there are too many.
        """
        self._members += 1
        if self._members > self.budget.members:
            raise OverBudget(f"more than {self.budget.members:,} members; the rest is skipped")
