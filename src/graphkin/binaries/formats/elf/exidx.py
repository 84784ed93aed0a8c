"""Functions that ARM's table for unwinding knows.

The linker folds neighbours that unwind alike, so that it does not know all, and nothing in it says
whether a function is ARM or Thumb. Functions with a description of their own, as those that
exceptions can reach have, are not folded, and an entry for what follows tells their end.
"""

from __future__ import annotations

import numpy as np

from graphkin.binaries.image import UnwindRange

CANNOT_UNWIND = 1
INLINE = 0x80000000
"""Marks a description that is in the index itself, and may be that of several functions."""


def index_starts(data: bytes, address: int) -> list[int]:
    """Function starts in a section ``.ARM.exidx`` that lies at ``address``."""
    words = np.frombuffer(data[: len(data) & ~7], dtype="<u4")[::2].astype(np.int64)
    addresses = address + 8 * np.arange(len(words))
    distances = ((words & 0x7FFFFFFF) ^ 0x40000000) - 0x40000000
    starts: list[int] = ((addresses + distances) & 0xFFFFFFFE).tolist()
    return starts


def index_ranges(data: bytes, address: int) -> list[UnwindRange]:
    """The functions of such a section whose ends it tells."""
    starts = index_starts(data, address)
    described = np.frombuffer(data[: len(data) & ~7], dtype="<u4")[1::2].tolist()
    return [
        UnwindRange(start, end, False)
        for start, end, word in zip(starts, starts[1:], described, strict=False)
        if end > start and word != CANNOT_UNWIND and not word & INLINE
    ]
