"""A graph of somebody's own as people see it: its name, and what its nodes and edges say."""

from __future__ import annotations

from dataclasses import dataclass

from graphkin.graphs import Graph
from graphkin.graphs.converters.named import NamedGraph
from graphkin.graphs.vocabulary import Vocabulary
from graphkin.results.document import GraphContent
from graphkin.results.text import plural

MOST_NEIGHBOURS = 6
"""Neighbours of a node that are named."""


@dataclass(frozen=True, eq=False)
class ShownGraph:
    """A graph with the texts of its nodes and edges."""

    name: str
    file: str
    graph: Graph
    node_texts: tuple[str, ...]
    """Of each node; empty where it has no label."""
    edge_texts: tuple[str, ...]
    """Of each edge, likewise."""
    label: str | None = None
    """The class that it is of."""

    @classmethod
    def of(cls, named: NamedGraph, read: Graph, vocabulary: Vocabulary | None) -> ShownGraph:
        """A graph with its own labels, or with those that its numbers stand for.

        Args:
            named: the graph as its file has it, or as a library keeps it.
            read: the same as a model takes it.
            vocabulary: of that model.
        """
        graph = named.graph
        nodes, edges = list(graph.node_labels or ()), list(graph.edge_labels or ())
        if not nodes and vocabulary is not None:
            nodes = vocabulary.node_texts(read)
        elif not nodes and read.node_tokens is not None:
            bags = map(read.node_tokens.bag, range(read.num_nodes))
            nodes = [" ".join(map(str, bag)) for bag in bags]
        if not edges and vocabulary is not None and vocabulary.edge_types:
            edges = vocabulary.edge_texts(read)
        elif not edges and read.edge_types is not None:
            edges = list(map(str, read.edge_types.tolist()))
        label = None if named.label is None else str(named.label)
        return cls(
            named.name,
            named.source,
            read,
            tuple(nodes or [""] * read.num_nodes),
            tuple(edges or [""] * read.num_edges),
            label,
        )

    @property
    def facts(self) -> str:
        """What it is, on one line, without its name."""
        direction = "directed" if self.graph.directed else "undirected"
        parts = [
            plural(self.graph.num_nodes, "node"),
            plural(self.graph.num_edges, "edge"),
            direction,
            *([] if self.label is None else [f"label {self.label}"]),
        ]
        return " · ".join(parts)

    def node_text(self, node: int) -> str:
        """A node by its number and label."""
        return f"{node} {self.node_texts[node]}".rstrip()

    def neighbours(self) -> list[str]:
        """The nodes beside each node, as text."""
        beside: list[list[int]] = [[] for _ in range(self.graph.num_nodes)]
        for source, target in self.graph.edges.tolist():
            beside[source].append(target)
            if not self.graph.directed and source != target:
                beside[target].append(source)
        return [
            ", ".join(map(self.node_text, nodes[:MOST_NEIGHBOURS]))
            + (f" and {len(nodes) - MOST_NEIGHBOURS} more" if len(nodes) > MOST_NEIGHBOURS else "")
            for nodes in beside
        ]

    def document(self, reference: str | None = None) -> GraphContent:
        """All of it; ``reference`` is what the HTTP API calls it."""
        return GraphContent(
            function=self.name,
            binary=self.file,
            label=self.label,
            directed=self.graph.directed,
            nodes=self.node_texts,
            edges=tuple((source, target) for source, target in self.graph.edges.tolist()),
            edge_labels=self.edge_texts if any(self.edge_texts) else None,
            reference=reference,
        )
