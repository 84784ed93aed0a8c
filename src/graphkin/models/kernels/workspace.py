"""Large scratch arrays that live on between calls.

The allocator returns megabyte arrays to the system as soon as they are free; taking fresh
ones in every training step then costs a page fault for every 4 KB, which is up to half of
the time of a small step.
"""

from __future__ import annotations

import math
import threading

import torch
from torch import Tensor

MAX_IDLE_BYTES = 1 << 28
"""Idle memory that is kept; beyond it arrays go back to the system."""
SLACK = 1.25
"""New arrays are this much larger than asked for, so that batches of varying size reuse them."""


class Workspace(threading.local):
    """A pool of flat arrays, one pool for each thread and dtype."""

    def __init__(self) -> None:
        self._idle: dict[torch.dtype, list[Tensor]] = {}

    def take(self, shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
        """An array with arbitrary content; it is the caller's until given back (or dropped)."""
        size = math.prod(shape)
        idle = self._idle.setdefault(dtype, [])
        fitting = [index for index, flat in enumerate(idle) if size <= len(flat) <= 4 * size + 64]
        if fitting:
            flat = idle.pop(min(fitting, key=lambda index: len(idle[index])))
        else:
            flat = torch.empty(int(size * SLACK), dtype=dtype)
        return flat[:size].view(shape)

    def give(self, *arrays: Tensor | None) -> None:
        """Returns arrays that nothing refers to any more."""
        for array in arrays:
            if array is None:
                continue
            flat = array.new_empty(0).set_(array.untyped_storage())
            idle = self._idle.setdefault(array.dtype, [])
            if sum(kept.nbytes for kept in idle) + flat.nbytes <= MAX_IDLE_BYTES:
                idle.append(flat)


WORKSPACE = Workspace()
