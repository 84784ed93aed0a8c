"""How much of a binary's code lies inside the functions that were found."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

BOUND = 0.85
"""Compiled programs of which less was recovered have functions that nobody found."""
ROUNDING = 1e-9
"""So that 57.3% of the bytes is not 57.2% because of its last bit."""


def coverage_percent(share: float) -> str:
    """A share of the code with one decimal, rounded down: 100% means all of it."""
    return "100%" if share >= 1.0 else f"{math.floor(1000 * share + ROUNDING) / 10:.1f}%"


@dataclass(frozen=True)
class Coverage:
    """Of one file, or of one member of an archive."""

    binary: str
    code_bytes: int
    """Bytes of executable sections, without stubs of the linker and padding."""
    recovered_bytes: int
    """Those of them that lie inside functions."""
    functions: int
    tried: tuple[str, ...] = ()
    """What the functions were looked for by, the most certain first."""
    advice: str = ""
    """What else could be tried."""

    @property
    def share(self) -> float:
        """From 0 to 1; 1 for a file without code."""
        return self.recovered_bytes / self.code_bytes if self.code_bytes else 1.0

    @property
    def is_low(self) -> bool:
        return self.share < BOUND

    def warning(self) -> str:
        """One sentence: how much is missing, what was tried, and what else could be."""
        tried = ", ".join(self.tried) or "nothing"
        advice = f"; {self.advice}" if self.advice else ""
        return (
            f"{self.binary}: only {coverage_percent(self.share)} of {self.code_bytes:,} bytes of "
            f"code lie inside the {self.functions:,} functions found, so others are missing; "
            f"tried: {tried}{advice}"
        )


@dataclass
class CoverageTotal:
    """Of many files."""

    code_bytes: int = 0
    recovered_bytes: int = 0
    low: list[Coverage] = field(default_factory=list)
    """The files of which too little was recovered."""

    @property
    def share(self) -> float:
        """From 0 to 1; 1 where no file has code."""
        return self.recovered_bytes / self.code_bytes if self.code_bytes else 1.0

    def add(self, coverages: Iterable[Coverage]) -> None:
        for coverage in coverages:
            self.code_bytes += coverage.code_bytes
            self.recovered_bytes += coverage.recovered_bytes
            if coverage.is_low:
                self.low.append(coverage)
