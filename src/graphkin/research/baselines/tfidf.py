"""TF-IDF of tokens: what a bag of words alone can tell, a floor for models of graphs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from graphkin.errors import ConfigError, GraphError
from graphkin.graphs import Graph
from graphkin.graphs.packing import distinct_graphs

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class TfIdf:
    r"""Compares graphs by their tokens, whatever node they belong to.

    With n graphs in :meth:`fit`, of which :math:`n_t` have token t, a graph's vector is

    .. math:: x_t = (1 + \ln \mathrm{count}_t) \Bigl(1 + \ln \frac{1 + n}{1 + n_t}\Bigr)

    over the tokens it has, and the score of a pair the cosine of its vectors. The logarithm of
    counts keeps ``mov`` from drowning all else. A graph whose nodes have no tokens at all
    scores 0 with every graph. Every graph needs ``node_tokens``.

    Example:
        >>> one, two = Graph(1, node_tokens=[[1, 1, 2]]), Graph(2, node_tokens=[[1], [3]])
        >>> TfIdf.fit([one, two]).predict([(one, one), (one, two)]).round(3).tolist()
        [1.0, 0.446]
    """

    tokens: NDArray[np.int32]
    """(V,) int32, rising: the tokens that were seen."""
    idf: Floats
    """(V,) float64: their factors."""
    unseen: float
    """The factor of any other token."""

    @classmethod
    def fit(cls, graphs: Sequence[Graph]) -> TfIdf:
        """Counts in how many of the graphs each token occurs."""
        if not len(graphs):
            raise ConfigError("TfIdf.fit needs at least one graph")
        tokens, counts = _histograms(graphs)
        with_token = np.bincount(counts.indices, minlength=len(tokens))
        unseen = 1 + np.log(1 + len(graphs))
        return cls(tokens, unseen - np.log(1 + with_token), float(unseen))

    def vectors(self, graphs: Sequence[Graph]) -> sparse.csr_array:
        """(N, T) float64: a column for each token of these graphs, rows of length 1.

        A graph without tokens has a row of zeros.
        """
        tokens, vectors = _histograms(graphs)
        idf = np.full(len(tokens), self.unseen)
        _, columns, seen = np.intersect1d(tokens, self.tokens, return_indices=True)
        idf[columns] = self.idf[seen]
        vectors.data = (1 + np.log(vectors.data)) * idf[vectors.indices]
        rows = np.repeat(np.arange(len(graphs)), np.diff(vectors.indptr))
        lengths = np.sqrt(np.bincount(rows, weights=vectors.data**2, minlength=len(graphs)))
        vectors.data = vectors.data / lengths[rows]
        return vectors

    def predict(self, pairs: Sequence[tuple[Graph, Graph]]) -> Floats:
        """(P,) float64: the cosine of each pair, from 0 to 1."""
        graphs, left, right = distinct_graphs(pairs)
        vectors = self.vectors(graphs)
        cosines: Floats = vectors[left].multiply(vectors[right]).sum(axis=1)
        return cosines

    def scores(self, queries: Sequence[Graph], pool: Sequence[Graph]) -> Floats:
        """(Q, P) float64: the cosine of every query with every graph of the pool."""
        vectors = self.vectors([*queries, *pool])
        cosines: Floats = (vectors[: len(queries)] @ vectors[len(queries) :].T).toarray()
        return cosines


def _histograms(graphs: Sequence[Graph]) -> tuple[NDArray[np.int32], sparse.csr_array]:
    """(T,) the tokens of graphs, rising, and (N, T) float64: how often each occurs in each."""
    bags: list[NDArray[np.int32]] = []
    for position, graph in enumerate(graphs):
        if graph.node_tokens is None:
            raise GraphError(
                f"graph {position} has no node_tokens, and TF-IDF compares nothing else; "
                "for structure alone take SimHash or WLKernel"
            )
        bags.append(graph.node_tokens.ids)
    # Token ids may lie far apart, and every column takes memory.
    tokens, columns = np.unique(
        np.concatenate([np.zeros(0, dtype=np.int32), *bags]), return_inverse=True
    )
    rows = np.repeat(np.arange(len(bags)), [len(bag) for bag in bags])
    shape = (len(bags), len(tokens))
    counts = sparse.csr_array((np.ones(len(columns)), (rows, columns)), shape=shape)
    counts.sum_duplicates()
    return tokens, counts
