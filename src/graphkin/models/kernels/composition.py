"""The parameters of a propagation step: read from a network, composed for the fused propagation.

The last layer of the message MLP and the GRU's input matrix are both linear, so that their
product serves in their place; what it yields is the gradient of the product, from which those
of the two follow.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor

from graphkin.graphs.batch import Adjacency


class MessageNetwork(Protocol):
    """What is read of :class:`graphkin.models.layers.Messages`."""

    receiver: Tensor
    sender: Tensor
    hidden_bias: Tensor
    edge: Tensor
    output: Tensor
    output_bias: Tensor

    def edge_terms(
        self, edges: Any, adjacency: Adjacency
    ) -> tuple[Tensor | None, Tensor | None]: ...


class NodeUpdate(Protocol):
    """What is read of :class:`graphkin.models.layers.NodeUpdateCell`."""

    input_weight: Tensor
    input_bias: Tensor
    reverse_weight: Tensor
    match_weight: Tensor
    state_weight: Tensor
    state_bias: Tensor


class Step(Protocol):
    """What is read of :class:`graphkin.models.network.PropagationStep`."""

    messages: MessageNetwork
    reverse_messages: MessageNetwork
    update: NodeUpdate


@dataclass(frozen=True)
class MessageParameters:
    """One message network, and the matrix that takes its messages into the GRU."""

    receiver: Tensor
    """(H, D)"""
    sender: Tensor
    """(H, D)"""
    hidden_bias: Tensor
    """(H,)"""
    edge: Tensor | None
    """(H, 1) for constant edge input, which is a further bias; None where edges have a table."""
    output: Tensor
    """(H, H)"""
    output_bias: Tensor
    """(H,)"""
    input_weight: Tensor
    """(3D, H)"""

    @classmethod
    def of(
        cls, network: MessageNetwork, input_weight: Tensor, constant_edges: bool
    ) -> MessageParameters:
        return cls(
            receiver=network.receiver,
            sender=network.sender,
            hidden_bias=network.hidden_bias,
            edge=network.edge if constant_edges else None,
            output=network.output,
            output_bias=network.output_bias,
            input_weight=input_weight,
        )


@dataclass(frozen=True)
class StepParameters:
    """All parameters of a propagation step with a GRU."""

    messages: tuple[MessageParameters, ...]
    state_weight: Tensor
    """(3D, D)"""
    state_bias: Tensor
    """(3D,)"""
    input_bias: Tensor
    """(3D,)"""
    match: Tensor | None
    """(3D, D), for matching."""
    tables: tuple[Tensor, ...]
    """(rows, H) edge terms for each route; empty for constant edges."""

    @classmethod
    def of(
        cls, step: Step, tables: Sequence[Tensor | None], separate: bool, matching: bool
    ) -> StepParameters:
        """Those of ``step``, with a ``separate`` network for reverse messages or none.

        ``tables`` are the edge terms of each route; None for constant edges.
        """
        update, constant = step.update, tables[0] is None
        messages = [MessageParameters.of(step.messages, update.input_weight, constant)]
        if separate:
            weight = update.reverse_weight
            messages.append(MessageParameters.of(step.reverse_messages, weight, constant))
        none = update.input_bias.new_empty(0, 0)
        return cls(
            messages=tuple(messages),
            state_weight=update.state_weight,
            state_bias=update.state_bias,
            input_bias=update.input_bias,
            match=update.match_weight if matching else None,
            tables=tuple(none if table is None else table for table in tables),
        )

    def flatten(self) -> list[Tensor | None]:
        """The tensors in the order that :func:`unflatten` takes."""
        nets = [tensor for net in self.messages for tensor in vars(net).values()]
        own = [self.state_weight, self.state_bias, self.input_bias, self.match]
        return [*nets, *own, *self.tables]


def unflatten(tensors: Sequence[Tensor | None], networks: int) -> StepParameters:
    """The inverse of :meth:`StepParameters.flatten`."""
    plain = [None if tensor is None else tensor.detach() for tensor in tensors]
    nets = [MessageParameters(*plain[7 * i : 7 * i + 7]) for i in range(networks)]  # type: ignore[arg-type]
    weight, bias, input_bias, match, *tables = plain[7 * networks :]
    return StepParameters(tuple(nets), weight, bias, input_bias, match, tuple(tables))  # type: ignore[arg-type]


class Composed:
    """The matrices that the fused propagation multiplies by. W = columns of the projections."""

    def __init__(self, parameters: StepParameters, routes: Sequence[int]) -> None:
        """``routes`` names the message network of each route."""
        self.parameters, self.routes = parameters, routes
        nets = parameters.messages
        rows, biases = [], []
        for net in nets:
            rows += [net.receiver, net.sender]
            bias = net.hidden_bias if net.edge is None else net.hidden_bias + net.edge[:, 0]
            biases += [bias, torch.zeros_like(bias)]
        # Both matrices lie transposed: their gradients, h^T dP and S^T dI, are then products of
        # the shape that runs fastest.
        self.projection = torch.cat([*rows, parameters.state_weight]).t().contiguous()
        """(D, W): receiver and sender columns of each message network, then the GRU's states."""
        self.bias = torch.cat([*biases, parameters.state_bias])
        """(W,), zero in sender columns."""
        fold = [nets[n].input_weight @ nets[n].output for n in routes]
        fold += [(nets[n].input_weight @ nets[n].output_bias).unsqueeze(1) for n in routes]
        fold.append(parameters.input_bias.unsqueeze(1))
        self.fold = torch.cat(fold, dim=1).t().contiguous()
        """(R H + R + 1, 3D) for R routes: GRU input after the message MLP's last layer, that
        layer's bias for each message, and the GRU's input bias."""
        self.match, self.tables = parameters.match, parameters.tables
        self.bias_array = self.bias.numpy()
        self.table_arrays = [table.numpy() for table in self.tables]


class ComposedGradients:
    """Gradients of the matrices of :class:`Composed`, summed over the steps that share them."""

    def __init__(self, composed: Composed) -> None:
        self.projection = torch.zeros_like(composed.projection)
        self.bias = torch.zeros_like(composed.bias)
        self.fold = torch.zeros_like(composed.fold)
        self.match = None if composed.match is None else torch.zeros_like(composed.match)
        self.tables = [torch.zeros_like(table) for table in composed.tables]

    def of_parameters(self, composed: Composed) -> list[Tensor | None]:
        """Gradients of the parameters, in the order of :meth:`StepParameters.flatten`."""
        nets, routes = composed.parameters.messages, composed.routes
        width = len(nets[0].hidden_bias)
        grads: list[Tensor | None] = []
        for index, net in enumerate(nets):
            first = 2 * width * index
            bias = self.bias[first : first + width]
            output, output_bias = torch.zeros_like(net.output), torch.zeros_like(net.output_bias)
            input_weight = torch.zeros_like(net.input_weight)
            for position in (at for at, n in enumerate(routes) if n == index):
                product = self.fold[position * width : (position + 1) * width].t()
                count = self.fold[len(routes) * width + position]
                input_weight.addmm_(product, net.output.t()).addr_(count, net.output_bias)
                output.addmm_(net.input_weight.t(), product)
                output_bias.addmv_(net.input_weight.t(), count)
            receiver = self.projection[:, first : first + width].t()
            sender = self.projection[:, first + width : first + 2 * width].t()
            # A copy: torch keeps gradients as they come, and would add to both at once.
            edge = None if net.edge is None else bias.unsqueeze(1).clone()
            grads += [receiver, sender, bias, edge, output, output_bias, input_weight]
        start = 2 * width * len(nets)
        grads += [self.projection[:, start:].t(), self.bias[start:], self.fold[-1], self.match]
        return [*grads, *self.tables]
