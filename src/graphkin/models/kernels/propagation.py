"""All propagation steps of a GRU network with summed messages as one differentiable function.

This is the paper's default architecture, and what training spends its time in. It computes
exactly what :class:`graphkin.models.network.PropagationStep` does, step by step, with these
savings over an operator for each line of the equations:

- the projections of a state that messages and GRU need are one matrix product;
- the last layer of the message MLP is composed with the GRU's input matrix; message counts
  and a column of ones ride along in that product, for the biases of both;
- biases are added inside the kernels, and the states of all steps live in reused buffers;
- where all nodes start alike, the first step is computed once for each number of messages.

Networks of other kinds, and tensors on other devices, are left to the plain steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from graphkin.graphs.batch import Adjacency, GraphBatch
from graphkin.graphs.pair_groups import PairGroup
from graphkin.models.kernels import backend, use_fused
from graphkin.models.kernels.attention_blocks import (
    EUCLIDEAN,
    PLAIN,
    Gradients,
    Kept,
    ScoreKind,
    attention_backward,
    attention_forward,
)
from graphkin.models.kernels.autograd import apply
from graphkin.models.kernels.composition import (
    Composed,
    ComposedGradients,
    Step,
    StepParameters,
    unflatten,
)
from graphkin.models.kernels.plain import NORM_EPSILON
from graphkin.models.kernels.workspace import WORKSPACE, take_once

if backend() == "fused":
    from graphkin.models.kernels import compiled

Array = NDArray[Any]


@dataclass(frozen=True)
class MessageRoute:
    """One message network over one set of edges."""

    network: int
    """Which of the step's message networks."""
    adjacency: Adjacency
    rows: Tensor
    """(E,) row of the edge table for each message."""


@dataclass(frozen=True)
class Layout:
    """What does not change over the steps."""

    steps: int
    routes: tuple[MessageRoute, ...]
    message_dim: int
    groups: Sequence[PairGroup]
    """Which nodes face which; empty without matching."""
    attention: ScoreKind
    """Euclidean, or plain products."""
    classes: tuple[Tensor, Tensor] | None
    """Where all nodes and edges start alike: (C, R) messages on each route by class of node,
    and (N,) the class of each node."""
    graphs: Tensor | None
    """(graphs + 1,) first node of each graph, where summed messages are normalised over them."""


class Network(Protocol):
    """What is read of :class:`graphkin.models.network.GraphNetwork`."""

    config: Any
    """A :class:`graphkin.models.config.ModelConfig`."""
    steps: nn.ModuleList


def propagate_fused(
    network: Network,
    h: Tensor,
    batch: GraphBatch,
    edges: Any,
    groups: Sequence[PairGroup],
    count: int,
) -> Tensor | None:
    """(N, D) states after ``count`` steps; None where the plain steps must be taken.

    ``edges`` are the edge vectors as the message networks take them.
    """
    config = network.config
    if not (use_fused(h) and _fusible(config)):
        return None
    if not count:
        return h
    steps = cast("list[Step]", list(network.steps))
    separate = config.reverse_messages == "separate"
    directions = [(0, batch.incoming)]
    if config.reverse_messages != "none":
        directions.append((int(separate), batch.outgoing))
    routes, tables = [], []
    for number, adjacency in directions:
        nets = [step.reverse_messages if number else step.messages for step in steps]
        terms = [net.edge_terms(edges, adjacency) for net in nets]
        rows = terms[0][1]
        tables.append([table for table, _ in terms])
        rows = adjacency.edge_rows if rows is None else rows
        routes.append(MessageRoute(number, adjacency, rows))
    classes = None
    if starts_alike(config):
        counts, members = batch.degree_classes
        classes = counts[:, : len(routes)], members
    layout = Layout(
        steps=count,
        routes=tuple(routes),
        message_dim=config.message_dim,
        groups=groups if config.matching else (),
        attention=EUCLIDEAN if config.attention_similarity == "euclidean" else PLAIN,
        classes=classes,
        graphs=batch.node_offsets if config.message_norm == "graph" else None,
    )
    parameters = [
        StepParameters.of(step, step_tables, separate, config.matching)
        for step, step_tables in zip(steps, zip(*tables, strict=True), strict=True)
    ]
    flat = [tensor for own in parameters for tensor in own.flatten()]
    shape = len(parameters), len(parameters[0].messages)
    return apply(_Propagate, h, layout, shape, torch.is_grad_enabled(), *flat)


def _fusible(config: Any) -> bool:
    """Whether a network of this configuration is of the kind that is computed here."""
    if (config.node_update, config.message_aggregation) != ("gru", "sum"):
        return False
    if not config.matching:
        return True
    return config.attention_similarity in ("euclidean", "dot") and not config.attention_projections


def starts_alike(config: Any) -> bool:
    """Whether all nodes start alike, and messages to a node differ by their number alone."""
    kinds = config.node_input, config.edge_input, config.message_norm
    return kinds == ("constant", "constant", "none")


class _Stack:
    """One array (slots, N, width), with its slots at hand as tensors and as numpy arrays."""

    def __init__(self, like: Tensor, slots: int, width: int) -> None:
        self.all = WORKSPACE.take((slots, like.shape[0], width), like.dtype)
        self.tensors = self.all.unbind(0)
        self.arrays: list[Array] = list(self.all.numpy())


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
        for array in self.summed.arrays:
            array[:, -1] = 1  # carries the GRU's input bias; message counts come with the sums
        self.gates = _Stack(h, slots, 2 * width)
        self.candidate = _Stack(h, slots, width)
        self.matched = _Stack(h, slots, width) if layout.groups else None
        self.graphs = None if layout.graphs is None else layout.graphs.numpy()
        self.scales: list[Array] = []
        if self.graphs is not None:
            shape = slots, len(self.graphs) - 1, hidden
            self.scales = list(np.empty(shape, dtype=self.summed.arrays[0].dtype))
        self.edges = [
            (r.adjacency.offsets.numpy(), r.adjacency.neighbours.numpy(), r.rows.numpy())
            for r in layout.routes
        ]

    def release(self) -> None:
        """Gives the arrays back; to be called when nothing reads them any more."""
        stacks = (self.states, self.projected, self.summed, self.gates, self.candidate)
        WORKSPACE.give(*(stack.all for stack in stacks))
        if self.matched is not None:
            WORKSPACE.give(self.matched.all)


class _Propagate(Function):
    @staticmethod
    def forward(
        ctx: Any,
        h: Tensor,
        layout: Layout,
        shape: tuple[int, int],
        differentiable: bool,
        *flat: Tensor | None,
    ) -> Tensor:
        """``shape`` counts the sets of parameters, and the message networks in each."""
        count, networks = shape
        size = len(flat) // count
        routes = [route.network for route in layout.routes]
        composed = [
            Composed(unflatten(flat[size * i : size * (i + 1)], networks), routes)
            for i in range(count)
        ]
        keep = differentiable and any(ctx.needs_input_grad)
        buffers = _Buffers(h, layout, len(composed[0].bias), keep)
        inputs = WORKSPACE.take((h.shape[0], 3 * h.shape[1]), h.dtype)
        kept: list[Kept] = []
        buffers.states.tensors[0].copy_(h)
        first = None
        if layout.classes is not None:
            first = _FirstStep(h, layout, layout.classes, composed[0], buffers)
        for t in range(layout.steps):
            if t or first is None:
                kept.append(_step(t, inputs, layout, composed[t % count], buffers, keep))
            else:
                kept.append([])
        last = layout.steps if keep else layout.steps % 2
        out = buffers.states.tensors[last].clone()
        WORKSPACE.give(inputs)
        if keep:
            # Not read, but torch then refuses a backward pass after one of them was changed.
            ctx.save_for_backward(*flat)
            ctx.layout, ctx.composed, ctx.first = layout, composed, first
            ctx.buffers, ctx.kept = buffers, kept
        else:
            buffers.release()
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
        buffers, kept = take_once(ctx, "buffers"), take_once(ctx, "kept")
        layout, composed, _ = ctx.layout, ctx.composed, ctx.saved_tensors
        count = len(composed)
        grads = [ComposedGradients(c) for c in composed]
        nodes, width = grad.shape
        grad_inputs = WORKSPACE.take((nodes, 3 * width), grad.dtype)
        grad_projected = WORKSPACE.take((nodes, len(composed[0].bias)), grad.dtype)
        scratch = grad_inputs, grad_projected
        grad = grad.contiguous()
        for t in reversed(range(layout.steps)):
            if t == 0 and ctx.first is not None:
                grad = ctx.first.backward(grad, composed[0], grads[0])
            else:
                own, theirs = composed[t % count], grads[t % count]
                grad = _step_backward(t, grad, layout, own, buffers, kept[t], scratch, theirs)
        WORKSPACE.give(*scratch)
        buffers.release()
        flat = [g for c, own in zip(composed, grads, strict=True) for g in own.of_parameters(c)]
        return grad, None, None, None, *flat


def _step(
    t: int, inputs: Tensor, layout: Layout, weights: Composed, buffers: _Buffers, keep: bool
) -> Kept:
    """Writes the states after step t + 1; returns the attention weights for the backward pass."""
    slot, now, after = (t, t, t + 1) if keep else (0, t % 2, (t + 1) % 2)
    h = buffers.states.tensors[now]
    projected, bias, width = buffers.projected.arrays[slot], weights.bias_array, layout.message_dim
    torch.mm(h, weights.projection, out=buffers.projected.tensors[slot])
    for position, route in enumerate(layout.routes):
        offsets, neighbours, rows = buffers.edges[position]
        start = 2 * width * route.network
        compiled.message_forward(
            projected,
            start,
            bias[start:],
            offsets,
            neighbours,
            weights.table_arrays[position],
            rows,
            buffers.summed.arrays[slot],
            position * width,
            len(layout.routes) * width + position,
            width,
        )
    if buffers.graphs is not None:
        summed, hidden = buffers.summed.arrays[slot], len(layout.routes) * width
        scales = buffers.scales[slot]
        compiled.graph_norm_forward(summed, hidden, buffers.graphs, NORM_EPSILON, scales)
        summed[:, hidden:] = 1  # the last layer's bias comes once, however many messages
    torch.mm(buffers.summed.tensors[slot], weights.fold, out=inputs)
    kept: Kept = []
    if buffers.matched is not None and weights.match is not None:
        attended, kept = attention_forward(
            None, h, h, _key_bias(h, layout), layout.groups, layout.attention, keep
        )
        matched = torch.sub(h, attended, out=buffers.matched.tensors[slot])
        inputs.addmm_(matched, weights.match.t())
    first = len(bias) - 3 * h.shape[1]
    compiled.gru_forward(
        inputs.numpy(),
        projected,
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
    weights: Composed,
    buffers: _Buffers,
    kept: Kept,
    scratch: tuple[Tensor, Tensor],
    grads: ComposedGradients,
) -> Tensor:
    """Gradient of the states before the step; adds to those of the weights."""
    projected, h = buffers.projected.arrays[t], buffers.states.tensors[t]
    bias, grad_bias = weights.bias_array, grads.bias.numpy()
    grad_inputs, grad_projected = scratch
    grad_projected_array = grad_projected.numpy()
    width, first = layout.message_dim, len(bias) - 3 * h.shape[1]
    out = torch.empty_like(h)
    compiled.gru_backward(
        grad.numpy(),
        buffers.gates.arrays[t],
        buffers.candidate.arrays[t],
        projected,
        first,
        bias[first:],
        buffers.states.arrays[t],
        grad_inputs.numpy(),
        grad_projected_array,
        grad_bias[first:],
        out.numpy(),
    )
    hidden = weights.fold[: len(layout.routes) * width]
    grad_summed = torch.mm(grad_inputs, hidden.t()).numpy()
    if buffers.graphs is not None:
        normal = buffers.summed.arrays[t]
        compiled.graph_norm_backward(
            grad_summed, normal, len(hidden), buffers.graphs, buffers.scales[t]
        )
    cleared: set[int] = set()
    for position, route in enumerate(layout.routes):
        offsets, neighbours, rows = buffers.edges[position]
        start = 2 * width * route.network
        compiled.message_backward(
            grad_summed,
            position * width,
            projected,
            start,
            bias[start:],
            offsets,
            neighbours,
            weights.table_arrays[position],
            rows,
            grad_projected_array,
            grad_bias[start:],
            grads.tables[position].numpy(),
            width,
            route.network not in cleared,
        )
        cleared.add(route.network)
    grads.projection.addmm_(h.t(), grad_projected)
    grads.fold.addmm_(buffers.summed.tensors[t].t(), grad_inputs)
    out.addmm_(grad_projected, weights.projection.t())
    if weights.match is not None and grads.match is not None and buffers.matched is not None:
        grads.match.addmm_(grad_inputs.t(), buffers.matched.tensors[t])
        grad_matched = torch.mm(grad_inputs, weights.match)
        out += grad_matched
        _attention_backward(grad_matched.neg_(), kept, h, layout, out)
    return out


def _key_bias(h: Tensor, layout: Layout) -> Tensor | None:
    """-|h_j|^2 for Euclidean attention."""
    return -torch.linalg.vecdot(h, h) if layout.attention.distances else None


def _attention_backward(grad: Tensor, kept: Kept, h: Tensor, layout: Layout, out: Tensor) -> None:
    """Adds to ``out`` the gradient of attention for states that are key and value in one."""
    grad_bias = h.new_zeros(len(h)) if layout.attention.distances else None
    grads = Gradients(query=None, key=out, value=out, bias=grad_bias)
    inputs = None, h, h, _key_bias(h, layout)
    attention_backward(grad, kept, inputs, layout.groups, layout.attention, grads)
    if grad_bias is not None:
        out.addcmul_(h, grad_bias.unsqueeze(1), value=-2.0)


class _FirstStep:
    """The first step where all nodes start alike, and so do all edges.

    a_i + b_j is then the same for all messages, so that their sum depends on their number only;
    and the attention to equal nodes gives back the node itself: the matching vector is zero.
    Nodes are therefore updated by class, C of them instead of N.
    """

    def __init__(
        self,
        h: Tensor,
        layout: Layout,
        classes: tuple[Tensor, Tensor],
        weights: Composed,
        buffers: _Buffers,
    ) -> None:
        """Computes the states after the first step into ``buffers``."""
        counts, members = classes
        start = h[0].detach().contiguous()
        number, width = len(counts), len(start)
        self._start, self._message_dim = start, layout.message_dim
        projected = torch.addmv(weights.bias, weights.projection.t(), start)
        new, self._candidate = start.new_empty(number, width), start.new_empty(number, width)
        self._gates = start.new_empty(number, 2 * width)
        self._summed = start.new_empty(number, len(weights.fold))
        self._shared = (
            projected.numpy(),
            np.array(weights.routes),
            counts.to(h.dtype).contiguous().numpy(),
            weights.fold.numpy(),
            start.numpy(),
            members.numpy(),
            self._summed.numpy(),
            self._gates.numpy(),
            self._candidate.numpy(),
        )
        compiled.first_step_forward(
            *self._shared, new.numpy(), buffers.states.arrays[1], layout.message_dim
        )

    def backward(self, grad: Tensor, weights: Composed, grads: ComposedGradients) -> Tensor:
        """Gradient of the common start, in the first row of (N, D); adds to the weights'."""
        grad_projected = torch.empty_like(weights.bias)
        grad_start = torch.empty_like(self._start)
        compiled.first_step_backward(
            grad.numpy(),
            *self._shared,
            grads.fold.numpy(),
            grad_projected.numpy(),
            grad_start.numpy(),
            self._message_dim,
        )
        grads.projection.addr_(self._start, grad_projected)
        # Sender columns have no bias: what lands there is never read.
        grads.bias += grad_projected
        out = torch.zeros_like(grad)
        torch.addmv(grad_start, weights.projection, grad_projected, out=out[0])
        return out
