"""Graph convolution against PyTorch Geometric."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch_geometric.nn import GCNConv

from graphkin.graphs import Graph, GraphBatch
from graphkin.models import ModelConfig
from graphkin.models.layers import GraphConvolution

WIDTH = 5


def random_edges(rng: np.random.Generator, nodes: int, count: int) -> np.ndarray:
    """Directed edges without self loops, which the two libraries count differently."""
    edges = rng.integers(0, nodes, (count, 2))
    return edges[edges[:, 0] != edges[:, 1]]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("directed", [False, True], ids=["undirected", "directed"])
@pytest.mark.parametrize("seed", range(3))
def test_one_layer(seed: int, directed: bool, dtype: torch.dtype) -> None:
    rng = np.random.default_rng(seed)
    sizes = [(7, 15), (1, 0), (4, 0), (12, 40)]
    graphs = [Graph(n, random_edges(rng, n, e), directed=directed) for n, e in sizes]
    batch = GraphBatch.pack(graphs)

    torch.manual_seed(seed)
    config = ModelConfig.named("gcn", node_dim=WIDTH)
    ours, theirs = GraphConvolution(config).to(dtype), GCNConv(WIDTH, WIDTH).to(dtype)
    torch.nn.init.normal_(ours.bias)
    theirs.lin.weight.data.copy_(ours.weight.data)
    theirs.bias.data.copy_(ours.bias.data)
    x = torch.randn(batch.num_nodes, WIDTH, dtype=dtype)
    our_x, their_x = x.clone().requires_grad_(), x.clone().requires_grad_()

    listed, start = [], 0
    for graph in graphs:
        listed.append(graph.edges.astype(np.int64) + start)
        start += graph.num_nodes
    edges = torch.from_numpy(np.concatenate(listed)).T
    if not directed:
        edges = torch.cat([edges, edges.flip(0)], dim=1)
    got, expected = ours(our_x, batch), theirs(their_x, edges).relu()
    precision = 1e-5 if dtype == torch.float32 else 1e-11
    torch.testing.assert_close(got, expected, rtol=precision, atol=precision)

    slopes = torch.randn_like(expected)
    our_gradients = torch.autograd.grad(got, [our_x, ours.weight, ours.bias], slopes)
    their_inputs = [their_x, theirs.lin.weight, theirs.bias]
    their_gradients = torch.autograd.grad(expected, their_inputs, slopes)
    for mine, their in zip(our_gradients, their_gradients, strict=True):
        torch.testing.assert_close(mine, their, rtol=precision, atol=precision)
