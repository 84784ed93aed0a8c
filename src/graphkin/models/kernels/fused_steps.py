"""Single steps of the fused propagation on compiled kernels, forward and backward.

These are called outside autograd; :mod:`graphkin.models.kernels.propagation` makes all steps
together one differentiable function.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from graphkin.graphs.batch import Adjacency
from graphkin.graphs.pair_groups import PairGroup
from graphkin.models.kernels.attention_blocks import (
    Gradients,
    Kept,
    ScoreKind,
    attention_backward,
    attention_forward,
)
from graphkin.models.kernels.composition import Composed, ComposedGradients
from graphkin.models.kernels.dispatch import backend
from graphkin.models.kernels.plain import NORM_EPSILON
from graphkin.models.kernels.workspace import WORKSPACE

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
class GraphLayout:
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


class _Stack:
    """One array (slots, N, width), with its slots at hand as tensors and as numpy arrays."""

    def __init__(self, like: Tensor, slots: int, width: int) -> None:
        self.all = WORKSPACE.take((slots, like.shape[0], width), like.dtype)
        self.tensors = self.all.unbind(0)
        self.arrays: list[Array] = list(self.all.numpy())


class Buffers:
    """Arrays of all steps (or of one, reused, where no gradient is wanted)."""

    def __init__(self, h: Tensor, layout: GraphLayout, columns: int, keep: bool) -> None:
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


def step_forward(
    t: int, inputs: Tensor, layout: GraphLayout, weights: Composed, buffers: Buffers, keep: bool
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


def step_backward(
    t: int,
    grad: Tensor,
    layout: GraphLayout,
    weights: Composed,
    buffers: Buffers,
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


def _key_bias(h: Tensor, layout: GraphLayout) -> Tensor | None:
    """-|h_j|^2 for Euclidean attention."""
    return -torch.linalg.vecdot(h, h) if layout.attention.distances else None


def _attention_backward(
    grad: Tensor, kept: Kept, h: Tensor, layout: GraphLayout, out: Tensor
) -> None:
    """Adds to ``out`` the gradient of attention for states that are key and value in one."""
    grad_bias = h.new_zeros(len(h)) if layout.attention.distances else None
    grads = Gradients(query=None, key=out, value=out, bias=grad_bias)
    inputs = None, h, h, _key_bias(h, layout)
    attention_backward(grad, kept, inputs, layout.groups, layout.attention, grads)
    if grad_bias is not None:
        out.addcmul_(h, grad_bias.unsqueeze(1), value=-2.0)


class FirstStep:
    """The first step where all nodes start alike, and so do all edges.

    a_i + b_j is then the same for all messages, so that their sum depends on their number only;
    and the attention to equal nodes gives back the node itself: the matching vector is zero.
    Nodes are therefore updated by class, C of them instead of N.
    """

    def __init__(
        self,
        h: Tensor,
        layout: GraphLayout,
        classes: tuple[Tensor, Tensor],
        weights: Composed,
        buffers: Buffers,
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
