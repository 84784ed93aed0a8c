"""The paper's GNN and GMN written down literally: what the benchmarks compare against.

This is how public PyTorch ports of graph matching networks are built: one row of
concatenated inputs for each message, the message network applied to every row, a scatter-add
to the nodes, and a Python loop over pairs for cross-graph attention. It uses ordinary torch
operators throughout; nothing is slowed down on purpose, and nothing is rearranged either.

Pairs are interleaved, as in the ports: graphs 2k and 2k + 1 are pair k.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from graphkin.graphs.batch import PairBatch


class LiteralInputs(NamedTuple):
    """A batch as the ports lay it out. N nodes, E messages, G graphs, G even."""

    node_features: Tensor
    """(N, 1) ones."""
    edge_features: Tensor
    """(E, 1) ones."""
    from_index: Tensor
    """(E,) int64, sending node; both directions of every undirected edge are listed."""
    to_index: Tensor
    """(E,) int64, receiving node."""
    graph_index: Tensor
    """(N,) int64, the graph of each node, rising."""
    graph_sizes: list[int]
    """Nodes of each graph."""

    @classmethod
    def from_pairs(cls, batch: PairBatch, dtype: torch.dtype = torch.float32) -> LiteralInputs:
        """The same graphs as ``batch``, which must be interleaved and of constant input."""
        graphs = batch.graphs
        index = torch.arange(graphs.num_graphs)
        if not (torch.equal(batch.left, index[0::2]) and torch.equal(batch.right, index[1::2])):
            raise ValueError("the literal network takes interleaved pairs: graphs 2k and 2k + 1")
        if graphs.node_kind != "constant" or graphs.edge_kind != "constant":
            raise ValueError(
                f"the literal network takes constant input, got {graphs.node_kind} nodes "
                f"and {graphs.edge_kind} edges"
            )
        return cls(
            node_features=torch.ones(graphs.num_nodes, 1, dtype=dtype),
            edge_features=torch.ones(graphs.num_messages, 1, dtype=dtype),
            from_index=graphs.incoming.neighbours,
            to_index=graphs.incoming.owners,
            graph_index=graphs.node_graph,
            graph_sizes=graphs.node_offsets.diff().tolist(),
        )


class LiteralGraphNetwork(nn.Module):
    """Encoder, T propagation steps with shared parameters, gated aggregator.

    Args:
        matching: cross-graph attention in every step (GMN) or none (GNN).
        steps: T.
        node_dim: D, the size of a node state; messages have size 2D.
        graph_dim: the size of a graph vector.
    """

    def __init__(
        self, *, matching: bool, steps: int = 5, node_dim: int = 32, graph_dim: int = 128
    ) -> None:
        super().__init__()
        message_dim = 2 * node_dim
        self.matching = matching
        self.steps = steps
        self.node_encoder = nn.Linear(1, node_dim)
        self.message_net = nn.Sequential(
            nn.Linear(2 * node_dim + 1, message_dim),
            nn.ReLU(),
            nn.Linear(message_dim, message_dim),
        )
        self.node_update = nn.GRUCell(message_dim + (node_dim if matching else 0), node_dim)
        self.gate_and_value = nn.Linear(node_dim, 2 * graph_dim)
        self.graph_net = nn.Sequential(
            nn.Linear(graph_dim, graph_dim), nn.ReLU(), nn.Linear(graph_dim, graph_dim)
        )
        for layer in (self.message_net[0], self.message_net[2]):
            nn.init.xavier_uniform_(layer.weight, gain=0.1)
            nn.init.zeros_(layer.bias)

    def forward(self, inputs: LiteralInputs) -> Tensor:
        """(G, graph_dim) graph vectors."""
        states = self.node_encoder(inputs.node_features)
        for _ in range(self.steps):
            states = self._propagate(states, inputs)
        return self._aggregate(states, inputs)

    def _propagate(self, states: Tensor, inputs: LiteralInputs) -> Tensor:
        edge_inputs = torch.cat(
            [states[inputs.from_index], states[inputs.to_index], inputs.edge_features], dim=-1
        )  # (E, 2D + 1)
        messages = self.message_net(edge_inputs)  # (E, 2D)
        update_input = states.new_zeros(len(states), messages.shape[1])
        update_input = update_input.index_add(0, inputs.to_index, messages)  # (N, 2D)
        if self.matching:
            attention = cross_graph_attention(states, inputs.graph_sizes)
            update_input = torch.cat([update_input, states - attention], dim=-1)  # (N, 3D)
        return self.node_update(update_input, states)

    def _aggregate(self, states: Tensor, inputs: LiteralInputs) -> Tensor:
        gates, values = self.gate_and_value(states).chunk(2, dim=-1)
        gated = torch.sigmoid(gates) * values  # (N, graph_dim)
        totals = states.new_zeros(len(inputs.graph_sizes), gated.shape[1])
        return self.graph_net(totals.index_add(0, inputs.graph_index, gated))


def cross_graph_attention(states: Tensor, graph_sizes: list[int]) -> Tensor:
    """(N, D): for every node, the attention-weighted sum of its partner graph's node states."""
    parts = states.split(graph_sizes)
    results = []
    for x, y in zip(parts[0::2], parts[1::2], strict=True):
        similarity = -pairwise_squared_distance(x, y)  # (|V1|, |V2|)
        results.append(torch.softmax(similarity, dim=1) @ y)
        results.append(torch.softmax(similarity, dim=0).T @ x)
    return torch.cat(results)


def pairwise_squared_distance(x: Tensor, y: Tensor) -> Tensor:
    """(n, m): |x_i - y_j|^2 = |x_i|^2 + |y_j|^2 - 2 x_i.y_j."""
    return (x * x).sum(-1)[:, None] + (y * y).sum(-1)[None, :] - 2 * (x @ y.T)


def split_pairs(vectors: Tensor) -> tuple[Tensor, Tensor]:
    """The vectors of each pair's first graph, and of its second."""
    return vectors[0::2], vectors[1::2]


def squared_distance(left: Tensor, right: Tensor) -> Tensor:
    """(P,): d(G1, G2) = |h_G1 - h_G2|^2."""
    return ((left - right) ** 2).sum(-1)


def training_loss(
    left: Tensor, right: Tensor, distances: Tensor, labels: Tensor, margin: float = 0.1
) -> Tensor:
    """Margin loss over pairs, plus a small pull on the scale of the graph vectors.

    mean(max(0, margin - t (1 - d))) + 1e-6 * mean(h^2) / 2
    """
    margin_loss = torch.relu(margin - labels * (1 - distances)).mean()
    scale = torch.cat([left, right]).square().mean()
    return margin_loss + 1e-6 * 0.5 * scale
