"""Datasets of labelled graphs in the TUDataset text format, from a folder or a zip.

=========================== ==============================================================
file                        becomes
=========================== ==============================================================
``DS_A.txt``                edges; both directions of an undirected edge are listed
``DS_graph_indicator.txt``  which graph a node belongs to, 1..G
``DS_graph_labels.txt``     the labels; without it ``DS_graph_attributes.txt``
``DS_node_attributes.txt``  ``node_features``
``DS_node_labels.txt``      one token for each node; where there are attributes too, one-hot
                            columns behind them
``DS_edge_attributes.txt``  ``edge_features``
``DS_edge_labels.txt``      ``edge_types``; where there are attributes too, one-hot columns
                            behind them
=========================== ==============================================================

Labels below 0 are shifted so that the lowest is 0. Of several columns of node labels each
is one token, and no id means two things; several columns of edge labels are one type for
each combination that occurs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from graphkin._support.files import PathLike, storing, write_atomically
from graphkin.errors import ConfigError, FormatError, GraphError
from graphkin.graphs.converters.from_pyg import both_directions, one_direction
from graphkin.graphs.converters.tudataset.raw_files import MAX_BYTES, TUFiles
from graphkin.graphs.graph import Graph, TokenBags, check_has_no_labels

Index = NDArray[np.int64]


def read_tudataset(
    path: PathLike, *, directed: bool | None = None, max_bytes: int = MAX_BYTES
) -> tuple[list[Graph], NDArray[Any]]:
    """All graphs of a dataset and their labels.

    Args:
        path: the folder that holds ``DS_A.txt``, or a zip of it, which is read in memory.
        directed: None asks the data: undirected where every edge of the dataset has its
            reverse with equal input, else directed. The format has no place for it.
        max_bytes: refuse a dataset whose text is larger than this.

    Returns:
        G graphs, all of one kind, and their (G,) int64 labels; (G, K) where a line has
        several, and floats where the dataset has only graph attributes.

    Raises:
        FormatError: a file is missing, cut short, or holds what it should not.
    """
    files = TUFiles.load(Path(path), max_bytes)
    labels = files.graph_labels()
    indicator = files.required("graph_indicator", 1)[:, 0] - 1
    files.check_indicator(indicator, len(labels))
    edges = files.required("A", 2) - 1
    files.check_edges(edges, indicator)
    node_input = files.node_input(len(indicator))
    edge_input = files.edge_input(len(edges))
    rows = None if directed else one_direction(edges, *edge_input.values())
    if directed is False and rows is None:
        raise FormatError(
            f"{path}: directed=False, but an edge of {files.name}_A.txt has no reverse with equal "
            "input; pass directed=True"
        )
    return _split(indicator, edges, node_input, edge_input, rows, len(labels)), labels


def write_tudataset(
    folder: PathLike, name: str, graphs: Sequence[Graph], labels: ArrayLike
) -> None:
    """Writes graphs of one kind and their labels; the folder is made where absent.

    Args:
        folder: where the files ``{name}_A.txt`` and so on go.
        name: the name of the dataset.
        graphs: G graphs; token bags must hold one token each, as the format has it.
        labels: (G,) integers.

    Raises:
        GraphError: graphs of several kinds, or bags of several tokens.
        StorageError: writing failed.
    """
    if not name or Path(name).name != name:
        raise ConfigError(f"name must be a plain file name without folders, got {name!r}")
    _check_kinds(graphs)
    label_array = np.asarray(labels)
    if label_array.shape != (len(graphs),) or label_array.dtype.kind not in "iu":
        raise GraphError(
            f"labels must be {len(graphs)} integers, one for each graph, got shape "
            f"{label_array.shape} and dtype {label_array.dtype}"
        )
    starts = np.cumsum([0, *(graph.num_nodes for graph in graphs)])
    listed, edge_rows = zip(
        *(both_directions(g.edges.astype(np.int64), directed=g.directed) for g in graphs),
        strict=True,
    )
    parts: dict[str, list[Any]] = {
        "A": np.concatenate([e + s for e, s in zip(listed, starts + 1, strict=False)]).tolist(),
        "graph_indicator": np.repeat(np.arange(1, len(graphs) + 1), np.diff(starts)).tolist(),
        "graph_labels": label_array.tolist(),
    }
    first = graphs[0]
    if first.node_kind == "dense":
        parts["node_attributes"] = [row for g in graphs for row in _rows(g.node_features)]
    if first.node_kind == "tokens":
        parts["node_labels"] = [i for g in graphs for i in _rows(g.arrays()["token_ids"])]
    for kind, part in (("edge_features", "edge_attributes"), ("edge_types", "edge_labels")):
        if getattr(first, kind) is not None:
            doubled = [getattr(g, kind)[r] for g, r in zip(graphs, edge_rows, strict=True)]
            parts[part] = [value for values in doubled for value in _rows(values)]
    with storing(f"make {folder}"):
        Path(folder).mkdir(parents=True, exist_ok=True)
    for part, values in parts.items():
        lines = [", ".join(map(repr, v)) if isinstance(v, list) else repr(v) for v in values]
        text = "".join(f"{line}\n" for line in lines)
        write_atomically(Path(folder) / f"{name}_{part}.txt", text.encode())


def _split(
    indicator: Index,
    edges: Index,
    node_input: Mapping[str, NDArray[Any]],
    edge_input: Mapping[str, NDArray[Any]],
    rows: Index | None,
    num_graphs: int,
) -> list[Graph]:
    """One graph for each number of the indicator; ``rows`` of undirected edges are kept."""
    node_order = np.argsort(indicator, kind="stable")
    sizes = np.bincount(indicator, minlength=num_graphs)
    node_stops = np.cumsum(sizes)
    number = np.empty(len(indicator), dtype=np.int64)
    number[node_order] = np.arange(len(indicator)) - np.repeat(node_stops - sizes, sizes)
    kept = np.arange(len(edges)) if rows is None else rows
    edge_graph = indicator[edges[kept, 0]]
    kept = kept[np.argsort(edge_graph, kind="stable")]
    edge_stops = np.cumsum(np.bincount(edge_graph, minlength=num_graphs))
    node_input = {name: values[node_order] for name, values in node_input.items()}
    edge_input = {name: values[kept] for name, values in edge_input.items()}
    local = number[edges[kept]]
    graphs = []
    for graph in range(num_graphs):
        nodes = slice(node_stops[graph] - sizes[graph], node_stops[graph])
        edge_slice = slice(edge_stops[graph - 1] if graph else 0, edge_stops[graph])
        inputs: dict[str, Any] = {name: values[nodes] for name, values in node_input.items()}
        inputs |= {name: values[edge_slice] for name, values in edge_input.items()}
        if "node_tokens" in inputs:
            ids = inputs["node_tokens"]
            offsets = np.arange(0, ids.size + 1, ids.shape[1], dtype=np.int64)
            inputs["node_tokens"] = TokenBags(ids.reshape(-1), offsets)
        graphs.append(Graph(int(sizes[graph]), local[edge_slice], directed=rows is None, **inputs))
    return graphs


def _check_kinds(graphs: Sequence[Graph]) -> None:
    traits: dict[str, Callable[[Graph], object]] = {
        "directed": lambda graph: graph.directed,
        "node_kind": lambda graph: graph.node_kind,
        "edge_kind": lambda graph: graph.edge_kind,
        "width of node_features": lambda graph: _width(graph.node_features),
        "width of edge_features": lambda graph: _width(graph.edge_features),
    }
    if not graphs:
        raise GraphError("a dataset needs at least one graph")
    for position, graph in enumerate(graphs):
        check_has_no_labels(graph)
        for name, trait in traits.items():
            if trait(graph) != trait(graphs[0]):
                raise GraphError(
                    f"graph {position} has {name} {trait(graph)!r}, graph 0 has "
                    f"{trait(graphs[0])!r}; a dataset takes one kind"
                )
        bags = graph.node_tokens
        if bags is not None and (np.diff(bags.offsets) != 1).any():
            node = int(np.argmax(np.diff(bags.offsets) != 1))
            raise GraphError(
                f"node {node} of graph {position} has {len(bags.bag(node))} tokens, but a "
                "TUDataset has one label for each node; write GraphML instead"
            )


def _width(values: NDArray[Any] | None) -> int:
    return 0 if values is None else values.shape[1]


def _rows(values: NDArray[Any] | None) -> list[Any]:
    return [] if values is None else list(values.tolist())
