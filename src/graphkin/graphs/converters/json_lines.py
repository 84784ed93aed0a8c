"""Many graphs in one file of JSON lines, a graph in each line.

::

    {"name": "ethanol", "edges": [[0, 1], [1, 2]], "node_labels": ["C", "C", "O"], "label": "drug"}

``edges`` and all keys of node and edge input are the arguments of :class:`graphkin.Graph`;
``num_nodes`` may be left out where nodes have input. ``name``, ``label`` and ``split`` are text or
numbers, and say what a graph is called, which class it is of, and which split it is in.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from graphkin._support.files import PathLike, read_file, write_atomically
from graphkin.errors import FormatError, GraphError
from graphkin.graphs.converters.named import NamedGraph
from graphkin.graphs.graph import Graph

_NODES = ("node_labels", "node_features", "node_tokens")
_EDGES = ("edge_features", "edge_types", "edge_labels")
_ABOUT = ("name", "label", "split")
KEYS = ("num_nodes", "edges", "directed", *_NODES, *_EDGES, *_ABOUT)


def read_json_lines(path: PathLike) -> list[NamedGraph]:
    """The graphs of a file; one without a name is called by the number of its line, from 0.

    Raises:
        FormatError: a line is not JSON, has an unknown key, or holds what a graph does not take.
    """
    try:
        lines = read_file(path).decode().splitlines()
    except UnicodeDecodeError as error:
        raise FormatError(f"{path} is not UTF-8 text: {error}; re-encode it") from error
    return list(_graphs(path, lines))


def write_json_lines(path: PathLike, graphs: Iterable[NamedGraph]) -> None:
    """Writes graphs with their names, labels and splits; text labels of nodes stay text."""
    lines = [json.dumps(_record(named)) for named in graphs]
    write_atomically(path, "".join(f"{line}\n" for line in lines).encode())


def _graphs(path: PathLike, lines: list[str]) -> Iterator[NamedGraph]:
    for number, line in enumerate(lines):
        if not line.strip():
            continue
        where = f"{path}, line {number + 1}"
        try:
            values = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise FormatError(f"{where}: it is not JSON: {error}") from error
        if not isinstance(values, dict):
            raise FormatError(f"{where}: it must be an object, got {line:.60}")
        unknown = sorted(set(values) - set(KEYS))
        if unknown:
            raise FormatError(f"{where}: unknown key {unknown[0]!r}; known: {', '.join(KEYS)}")
        about = {key: values.pop(key) for key in _ABOUT if key in values}
        about = {key: value for key, value in about.items() if value is not None}
        try:
            if "num_nodes" not in values:
                counts = (len(values[key]) for key in _NODES if values.get(key))
                values["num_nodes"] = next(counts, 0)
            graph = Graph(**values)
        except (GraphError, TypeError) as error:
            raise FormatError(f"{where}: {error}") from error
        name, split = str(about.get("name", number)), about.get("split")
        yield NamedGraph(name, graph, about.get("label"), None if split is None else str(split))


def _record(named: NamedGraph) -> dict[str, Any]:
    graph = named.graph
    record: dict[str, Any] = {"name": named.name, "num_nodes": graph.num_nodes}
    record |= {"edges": graph.edges.tolist(), "directed": graph.directed}
    if graph.node_labels is not None:
        record["node_labels"] = list(graph.node_labels)
    if graph.node_tokens is not None:
        record["node_tokens"] = [graph.node_tokens.bag(node) for node in range(graph.num_nodes)]
    if graph.edge_labels is not None:
        record["edge_labels"] = list(graph.edge_labels)
    for key in ("node_features", "edge_features", "edge_types"):
        values = getattr(graph, key)
        if values is not None:
            record[key] = values.tolist()
    about = {"label": named.label, "split": named.split}
    return record | {key: value for key, value in about.items() if value is not None}
