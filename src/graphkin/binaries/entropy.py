"""How much like random bytes some bytes are."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

SAMPLE = 1 << 20
"""Bytes of a piece that are counted, about; of a larger one every second, third, ..."""


def entropy(pieces: Iterable[bytes | memoryview | bytearray]) -> float:
    """Bits for each byte, of all pieces together."""
    counts = np.zeros(256)
    for piece in pieces:
        values = np.frombuffer(piece, dtype=np.uint8)
        counts += np.bincount(values[:: 1 + len(values) // SAMPLE], minlength=256)
    if not counts.any():
        return 0.0
    shares = counts[counts > 0] / counts.sum()
    return float(-(shares * np.log2(shares)).sum())
