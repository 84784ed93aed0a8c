"""Models that somebody sent: their configuration may ask for no more memory than their weights."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

SPARE = 1 << 20
"""Numbers that a model may take beside its weights, and as often as ``COPIES`` once more."""
COPIES = 4
"""Weights are made, scaled and put together when a model is built."""
SIZED = frozenset({torch.empty, torch.zeros, torch.ones, torch.full, torch.rand, torch.randn})


class OversizedError(Exception):
    """More memory was asked for than there may be."""


class BoundedSizes(TorchFunctionMode):
    """While it is entered, new tensors have no more numbers in all than some weights allow.

    A build on torch's device without memory would tell as much, but takes a second to load.
    """

    def __init__(self, weights: Mapping[str, Tensor]) -> None:
        super().__init__()
        self._left = SPARE + COPIES * sum(tensor.numel() for tensor in weights.values())

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        if func in SIZED or func is torch.arange:
            sizes = args[0] if args and isinstance(args[0], tuple | list) else args
            numbers = [size for size in sizes if isinstance(size, int)]
            self._left -= max(numbers, default=0) if func is torch.arange else prod(numbers)
            if self._left < 0:
                raise OversizedError(f"a tensor of {' x '.join(map(str, numbers))}")
        return func(*args, **(kwargs or {}))
