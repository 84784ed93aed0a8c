"""Graphs to and from DOT files, one graph in each. Reading needs pydot, writing does not.

Attribute names are those of :mod:`graphkin.graphs.converters.attributes`: a file that graphkin
wrote loads whole, one from elsewhere with constant input or the attributes that are named.
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Mapping, Sequence
from typing import Any

from graphkin._support.files import PathLike, read_file, write_atomically
from graphkin.errors import FormatError, MissingDependencyError
from graphkin.graphs.converters.attributes import (
    AttributedGraph,
    AttributeNames,
    as_text,
    graph_of_file,
)
from graphkin.graphs.graph import Graph


def read_dot(
    path: PathLike,
    *,
    node_features: str | Sequence[str] | None = None,
    node_tokens: str | None = None,
    edge_features: str | Sequence[str] | None = None,
    edge_type: str | None = None,
    node_labels: str | None = None,
    edge_labels: str | None = None,
) -> Graph:
    """The graph of a DOT file, its nodes numbered by first appearance; needs pydot.

    Edge chains, edges between groups, default attributes, subgraphs and ``strict`` have their
    Graphviz meaning; ports are dropped. pydot takes about 2 ms for each statement.

    Args:
        path: the file.
        node_features: node attribute(s) that hold numbers.
        node_tokens: node attribute that holds token ids.
        edge_features: edge attribute(s) that hold numbers.
        edge_type: edge attribute that holds a type id.
        node_labels: node attribute that holds a text.
        edge_labels: edge attribute that holds a text.

    Raises:
        FormatError: no DOT, or values that a graph does not take.
        MissingDependencyError: pydot is not installed.
    """
    try:
        import pydot
    except ImportError as error:
        raise MissingDependencyError(
            "pydot is not installed; run: pip install 'graphkin[dot]'"
        ) from error
    try:
        text = read_file(path).decode()
    except UnicodeDecodeError as error:
        raise FormatError(f"{path} is not UTF-8 text: {error}; re-encode it") from error
    # pydot prints what is wrong, with line and column, and returns None.
    complaint = io.StringIO()
    try:
        with contextlib.redirect_stdout(complaint):
            graphs = pydot.graph_from_dot_data(text)
    except RecursionError as error:
        raise FormatError(f"{path} nests its subgraphs too deeply to read") from error
    except Exception as error:  # whatever a third-party parser does on a foreign file
        raise FormatError(f"{path} is not DOT that pydot can read: {error}") from error
    if not graphs:
        reason = complaint.getvalue().strip().rsplit("\n", 1)[-1]
        raise FormatError(f"{path} is not DOT that pydot can read: {reason}")
    if len(graphs) > 1:
        raise FormatError(f"{path} holds {len(graphs)} graphs; keep one in a file")
    record = _DotReader(graphs[0].obj_dict).read()
    names = AttributeNames(
        node_features, node_tokens, edge_features, edge_type, node_labels, edge_labels
    )
    return graph_of_file(record, names, path)


def write_dot(path: PathLike, graph: Graph) -> None:
    """Writes one graph; every value is quoted text, its numbers parted by spaces."""
    record = AttributedGraph.from_graph(graph)
    keyword, arrow = ("digraph", "->") if graph.directed else ("graph", "--")
    lines = [f"{keyword} {{"]
    lines += [f'  {name}="{as_text(value)}";' for name, value in record.attributes.items()]
    for node, values in enumerate(record.node_attributes):
        lines.append(f"  {node}{_dot_attributes(values)};")
    for (source, target), values in zip(record.edges, record.edge_attributes, strict=True):
        lines.append(f"  {source} {arrow} {target}{_dot_attributes(values)};")
    write_atomically(path, ("\n".join([*lines, "}"]) + "\n").encode())


def _dot_attributes(values: Mapping[str, Any]) -> str:
    texts = {name: as_text(value).replace('"', r"\"") for name, value in values.items()}
    listed = ", ".join(f'{name}="{text}"' for name, text in texts.items())
    return f" [{listed}]" if listed else ""


class _DotReader:
    """Walks what pydot parsed, in the order of the file."""

    def __init__(self, top: Mapping[str, Any]) -> None:
        self.top = top
        self.directed = top["type"] == "digraph"
        self.attributes: dict[str, str] = {}
        self.nodes: dict[str, dict[str, str]] = {}
        self.edges: list[tuple[str, str, dict[str, str]]] = []
        self.members: dict[int, list[str]] = {}

    def read(self) -> AttributedGraph:
        self.visit(self.top, {}, {})
        if self.top["strict"]:
            merged: dict[tuple[str, str], dict[str, str]] = {}
            for source, target, values in self.edges:
                flipped = not self.directed and (target, source) in merged
                pair = (target, source) if flipped else (source, target)
                merged.setdefault(pair, {}).update(values)
            self.edges = [(source, target, values) for (source, target), values in merged.items()]
        index = {name: number for number, name in enumerate(self.nodes)}
        return AttributedGraph(
            directed=self.directed,
            node_names=list(index),
            node_attributes=list(self.nodes.values()),
            edges=[(index[source], index[target]) for source, target, _ in self.edges],
            edge_attributes=[values for *_, values in self.edges],
            attributes=self.attributes,
        )

    def visit(
        self, block: Mapping[str, Any], nodes: dict[str, str], edges: dict[str, str]
    ) -> list[str]:
        """Takes in one graph or subgraph under the defaults around it; returns its nodes."""
        if id(block) in self.members:
            return self.members[id(block)]
        nodes, edges = dict(nodes), dict(edges)
        if block is self.top:
            self.attributes.update(_plain(block["attributes"]))
        members: list[str] = []
        groups = [
            group for part in ("nodes", "edges", "subgraphs") for group in block[part].values()
        ]
        children = [child for group in groups for child in group]
        for child in sorted(children, key=lambda child: int(child["sequence"])):
            if child["type"] == "edge":
                values = edges | _plain(child["attributes"])
                sources, targets = (self.ends(end, nodes, edges) for end in child["points"])
                self.edges += [(u, v, dict(values)) for u in sources for v in targets]
                members += [*sources, *targets]
            elif child["type"] != "node":
                members += self.visit(child, nodes, edges)
            elif child["name"] == "node":
                nodes |= _plain(child["attributes"])
            elif child["name"] == "edge":
                edges |= _plain(child["attributes"])
            elif child["name"] == "graph":
                if block is self.top:
                    self.attributes.update(_plain(child["attributes"]))
            else:
                members += self.ends(child["name"], nodes, edges)
                self.nodes[members[-1]].update(_plain(child["attributes"]))
        self.members[id(block)] = list(dict.fromkeys(members))
        return self.members[id(block)]

    def ends(self, end: Any, nodes: dict[str, str], edges: dict[str, str]) -> list[str]:
        """The nodes that one end of an edge stands for: itself, or all of a subgraph."""
        if isinstance(end, Mapping):
            return self.visit(end, nodes, edges)
        name = _node_name(str(end))
        self.nodes.setdefault(name, dict(nodes))
        return [name]


def _node_name(text: str) -> str:
    """A node without its port: ``a:port`` is a, and ``"a:b":port`` is a:b."""
    if text.startswith("<"):
        return text
    if not text.startswith('"'):
        return text.split(":", 1)[0]
    close = 1
    while text[close] != '"':
        close += 2 if text[close] == "\\" else 1
    return _unquoted(text[: close + 1])


def _plain(attributes: Mapping[str, Any]) -> dict[str, str]:
    return {_unquoted(name): _unquoted(value or "") for name, value in attributes.items()}


def _unquoted(text: str) -> str:
    if len(text) >= 2 and text[0] == text[-1] == '"':
        return text[1:-1].replace('\\"', '"')
    return text
