"""The layers of the network: encoders, messages, node update, graph convolution, readouts.

No matrix product runs per edge where the equations allow it (see ``docs/how-it-works.md``): the
first message layer is linear before its ReLU, so that A h and B h are computed once for each
node; the second is linear after it, so that it is applied to the sum of a node's messages.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from graphkin.errors import GraphError
from graphkin.graphs.batch import Adjacency, GraphBatch
from graphkin.models.config import MessageAggregation, ModelConfig, NodeUpdate, Readout
from graphkin.models.kernels.dispatch import gated_sum, message_sum, neighbour_sum
from graphkin.models.kernels.plain import NORM_EPSILON, edge_hidden

READOUT_SCALE = 0.3
"""Factor on the initialisation of the last layer of a node's readout, of which many are summed."""


def glorot(rows: int, columns: int, scale: float = 1.0, fan_in: int | None = None) -> Tensor:
    """A parameter (rows, columns), uniform in +-scale * sqrt(6 / (fan_in + rows))."""
    bound = scale * math.sqrt(6.0 / ((columns if fan_in is None else fan_in) + rows))
    return nn.Parameter(torch.empty(rows, columns).uniform_(-bound, bound))


def zeros(size: int) -> Tensor:
    """A parameter (size,)."""
    return nn.Parameter(torch.zeros(size))


class NodeEncoder(nn.Module):
    """h_i = MLP_node(x_i) (eq. 1), a linear map as in the paper.

    x_i is a constant 1, dense features, or the sum of the embeddings of the node's tokens.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.kind = config.node_input
        self.size = config.node_input_size
        self.token_counts = config.token_counts
        width = {"constant": 1, "dense": self.size, "tokens": config.node_dim}[self.kind]
        if self.kind == "tokens":
            self.tokens = nn.Parameter(torch.randn(self.size, config.node_dim) * 0.1)
        self.weight = glorot(config.node_dim, width)
        self.bias = zeros(config.node_dim)
        if config.node_degrees:
            self.degrees = glorot(config.node_dim, 2)
        self.has_degrees = config.node_degrees
        self.scaled = config.feature_scaling
        if self.scaled:
            self.feature_mean: Tensor
            self.feature_spread: Tensor
            self.register_buffer("feature_mean", torch.zeros(self.size))
            self.register_buffer("feature_spread", torch.ones(self.size))

    @torch.no_grad()
    def fit_scale(self, mean: Tensor, spread: Tensor) -> None:
        """Takes over mean and standard deviation, each (F,), of the features to come."""
        self.feature_mean.copy_(mean)
        self.feature_spread.copy_(spread)

    def forward(self, batch: GraphBatch) -> Tensor:
        """-> (N, D)"""
        h = self._encoded(batch)
        if not self.has_degrees:
            return h
        degrees = torch.stack([batch.incoming.offsets.diff(), batch.outgoing.offsets.diff()], 1)
        return h + functional.linear(degrees.to(h.dtype).log1p(), self.degrees)

    def _encoded(self, batch: GraphBatch) -> Tensor:
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
            features = batch.node_features.to(self.weight.dtype)
            return (features - self.feature_mean) / self.feature_spread if self.scaled else features
        ids, offsets = batch.token_ids, batch.token_offsets
        if ids is None or offsets is None:
            raise GraphError("the batch holds no tokens")
        if len(ids) and int(ids.max()) >= self.size:
            raise GraphError(
                f"token id {int(ids.max())} is past the model's vocabulary of {self.size}"
            )
        if self.token_counts == "plain":
            return functional.embedding_bag(
                ids, self.tokens, offsets, mode="sum", include_last_offset=True
            )
        owners = torch.repeat_interleave(offsets.diff())
        keys, counts = torch.unique(owners * self.size + ids, return_counts=True)
        weighted = counts.to(self.tokens.dtype).log1p()[:, None] * self.tokens[keys % self.size]
        total: Tensor = weighted.new_zeros(batch.num_nodes, weighted.shape[1])
        return total.index_add(0, keys // self.size, weighted)


@dataclass(frozen=True)
class EdgeVectors:
    """e_ij of every listed edge: ``vectors[rows]``."""

    vectors: Tensor
    """(R, F)"""
    rows: Tensor | None
    """(edges,) int64: the row of each listed edge; None where row k is that of edge k."""


class EdgeEncoder(nn.Module):
    """e_ij = x_ij (identity, as in the paper); type ids get a learned vector of width D.

    By option e_ij = MLP_edge(x_ij), of width D, with one hidden ReLU layer.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.kind = config.edge_input
        self.size = config.edge_input_size
        self.width = {"constant": 1, "dense": self.size, "types": config.node_dim}[self.kind]
        used = config.propagation == "message" and config.steps > 0
        if self.kind == "types" and used:
            self.types = nn.Parameter(torch.randn(self.size, config.node_dim) * 0.1)
        self.deep = config.edge_encoder == "mlp" and self.kind != "constant" and used
        if self.deep:
            self.hidden = glorot(2 * config.node_dim, self.width)
            self.hidden_bias = zeros(2 * config.node_dim)
            self.output = glorot(config.node_dim, 2 * config.node_dim)
            self.output_bias = zeros(config.node_dim)
            self.width = config.node_dim

    def forward(self, batch: GraphBatch) -> EdgeVectors | None:
        """None for constant input."""
        edges = self._inputs(batch)
        if edges is None or not self.deep:
            return edges
        inputs = edges.vectors.to(self.hidden.dtype)
        hidden = functional.linear(inputs, self.hidden, self.hidden_bias).relu()
        return EdgeVectors(functional.linear(hidden, self.output, self.output_bias), edges.rows)

    def _inputs(self, batch: GraphBatch) -> EdgeVectors | None:
        if batch.edge_kind != self.kind:
            raise GraphError(
                f"the model takes {self.kind} edge input, the graphs have {batch.edge_kind}"
            )
        features, types = batch.edge_features, batch.edge_types
        if features is not None:
            if features.shape[1] != self.size:
                raise GraphError(
                    f"the model takes {self.size} edge features, "
                    f"the graphs have {features.shape[1]}"
                )
            return EdgeVectors(features, None)
        if types is not None:
            if len(types) and int(types.max()) >= self.size:
                raise GraphError(
                    f"edge type {int(types.max())} is past the model's {self.size} types"
                )
            return EdgeVectors(self.types, types)
        return None


class Messages(nn.Module):
    """m_ij = f_msg(h_i, h_j, e_ij) = W' relu(A h_i + B h_j + C e_ij + b) + b' (eq. 2)."""

    def __init__(self, config: ModelConfig, edges: EdgeEncoder) -> None:
        super().__init__()
        size, width, scale = config.message_dim, config.node_dim, config.message_scale
        fan_in = 2 * width + edges.width
        self.aggregation: MessageAggregation = config.message_aggregation
        self.norm = config.message_norm
        self.receiver = glorot(size, width, scale, fan_in)  # A
        self.sender = glorot(size, width, scale, fan_in)  # B
        self.edge = glorot(size, edges.width, scale, fan_in)  # C
        self.hidden_bias = zeros(size)  # b
        self.output = glorot(size, size, scale)  # W'
        self.output_bias = zeros(size)  # b'
        count = config.message_layers - 1
        self.further = nn.ParameterList(glorot(size, size) for _ in range(count))
        self.further_biases = nn.ParameterList(zeros(size) for _ in range(count))
        if self.aggregation == "attention":
            self.score = glorot(1, size)

    def forward(
        self, h: Tensor, batch: GraphBatch, adjacency: Adjacency, edges: EdgeVectors | None
    ) -> Tensor:
        """The messages m_ij to each node i, aggregated over j: (N, D) -> (N, H)"""
        bias = self.hidden_bias if edges is not None else self.hidden_bias + self.edge[:, 0]
        weight, bias = torch.cat([self.receiver, self.sender]), functional.pad(bias, (0, len(bias)))
        projected = functional.linear(h, weight, bias)  # (N, 2H): A h + b beside B h
        terms = self.edge_terms(edges, adjacency)  # C e
        if self.aggregation in ("max", "attention") or len(self.further):
            hidden = edge_hidden(projected, adjacency, *terms)  # (E, H)
            for weight, bias in zip(self.further, self.further_biases, strict=True):
                hidden = functional.linear(hidden, weight, bias).relu()
            messages = functional.linear(hidden, self.output, self.output_bias)  # (E, H): m_ij
            total = self._aggregated(messages, adjacency)
            return total if self.norm == "none" else graph_norm(total, batch)
        # W' is applied to the sum of the hidden layers; every message brings b' once.
        total = message_sum(projected, adjacency, *terms)  # (N, H)
        counts = adjacency.offsets.diff().to(total.dtype).unsqueeze(1)  # (N, 1)
        if self.aggregation == "mean":
            total, counts = total / counts.clamp(min=1), counts.clamp(max=1)
        if self.norm == "graph":
            total, counts = graph_norm(total, batch), torch.ones_like(counts)
        return functional.linear(total, self.output) + counts * self.output_bias

    def edge_terms(
        self, edges: EdgeVectors | None, adjacency: Adjacency
    ) -> tuple[Tensor | None, Tensor | None]:
        """C e as a table (R, H), and the row of every message (E,).

        None for constant edges, where C is one more bias.
        """
        if edges is None:
            return None, None
        rows = adjacency.edge_rows if edges.rows is None else edges.rows[adjacency.edge_rows]
        return edges.vectors.to(self.edge.dtype) @ self.edge.T, rows

    def _aggregated(self, messages: Tensor, adjacency: Adjacency) -> Tensor:
        """(E, H) -> (N, H); zero where a node receives nothing."""
        none = messages.new_zeros(len(adjacency.offsets) - 1, messages.shape[1])
        if self.aggregation == "max":
            index = adjacency.owners.unsqueeze(1).expand_as(messages)
            return none.scatter_reduce(0, index, messages, "amax", include_self=False)
        if self.aggregation in ("sum", "mean"):
            total = none.index_add(0, adjacency.owners, messages)
            counts = adjacency.offsets.diff().clamp(min=1).to(total.dtype).unsqueeze(1)
            return total if self.aggregation == "sum" else total / counts
        scores = functional.leaky_relu(messages @ self.score[0], 0.2)  # (E,)
        weights = _segment_softmax(scores, adjacency)
        return none.index_add(0, adjacency.owners, messages * weights.unsqueeze(1))


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


def graph_norm(x: Tensor, batch: GraphBatch) -> Tensor:
    """Each column of (N, H) to mean 0 and variance 1 over the nodes of each graph."""
    counts = batch.node_offsets.diff().clamp(min=1).to(x.dtype).unsqueeze(1)  # (graphs, 1)
    none, graph = x.new_zeros(batch.num_graphs, x.shape[1]), batch.node_graph
    centred = x - (none.index_add(0, graph, x) / counts).index_select(0, graph)
    variance = none.index_add(0, graph, centred.square()) / counts  # (graphs, H)
    return centred * (variance + NORM_EPSILON).rsqrt().index_select(0, graph)


GATES: dict[NodeUpdate, int] = {"gru": 3, "mlp": 2, "rnn": 1, "lstm": 4}
"""Rows of the first linear map of a node update, in units of D."""


class NodeUpdateCell(nn.Module):
    """h_i' = f_node(h_i, m_i, mu_i): GRU, MLP, plain RNN or LSTM; all start with a linear map.

    Reset gate of the GRU as in torch: after the matrix product.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.kind = config.node_update
        width, rows = config.node_dim, GATES[config.node_update] * config.node_dim
        inputs = config.message_dim + (width if config.attends else 0)
        self.input_weight = glorot(rows, config.message_dim, fan_in=inputs)
        self.input_bias = zeros(rows)
        if config.reverse_messages == "separate":
            self.reverse_weight = glorot(rows, config.message_dim, fan_in=inputs)
        if config.attends:
            self.match_weight = glorot(rows, width, fan_in=inputs)
        self.state_weight = glorot(rows, width)
        self.state_bias = zeros(rows)
        if self.kind == "mlp":
            self.output = glorot(width, rows)
            self.output_bias = zeros(width)

    def forward(
        self,
        h: Tensor,
        m: Tensor,
        reverse_m: Tensor | None = None,
        mu: Tensor | None = None,
        cell: Tensor | None = None,
    ) -> tuple[Tensor, Tensor | None]:
        """(N, D) states, (N, H) messages, (N, D) matching vectors -> (N, D) new states.

        ``cell`` is the second state of an LSTM, (N, D); it is returned with the first.
        """
        inputs = functional.linear(m, self.input_weight, self.input_bias)  # (N, gates)
        if reverse_m is not None:
            inputs = inputs + functional.linear(reverse_m, self.reverse_weight)
        if mu is not None:
            inputs = inputs + functional.linear(mu, self.match_weight)
        states = functional.linear(h, self.state_weight, self.state_bias)  # (N, gates)
        if self.kind == "gru":
            r_in, z_in, n_in = inputs.chunk(3, dim=1)
            r_state, z_state, n_state = states.chunk(3, dim=1)
            r, z = (r_in + r_state).sigmoid(), (z_in + z_state).sigmoid()
            n = (n_in + r * n_state).tanh()
            return n + z * (h - n), None
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


class ResidualStep(nn.Module):
    """h_i' = norm(h_i + relu(W h_i + U mean_j h_j + V mean_k h_k + b)), j into i, k out of i.

    ``norm`` is a layer norm. Edge input plays no part.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        width = config.node_dim
        self.own = glorot(width, width)
        self.incoming = glorot(width, width, fan_in=2 * width)
        if config.reverse_messages == "separate":
            self.outgoing = glorot(width, width, fan_in=2 * width)
        self.both_ways = config.reverse_messages == "separate"
        self.bias = zeros(width)
        self.norm_scale = nn.Parameter(torch.ones(width))
        self.norm_bias = zeros(width)

    def forward(self, h: Tensor, batch: GraphBatch) -> Tensor:
        """(N, D) -> (N, D)"""
        x = functional.linear(h, self.own, self.bias)
        x = x + functional.linear(_neighbour_mean(h, batch.incoming), self.incoming)
        if self.both_ways:
            x = x + functional.linear(_neighbour_mean(h, batch.outgoing), self.outgoing)
        return functional.layer_norm(h + x.relu(), h.shape[1:], self.norm_scale, self.norm_bias)


def _neighbour_mean(h: Tensor, adjacency: Adjacency) -> Tensor:
    """The mean over each node's neighbours, 0 where there is none: (N, D) -> (N, D)."""
    counts = adjacency.offsets.diff().clamp(min=1).to(h.dtype)
    return neighbour_sum(h, adjacency) / counts.unsqueeze(1)


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


class PooledReadout(nn.Module):
    """h_G = MLP([sum_i sigmoid(W_gate h_i) * W h_i / sqrt(n), mean_i h_i, max_i h_i])."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        size, width = config.graph_dim, config.node_dim
        self.nodes = nn.Parameter(torch.cat([glorot(size, width).data, glorot(size, width).data]))
        self.nodes_bias = zeros(2 * size)
        self.hidden = glorot(2 * size, size + 2 * width)
        self.hidden_bias = zeros(2 * size)
        self.output = glorot(size, 2 * size)
        self.output_bias = zeros(size)

    def forward(self, h: Tensor, batch: GraphBatch) -> Tensor:
        """(N, D) -> (graphs, G)"""
        offsets, graph = batch.node_offsets, batch.node_graph
        counts = offsets.diff().to(h.dtype).unsqueeze(1)
        total = gated_sum(h, self.nodes, self.nodes_bias, offsets, graph) / counts.sqrt()
        none = h.new_zeros(batch.num_graphs, h.shape[1])
        mean = none.index_add(0, graph, h) / counts
        index = graph.unsqueeze(1).expand_as(h)
        most = none.scatter_reduce(0, index, h, "amax", include_self=False)
        pooled = torch.cat([total, mean, most], dim=1)
        hidden = functional.linear(pooled, self.hidden, self.hidden_bias).relu()
        return functional.linear(hidden, self.output, self.output_bias)


class MeanReadout(nn.Module):
    """h_G = MLP(mean_i h_i), with one hidden ReLU layer."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        size = config.graph_dim
        self.hidden = glorot(2 * size, config.node_dim)
        self.hidden_bias = zeros(2 * size)
        self.output = glorot(size, 2 * size)
        self.output_bias = zeros(size)

    def forward(self, h: Tensor, batch: GraphBatch) -> Tensor:
        """(N, D) -> (graphs, G)"""
        hidden = functional.linear(self._pooled(h, batch), self.hidden, self.hidden_bias).relu()
        return functional.linear(hidden, self.output, self.output_bias)

    def _pooled(self, h: Tensor, batch: GraphBatch) -> Tensor:
        none = h.new_zeros(batch.num_graphs, h.shape[1])
        counts = batch.node_offsets.diff().to(h.dtype).unsqueeze(1)
        return none.index_add(0, batch.node_graph, h) / counts


class MaxReadout(MeanReadout):
    """h_G = MLP(max_i h_i), with one hidden ReLU layer."""

    def _pooled(self, h: Tensor, batch: GraphBatch) -> Tensor:
        none = h.new_zeros(batch.num_graphs, h.shape[1])
        index = batch.node_graph.unsqueeze(1).expand_as(h)
        return none.scatter_reduce(0, index, h, "amax", include_self=False)


READOUTS: dict[Readout, type[nn.Module]] = {
    "gated": Aggregator,
    "nodes": NodeReadout,
    "pooled": PooledReadout,
    "mean": MeanReadout,
    "max": MaxReadout,
}
