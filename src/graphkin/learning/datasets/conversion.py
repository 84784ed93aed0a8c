"""Graphs of other libraries, as people have them in lists."""

from __future__ import annotations

from typing import Any

from graphkin.errors import GraphError
from graphkin.graphs import Graph
from graphkin.graphs.converters.from_networkx import from_networkx
from graphkin.graphs.converters.from_pyg import from_pyg


def as_graph(graph: Any, position: int) -> Graph:
    """A graph of graphkin, NetworkX or PyG as one of graphkin.

    Args:
        graph: without further word, one of NetworkX has constant input, unless it came from
            graphkin; convert it by ``from_networkx`` to name its attributes.
        position: where it is in its list, for errors.
    """
    if isinstance(graph, Graph):
        return graph
    library = type(graph).__module__.partition(".")[0]
    if library == "networkx":
        return from_networkx(graph)
    if library == "torch_geometric":
        return from_pyg(graph)
    raise GraphError(
        f"graph {position} is a {type(graph).__name__}; give graphs of graphkin, NetworkX or PyG"
    )
