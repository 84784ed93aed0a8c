"""Encoder, message passing, node update, graph convolution and aggregator.

The matrix products run per node, never per edge (see ``docs/how-it-works.md``): the first
message layer is linear before its ReLU, so A h and B h are computed once for each node;
the second is linear after it, so that it is applied to the sum over a node's messages, and
composed with the first linear map of the node update.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from graphkin.errors import GraphError
from graphkin.graphs.batch import Adjacency, GraphBatch
from graphkin.models.config import ModelConfig
from graphkin.models.kernels import (
    gated_sum,
    gru_update,
    message_sum,
    neighbour_sum,
)
from graphkin.models.kernels.composition import MessageParameters
from graphkin.models.kernels.plain import edge_hidden
from graphkin.models.options import MessageAggregation, MessageNorm, NodeUpdate

READOUT_SCALE = 0.3
"""Factor on the initialisation of the last layer of a node's readout, of which many are summed."""


def glorot(rows: int, columns: int, scale: float = 1.0, fan_in: int | None = None) -> nn.Parameter:
    """A (rows, columns) weight, uniform in +-scale * sqrt(6 / (fan_in + rows))."""
    bound = scale * math.sqrt(6.0 / ((columns if fan_in is None else fan_in) + rows))
    return nn.Parameter(torch.empty(rows, columns).uniform_(-bound, bound))


def zeros(size: int) -> nn.Parameter:
    return nn.Parameter(torch.zeros(size))


class NodeEncoder(nn.Module):
    """h_i = MLP_node(x_i) (eq. 1), a linear map as in the paper.

    x_i is a constant 1, dense features, or the sum of the embeddings of the node's tokens.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.kind = config.node_input
        self.size = config.node_input_size
        width = {"constant": 1, "dense": self.size, "tokens": config.node_dim}[self.kind]
        if self.kind == "tokens":
            self.tokens = nn.Parameter(torch.randn(self.size, config.node_dim) * 0.1)
        self.weight = glorot(config.node_dim, width)
        self.bias = zeros(config.node_dim)

    def forward(self, batch: GraphBatch) -> Tensor:
        """-> (N, D)"""
        if batch.node_kind != self.kind:
            raise GraphError(
                f"the model takes {self.kind} node input, the graphs have {batch.node_kind}"
            )
        if self.kind == "constant":
            return (self.weight[:, 0] + self.bias).expand(batch.num_nodes, -1)
        return functional.linear(self._inputs(batch), self.weight, self.bias)

    def _inputs(self, batch: GraphBatch) -> Tensor:
        if batch.node_features is not None:
            if batch.node_features.shape[1] != self.size:
                raise GraphError(
                    f"the model takes {self.size} node features, "
                    f"the graphs have {batch.node_features.shape[1]}"
                )
            return batch.node_features.to(self.weight.dtype)
        ids, offsets = batch.token_ids, batch.token_offsets
        if ids is None or offsets is None:
            raise GraphError("the batch holds no tokens")
        if len(ids) and int(ids.max()) >= self.size:
            raise GraphError(
                f"token id {int(ids.max())} is past the model's vocabulary of {self.size}"
            )
        return functional.embedding_bag(
            ids, self.tokens, offsets, mode="sum", include_last_offset=True
        )


@dataclass(frozen=True)
class EdgeTerms:
    """C e_ij for all messages: ``table[rows]``."""

    table: Tensor
    """(R, H)"""
    batch_rows: Tensor | None
    """(R,) row of the table for each row of the batch's edge input; None where they are one."""

    def rows(self, adjacency: Adjacency) -> Tensor:
        """(E,) row of the table for every message of ``adjacency``."""
        if self.batch_rows is None:
            return adjacency.edge_rows
        return self.batch_rows[adjacency.edge_rows]


class EdgeEncoder(nn.Module):
    """e_ij = x_ij (identity, as in the paper); type ids get a learned vector of width D."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.kind = config.edge_input
        self.size = config.edge_input_size
        self.width = {"constant": 1, "dense": self.size, "types": config.node_dim}[self.kind]
        used = config.propagation == "message" and config.steps > 0
        if self.kind == "types" and used:
            self.types = nn.Parameter(torch.randn(self.size, config.node_dim) * 0.1)

    def check(self, batch: GraphBatch) -> None:
        """Refuses a batch whose edge input is not what the model was made for."""
        if batch.edge_kind != self.kind:
            raise GraphError(
                f"the model takes {self.kind} edge input, the graphs have {batch.edge_kind}"
            )
        if batch.edge_features is not None and batch.edge_features.shape[1] != self.size:
            raise GraphError(
                f"the model takes {self.size} edge features, "
                f"the graphs have {batch.edge_features.shape[1]}"
            )
        types = batch.edge_types
        if types is not None and len(types) and int(types.max()) >= self.size:
            raise GraphError(f"edge type {int(types.max())} is past the model's {self.size} types")

    def terms(self, batch: GraphBatch, weight: Tensor) -> EdgeTerms | None:
        """C e_ij by table; None for constant input, where C belongs to the bias."""
        if batch.edge_features is not None:
            return EdgeTerms(batch.edge_features.to(weight.dtype) @ weight.T, None)
        if batch.edge_types is not None:
            return EdgeTerms(self.types @ weight.T, batch.edge_types)
        return None


class Messages(nn.Module):
    """Aggregated messages f_msg(h_i, h_j, e_ij) = W' relu(A h_i + B h_j + C e_ij + b) + b'.

    For sum and mean W' and b' are left to the caller, who applies them to the aggregated
    hidden layer; for max and attention they are applied to every message.
    """

    def __init__(self, config: ModelConfig, edges: EdgeEncoder) -> None:
        super().__init__()
        size, width, scale = config.message_dim, config.node_dim, config.message_scale
        fan_in = 2 * width + edges.width
        self.aggregation: MessageAggregation = config.message_aggregation
        self.norm: MessageNorm = config.message_norm
        self.receiver = glorot(size, width, scale, fan_in)
        self.sender = glorot(size, width, scale, fan_in)
        self.edge = glorot(size, edges.width, scale, fan_in)
        self.hidden_bias = zeros(size)
        self.output = glorot(size, size, scale)
        self.output_bias = zeros(size)
        if self.aggregation == "attention":
            self.score = glorot(1, size)

    def terms(self, batch: GraphBatch, edges: EdgeEncoder) -> EdgeTerms | None:
        return edges.terms(batch, self.edge)

    def projection(self, constant_edges: bool) -> tuple[Tensor, Tensor]:
        """Weight (2H, D) and bias (2H,) of A h + b (+ C for constant edges) beside B h."""
        bias = self.hidden_bias + self.edge[:, 0] if constant_edges else self.hidden_bias
        return torch.cat([self.receiver, self.sender]), torch.cat([bias, torch.zeros_like(bias)])

    def parameters_for(self, input_weight: Tensor, constant_edges: bool) -> MessageParameters:
        """The parameters, as the fused propagation takes them."""
        return MessageParameters(
            receiver=self.receiver,
            sender=self.sender,
            hidden_bias=self.hidden_bias,
            edge=self.edge if constant_edges else None,
            output=self.output,
            output_bias=self.output_bias,
            input_weight=input_weight,
        )

    def aggregate(self, h: Tensor, adjacency: Adjacency, terms: EdgeTerms | None) -> Tensor:
        """(N, H): the aggregated hidden layer (sum, mean), or messages (max, attention)."""
        projected = functional.linear(h, *self.projection(terms is None))
        table = None if terms is None else terms.table
        rows = None if terms is None else terms.rows(adjacency)
        if self.aggregation in ("sum", "mean"):
            summed = message_sum(projected, adjacency, table, rows)
            if self.aggregation == "sum":
                return summed
            degrees = adjacency.offsets.diff().clamp(min=1).to(summed.dtype)
            return summed / degrees.unsqueeze(1)
        hidden = edge_hidden(projected, adjacency, table, rows)
        messages = functional.linear(hidden, self.output, self.output_bias)  # (E, H)
        if self.aggregation == "max":
            return _segment_max(messages, adjacency)
        scores = functional.leaky_relu(messages @ self.score[0], 0.2)  # (E,)
        weights = _segment_softmax(scores, adjacency)
        out = messages.new_zeros(h.shape[0], messages.shape[1])
        return out.index_add(0, adjacency.owners, messages * weights.unsqueeze(1))

    def contribute(self, gathered: Tensor, adjacency: Adjacency, weight: Tensor) -> Tensor:
        """weight @ (aggregated message) from what :meth:`aggregate` returned: (N, rows)."""
        if self.aggregation not in ("sum", "mean"):
            return functional.linear(gathered, weight)
        bias = weight @ self.output_bias
        counts = adjacency.offsets.diff()
        if self.norm == "graph":
            counts = torch.ones_like(counts)
        elif self.aggregation == "mean":
            counts = counts.clamp(max=1)
        linear = functional.linear(gathered, weight @ self.output)
        return torch.addcmul(linear, counts.to(linear.dtype).unsqueeze(1), bias)


def _segment_max(messages: Tensor, adjacency: Adjacency) -> Tensor:
    """Maximum over each node's messages; zero where there are none."""
    count = len(adjacency.offsets) - 1
    index = adjacency.owners.unsqueeze(1).expand_as(messages)
    out = messages.new_zeros(count, messages.shape[1])
    return out.scatter_reduce(0, index, messages, "amax", include_self=False)


def _segment_softmax(scores: Tensor, adjacency: Adjacency) -> Tensor:
    """Softmax over each node's messages: (E,) -> (E,)."""
    count = len(adjacency.offsets) - 1
    owners = adjacency.owners
    highest = scores.new_zeros(count).scatter_reduce(
        0, owners, scores.detach(), "amax", include_self=False
    )
    raised = (scores - highest[owners]).exp()
    totals = raised.new_zeros(count).index_add(0, owners, raised)
    return raised / totals[owners]


GATES: dict[NodeUpdate, int] = {"gru": 3, "mlp": 2, "rnn": 1, "lstm": 4}
"""Rows of the first linear map of a node update, in units of D."""


class NodeUpdateCell(nn.Module):
    """h_i' = f_node(h_i, messages, matching vector); all kinds start with a linear map.

    ``input_weight`` is applied to the messages by :meth:`Messages.contribute`, composed with
    the message MLP's last layer. Reset gate as in torch: after the matrix product.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.kind = config.node_update
        width, rows = config.node_dim, GATES[config.node_update] * config.node_dim
        inputs = config.message_dim + (width if config.matching else 0)
        self.input_weight = glorot(rows, config.message_dim, fan_in=inputs)
        self.input_bias = zeros(rows)
        if config.reverse_messages == "separate":
            self.reverse_weight = glorot(rows, config.message_dim, fan_in=inputs)
        if config.matching:
            self.match_weight = glorot(rows, width, fan_in=inputs)
        self.state_weight = glorot(rows, width)
        self.state_bias = zeros(rows)
        if self.kind == "mlp":
            self.output = glorot(width, rows)
            self.output_bias = zeros(width)

    def forward(
        self, inputs: Tensor, h: Tensor, cell: Tensor | None
    ) -> tuple[Tensor, Tensor | None]:
        """Pre-activation of messages and matching (N, gates), states (N, D) -> new states."""
        inputs = inputs + self.input_bias
        states = functional.linear(h, self.state_weight, self.state_bias)
        if self.kind == "gru":
            return gru_update(inputs, states, h), None
        if self.kind == "rnn":
            return (inputs + states).tanh(), None
        if self.kind == "mlp":
            hidden = (inputs + states).relu()
            return functional.linear(hidden, self.output, self.output_bias), None
        i, f, g, o = (inputs + states).chunk(4, dim=1)
        kept = f.sigmoid() * cell if cell is not None else 0.0
        cell = kept + i.sigmoid() * g.tanh()
        return o.sigmoid() * cell.tanh(), cell


class GraphConvolution(nn.Module):
    """H' = relu(S (A + I) S H W + b), S = diag(degree + 1)^(-1/2) (Kipf & Welling, 2017).

    The degree counts incoming edges. Edge input plays no part.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.both_ways = config.reverse_messages == "shared"
        self.weight = glorot(config.node_dim, config.node_dim)
        self.bias = zeros(config.node_dim)

    def forward(self, h: Tensor, batch: GraphBatch) -> Tensor:
        """(N, D) -> (N, D)"""
        x = functional.linear(h, self.weight)
        degrees = batch.incoming.offsets.diff()
        if self.both_ways:
            degrees = degrees + batch.outgoing.offsets.diff()
        scale = (degrees + 1).to(x.dtype).rsqrt().unsqueeze(1)
        x = x * scale
        total = x + neighbour_sum(x, batch.incoming)
        if self.both_ways:
            total = total + neighbour_sum(x, batch.outgoing)
        return (total * scale + self.bias).relu()


class Aggregator(nn.Module):
    """h_G = MLP_G(sum_i sigmoid(W_gate h_i) * W h_i) (eq. 3)."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        size = config.graph_dim
        self.nodes = nn.Parameter(
            torch.cat([glorot(size, config.node_dim).data, glorot(size, config.node_dim).data])
        )
        self.nodes_bias = zeros(2 * size)
        self.hidden = glorot(size, size)
        self.hidden_bias = zeros(size)
        self.output = glorot(size, size)
        self.output_bias = zeros(size)

    def forward(self, h: Tensor, batch: GraphBatch) -> Tensor:
        """(N, D) -> (graphs, G)"""
        offsets, graph = batch.node_offsets, batch.node_graph
        total = gated_sum(h, self.nodes, self.nodes_bias, offsets, graph)
        hidden = functional.linear(total, self.hidden, self.hidden_bias).relu()
        return functional.linear(hidden, self.output, self.output_bias)


class NodeReadout(nn.Module):
    """h_G = sum_i MLP(h_i), with one hidden ReLU layer."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        size = config.graph_dim
        self.hidden = glorot(2 * size, config.node_dim)
        self.hidden_bias = zeros(2 * size)
        self.output = glorot(size, 2 * size, READOUT_SCALE)

    def forward(self, h: Tensor, batch: GraphBatch) -> Tensor:
        """(N, D) -> (graphs, G)"""
        hidden = functional.linear(h, self.hidden, self.hidden_bias).relu()
        total = hidden.new_zeros(len(batch.node_offsets) - 1, hidden.shape[1])
        # The last layer is linear: it is applied to the sum, once.
        return functional.linear(total.index_add(0, batch.node_graph, hidden), self.output)
