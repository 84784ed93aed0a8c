"""The fused kernels as differentiable torch functions."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from graphkin.graphs.batch import Adjacency
from graphkin.models.functions import apply
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
        return apply(cls, projected, table, adjacency.offsets, adjacency.neighbours, rows)

    @staticmethod
    def forward(ctx: Any, projected: Tensor, table: Tensor, *edges: Tensor) -> Tensor:
        ctx.save_for_backward(projected, table, *edges)
        count, width = projected.shape[0], projected.shape[1] // 2
        out, bias = projected.new_empty(count, width), projected.new_zeros(width)
        offsets, neighbours, rows = (_array(tensor) for tensor in edges)
        fused.message_forward(
            _array(projected),
            0,
            _array(bias),
            offsets,
            neighbours,
            _array(table),
            rows,
            _array(out),
            0,
            width,
        )
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        projected, table, offsets, neighbours, rows = ctx.saved_tensors
        width = projected.shape[1] // 2
        bias = projected.new_zeros(width)
        grad_projected, grad_table = torch.zeros_like(projected), torch.zeros_like(table)
        fused.message_backward(
            _array(grad),
            0,
            _array(projected),
            0,
            _array(bias),
            _array(offsets),
            _array(neighbours),
            _array(table),
            _array(rows),
            _array(grad_projected),
            _array(grad_table),
            width,
        )
        return grad_projected, grad_table, None, None, None


class NeighbourSum(Function):
    """See :func:`graphkin.models.kernels.neighbour_sum`."""

    @classmethod
    def run(cls, x: Tensor, adjacency: Adjacency) -> Tensor:
        return apply(cls, x, adjacency.offsets, adjacency.neighbours)

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
        return apply(cls, inputs, states, h)

    @staticmethod
    def forward(ctx: Any, inputs: Tensor, states: Tensor, h: Tensor) -> Tensor:
        count, width = h.shape
        out, candidate = h.new_empty(count, width), h.new_empty(count, width)
        gates, bias = h.new_empty(count, 2 * width), h.new_zeros(3 * width)
        ctx.save_for_backward(gates, candidate, states, bias, h)
        rest = (_array(tensor) for tensor in (bias, h, out, gates, candidate))
        fused.gru_forward(_array(inputs), _array(states), 0, *rest)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, ...]:
        gates, candidate, states, bias, h = ctx.saved_tensors
        grads = h.new_empty(states.shape), h.new_empty(states.shape), h.new_empty(h.shape)
        fused.gru_backward(
            _array(grad),
            _array(gates),
            _array(candidate),
            _array(states),
            0,
            _array(bias),
            _array(h),
            *(_array(tensor) for tensor in grads),
        )
        return grads


class GatedSum(Function):
    """See :func:`graphkin.models.kernels.gated_sum`."""

    @classmethod
    def run(cls, x: Tensor, node_offsets: Tensor) -> Tensor:
        return apply(cls, x, node_offsets)

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
