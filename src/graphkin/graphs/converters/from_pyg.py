"""Graphs to and from PyTorch Geometric, which lists an undirected edge in both directions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphkin.errors import GraphError, MissingDependencyError
from graphkin.graphs.graph import Graph, TokenBags, running_offsets

Index = NDArray[np.int64]


def from_pyg(data: Any, *, directed: bool | None = None) -> Graph:
    """A torch_geometric ``Data``.

    Reads ``x`` (N, F), or the token bags ``token_ids`` (M,) and ``token_counts`` (N,);
    ``edge_attr`` (E, F) or (E,), or ``edge_type`` (E,).

    Args:
        data: one graph; an undirected edge is listed both ways, a self loop once.
        directed: None asks the data: directed where its attribute ``directed`` is true, else
            undirected where every edge has its reverse with equal input, else directed.

    Raises:
        GraphError: ``directed=False`` and an edge without its reverse, or a broken graph.
    """
    Data, Batch = _pyg()
    if not isinstance(data, Data):
        raise GraphError(f"from_pyg takes a torch_geometric Data, got {type(data).__name__}")
    if isinstance(data, Batch):
        raise GraphError("from_pyg takes one graph; call it on each of batch.to_data_list()")
    if data.num_nodes is None:
        raise GraphError("the Data has no nodes: set x or num_nodes")
    edges = np.zeros((0, 2), dtype=np.int64)
    if data.edge_index is not None:
        edges = _array(data, "edge_index").T
    inputs = {}
    if data.edge_attr is not None:
        values = _array(data, "edge_attr")
        inputs["edge_features"] = values[:, None] if values.ndim == 1 else values
    if "edge_type" in data:
        inputs["edge_types"] = _array(data, "edge_type")
    tokens = None
    if "token_ids" in data:
        if "token_counts" not in data:
            raise GraphError("the Data has token_ids but no token_counts, (N,) tokens per node")
        offsets = np.concatenate([[0], np.cumsum(_array(data, "token_counts"))])
        tokens = TokenBags(_array(data, "token_ids"), offsets)
    if directed is None and "directed" in data and bool(data.directed):
        directed = True
    rows = None if directed else one_direction(edges, *inputs.values())
    if directed is False and rows is None:
        raise GraphError(
            "directed=False, but some edge has no reverse with equal input; list both ways, "
            "or pass directed=True"
        )
    if rows is not None:
        edges = edges[rows]
        inputs = {name: values[rows] for name, values in inputs.items()}
    return Graph(
        int(data.num_nodes),
        edges,
        directed=rows is None,
        node_features=None if data.x is None else _array(data, "x"),
        node_tokens=tokens,
        edge_features=inputs.get("edge_features"),
        edge_types=inputs.get("edge_types"),
    )


def batch_arrays(batch: Any) -> dict[str, Any]:
    """A torch_geometric ``Batch`` as what ``GraphBatch.from_arrays`` takes, without a loop."""
    import torch

    _, Batch = _pyg()
    if not isinstance(batch, Batch):
        raise GraphError(f"from_pyg takes a torch_geometric Batch, got {type(batch).__name__}")
    edges = np.ascontiguousarray(_array(batch, "edge_index").T).astype(np.int64)
    inputs: dict[str, NDArray[Any]] = {}
    if batch.edge_attr is not None:
        values = _array(batch, "edge_attr").astype(np.float32)
        inputs["edge_features"] = values[:, None] if values.ndim == 1 else values
    if "edge_type" in batch:
        inputs["edge_types"] = _array(batch, "edge_type").astype(np.int64)
    rows = one_direction(edges, *inputs.values())
    if rows is not None:
        edges, inputs = edges[rows], {name: values[rows] for name, values in inputs.items()}
    if batch.x is not None:
        inputs["node_features"] = _array(batch, "x").astype(np.float32)
    if "token_ids" in batch:
        inputs["token_ids"] = _array(batch, "token_ids").astype(np.int64)
        inputs["token_offsets"] = running_offsets(_array(batch, "token_counts"))
    tensors = {name: torch.from_numpy(np.ascontiguousarray(v)) for name, v in inputs.items()}
    offsets = _array(batch, "ptr").astype(np.int64)
    return {"node_offsets": offsets, "edges": edges, "directed": rows is None, **tensors}


def to_pyg(graph: Graph) -> Any:
    """The graph as torch_geometric ``Data``, under the names that :func:`from_pyg` reads.

    An undirected edge is followed by its reverse. ``data.directed`` tells a directed graph
    that happens to hold every reverse from an undirected one.
    """
    import torch

    Data, _ = _pyg()
    edges, rows = both_directions(graph.edges.astype(np.int64), directed=graph.directed)
    data = Data(
        edge_index=torch.from_numpy(np.ascontiguousarray(edges.T)),
        num_nodes=graph.num_nodes,
        directed=graph.directed,
    )
    if graph.node_features is not None:
        data.x = torch.from_numpy(graph.node_features.copy())
    if graph.node_tokens is not None:
        data.token_ids = torch.from_numpy(graph.node_tokens.ids.astype(np.int64))
        data.token_counts = torch.from_numpy(np.diff(graph.node_tokens.offsets))
    if graph.edge_features is not None:
        data.edge_attr = torch.from_numpy(graph.edge_features[rows])
    if graph.edge_types is not None:
        data.edge_type = torch.from_numpy(graph.edge_types[rows].astype(np.int64))
    return data


def both_directions(edges: Index, *, directed: bool) -> tuple[Index, Index]:
    """Each undirected edge followed by its reverse; a self loop stays one.

    Returns:
        (K, 2) edges, and (K,) the row of the listed edge that each stands for.
    """
    rows = np.arange(len(edges), dtype=np.int64)
    if directed:
        return edges, rows
    copies = np.where(edges[:, 0] == edges[:, 1], 1, 2)
    rows = np.repeat(rows, copies)
    reverse = np.zeros(len(rows), dtype=bool)
    reverse[1:] = rows[1:] == rows[:-1]
    doubled = edges[rows]
    doubled[reverse] = doubled[reverse, ::-1]
    return doubled, rows


def one_direction(edges: Index, *inputs: NDArray[Any]) -> Index | None:
    """The inverse of :func:`both_directions`: which rows to keep, one of each edge and reverse.

    The k-th (u, v) pairs with the k-th (v, u) of equal input, and the earlier of the two is
    kept. None where an edge has no such reverse: the edges are directed.

    Args:
        edges: (K, 2) node numbers.
        inputs: arrays of K rows each.
    """
    if edges.ndim != 2 or edges.shape[1] != 2:
        raise GraphError(f"edge_index must have shape (2, E), got {edges.T.shape}")
    for values in inputs:
        if len(values) != len(edges):
            raise GraphError(f"edge input has {len(values)} rows for {len(edges)} edges")
    low, high = edges.min(axis=1), edges.max(axis=1)
    flat = [values.reshape(len(values), math.prod(values.shape[1:])) for values in inputs]
    columns = [column for values in flat for column in values.T]
    keys = [*columns, high, low]
    halves = []
    for half in (edges[:, 0] < edges[:, 1], edges[:, 0] > edges[:, 1]):
        members = np.flatnonzero(half)
        halves.append(members[np.lexsort([key[members] for key in keys])])
    forward, backward = halves
    if len(forward) != len(backward) or any((key[forward] != key[backward]).any() for key in keys):
        return None
    loops = np.flatnonzero(low == high)
    return np.sort(np.concatenate([loops, np.minimum(forward, backward)]))


def _pyg() -> tuple[Any, Any]:
    try:
        from torch_geometric.data import Batch, Data
    except ImportError as error:
        raise MissingDependencyError(
            "torch_geometric is not installed; run: pip install 'graphkin[pyg]'"
        ) from error
    return Data, Batch


def _array(data: Any, name: str) -> NDArray[Any]:
    import torch

    value = data[name]
    if not isinstance(value, torch.Tensor):
        raise GraphError(f"data.{name} must be a tensor, got {type(value).__name__}")
    try:
        array: NDArray[Any] = value.detach().cpu().numpy()
    except (TypeError, RuntimeError) as error:
        raise GraphError(f"data.{name} has no NumPy form, convert it first: {error}") from error
    return array
