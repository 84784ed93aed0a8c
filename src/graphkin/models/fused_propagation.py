"""All propagation steps of a GRU network with summed messages as one differentiable function.

This is the paper's default architecture, and what training spends its time in. It computes
exactly what :class:`graphkin.models.network.PropagationStep` does, step by step, with these
savings over an operator for each line of the equations:

- the projections of a state that messages and GRU need are one matrix product;
- the last layer of the message MLP is composed with the GRU's input matrix; message counts
  and a column of ones ride along in that product, for the biases of both;
- biases are added inside the kernels, and results go to buffers that hold all steps;
- with shared parameters each weight gradient is one product over all steps.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from graphkin.graphs.batch import Adjacency
from graphkin.graphs.grouping import PairGroup
from graphkin.models.attention import Kept, attention_backward, attention_forward
from graphkin.models.functions import apply
from graphkin.models.kernels import backend
from graphkin.models.kernels.workspace import WORKSPACE

if backend() == "fused":
    from graphkin.models.kernels import fused

Array = NDArray[Any]


@dataclass(frozen=True)
class MessageRoute:
    """One message network over one set of edges."""

    first: int
    """Column of the projections where its receiver part starts; the sender part follows."""
    adjacency: Adjacency
    rows: Tensor
    """(E,) row of the edge table for each message."""


@dataclass(frozen=True)
class StepWeights:
    """The parameters of one propagation step, composed. W = columns of the projections."""

    projection: Tensor
    """(W, D): receiver and sender rows of each message network, then the GRU's state rows."""
    bias: Tensor
    """(W,), zero in sender columns."""
    fold: Tensor
    """(3D, R H + R + 1) for R routes: GRU input after the message MLP's last layer, that
    layer's bias for each message, and the GRU's input bias."""
    match: Tensor | None
    """(3D, D), for matching."""
    tables: tuple[Tensor, ...]
    """(rows, H) edge terms for each route; empty for constant edges."""


@dataclass(frozen=True)
class Layout:
    """What does not change over the steps."""

    steps: int
    routes: tuple[MessageRoute, ...]
    message_dim: int
    groups: Sequence[PairGroup]
    euclidean: bool
    """Euclidean attention; dot product otherwise."""


def propagate(h: Tensor, layout: Layout, weights: Sequence[StepWeights]) -> Tensor:
    """(N, D) states -> (N, D) states after all steps; one entry of weights, or one per step."""
    flat: list[Tensor | None] = []
    for w in weights:
        flat += [w.projection, w.bias, w.fold, w.match, *w.tables]
    return apply(_Propagate, h, layout, len(weights), *flat)


def _unflatten(flat: Sequence[Any], count: int) -> list[StepWeights]:
    size = len(flat) // count
    plain: list[Any] = [None if tensor is None else tensor.detach() for tensor in flat]
    parts = [plain[index * size : (index + 1) * size] for index in range(count)]
    return [StepWeights(p[0], p[1], p[2], p[3], tuple(p[4:])) for p in parts]


class _Stack:
    """One array (slots, N, width), with its slots at hand as tensors and as numpy arrays."""

    def __init__(self, like: Tensor, slots: int, width: int) -> None:
        self.all = WORKSPACE.take((slots, like.shape[0], width), like.dtype)
        self.tensors = self.all.unbind(0)
        self.arrays: list[Array] = list(self.all.numpy())

    def rows(self, own: slice) -> Tensor:
        """(rows, width): the given slots, one below the other."""
        return self.all[own].flatten(0, 1)


class _Buffers:
    """Arrays of all steps (or of one, reused, where no gradient is wanted)."""

    def __init__(self, h: Tensor, layout: Layout, columns: int, keep: bool) -> None:
        width = h.shape[1]
        slots = layout.steps if keep else 1
        routes = len(layout.routes)
        hidden = routes * layout.message_dim
        self.states = _Stack(h, slots + 1, width)
        self.projected = _Stack(h, slots, columns)
        self.summed = _Stack(h, slots, hidden + routes + 1)
        for position, route in enumerate(layout.routes):
            self.summed.all[:, :, hidden + position] = route.adjacency.offsets.diff()
        self.summed.all[:, :, -1] = 1
        self.gates = _Stack(h, slots, 2 * width)
        self.candidate = _Stack(h, slots, width)
        self.matched = _Stack(h, slots, width) if layout.groups else None

    def release(self) -> None:
        """Gives the arrays back; to be called when nothing reads them any more."""
        stacks = (self.states, self.projected, self.summed, self.gates, self.candidate)
        WORKSPACE.give(*(stack.all for stack in stacks))
        if self.matched is not None:
            WORKSPACE.give(self.matched.all)


class _Propagate(Function):
    @staticmethod
    def forward(ctx: Any, h: Tensor, layout: Layout, count: int, *flat: Tensor | None) -> Tensor:
        weights = _unflatten(flat, count)
        keep = any(ctx.needs_input_grad)
        buffers = _Buffers(h, layout, weights[0].projection.shape[0], keep)
        inputs = WORKSPACE.take((h.shape[0], 3 * h.shape[1]), h.dtype)
        kept: list[Kept] = []
        buffers.states.tensors[0].copy_(h)
        for t in range(layout.steps):
            kept.append(_step(t, inputs, layout, weights[t % count], buffers, keep))
        last = layout.steps if keep else layout.steps % 2
        out = buffers.states.tensors[last].clone()
        WORKSPACE.give(inputs)
        if keep:
            ctx.save_for_backward(*flat)
            ctx.layout, ctx.count, ctx.buffers, ctx.kept = layout, count, buffers, kept
        else:
            buffers.release()
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
        layout, count, buffers = ctx.layout, ctx.count, ctx.buffers
        weights = _unflatten(ctx.saved_tensors, count)
        grad_inputs = _Stack(grad, layout.steps, 3 * grad.shape[1])
        grad_projected = _Stack(grad, layout.steps, buffers.projected.all.shape[2])
        grad_projected.all.zero_()
        grad_tables = [[torch.zeros_like(table) for table in w.tables] for w in weights]
        grad = grad.contiguous()
        for t in reversed(range(layout.steps)):
            grad = _step_backward(
                t,
                grad,
                layout,
                weights[t % count],
                buffers,
                ctx.kept[t],
                grad_inputs,
                grad_projected,
                grad_tables[t % count],
            )
        flat: list[Tensor | None] = []
        for index in range(count):
            flat += _weight_gradients(buffers, index, count, grad_inputs, grad_projected)
            flat += grad_tables[index]
        WORKSPACE.give(grad_inputs.all, grad_projected.all)
        buffers.release()
        del ctx.buffers, ctx.kept
        return grad, None, None, *flat


def _step(
    t: int,
    inputs: Tensor,
    layout: Layout,
    weights: StepWeights,
    buffers: _Buffers,
    keep: bool,
) -> Kept:
    """Writes the states after step t + 1; returns the attention weights for the backward pass."""
    slot, now, after = (t, t, t + 1) if keep else (0, t % 2, (t + 1) % 2)
    h = buffers.states.tensors[now]
    projected, summed = buffers.projected, buffers.summed
    torch.mm(h, weights.projection.t(), out=projected.tensors[slot])
    bias = weights.bias.numpy()
    for position, route in enumerate(layout.routes):
        fused.message_forward(
            projected.arrays[slot],
            route.first,
            bias[route.first :],
            *_edges(route, weights.tables[position]),
            summed.arrays[slot],
            position * layout.message_dim,
            layout.message_dim,
        )
    torch.mm(summed.tensors[slot], weights.fold.t(), out=inputs)
    kept: Kept = []
    if buffers.matched is not None and weights.match is not None:
        key, key_bias = _keys(h, layout)
        attended, kept = attention_forward(None, key, h, key_bias, layout.groups, keep)
        matched = torch.sub(h, attended, out=buffers.matched.tensors[slot])
        inputs.addmm_(matched, weights.match.t())
    first = len(bias) - 3 * h.shape[1]
    fused.gru_forward(
        inputs.numpy(),
        projected.arrays[slot],
        first,
        bias[first:],
        buffers.states.arrays[now],
        buffers.states.arrays[after],
        buffers.gates.arrays[slot],
        buffers.candidate.arrays[slot],
    )
    return kept


def _step_backward(
    t: int,
    grad: Tensor,
    layout: Layout,
    weights: StepWeights,
    buffers: _Buffers,
    kept: Kept,
    grad_inputs: _Stack,
    grad_projected: _Stack,
    grad_tables: Sequence[Tensor],
) -> Tensor:
    """Gradient of the states before the step; fills the gradients that the weights need."""
    projected, h = buffers.projected.arrays[t], buffers.states.tensors[t]
    bias = weights.bias.numpy()
    first = len(bias) - 3 * h.shape[1]
    out = torch.empty_like(h)
    fused.gru_backward(
        grad.numpy(),
        buffers.gates.arrays[t],
        buffers.candidate.arrays[t],
        projected,
        first,
        bias[first:],
        buffers.states.arrays[t],
        grad_inputs.arrays[t],
        grad_projected.arrays[t],
        out.numpy(),
    )
    hidden = len(layout.routes) * layout.message_dim
    grad_summed = torch.mm(grad_inputs.tensors[t], weights.fold[:, :hidden]).numpy()
    for position, route in enumerate(layout.routes):
        fused.message_backward(
            grad_summed,
            position * layout.message_dim,
            projected,
            route.first,
            bias[route.first :],
            *_edges(route, weights.tables[position]),
            grad_projected.arrays[t],
            grad_tables[position].numpy(),
            layout.message_dim,
        )
    out.addmm_(grad_projected.tensors[t], weights.projection)
    if weights.match is not None:
        grad_matched = torch.mm(grad_inputs.tensors[t], weights.match)
        out += grad_matched
        key, key_bias = _keys(h, layout)
        grads = attention_backward(grad_matched.neg_(), kept, None, key, h, key_bias, layout.groups)
        out += grads.value
        out.add_(grads.key, alpha=math.sqrt(2.0) if layout.euclidean else 1.0)
        if grads.bias is not None:
            out.addcmul_(h, grads.bias.unsqueeze(1), value=-2.0)
    return out


def _weight_gradients(
    buffers: _Buffers, index: int, count: int, grad_inputs: _Stack, grad_projected: _Stack
) -> list[Tensor | None]:
    """Gradients of projection, bias, fold and match, over the steps that share them."""
    own = slice(index, len(grad_inputs.tensors), count)
    inputs, projected = grad_inputs.rows(own), grad_projected.rows(own)
    match = None if buffers.matched is None else inputs.t() @ buffers.matched.rows(own)
    return [
        projected.t() @ buffers.states.rows(own),
        projected.sum(dim=0),
        inputs.t() @ buffers.summed.rows(own),
        match,
    ]


def _keys(h: Tensor, layout: Layout) -> tuple[Tensor, Tensor | None]:
    """Keys and their bias: 2 h_i.h_j - |h_j|^2 for Euclidean attention, h_i.h_j otherwise."""
    if layout.euclidean:
        return h * math.sqrt(2.0), -h.square().sum(dim=1)
    return h, None


def _edges(route: MessageRoute, table: Tensor) -> tuple[Array, Array, Array, Array]:
    offsets, neighbours = route.adjacency.offsets, route.adjacency.neighbours
    return offsets.numpy(), neighbours.numpy(), table.numpy(), route.rows.numpy()
