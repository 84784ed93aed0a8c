"""What a file says of where its functions start, as the reader of its format hands it on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from graphkin.binaries.image import ByteOrder, Region, UnwindRange
from graphkin.binaries.recovery.ranges import Symbol
from graphkin.binaries.starts.sweep import MAX_ADDRESS


def no_pointers() -> NDArray[np.int64]:
    return np.empty(0, dtype=np.int64)


@dataclass(frozen=True)
class Clues:
    """The certain ones first."""

    symbols: Sequence[Symbol]
    is_complete: bool
    """Whether the symbols are all functions, as those of a file that is not stripped."""
    unwind: Sequence[UnwindRange] = ()
    entries: Sequence[int] = ()
    """Where the loader enters, and what tables without sizes list."""
    pointers: NDArray[np.int64] = field(default_factory=no_pointers)
    """(K,) words of data that may be addresses of functions."""
    stubs: Sequence[tuple[int, int]] = ()
    """Ranges of code that the linker made to lead elsewhere."""
    tables: tuple[str, ...] = ()
    """What the file has of the above, in words."""
    closed: Sequence[tuple[int, int]] = ()
    """Ranges with no other functions than those that the symbols tell of."""
    notes: Sequence[tuple[int, int]] = ()
    """Ranges between functions that tell debuggers of them, and are never run."""


def words_into_code(
    regions: Sequence[Region], width: int, byte_order: ByteOrder = "little"
) -> NDArray[np.int64]:
    """Aligned words of the data that are addresses of code.

    For files that are not position-independent, which have no relocations to list them.
    """
    code = [region for region in regions if region.executable and region.end < MAX_ADDRESS]
    pointers = [no_pointers()]
    for region in regions:
        if region.executable or not code:
            continue
        lead = -region.start % width
        data = region.data[lead:]
        data = data[: len(data) // width * width]
        values = np.frombuffer(data, dtype=f"{'<' if byte_order == 'little' else '>'}u{width}")
        for target in code:
            inside = values[(values >= target.start) & (values < target.end)]
            pointers.append(np.unique(inside).astype(np.int64))
    return np.unique(np.concatenate(pointers))
