"""Graph input as named attributes: what NetworkX, GraphML and DOT have in common.

These formats hang values on nodes and edges by name. A graph that graphkin writes uses

====== ======================= ==========================================================
on     attribute               holds
====== ======================= ==========================================================
node   ``features``            F numbers, where the node input is dense
node   ``tokens``              token ids, none or more, where it is token bags
node   ``label``               a text, where nodes have labels as text
edge   ``features``            F numbers, where the edge input is dense
edge   ``type``                a type id, where it is types
edge   ``label``               a text, where edges have labels as text
graph  ``graphkin_node_kind``  ``constant``, ``dense``, ``tokens``, ``labels``, or ``dense labels``
graph  ``graphkin_edge_kind``  ``constant``, ``dense``, ``types`` or ``labels``
graph  ``graphkin_edge_width`` F of dense edge input, which a graph without edges needs
====== ======================= ==========================================================

The two kinds mark a graph as graphkin's own, so that it loads whole without being told
any names. A graph from elsewhere has constant input unless attributes are named.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphkin._support.files import PathLike
from graphkin.errors import FormatError, GraphError
from graphkin.graphs.graph import EDGE_KINDS, NODE_KINDS, Graph

Attributes = Mapping[str, Any]

FEATURES = "features"
TOKENS = "tokens"
LABEL = "label"
TYPE = "type"
NODE_KIND = "graphkin_node_kind"
EDGE_KIND = "graphkin_edge_kind"
EDGE_WIDTH = "graphkin_edge_width"

_NODE_KINDS = (*NODE_KINDS, "labels", "dense labels")
_EDGE_KINDS = (*EDGE_KINDS, "labels")
_MAX_WIDTH = np.iinfo(np.int32).max


@dataclass(frozen=True)
class AttributeNames:
    """Which attributes hold a graph's input.

    Features take one name or several, whose values are put side by side. A value is a
    number, a sequence of numbers, or text of numbers parted by spaces or commas.
    """

    node_features: str | Sequence[str] | None = None
    node_tokens: str | None = None
    edge_features: str | Sequence[str] | None = None
    edge_type: str | None = None
    node_labels: str | None = None
    """Text of any kind, and numbers as text."""
    edge_labels: str | None = None
    """Likewise."""


@dataclass(frozen=True)
class AttributedGraph:
    """A graph as named nodes and edges with attributes, in the order that they are listed."""

    directed: bool
    node_names: Sequence[Hashable]
    """N names; node i of the :class:`Graph` is the i-th."""
    node_attributes: Sequence[Attributes]
    """N mappings."""
    edges: Sequence[tuple[int, int]]
    """E pairs of node numbers."""
    edge_attributes: Sequence[Attributes]
    """E mappings."""
    attributes: Attributes = field(default_factory=dict)
    """Attributes of the graph itself."""

    @classmethod
    def from_graph(cls, graph: Graph) -> AttributedGraph:
        """All that a graph holds, under the names above; values are lists, ints and text."""
        nodes: list[dict[str, Any]] = [{} for _ in range(graph.num_nodes)]
        edges: list[dict[str, Any]] = [{} for _ in range(graph.num_edges)]
        attributes: dict[str, Any] = {NODE_KIND: graph.node_kind, EDGE_KIND: graph.edge_kind}
        if graph.node_features is not None:
            nodes = [{FEATURES: row} for row in graph.node_features.tolist()]
        if graph.node_tokens is not None:
            nodes = [{TOKENS: graph.node_tokens.bag(node)} for node in range(graph.num_nodes)]
        if graph.node_labels is not None:
            attributes[NODE_KIND] = "labels" if graph.node_features is None else "dense labels"
            labelled = zip(nodes, graph.node_labels, strict=True)
            nodes = [{**values, LABEL: label} for values, label in labelled]
        if graph.edge_features is not None:
            edges = [{FEATURES: row} for row in graph.edge_features.tolist()]
            attributes[EDGE_WIDTH] = graph.edge_features.shape[1]
        if graph.edge_labels is not None:
            edges = [{LABEL: label} for label in graph.edge_labels]
        if graph.edge_types is not None:
            edges = [{TYPE: edge_type} for edge_type in graph.edge_types.tolist()]
        pairs = [(source, target) for source, target in graph.edges.tolist()]
        return cls(graph.directed, range(graph.num_nodes), nodes, pairs, edges, attributes)

    def to_graph(self, names: AttributeNames) -> Graph:
        """The graph, with the named attributes as its input; its own names where none is given."""
        names = self._completed(names)
        node_features = edge_features = edge_types = node_tokens = None
        if names.node_features is not None:
            node_features = _matrix(self.node_attributes, names.node_features, self._node_owners())
        if names.node_tokens is not None:
            node_tokens = [
                _numbers(values, names.node_tokens, owner, np.int64).tolist()
                for values, owner in zip(self.node_attributes, self._node_owners(), strict=True)
            ]
        if names.edge_features is not None:
            edge_features = _matrix(self.edge_attributes, names.edge_features, self._edge_owners())
            if not self.edges:
                edge_features = np.zeros((0, self._edge_width()), dtype=np.float32)
        if names.edge_type is not None:
            edge_types = [
                _single(values, names.edge_type, owner)
                for values, owner in zip(self.edge_attributes, self._edge_owners(), strict=True)
            ]
        return Graph(
            len(self.node_names),
            list(self.edges),
            directed=self.directed,
            node_features=node_features,
            node_tokens=node_tokens,
            edge_features=edge_features,
            edge_types=edge_types,
            node_labels=_texts(self.node_attributes, names.node_labels, self._node_owners()),
            edge_labels=_texts(self.edge_attributes, names.edge_labels, self._edge_owners()),
        )

    def _node_owners(self) -> list[str]:
        return [f"node {name!r}" for name in self.node_names]

    def _edge_owners(self) -> list[str]:
        ends = [(self.node_names[source], self.node_names[target]) for source, target in self.edges]
        return [f"edge {source!r} - {target!r}" for source, target in ends]

    def _completed(self, names: AttributeNames) -> AttributeNames:
        node_kind, edge_kind = self.attributes.get(NODE_KIND), self.attributes.get(EDGE_KIND)
        for key, kind, known in (
            (NODE_KIND, node_kind, _NODE_KINDS),
            (EDGE_KIND, edge_kind, _EDGE_KINDS),
        ):
            if kind is not None and kind not in known:
                raise GraphError(f"{key} must be one of {', '.join(known)}; got {kind!r}")
        nodes: tuple[Any, ...] = (names.node_features, names.node_tokens, names.node_labels)
        edges: tuple[Any, ...] = (names.edge_features, names.edge_type, names.edge_labels)
        if nodes == (None, None, None):
            kinds = (node_kind or "").split()
            nodes = (
                FEATURES if "dense" in kinds else None,
                TOKENS if "tokens" in kinds else None,
                LABEL if "labels" in kinds else None,
            )
        if edges == (None, None, None):
            edges = (
                FEATURES if edge_kind == "dense" else None,
                TYPE if edge_kind == "types" else None,
                LABEL if edge_kind == "labels" else None,
            )
        return AttributeNames(nodes[0], nodes[1], edges[0], edges[1], nodes[2], edges[2])

    def _edge_width(self) -> int:
        if EDGE_WIDTH not in self.attributes:
            return 1
        width = _single(self.attributes, EDGE_WIDTH, "the graph")
        if not 1 <= width <= _MAX_WIDTH:
            raise GraphError(f"{EDGE_WIDTH} must be at least 1 and fit int32, got {width}")
        return width


def graph_of_file(record: AttributedGraph, names: AttributeNames, path: PathLike) -> Graph:
    """The graph that a file holds; what is wrong with it is blamed on the file."""
    try:
        return record.to_graph(names)
    except GraphError as error:
        raise FormatError(f"{path}: {error}") from error


def as_text(value: Any) -> str:
    """A value of :meth:`AttributedGraph.from_graph` as text that reads back exactly."""
    return " ".join(map(repr, value)) if isinstance(value, list) else str(value)


def _matrix(
    rows: Sequence[Attributes], names: str | Sequence[str], owners: Sequence[str]
) -> NDArray[np.float64]:
    """(rows, F): the values of the named attributes side by side."""
    columns = [names] if isinstance(names, str) else list(names)
    if not columns:
        raise GraphError("features were asked for with an empty list of attribute names")
    values = [
        np.concatenate([_numbers(row, name, owner, np.float64) for name in columns])
        for row, owner in zip(rows, owners, strict=True)
    ]
    for value, owner in zip(values, owners, strict=True):
        if len(value) != len(values[0]):
            raise GraphError(
                f"{owner} has {len(value)} numbers in {', '.join(columns)}, but {owners[0]} "
                f"has {len(values[0])}; every row needs as many"
            )
    return np.stack(values) if values else np.zeros((0, 1))


def _texts(rows: Sequence[Attributes], name: str | None, owners: Sequence[str]) -> list[str] | None:
    """The text of one attribute in every row."""
    if name is None:
        return None
    values = [_value(row, name, owner) for row, owner in zip(rows, owners, strict=True)]
    for value, owner in zip(values, owners, strict=True):
        if value is None:
            raise GraphError(f"{owner} has {name}=None, which is no text; set a text or a number")
    return list(map(str, values))


def _value(attributes: Attributes, name: str, owner: str) -> Any:
    if name not in attributes:
        known = ", ".join(map(str, attributes)) or "none"
        raise GraphError(
            f"{owner} has no attribute {name!r} (it has: {known}); set it, or name another"
        )
    return attributes[name]


def _single(attributes: Attributes, name: str, owner: str) -> int:
    values = _numbers(attributes, name, owner, np.int64)
    if len(values) != 1:
        raise GraphError(f"{owner} needs one integer in {name!r}, got {attributes[name]!r}")
    return int(values[0])


def _numbers(
    attributes: Attributes, name: str, owner: str, dtype: type[np.int64] | type[np.float64]
) -> NDArray[Any]:
    """The numbers of one attribute as a (K,) array."""
    value = _value(attributes, name, owner)
    expected, kinds = ("integers", "iu") if dtype is np.int64 else ("numbers", "iufb")
    problem = f"{owner} has {name}={value!r}, which must be {expected}"
    try:
        if isinstance(value, str):
            convert = int if dtype is np.int64 else float
            return np.array([convert(part) for part in value.replace(",", " ").split()], dtype)
        array = np.atleast_1d(np.asarray(value))
    except (ValueError, TypeError, OverflowError, RuntimeError) as error:
        raise GraphError(f"{problem}: {error}") from error
    if array.ndim != 1 or (array.size and array.dtype.kind not in kinds):
        raise GraphError(f"{problem}, got shape {array.shape} and dtype {array.dtype}")
    return array
