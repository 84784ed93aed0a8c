"""The fused kernels as differentiable torch functions."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from graphkin.graphs.batch import Adjacency
from graphkin.models.kernels import fused


def _array(tensor: Tensor) -> Any:
    return tensor.detach().contiguous().numpy()


class MessageSum(Function):
    """See :func:`graphkin.models.kernels.message_sum`."""

    @classmethod
    def run(
        cls, projected: Tensor, adjacency: Adjacency, table: Tensor | None, rows: Tensor | None
    ) -> Tensor:
        if table is None or rows is None:
            table, rows = projected.new_empty(0, 0), adjacency.edge_rows
        out: Tensor = cls.apply(projected, table, adjacency.offsets, adjacency.neighbours, rows)
        return out

    @staticmethod
    def forward(
        ctx: Any,
        projected: Tensor,
        table: Tensor,
        offsets: Tensor,
        neighbours: Tensor,
        rows: Tensor,
    ) -> Tensor:
        ctx.save_for_backward(projected, table, offsets, neighbours, rows)
        arrays = [_array(t) for t in (projected, offsets, neighbours, table, rows)]
        return torch.from_numpy(fused.message_sum_forward(*arrays))

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        projected, table, offsets, neighbours, rows = ctx.saved_tensors
        arrays = [_array(t) for t in (grad, projected, offsets, neighbours, table, rows)]
        grad_projected, grad_table = fused.message_sum_backward(*arrays)
        return torch.from_numpy(grad_projected), torch.from_numpy(grad_table), None, None, None


class NeighbourSum(Function):
    """See :func:`graphkin.models.kernels.neighbour_sum`."""

    @classmethod
    def run(cls, x: Tensor, adjacency: Adjacency) -> Tensor:
        out: Tensor = cls.apply(x, adjacency.offsets, adjacency.neighbours)
        return out

    @staticmethod
    def forward(ctx: Any, x: Tensor, offsets: Tensor, neighbours: Tensor) -> Tensor:
        ctx.save_for_backward(offsets, neighbours)
        arrays = (_array(x), _array(offsets), _array(neighbours))
        return torch.from_numpy(fused.neighbour_sum_forward(*arrays))

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        offsets, neighbours = ctx.saved_tensors
        arrays = (_array(grad), _array(offsets), _array(neighbours))
        return torch.from_numpy(fused.neighbour_sum_backward(*arrays)), None, None


class GRUUpdate(Function):
    """See :func:`graphkin.models.kernels.gru_update`."""

    @classmethod
    def run(cls, inputs: Tensor, states: Tensor, h: Tensor) -> Tensor:
        out: Tensor = cls.apply(inputs, states, h)
        return out

    @staticmethod
    def forward(ctx: Any, inputs: Tensor, states: Tensor, h: Tensor) -> Tensor:
        out, gates, candidate = fused.gru_forward(_array(inputs), _array(states), _array(h))
        ctx.save_for_backward(torch.from_numpy(gates), torch.from_numpy(candidate), states, h)
        return torch.from_numpy(out)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, ...]:
        arrays = [_array(tensor) for tensor in ctx.saved_tensors]
        return tuple(torch.from_numpy(g) for g in fused.gru_backward(_array(grad), *arrays))


class GatedSum(Function):
    """See :func:`graphkin.models.kernels.gated_sum`."""

    @classmethod
    def run(cls, x: Tensor, node_offsets: Tensor) -> Tensor:
        out: Tensor = cls.apply(x, node_offsets)
        return out

    @staticmethod
    def forward(ctx: Any, x: Tensor, node_offsets: Tensor) -> Tensor:
        ctx.save_for_backward(x, node_offsets)
        return torch.from_numpy(fused.gated_sum_forward(_array(x), _array(node_offsets)))

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        x, node_offsets = ctx.saved_tensors
        out = fused.gated_sum_backward(_array(grad), _array(x), _array(node_offsets))
        return torch.from_numpy(out), None
