"""Graphs with names, as files hold them."""

from __future__ import annotations

from dataclasses import dataclass

from graphkin.graphs.graph import Graph


@dataclass(frozen=True, eq=False)
class NamedGraph:
    """A graph, and what its file says of it."""

    name: str
    graph: Graph
    label: str | int | float | None = None
    """The class it is of."""
    split: str | None = None
    """``training``, ``validation`` or ``test``, where the file decides."""
    source: str = ""
    """The file, or the folder of a set, that it was read from."""
