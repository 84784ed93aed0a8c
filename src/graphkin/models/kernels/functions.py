"""Typed access to torch's differentiable functions."""

from __future__ import annotations

from typing import Any

from torch import Tensor
from torch.autograd import Function


def apply(function: type[Function], *arguments: Any) -> Tensor:
    """``function.apply`` with the type that torch leaves out."""
    out: Tensor = function.apply(*arguments)  # type: ignore[no-untyped-call]
    return out
