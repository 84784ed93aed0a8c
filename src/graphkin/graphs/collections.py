"""Lists out of whatever people keep things in: tuples, generators, arrays of objects, Series."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from graphkin.errors import GraphError


def listed(items: Iterable[Any], what: str = "graphs") -> list[Any]:
    """The items in their order; ``what`` names them in errors."""
    if isinstance(items, list):
        return items
    if isinstance(items, str | bytes) or not isinstance(items, Iterable):
        raise GraphError(f"{what} must be a list of them, got a {type(items).__name__}")
    return list(items)
