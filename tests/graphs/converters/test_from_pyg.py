"""PyTorch Geometric: round trips, edges in both directions, and data that are refused."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_geometric.data import Batch, Data, HeteroData
from torch_geometric.utils import to_undirected

from graphkin.errors import GraphError, MissingDependencyError
from graphkin.graphs import Graph
from graphkin.graphs.converters.from_pyg import (
    both_directions,
    from_pyg,
    one_direction,
    to_pyg,
)
from tests.graphs.graph_strategies import graphs


@given(graphs())
def test_pyg_round_trip_is_exact(graph: Graph) -> None:
    data = to_pyg(graph)
    data.validate()
    assert from_pyg(data) == graph


@given(st.lists(graphs(node_kind="tokens", edge_kind="types"), min_size=2, max_size=4))
@settings(max_examples=30)
def test_pyg_batches_split_into_the_same_graphs(items: list[Graph]) -> None:
    batch = Batch.from_data_list([to_pyg(item) for item in items])
    assert [from_pyg(data) for data in batch.to_data_list()] == items
    with pytest.raises(GraphError, match="to_data_list"):
        from_pyg(batch)


@given(graphs(directed=False))
def test_pyg_finds_the_edges_undirected(graph: Graph) -> None:
    data = to_pyg(graph)
    assert data.is_undirected()
    loops = int((graph.edges[:, 0] == graph.edges[:, 1]).sum())
    assert data.num_edges == 2 * graph.num_edges - loops


def test_pyg_direction_is_asked_from_the_edges() -> None:
    one_way = torch.tensor([[0, 1, 2, 2], [1, 2, 0, 2]])
    both_ways = to_undirected(one_way)
    undirected = from_pyg(Data(edge_index=both_ways, num_nodes=4))
    assert (undirected.directed, undirected.num_nodes) == (False, 4)
    assert undirected.edges.tolist() == [[0, 1], [0, 2], [1, 2], [2, 2]]
    assert from_pyg(Data(edge_index=one_way, num_nodes=3)).directed
    told = from_pyg(Data(edge_index=both_ways, num_nodes=3), directed=True)
    assert (told.directed, told.num_edges) == (True, 7)
    with pytest.raises(GraphError, match="no reverse"):
        from_pyg(Data(edge_index=one_way, num_nodes=3), directed=False)


def test_pyg_edges_with_unequal_input_are_no_reverse() -> None:
    edge_index = torch.tensor([[0, 1], [1, 0]])
    uneven = Data(edge_index=edge_index, edge_attr=torch.tensor([1.0, 2.0]), num_nodes=2)
    graph = from_pyg(uneven)
    assert graph.directed
    assert graph.edge_features is not None
    assert graph.edge_features.tolist() == [[1.0], [2.0]]
    even = Data(edge_index=edge_index, edge_attr=torch.tensor([2.0, 2.0]), num_nodes=2)
    assert from_pyg(even) == Graph(2, [(0, 1)], edge_features=[[2.0]])


def test_pyg_without_edges() -> None:
    graph = from_pyg(Data(x=torch.ones(2, 3)))
    assert graph == Graph(2, node_features=np.ones((2, 3)))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (Data(), "no nodes"),
        (HeteroData(), "got HeteroData"),
        ({"x": 1}, "got dict"),
        (Data(x=torch.ones(2, 1), edge_index=torch.tensor([0, 1])), r"\(2, E\)"),
        (Data(x=torch.ones(2, 1), edge_index=torch.tensor([[0], [2]])), r"\(0, 2\)"),
        (Data(x=torch.ones(2)), r"\(2, F\)"),
        (Data(x=[[1.0], [2.0]], num_nodes=2), "x must be a tensor, got list"),
        (Data(x=torch.ones(2, 1, dtype=torch.bfloat16)), "data.x has no NumPy form"),
        (Data(token_ids=torch.tensor([1]), num_nodes=2), "token_counts"),
        (
            Data(edge_index=torch.tensor([[0], [1]]), edge_attr=torch.ones(2, 1), num_nodes=2),
            "2 rows for 1 edges",
        ),
    ],
)
def test_pyg_refusals(data: Any, message: str) -> None:
    with pytest.raises(GraphError, match=message):
        from_pyg(data)


def test_pyg_missing_names_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch_geometric.data", None)
    for call in (lambda: to_pyg(Graph(1)), lambda: from_pyg(None)):
        with pytest.raises(MissingDependencyError, match=r"pip install 'graphkin\[pyg\]'"):
            call()


@given(graphs(directed=False, edge_kind="types"), st.randoms())
def test_one_direction_pairs_edges_in_any_order(graph: Graph, random: Any) -> None:
    """Whatever the order of the doubled edges, the same multiset comes back."""
    assert graph.edge_types is not None
    doubled, rows = both_directions(graph.edges.astype(np.int64), directed=False)
    types = graph.edge_types[rows] % 2
    order = random.sample(range(len(doubled)), len(doubled))
    kept = one_direction(doubled[order], types[order])
    assert kept is not None
    kept_edges = [
        (*sorted(pair), kind)
        for pair, kind in zip(
            doubled[order][kept].tolist(), types[order][kept].tolist(), strict=True
        )
    ]
    listed = zip(graph.edges.tolist(), (graph.edge_types % 2).tolist(), strict=True)
    assert sorted(kept_edges) == sorted((*sorted(pair), kind) for pair, kind in listed)
