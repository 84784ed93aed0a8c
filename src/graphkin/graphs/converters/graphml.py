"""Graphs to and from GraphML files, one graph in each.

Attribute names are those of :mod:`graphkin.graphs.converters.attributes`: a file that graphkin
wrote loads whole, one from elsewhere with constant input or the attributes that are named.

The reader is our own: that of NetworkX keeps neither the order of the edges nor the end that an
undirected one is listed from, expands entities, and takes nodes without an id, nodes listed twice
and edges to nodes that are not there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from xml.parsers import expat
from xml.sax.saxutils import escape

from graphkin._support.files import PathLike, read_file, write_atomically
from graphkin.errors import FormatError
from graphkin.graphs.converters.attributes import (
    AttributedGraph,
    AttributeNames,
    as_text,
    graph_of_file,
)
from graphkin.graphs.graph import Graph

_XMLNS = "http://graphml.graphdrawing.org/xmlns"
_VALUES = ("data", "default")
_FOREIGN = "foreign"


def read_graphml(
    path: PathLike,
    *,
    node_features: str | Sequence[str] | None = None,
    node_tokens: str | None = None,
    edge_features: str | Sequence[str] | None = None,
    edge_type: str | None = None,
    node_labels: str | None = None,
    edge_labels: str | None = None,
) -> Graph:
    """The graph of a GraphML file, its nodes numbered as listed; those of groups join in.

    A document type declaration is refused before anything in it is read: GraphML has no
    use for one, and entities can make a small file huge.

    Args:
        path: the file.
        node_features: node attribute(s) that hold numbers.
        node_tokens: node attribute that holds token ids.
        edge_features: edge attribute(s) that hold numbers.
        edge_type: edge attribute that holds a type id.
        node_labels: node attribute that holds a text.
        edge_labels: edge attribute that holds a text.

    Raises:
        FormatError: no GraphML, or values that a graph does not take.
    """
    record = _GraphMLReader(path).read(read_file(path))
    names = AttributeNames(
        node_features, node_tokens, edge_features, edge_type, node_labels, edge_labels
    )
    return graph_of_file(record, names, path)


def write_graphml(path: PathLike, graph: Graph) -> None:
    """Writes one graph; features and tokens are text of numbers parted by spaces."""
    record = AttributedGraph.from_graph(graph)
    keys, body = [], []
    for owner, rows in (
        ("graph", [record.attributes]),
        ("node", record.node_attributes),
        ("edge", record.edge_attributes),
    ):
        for name, value in (rows[0] if rows else {}).items():
            kind = "int" if isinstance(value, int) else "string"
            keys.append(
                f'  <key id="{owner}_{name}" for="{owner}" attr.name="{name}" attr.type="{kind}"/>'
            )
    body.append(_graphml_data(record.attributes, "graph"))
    for node, values in enumerate(record.node_attributes):
        body.append(f'    <node id="{node}">{_graphml_data(values, "node")}</node>')
    for (source, target), values in zip(record.edges, record.edge_attributes, strict=True):
        data = _graphml_data(values, "edge")
        body.append(f'    <edge source="{source}" target="{target}">{data}</edge>')
    direction = "directed" if graph.directed else "undirected"
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f'<graphml xmlns="{_XMLNS}">',
        *keys,
        f'  <graph edgedefault="{direction}">',
        *body,
        "  </graph>",
        "</graphml>",
    ]
    write_atomically(path, ("\n".join(lines) + "\n").encode())


def _graphml_data(values: Mapping[str, Any], owner: str) -> str:
    return "".join(
        f'<data key="{owner}_{name}">{escape(as_text(value))}</data>'
        for name, value in values.items()
    )


class _GraphMLReader:
    """One pass over the XML events, so that every complaint has its line."""

    def __init__(self, path: PathLike) -> None:
        self.path = path
        self.parser = expat.ParserCreate(namespace_separator=" ")
        self.parser.buffer_text = True
        self.parser.StartDoctypeDeclHandler = self.refuse_doctype
        self.parser.StartElementHandler = self.start
        self.parser.EndElementHandler = self.end
        self.parser.CharacterDataHandler = self.characters
        self.stack: list[tuple[str, dict[str, str]]] = []
        """Open elements: name, and the attributes that a <data> inside belongs to."""
        self.keys: dict[str, tuple[str, str]] = {}
        self.defaults: dict[str, dict[str, str]] = {"node": {}, "edge": {}, "graph": {}}
        self.key = ""
        self.text: list[str] = []
        self.direction: str | None = None
        self.attributes: dict[str, str] = {}
        self.nodes: dict[str, dict[str, str]] = {}
        self.edges: list[tuple[str, str, int, dict[str, str]]] = []

    def read(self, data: bytes) -> AttributedGraph:
        try:
            self.parser.Parse(data, True)
        except FormatError:
            raise
        except (expat.ExpatError, LookupError, ValueError) as error:
            raise FormatError(f"{self.path} is not well-formed XML: {error}") from error
        if self.direction is None:
            raise FormatError(f"{self.path} has no <graph> element; is it GraphML?")
        index = {name: number for number, name in enumerate(self.nodes)}
        for source, target, line, _ in self.edges:
            for end in (source, target):
                if end not in index:
                    raise self.error(f"edge to a node {end!r} that the file does not list", line)
        return AttributedGraph(
            directed=self.direction == "directed",
            node_names=list(index),
            node_attributes=[self.defaults["node"] | values for values in self.nodes.values()],
            edges=[(index[source], index[target]) for source, target, _, _ in self.edges],
            edge_attributes=[self.defaults["edge"] | values for *_, values in self.edges],
            attributes=self.defaults["graph"] | self.attributes,
        )

    def error(self, problem: str, line: int | None = None) -> FormatError:
        line = self.parser.CurrentLineNumber if line is None else line
        return FormatError(f"{self.path}, line {line}: {problem}")

    def refuse_doctype(self, *_: object) -> None:
        raise self.error("a document type declaration (DTD) is refused; remove it")

    def start(self, name: str, xml: dict[str, str]) -> None:
        if self.stack and self.stack[-1][0] in (*_VALUES, _FOREIGN):
            self.stack.append((_FOREIGN, {}))
            return
        tag = name.rsplit(" ", 1)[-1]
        values: dict[str, str] = {}
        if not self.stack and tag != "graphml":
            raise self.error(f"the root element is <{tag}>, but GraphML starts with <graphml>")
        if tag == "graph" and len(self.stack) == 1:
            values = self.open_graph(xml)
        elif tag == "key":
            self.key = self.required(xml, "id", tag)
            self.keys[self.key] = (xml.get("for", "all"), xml.get("attr.name", self.key))
        elif tag == "node":
            identity = self.required(xml, "id", tag)
            if identity in self.nodes:
                raise self.error(f"node {identity!r} is listed twice")
            self.nodes[identity] = values
        elif tag == "edge":
            ends = self.required(xml, "source", tag), self.required(xml, "target", tag)
            if xml.get("directed", "") == ("false" if self.direction == "directed" else "true"):
                raise self.error(
                    f"directed={xml['directed']!r} in a graph that is {self.direction}"
                )
            self.edges.append((*ends, self.parser.CurrentLineNumber, values))
        elif tag == "hyperedge":
            raise self.error("hyperedges have no place in a graph of pairs; replace them")
        elif tag == "data":
            self.key = self.required(xml, "key", tag)
            if self.key not in self.keys:
                raise self.error(f"<data> of a key {self.key!r} that no <key> declares")
        if tag in _VALUES:
            self.text = []
        self.stack.append((tag, values))

    def open_graph(self, xml: dict[str, str]) -> dict[str, str]:
        if self.direction is not None:
            raise self.error("a second graph begins; keep one in a file")
        self.direction = xml.get("edgedefault", "undirected")
        if self.direction not in ("directed", "undirected"):
            raise self.error(f"edgedefault must be directed or undirected, got {self.direction!r}")
        return self.attributes

    def end(self, _: str) -> None:
        tag, _values = self.stack.pop()
        if tag == "data":
            self.stack[-1][1][self.keys[self.key][1]] = "".join(self.text)
        elif tag == "default":
            owner, name = self.keys[self.key]
            for kind in self.defaults if owner == "all" else {owner} & self.defaults.keys():
                self.defaults[kind][name] = "".join(self.text)

    def characters(self, text: str) -> None:
        if self.stack[-1][0] in _VALUES:
            self.text.append(text)

    def required(self, xml: dict[str, str], name: str, tag: str) -> str:
        if name not in xml:
            raise self.error(f"<{tag}> has no attribute {name!r}")
        return xml[name]
