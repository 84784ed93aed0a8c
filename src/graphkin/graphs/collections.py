"""Lists out of whatever people keep things in: tuples, generators, arrays of objects, Series."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from graphkin.errors import GraphError


def listed(items: Iterable[Any], what: str = "graphs") -> list[Any]:
    """The items in their order; ``what`` names them in errors."""
    if isinstance(items, list):
        return items
    if isinstance(items, set | frozenset):
        raise GraphError(f"{what} must have an order, got a {type(items).__name__}; give a list")
    if type(items).__module__.partition(".")[0] == "networkx":
        raise GraphError(f"{what} must be a list of them, got one graph; put it into a list")
    if isinstance(items, str | bytes) or not isinstance(items, Iterable):
        raise GraphError(f"{what} must be a list of them, got a {type(items).__name__}")
    return list(items)
