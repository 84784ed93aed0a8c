"""Node states and graph vectors of residual networks over tokens, in numpy.

The equations are those of ``NodeEncoder``, ``ResidualStep`` and ``PooledReadout`` in
:mod:`graphkin.models.layers`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from graphkin.errors import GraphError
from graphkin.graphs.graph import Graph, WordBags, running_offsets
from graphkin.graphs.packing import Index, Neighbours, batch_edges, check_uniform, owners_of
from graphkin.models.config import ModelConfig
from graphkin.models.light.run_sums import RunSums
from graphkin.models.light.weights import Floats, Weights
from graphkin.models.word_directions import NO_WORDS

NORM_EPSILON = np.float32(1e-5)
"""Of torch's layer norm."""
LARGEST_EXPONENT = np.float32(88)
"""Of which e to its power is a number of 32 bits."""


def fits(config: ModelConfig) -> bool:
    """Whether this is the network of a model; others answer by torch."""
    return (
        config.propagation == "residual"
        and config.node_input == "tokens"
        and config.token_counts == "log"
        and not config.shared
        and config.reverse_messages == "separate"
        and config.readout == "pooled"
        and config.link == "none"
    )


@dataclass(frozen=True, eq=False)
class PackedGraphs:
    """The nodes of several directed graphs with tokens in one array."""

    graphs: Sequence[Graph]
    node_offsets: Index
    """(G + 1,)"""
    edges: Index
    """(E, 2) in batch-wide node numbers."""

    @classmethod
    def pack(cls, graphs: Sequence[Graph]) -> PackedGraphs:
        """Packs graphs that share their kind of input."""
        check_uniform(graphs)
        first = graphs[0]
        if first.node_kind != "tokens":
            raise GraphError(
                f"the model takes tokens node input, the graphs have {first.node_kind}"
            )
        if not first.directed:
            raise GraphError(
                "the model sends reverse messages, which are for directed graphs: an "
                "undirected edge carries messages both ways already"
            )
        offsets = running_offsets(np.array([graph.num_nodes for graph in graphs]))
        return cls(graphs, offsets, batch_edges(graphs, offsets))

    @property
    def num_nodes(self) -> int:
        """N"""
        return int(self.node_offsets[-1])

    @property
    def word_bags(self) -> list[WordBags]:
        """The words of each graph."""
        bags = [graph.node_words for graph in self.graphs if graph.node_words is not None]
        if len(bags) < len(self.graphs):
            raise GraphError(NO_WORDS)
        return bags

    def split(self, rows: Floats) -> list[Floats]:
        """(N, D) rows of nodes -> (n, D) of each graph."""
        return [rows[first:end] for first, end in pairwise(self.node_offsets.tolist())]

    @cached_property
    def means(self) -> tuple[NeighbourMean, NeighbourMean]:
        """Over the nodes with an edge to each node, and over those that it has an edge to."""
        rows = np.arange(len(self.edges))
        senders, receivers = self.edges[:, 0], self.edges[:, 1]
        sides = ((receivers, senders), (senders, receivers))
        incoming, outgoing = (Neighbours.of(*side, rows, self.num_nodes) for side in sides)
        return NeighbourMean(incoming), NeighbourMean(outgoing)


class NeighbourMean:
    """The mean over each node's neighbours, 0 where there is none."""

    def __init__(self, neighbours: Neighbours) -> None:
        self.counts = np.diff(neighbours.offsets)
        """(N,)"""
        self._sums = RunSums(neighbours.offsets, neighbours.nodes)
        self._several = np.flatnonzero(self.counts > 1)
        self._shares = (1 / self.counts[self._several]).astype(np.float32)[:, None]

    def __call__(self, h: Floats) -> Floats:
        """(N, D) -> (N, D)"""
        means = self._sums(h)
        means[self._several] *= self._shares
        return means


class ResidualNetwork:
    """Node encoder and residual steps, with weights that are taken from a model's."""

    def __init__(self, config: ModelConfig, weights: Weights) -> None:
        width, size = config.node_dim, config.node_input_size
        self._size = size
        tokens = weights.floats("network.nodes.tokens", size, width)
        weight = weights.floats("network.nodes.weight", width, width)
        self._tokens = tokens @ weight.T
        """(tokens, D): the encoder is linear, so that it is applied to tokens instead of nodes."""
        self._bias = weights.floats("network.nodes.bias", width)
        self._degrees = None
        if config.node_degrees:
            self._degrees = weights.floats("network.nodes.degrees", width, 2).T.copy()
        self._steps = [_Step(width, weights, f"network.steps.{t}.") for t in range(config.steps)]

    def states(self, batch: PackedGraphs) -> Floats:
        """(N, D) after the last step."""
        h = self._encoded(batch)
        means = batch.means
        if self._degrees is not None:
            degrees = np.stack([means[0].counts, means[1].counts], axis=1).astype(np.float32)
            h += np.log1p(degrees) @ self._degrees
        for step in self._steps:
            h = step(h, *means)
        return h

    def _encoded(self, batch: PackedGraphs) -> Floats:
        bags = [graph.node_tokens for graph in batch.graphs if graph.node_tokens is not None]
        ids = np.concatenate([bag.ids for bag in bags]).astype(np.int64)
        if len(ids) and int(ids.max()) >= self._size:
            raise GraphError(
                f"token id {int(ids.max())} is past the model's vocabulary of {self._size}"
            )
        sizes = np.concatenate([np.diff(bag.offsets) for bag in bags])
        owners = owners_of(running_offsets(sizes))
        counts = np.bincount(owners * self._size + ids, minlength=batch.num_nodes * self._size)
        logarithms = np.log1p(np.arange(counts.max(initial=0) + 1, dtype=np.float32))
        h: Floats = logarithms[counts].reshape(-1, self._size) @ self._tokens
        h += self._bias
        return h


class _Step:
    """h_i' = norm(h_i + relu(W h_i + U mean_j h_j + V mean_k h_k + b)), j into i, k out of i."""

    def __init__(self, width: int, weights: Weights, prefix: str) -> None:
        self._own, self._incoming, self._outgoing = (
            weights.floats(prefix + name, width, width).T.copy()
            for name in ("own", "incoming", "outgoing")
        )
        self._bias, self._norm_scale, self._norm_bias = (
            weights.floats(prefix + name, width) for name in ("bias", "norm_scale", "norm_bias")
        )
        self._share = np.full(width, 1 / width, np.float32)

    def __call__(self, h: Floats, incoming: NeighbourMean, outgoing: NeighbourMean) -> Floats:
        """(N, D) -> (N, D)"""
        x: Floats = h @ self._own
        x += incoming(h) @ self._incoming
        x += outgoing(h) @ self._outgoing
        x += self._bias
        np.maximum(x, 0, out=x)
        x += h
        x -= (x @ self._share)[:, None]
        variance = np.einsum("nd,nd->n", x, x) / np.float32(x.shape[1])
        x *= (1 / np.sqrt(variance + NORM_EPSILON))[:, None]
        x *= self._norm_scale
        x += self._norm_bias
        return x


class PooledReadout:
    """h_G = MLP([sum_i sigmoid(W_gate h_i) * W h_i / sqrt(n), mean_i h_i, max_i h_i])."""

    def __init__(self, config: ModelConfig, weights: Weights) -> None:
        size, width, prefix = config.graph_dim, config.node_dim, "network.aggregator."
        self._nodes = weights.floats(prefix + "nodes", 2 * size, width).T.copy()
        self._nodes_bias = weights.floats(prefix + "nodes_bias", 2 * size)
        self._hidden = weights.floats(prefix + "hidden", 2 * size, size + 2 * width).T.copy()
        self._hidden_bias = weights.floats(prefix + "hidden_bias", 2 * size)
        self._output = weights.floats(prefix + "output", size, 2 * size).T.copy()
        self._output_bias = weights.floats(prefix + "output_bias", size)
        self._size = size

    def __call__(self, h: Floats, batch: PackedGraphs) -> Floats:
        """(N, D) -> (graphs, G)"""
        projected = h @ self._nodes
        projected += self._nodes_bias
        gated = sigmoid(projected[:, : self._size])
        gated *= projected[:, self._size :]
        counts = np.diff(batch.node_offsets).astype(np.float32)[:, None]
        total = _over_graphs(np.add, gated, batch.node_offsets) / np.sqrt(counts)
        mean = _over_graphs(np.add, h, batch.node_offsets) / counts
        most = _over_graphs(np.maximum, h, batch.node_offsets)
        hidden = np.concatenate([total, mean, most], axis=1) @ self._hidden
        hidden += self._hidden_bias
        np.maximum(hidden, 0, out=hidden)
        vectors: Floats = hidden @ self._output
        vectors += self._output_bias
        return vectors


def _over_graphs(operation: np.ufunc, rows: Floats, node_offsets: Index) -> Floats:
    """(N, D) rows of nodes -> (graphs, D) one row for each graph.

    Graphs of one size that come in a row are done at once: batches are sorted by size.
    """
    sizes = np.diff(node_offsets)
    starts = np.flatnonzero(np.diff(sizes, prepend=-1))
    reduced = np.empty((len(sizes), rows.shape[1]), dtype=rows.dtype)
    for first, end in pairwise([*starts.tolist(), len(sizes)]):
        own = rows[node_offsets[first] : node_offsets[end]]
        own = own.reshape(end - first, int(sizes[first]), rows.shape[1])
        operation.reduce(own, axis=1, out=reduced[first:end])
    return reduced


def sigmoid(x: Floats) -> Floats:
    """1 / (1 + e^-x), without overflow."""
    shares: Floats = np.negative(x)
    np.minimum(shares, LARGEST_EXPONENT, out=shares)
    np.exp(shares, out=shares)
    shares += 1
    np.reciprocal(shares, out=shares)
    return shares


def softmax(scores: Floats) -> Floats:
    """Over each row."""
    raised: Floats = np.exp(scores - scores.max(axis=1, keepdims=True))
    raised /= raised.sum(axis=1, keepdims=True)
    return raised


def unit_rows(rows: Floats, smallest: float = 1e-12) -> Floats:
    """Rows of length 1; those of length 0 stay."""
    lengths = np.sqrt(np.einsum("nd,nd->n", rows, rows))
    unit: Floats = rows / np.maximum(lengths, np.float32(smallest))[:, None]
    return unit
