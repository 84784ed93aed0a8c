"""The Weisfeiler-Lehman subtree kernel (Shervashidze et al., 2011), with degrees as labels."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from graphkin.errors import ConfigError
from graphkin.graphs import Graph, GraphBatch
from graphkin.graphs.batch import Adjacency
from graphkin.graphs.packing import check_uniform
from graphkin.research.baselines.hashing import Hashes, mixed, segment_sums

Floats = NDArray[np.float64]

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

    def histograms(self, graphs: Sequence[Graph]) -> sparse.csr_array:
        """(N, patterns) float64: how often each graph has each label of each iteration.

        Columns are the patterns of these graphs: compare only rows of one call.
        """
        if not len(graphs):
            return sparse.csr_array((0, 0))
        check_uniform(graphs)
        owners, patterns = [], []
        for start in range(0, len(graphs), BLOCK):
            batch = GraphBatch.pack(graphs[start : start + BLOCK])
            # Labels are hashes of labels: none recurs in a later iteration.
            for labels in self._labels(batch):
                owners.append(batch.node_graph.numpy() + start)
                patterns.append(labels)
        rows = np.concatenate(owners)
        present, columns = np.unique(np.concatenate(patterns), return_inverse=True)
        counts = sparse.csr_array(
            (np.ones(len(rows)), (rows, columns)), shape=(len(graphs), len(present))
        )
        counts.sum_duplicates()
        return counts

    def scores(self, queries: Sequence[Graph], pool: Sequence[Graph]) -> Floats:
        """(Q, P) float64: the kernel of every query with every graph of the pool."""
        histograms = self.histograms([*queries, *pool])
        lengths = histograms.multiply(histograms).sum(axis=1)
        kernel = np.empty((len(queries), len(pool)))
        stored = histograms[len(queries) :].T.tocsr()
        for start in range(0, len(queries), BLOCK):
            block = slice(start, min(start + BLOCK, len(queries)))
            kernel[block] = (histograms[block] @ stored).toarray()
        if self.normalize:
            kernel /= np.sqrt(lengths[: len(queries), None] * lengths[len(queries) :])
        return kernel

    def _labels(self, batch: GraphBatch) -> Iterator[Hashes]:
        """(N,) the labels of the nodes after 0, 1, ... iterations."""
        labels = _degree_labels(batch)
        yield labels
        for _ in range(self.iterations):
            labels = _refined(batch, labels)
            yield labels

    def _sweep_block(self, pairs: Sequence[tuple[Graph, Graph]]) -> Floats:
        batch = GraphBatch.pack([graph for pair in pairs for graph in pair])
        node_graph = batch.node_graph.numpy()
        products = np.empty((self.iterations + 1, 3, len(pairs)))
        for iteration, labels in enumerate(self._labels(batch)):
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


def _degree_labels(batch: GraphBatch) -> Hashes:
    labels = mixed(batch.in_degrees.numpy().astype(np.uint64))
    if batch.directed:
        labels = mixed(labels + batch.outgoing.offsets.diff().numpy().astype(np.uint64))
    return labels


def _refined(batch: GraphBatch, labels: Hashes) -> Hashes:
    """(N,) labels after one more iteration."""
    refined = mixed(labels + _neighbour_sums(batch.incoming, labels))
    if batch.directed:
        refined = mixed(refined + _neighbour_sums(batch.outgoing, labels))
    return refined


def _neighbour_sums(adjacency: Adjacency, labels: Hashes) -> Hashes:
    """(N,) a hash of each multiset of neighbours: the sum, modulo 2^64, of mixed labels."""
    # Mixed once more than the labels are, so that a node and its neighbour do not commute.
    values = mixed(labels)[adjacency.neighbours.numpy()]
    return segment_sums(values, adjacency.offsets.numpy())


def _products(labels: Hashes, node_graph: NDArray[np.int64], num_pairs: int) -> Floats:
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
