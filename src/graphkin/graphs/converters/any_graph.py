"""Graphs of other libraries, as people have them in lists."""

from __future__ import annotations

from typing import Any

from graphkin.errors import GraphError
from graphkin.graphs.converters.attributes import AttributeNames
from graphkin.graphs.converters.from_networkx import from_networkx
from graphkin.graphs.converters.from_pyg import from_pyg
from graphkin.graphs.graph import Graph


def as_graph(graph: Any, position: int, names: AttributeNames | None = None) -> Graph:
    """A graph of graphkin, NetworkX or PyG as one of graphkin.

    Args:
        graph: the graph.
        position: where it is in its list, for errors.
        names: which attributes of one of NetworkX are its input; without, that is constant, unless
            the graph came from graphkin.
    """
    if isinstance(graph, Graph):
        return graph
    library = type(graph).__module__.partition(".")[0]
    if library == "networkx":
        try:
            return from_networkx(graph, **vars(names or AttributeNames()))
        except GraphError as error:
            raise GraphError(f"graph {position}: {error}") from error
    if library == "torch_geometric":
        return from_pyg(graph)
    raise GraphError(
        f"graph {position} is a {type(graph).__name__}; give graphs of graphkin, NetworkX or PyG"
    )


def unread_attributes(original: Any, graph: Graph) -> list[str]:
    """The attributes of the nodes of a graph of NetworkX that became a graph without any input."""
    is_networkx = type(original).__module__.partition(".")[0] == "networkx"
    if not is_networkx or graph.has_text or graph.node_kind != "constant":
        return []
    return sorted({str(name) for _, attributes in original.nodes(data=True) for name in attributes})
