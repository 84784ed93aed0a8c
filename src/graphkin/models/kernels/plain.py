"""The kernels in plain torch: any device, any dtype, and the reference for the fused ones."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from graphkin.graphs.batch import Adjacency

NORM_EPSILON = 1e-5
"""Added to the variance of messages over a graph, so that columns without one become 0."""


def message_sum(
    projected: Tensor, adjacency: Adjacency, table: Tensor | None, rows: Tensor | None
) -> Tensor:
    """out_i = sum_j relu(a_i + b_j + c_ij)."""
    hidden = edge_hidden(projected, adjacency, table, rows)
    out = hidden.new_zeros(projected.shape[0], hidden.shape[1])
    return out.index_add(0, adjacency.owners, hidden)


def edge_hidden(
    projected: Tensor, adjacency: Adjacency, table: Tensor | None, rows: Tensor | None
) -> Tensor:
    """relu(a_i + b_j + c_ij) for every message: (E, H)."""
    receiver, sender = projected.chunk(2, dim=1)  # (N, H) each
    # index_select, because the gradient of x[index] is added up element by element.
    hidden = receiver.index_select(0, adjacency.owners)
    hidden = hidden + sender.index_select(0, adjacency.neighbours)
    if table is not None and rows is not None:
        hidden = hidden + table.index_select(0, rows)
    return hidden.relu()


def neighbour_sum(x: Tensor, adjacency: Adjacency) -> Tensor:
    """out_i = sum of x_j over the entries that i owns."""
    received = x.index_select(0, adjacency.neighbours)
    return torch.zeros_like(x).index_add(0, adjacency.owners, received)


def adam(
    weights: Tensor,
    grad: Tensor,
    mean: Tensor,
    square: Tensor,
    rate: float,
    beta1: float,
    beta2: float,
    scale: float,
    epsilon: float,
) -> None:
    """One Adam update of a flat array."""
    mean.lerp_(grad, 1 - beta1)
    square.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
    weights.addcdiv_(mean, square.sqrt().mul_(scale).add_(epsilon), value=-rate)


def gated_sum(
    h: Tensor, weight: Tensor, bias: Tensor, node_offsets: Tensor, node_graph: Tensor
) -> Tensor:
    """Sum over each graph's nodes of sigmoid(gate) * value, with [gate | value] = W h + b."""
    gate, value = functional.linear(h, weight, bias).chunk(2, dim=1)
    out = gate.new_zeros(len(node_offsets) - 1, gate.shape[1])
    return out.index_add(0, node_graph, gate.sigmoid() * value)
