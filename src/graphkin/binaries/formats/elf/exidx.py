"""Function starts that ARM's table for unwinding knows.

The linker folds neighbours that unwind alike, so that it does not know all, and nothing in it says
whether a function is ARM or Thumb.
"""

from __future__ import annotations

import numpy as np


def index_starts(data: bytes, address: int) -> list[int]:
    """Function starts in a section ``.ARM.exidx`` that lies at ``address``."""
    words = np.frombuffer(data[: len(data) & ~7], dtype="<u4")[::2].astype(np.int64)
    addresses = address + 8 * np.arange(len(words))
    distances = ((words & 0x7FFFFFFF) ^ 0x40000000) - 0x40000000
    starts: list[int] = ((addresses + distances) & 0xFFFFFFFE).tolist()
    return starts
