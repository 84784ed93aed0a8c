"""Large scratch arrays that live on between calls.

The allocator returns megabyte arrays to the system as soon as they are free; taking fresh
ones in every training step then costs a page fault for every 4 KB, which is up to half of
the time of a small step.
"""

from __future__ import annotations

import math
import threading
from typing import Any

import torch
from torch import Tensor

MAX_IDLE = 32
MAX_IDLE_SIZE = 1 << 26
"""Idle arrays, and their elements in all, that are kept for each dtype: the oldest beyond them
go back to the system."""


class Workspace(threading.local):
    """A pool of flat arrays, one pool for each thread."""

    def __init__(self) -> None:
        self._idle: dict[torch.dtype, list[tuple[int, Tensor]]] = {}

    def take(self, shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
        """An array with arbitrary content; it is the caller's until given back (or dropped)."""
        size = math.prod(shape)
        idle = self._idle.setdefault(dtype, [])
        best = -1
        for index, (capacity, _) in enumerate(idle):
            # An array much larger than needed is left to those who need it.
            if size <= capacity <= 2 * size and (best < 0 or capacity < idle[best][0]):
                best = index
        flat = idle.pop(best)[1] if best >= 0 else torch.empty(size, dtype=dtype)
        strides = [math.prod(shape[axis + 1 :]) for axis in range(len(shape))]
        return flat.as_strided(shape, strides)

    def give(self, *arrays: Tensor | None) -> None:
        """Returns arrays that nothing refers to any more."""
        for array in arrays:
            if array is None:
                continue
            idle = self._idle[array.dtype]
            capacity = array.untyped_storage().nbytes() // array.element_size()
            idle.append((capacity, array))
            while len(idle) > MAX_IDLE or sum(size for size, _ in idle) > MAX_IDLE_SIZE:
                del idle[0]


WORKSPACE = Workspace()


def take_once(ctx: Any, name: str) -> Any:
    """Removes and returns what a function's forward pass left for its backward pass.

    Raises:
        RuntimeError: at a second backward pass: the arrays are in use elsewhere by then.
    """
    if not hasattr(ctx, name):
        raise RuntimeError(
            "backward through this graph a second time; run the forward pass again "
            "(the fused kernels keep their arrays for one backward pass)"
        )
    value = getattr(ctx, name)
    delattr(ctx, name)
    return value
