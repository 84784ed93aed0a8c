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
from typing import Any, Protocol, cast

import torch
from torch import Tensor, nn
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from graphkin.graphs.batch import GraphBatch
from graphkin.graphs.pair_groups import PairGroup
from graphkin.models.kernels.attention_blocks import EUCLIDEAN, PLAIN, Kept
from graphkin.models.kernels.autograd import apply
from graphkin.models.kernels.composition import (
    Composed,
    ComposedGradients,
    Step,
    StepParameters,
    unflatten,
)
from graphkin.models.kernels.dispatch import use_fused
from graphkin.models.kernels.fused_steps import (
    Buffers,
    FirstStep,
    GraphLayout,
    MessageRoute,
    step_backward,
    step_forward,
)
from graphkin.models.kernels.workspace import WORKSPACE, take_once


class Network(Protocol):
    """What is read of :class:`graphkin.models.network.GraphNetwork`."""

    config: Any
    """A :class:`graphkin.models.config.ModelConfig`."""
    steps: nn.ModuleList

    @property
    def starts_alike(self) -> bool:
        """Whether its encoders are such that :func:`starts_alike` holds."""


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
    if network.starts_alike:
        counts, members = batch.degree_classes
        classes = counts[:, : len(routes)], members
    layout = GraphLayout(
        steps=count,
        routes=tuple(routes),
        message_dim=config.message_dim,
        groups=groups if config.attends else (),
        attention=EUCLIDEAN if config.attention_similarity == "euclidean" else PLAIN,
        classes=classes,
        graphs=batch.node_offsets if config.message_norm == "graph" else None,
    )
    parameters = [
        StepParameters.of(step, step_tables, separate, config.attends)
        for step, step_tables in zip(steps, zip(*tables, strict=True), strict=True)
    ]
    flat = [tensor for own in parameters for tensor in own.flatten()]
    shape = len(parameters), len(parameters[0].messages)
    return apply(_Propagate, h, layout, shape, torch.is_grad_enabled(), *flat)


def _fusible(config: Any) -> bool:
    """Whether a network of this configuration is of the kind that is computed here."""
    if (config.node_update, config.message_aggregation) != ("gru", "sum"):
        return False
    if (config.state_norm, config.residual, config.message_layers) != ("none", False, 1):
        return False
    if not config.attends:
        return True
    return config.attention_similarity in ("euclidean", "dot") and not config.attention_projections


def starts_alike(config: Any) -> bool:
    """Whether all nodes start alike, and messages to a node differ by their number alone."""
    kinds = config.node_input, config.edge_input, config.message_norm
    return kinds == ("constant", "constant", "none")


class _Propagate(Function):
    @staticmethod
    def forward(
        ctx: Any,
        h: Tensor,
        layout: GraphLayout,
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
        buffers = Buffers(h, layout, len(composed[0].bias), keep)
        inputs = WORKSPACE.take((h.shape[0], 3 * h.shape[1]), h.dtype)
        kept: list[Kept] = []
        buffers.states.tensors[0].copy_(h)
        first = None
        if layout.classes is not None:
            first = FirstStep(h, layout, layout.classes, composed[0], buffers)
        for t in range(layout.steps):
            if t or first is None:
                kept.append(step_forward(t, inputs, layout, composed[t % count], buffers, keep))
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
                grad = step_backward(t, grad, layout, own, buffers, kept[t], scratch, theirs)
        WORKSPACE.give(*scratch)
        buffers.release()
        flat = [g for c, own in zip(composed, grads, strict=True) for g in own.of_parameters(c)]
        return grad, None, None, None, *flat
