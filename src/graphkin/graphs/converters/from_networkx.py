"""Graphs to and from NetworkX."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from graphkin.errors import GraphError
from graphkin.graphs.converters.attributes import AttributedGraph, AttributeNames
from graphkin.graphs.graph import Graph

ROW = "graphkin_row"
FLIPPED = "graphkin_flipped"


def from_networkx(
    nx_graph: Any,
    *,
    node_features: str | Sequence[str] | None = None,
    node_tokens: str | None = None,
    edge_features: str | Sequence[str] | None = None,
    edge_type: str | None = None,
    node_labels: str | None = None,
    edge_labels: str | None = None,
) -> Graph:
    """A NetworkX graph of any of the four classes, its nodes numbered in iteration order.

    Without names the input is constant, unless the graph came from :func:`to_networkx`:
    then all that the first graph held comes back, in the same order.

    Args:
        nx_graph: Graph, DiGraph, MultiGraph or MultiDiGraph; parallel edges are kept.
        node_features: node attribute(s) that hold numbers or sequences of numbers.
        node_tokens: node attribute that holds a token id or a sequence of them.
        edge_features: edge attribute(s) that hold numbers or sequences of numbers.
        edge_type: edge attribute that holds a type id.
        node_labels: node attribute that holds a text.
        edge_labels: edge attribute that holds a text.

    Example:
        >>> import networkx as nx
        >>> from_networkx(nx.cycle_graph(4))
        Graph(num_nodes=4, num_edges=4, undirected)
    """
    import networkx as nx

    if not isinstance(nx_graph, nx.Graph):
        raise GraphError(f"from_networkx takes a networkx graph, got {type(nx_graph).__name__}")
    directed = nx_graph.is_directed()
    index = {node: number for number, node in enumerate(nx_graph.nodes)}
    listed = [(index[u], index[v], data) for u, v, data in nx_graph.edges(data=True)]
    # NetworkX lists an undirected edge from its earlier node, whichever way it was added.
    if all(isinstance(data.get(ROW), int) for _, _, data in listed):
        listed.sort(key=lambda edge: edge[2][ROW])
    record = AttributedGraph(
        directed=directed,
        node_names=list(index),
        node_attributes=[data for _, data in nx_graph.nodes(data=True)],
        edges=[
            (v, u) if data.get(FLIPPED) is True and not directed else (u, v)
            for u, v, data in listed
        ],
        edge_attributes=[data for _, _, data in listed],
        attributes=nx_graph.graph,
    )
    return record.to_graph(
        AttributeNames(
            node_features, node_tokens, edge_features, edge_type, node_labels, edge_labels
        )
    )


def to_networkx(graph: Graph) -> Any:
    """The graph as networkx Graph or DiGraph; a multigraph where edges are parallel.

    Nodes are 0..N-1. Input lies in the attributes that :mod:`graphkin.graphs.converters.attributes`
    lists. Each edge also has ``graphkin_row``, its row in ``graph.edges``, and an undirected
    one that is listed from its higher node ``graphkin_flipped``: NetworkX keeps neither.
    """
    import networkx as nx

    record = AttributedGraph.from_graph(graph)
    pairs = graph.edges if graph.directed else np.sort(graph.edges, axis=1)
    parallel = len(np.unique(pairs, axis=0)) < graph.num_edges
    plain, multi = (nx.DiGraph, nx.MultiDiGraph) if graph.directed else (nx.Graph, nx.MultiGraph)
    nx_graph = multi() if parallel else plain()
    nx_graph.graph.update(record.attributes)
    nx_graph.add_nodes_from(zip(record.node_names, record.node_attributes, strict=True))
    rows = zip(record.edges, record.edge_attributes, strict=True)
    for row, ((source, target), attributes) in enumerate(rows):
        flipped = {FLIPPED: True} if source > target and not graph.directed else {}
        nx_graph.add_edges_from([(source, target, {**attributes, ROW: row, **flipped})])
    return nx_graph
