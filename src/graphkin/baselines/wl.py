"""The Weisfeiler-Lehman subtree kernel (Shervashidze et al., 2011), with degrees as labels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from graphkin.errors import ConfigError
from graphkin.graphs import Graph, GraphBatch
from graphkin.graphs.batch import Adjacency

Floats = NDArray[np.float64]
Labels = NDArray[np.uint64]

BLOCK = 256
"""Pairs that are packed at once."""


@dataclass(frozen=True)
class WLKernel:
    r"""Compares two graphs by the patterns around their nodes.

    A node's label is its degree at first; an iteration replaces it by the pair of its
    label and the multiset of its neighbours' labels. With :math:`\phi_t(G)` the histogram
    of labels after iteration t,

    .. math:: k(G_1, G_2) = \sum_{t=0}^{T} \langle \phi_t(G_1), \phi_t(G_2) \rangle

    and, normalised, :math:`k(G_1, G_2) / \sqrt{k(G_1, G_1) k(G_2, G_2)}`.

    Structure is all it sees: node and edge inputs are left aside. In a directed graph the
    first label is the pair of in-degree and out-degree, and senders and receivers are two
    multisets. Labels are 64-bit hashes, so that no dictionary of patterns is needed.

    Args:
        iterations: T, at least 0.
        normalize: whether to divide by the lengths of the histograms.

    Example:
        >>> path, star = Graph(4, [(0, 1), (1, 2), (2, 3)]), Graph(4, [(0, 1), (0, 2), (0, 3)])
        >>> WLKernel(iterations=0).predict([(path, path), (path, star)]).round(3).tolist()
        [1.0, 0.671]
    """

    iterations: int = 5
    normalize: bool = True

    def __post_init__(self) -> None:
        if isinstance(self.iterations, bool) or not isinstance(self.iterations, int):
            raise ConfigError(f"iterations must be an integer, got {self.iterations!r}")
        if self.iterations < 0:
            raise ConfigError(f"iterations must be at least 0, got {self.iterations}")

    def predict(self, pairs: Sequence[tuple[Graph, Graph]]) -> Floats:
        """(P,) float64: the kernel of each pair; higher is more similar."""
        scores: Floats = self.sweep(pairs)[-1]
        return scores

    def sweep(self, pairs: Sequence[tuple[Graph, Graph]]) -> Floats:
        """(T + 1, P) float64: row t is what t iterations predict; one pass gives them all."""
        scores = np.empty((self.iterations + 1, len(pairs)))
        for start in range(0, len(pairs), BLOCK):
            block = pairs[start : start + BLOCK]
            scores[:, start : start + len(block)] = self._sweep_block(block)
        return scores

    def _sweep_block(self, pairs: Sequence[tuple[Graph, Graph]]) -> Floats:
        batch = GraphBatch.pack([graph for pair in pairs for graph in pair])
        node_graph = batch.node_graph.numpy()
        labels = _degree_labels(batch)
        products = np.empty((self.iterations + 1, 3, len(pairs)))
        for iteration in range(self.iterations + 1):
            if iteration:
                labels = _refined(batch, labels)
            products[iteration] = _products(labels, node_graph, len(pairs))
        between, left, right = np.cumsum(products, axis=0).transpose(1, 0, 2)
        kernel: Floats = between / np.sqrt(left * right) if self.normalize else between
        return kernel


def best_iterations(scores: Floats, metric: Callable[[Floats], float]) -> int:
    """The number of iterations with the highest metric; the smallest of equals.

    Args:
        scores: (T + 1, P), from :meth:`WLKernel.sweep`.
        metric: takes one row of ``scores``; higher is better.
    """
    return int(np.argmax([metric(row) for row in scores]))


def _degree_labels(batch: GraphBatch) -> Labels:
    labels = _mixed(batch.in_degrees.numpy().astype(np.uint64))
    if batch.directed:
        labels = _mixed(labels + batch.outgoing.offsets.diff().numpy().astype(np.uint64))
    return labels


def _refined(batch: GraphBatch, labels: Labels) -> Labels:
    """(N,) labels after one more iteration."""
    refined = _mixed(labels + _neighbour_sums(batch.incoming, labels))
    if batch.directed:
        refined = _mixed(refined + _neighbour_sums(batch.outgoing, labels))
    return refined


def _neighbour_sums(adjacency: Adjacency, labels: Labels) -> Labels:
    """(N,) a hash of each multiset of neighbours: the sum, modulo 2^64, of mixed labels."""
    # Mixed once more than the labels are, so that a node and its neighbour do not commute.
    values = _mixed(labels)[adjacency.neighbours.numpy()]
    totals = np.zeros(len(values) + 1, dtype=np.uint64)
    np.cumsum(values, out=totals[1:])
    sums: Labels = np.diff(totals[adjacency.offsets.numpy()])
    return sums


def _mixed(values: Labels) -> Labels:
    """The finaliser of SplitMix64: spreads every input bit over all 64."""
    values = values + np.uint64(0x9E3779B97F4A7C15)
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


def _products(labels: Labels, node_graph: NDArray[np.int64], num_pairs: int) -> Floats:
    """(3, P) inner products of histograms: first with second, first and second with themselves.

    Graphs 2k and 2k + 1 are pair k.
    """
    pair = node_graph // 2
    order = np.lexsort((labels, pair))  # runs of equal labels within a pair
    pair, labels, second = pair[order], labels[order], node_graph[order] % 2
    starts = np.ones(len(labels), dtype=np.bool_)
    starts[1:] = (labels[1:] != labels[:-1]) | (pair[1:] != pair[:-1])
    run = np.cumsum(starts) - 1
    counts = np.bincount(2 * run + second, minlength=2 * (run[-1] + 1)).reshape(-1, 2)
    run_pair = pair[starts]

    first, other = counts.T
    sums = [
        np.bincount(run_pair, weights=values, minlength=num_pairs)
        for values in (first * other, first**2, other**2)
    ]
    return np.array(sums, dtype=np.float64)
