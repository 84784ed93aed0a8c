"""Functions that ARM's table for unwinding knows.

The linker folds neighbours that unwind alike, so that it does not know all, and nothing in it says
whether a function is ARM or Thumb. Functions with a description of their own, as those that
exceptions can reach have, are not folded, and an entry for what follows tells their end.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

import numpy as np

from graphkin.binaries.image import Region, UnwindRange
from graphkin.binaries.starts.thumb_instructions import NARROW_FILLERS, NOP

CANNOT_UNWIND = 1
INLINE = 0x80000000
"""Marks a description that is in the index itself, and may be that of several functions."""


PADDING = {0x0000BF00, 0xBF00BF00, 0x8000F3AF, 0xE1A00000, 0xE320F000, 0}
"""Words between functions: ``nop`` of Thumb, once and twice, its long form, those of ARM, zeros."""
MOST_PADDING = 64


def past_padding(start: int, regions: Sequence[Region]) -> int:
    """The first instruction from an entry on: it may lie on the padding behind another function.

    Args:
        start: of the entry.
        regions: of the file, by their addresses.
    """
    number = bisect_right(regions, start, key=lambda region: region.start) - 1
    if number < 0:
        return start
    offset = start - regions[number].start
    code = bytes(regions[number].data[offset : offset + MOST_PADDING])
    at = 0
    while at + 4 <= len(code):
        word = int.from_bytes(code[at : at + 4], "little")
        # The lower half of an ARM word may look like padding of Thumb.
        is_odd = (start + at) % 4 == 2
        if word in PADDING and (not is_odd or word == 0x8000F3AF):
            at += 4
        elif word & 0xFFFF in NARROW_FILLERS and (is_odd or word & 0xFFFF == NOP):
            at += 2
        else:
            return start + at
    return start


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
