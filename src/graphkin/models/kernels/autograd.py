"""The compiled kernels as differentiable torch functions."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from graphkin.graphs.batch import Adjacency
from graphkin.models.kernels.dispatch import backend
from graphkin.models.kernels.workspace import WORKSPACE, take_once

if backend() == "fused":
    from graphkin.models.kernels import compiled


def apply(function: type[Function], *arguments: Any) -> Tensor:
    """``function.apply`` with the type that torch leaves out."""
    out: Tensor = function.apply(*arguments)  # type: ignore[no-untyped-call]
    return out


def _array(tensor: Tensor) -> Any:
    return tensor.detach().contiguous().numpy()


class MessageSum(Function):
    """See :func:`graphkin.models.kernels.dispatch.message_sum`."""

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
        # The kernel also counts messages, in a column that is cut off.
        out, bias = projected.new_empty(count, width + 1), projected.new_zeros(width)
        offsets, neighbours, rows = (_array(tensor) for tensor in edges)
        compiled.message_forward(
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
            width,
        )
        return out[:, :width]

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        projected, table, offsets, neighbours, rows = ctx.saved_tensors
        width = projected.shape[1] // 2
        bias = projected.new_zeros(width)  # there is none: what the kernel adds to it is dropped
        grad_projected = projected.new_zeros(projected.shape)
        grad_table = table.new_zeros(table.shape)
        compiled.message_backward(
            _array(grad),
            0,
            _array(projected),
            0,
            _array(bias.clone()),
            _array(offsets),
            _array(neighbours),
            _array(table),
            _array(rows),
            _array(grad_projected),
            _array(bias),
            _array(grad_table),
            width,
            False,
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
        return torch.from_numpy(compiled.neighbour_sum_forward(*arrays))

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        offsets, neighbours = ctx.saved_tensors
        arrays = (_array(grad), _array(offsets), _array(neighbours))
        return torch.from_numpy(compiled.neighbour_sum_backward(*arrays)), None, None


class GatedSum(Function):
    """See :func:`graphkin.models.kernels.gated_sum`. The (N, 2G) layer never leaves it."""

    @classmethod
    def run(cls, h: Tensor, weight: Tensor, bias: Tensor, node_offsets: Tensor) -> Tensor:
        return apply(cls, h, weight, bias, node_offsets, torch.is_grad_enabled())

    @staticmethod
    def forward(
        ctx: Any,
        h: Tensor,
        weight: Tensor,
        bias: Tensor,
        node_offsets: Tensor,
        differentiable: bool,
    ) -> Tensor:
        x = WORKSPACE.take((h.shape[0], weight.shape[0]), h.dtype)
        torch.mm(h, weight.t(), out=x)
        out = h.new_empty(len(node_offsets) - 1, weight.shape[0] // 2)
        compiled.gated_sum_forward(_array(x), _array(bias), _array(node_offsets), _array(out))
        if differentiable and any(ctx.needs_input_grad):
            ctx.save_for_backward(h, weight, bias, node_offsets)
            ctx.x = x
        else:
            WORKSPACE.give(x)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        h, weight, bias, node_offsets = ctx.saved_tensors
        x = take_once(ctx, "x")
        grad_x, grad_bias = WORKSPACE.take(x.shape, x.dtype), torch.zeros_like(bias)
        compiled.gated_sum_backward(
            _array(grad),
            _array(x),
            _array(bias),
            _array(node_offsets),
            _array(grad_x),
            _array(grad_bias),
        )
        grads = grad_x @ weight, grad_x.t() @ h, grad_bias
        WORKSPACE.give(x, grad_x)
        return *grads, None, None
