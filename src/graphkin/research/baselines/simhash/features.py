"""What SimHash sees of a graph: the neighbourhoods of its nodes and the trigrams of its blocks.

All features of many graphs are computed at once, as 64-bit hashes in flat arrays.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor

from graphkin.graphs import Graph, GraphBatch
from graphkin.graphs.graph import running_offsets
from graphkin.graphs.packing import check_uniform
from graphkin.research.baselines.hashing import Hashes, mixed, segment_sums

Index = NDArray[np.int64]

KINDS = ("1 hop", "2 hops", "3 hops", "trigram")
"""What a feature describes; a kind is an index into this."""
TRIGRAM = KINDS.index("trigram")
MAX_NEIGHBOURHOOD = 30
"""Nodes of a neighbourhood. One that is larger gives no feature, as in the public tool: those
around the hub of a large jump table would together be quadratic in its size."""
NO_TOKEN = np.uint64(1 << 32)
"""Stands after the last token of a node. Token ids end below."""
BLOCK_NODES = 20_000
"""Nodes that are packed at once, where no single graph has more."""


@dataclass(frozen=True, eq=False)
class FeatureSets:
    """The features of G graphs, M in all. Within a graph each key occurs once."""

    offsets: Index
    """(G + 1,) int64: graph g owns features offsets[g]..offsets[g + 1]."""
    keys: Hashes
    """(M,) uint64: a hash of what the feature describes, its occurrence included."""
    kinds: NDArray[np.uint8]
    """(M,) uint8: indices into ``KINDS``."""

    @property
    def owners(self) -> Index:
        """(M,) int64: the graph of each feature."""
        return np.repeat(np.arange(len(self.offsets) - 1), np.diff(self.offsets))


def extract_features(graphs: Sequence[Graph]) -> FeatureSets:
    """The features of graphs that share direction and kinds of input.

    A neighbourhood of r hops, r = 1, 2, 3, is the multiset of (distance, in-degree, out-degree)
    over the nodes within r steps of a node, whatever the direction of edges. A trigram is three
    tokens in a row of one node; a node of one or two tokens gives those. The k-th occurrence of
    a feature in a graph is a feature of its own: simply added k times, one that recurs would
    drown the others.
    """
    if not len(graphs):
        empty = np.zeros(0, dtype=np.uint64)
        return FeatureSets(np.zeros(1, dtype=np.int64), empty, empty.astype(np.uint8))
    check_uniform(graphs)
    blocks = [_block_features(GraphBatch.pack(block)) for block in _blocks(graphs)]
    counts, keys, kinds = (np.concatenate(parts) for parts in zip(*blocks, strict=True))
    return FeatureSets(running_offsets(counts), keys, kinds)


def _blocks(graphs: Sequence[Graph]) -> Iterator[Sequence[Graph]]:
    start = nodes = 0
    for stop, graph in enumerate(graphs):
        if nodes and nodes + graph.num_nodes > BLOCK_NODES:
            yield graphs[start:stop]
            start, nodes = stop, 0
        nodes += graph.num_nodes
    yield graphs[start:]


def _block_features(batch: GraphBatch) -> tuple[Index, Hashes, NDArray[np.uint8]]:
    """Features of each graph, (G,); and keys and kinds of all, (M,), graph after graph."""
    node_graph = batch.node_graph.numpy()
    neighbourhoods = list(_neighbourhoods(batch))
    if batch.token_ids is not None:
        neighbourhoods.append(_trigrams(batch))
    owners = np.concatenate([node_graph[nodes] for nodes, _ in neighbourhoods])
    kinds = np.repeat(
        np.arange(len(neighbourhoods), dtype=np.uint8), [len(nodes) for nodes, _ in neighbourhoods]
    )
    # The kind is part of the hash: equal neighbourhoods of 2 and 3 hops are two features.
    hashes = mixed(
        np.concatenate([hashes for _, hashes in neighbourhoods]) + kinds.astype(np.uint64)
    )
    keys = mixed(hashes + mixed(_occurrences(hashes, owners)))
    order = np.argsort(owners, kind="stable")
    return np.bincount(owners, minlength=batch.num_graphs), keys[order], kinds[order]


def _neighbourhoods(batch: GraphBatch) -> Iterator[tuple[Index, Hashes]]:
    """For 1, 2 and 3 hops: the nodes whose neighbourhood is not too large, and its hash."""
    sent = batch.outgoing.offsets.diff() if batch.directed else batch.in_degrees
    labels = mixed(mixed(_unsigned(batch.in_degrees)) + _unsigned(sent))
    steps = _steps(batch)
    crowded = np.diff(steps.indptr) > MAX_NEIGHBOURHOOD
    nodes, hashes = np.arange(batch.num_nodes), mixed(labels)
    within = sparse.eye_array(batch.num_nodes, dtype=np.bool_, format="csr")
    for distance in range(1, TRIGRAM + 1):
        # All around a node that was reached comes in next; so a crowded one settles it now, and
        # a row of the product below has at most MAX_NEIGHBOURHOOD^2 entries.
        blocked = np.zeros(len(nodes), dtype=np.bool_)
        blocked[_rows(within)[crowded[within.indices]]] = True
        nodes, hashes, within = nodes[~blocked], hashes[~blocked], within[~blocked]
        reached = within @ steps
        # Nodes reached earlier count again; with what they gave then, that tells their distance.
        layer = mixed(labels + np.uint64(distance))
        hashes = hashes + segment_sums(layer[reached.indices], reached.indptr)
        small = np.diff(reached.indptr) <= MAX_NEIGHBOURHOOD
        nodes, hashes, within = nodes[small], hashes[small], reached[small]
        yield nodes, hashes


def _steps(batch: GraphBatch) -> sparse.csr_array:
    """(N, N) bool: a node, and those at the other end of its edges."""
    owners, neighbours = batch.incoming.owners.numpy(), batch.incoming.neighbours.numpy()
    nodes = np.arange(batch.num_nodes)
    rows = np.concatenate([nodes, owners, neighbours])
    columns = np.concatenate([nodes, neighbours, owners])
    cells = np.ones(len(rows), dtype=np.bool_)
    return sparse.csr_array((cells, (rows, columns)), shape=(len(nodes), len(nodes)))


def _trigrams(batch: GraphBatch) -> tuple[Index, Hashes]:
    """The nodes of all trigrams, and their hashes."""
    assert batch.token_ids is not None
    assert batch.token_offsets is not None
    tokens = np.append(_unsigned(batch.token_ids), [NO_TOKEN, NO_TOKEN])
    nodes = np.repeat(np.arange(batch.num_nodes), batch.token_offsets.diff().numpy())
    owners = np.append(nodes, [-1, -1])
    second = np.where(owners[1:-1] == nodes, tokens[1:-1], NO_TOKEN)
    third = np.where(owners[2:] == nodes, tokens[2:], NO_TOKEN)
    opens = np.diff(nodes, prepend=-1) > 0
    starts = opens | (third != NO_TOKEN)
    hashes = mixed(mixed(mixed(tokens[:-2]) + second) + third)
    return nodes[starts], hashes[starts]


def _occurrences(hashes: Hashes, owners: Index) -> Hashes:
    """(M,) how many equal hashes of the same owner come before; in which order is arbitrary."""
    # One hash for both sorts many times faster than two keys do.
    joint = mixed(hashes + mixed(owners.astype(np.uint64)))
    order = np.argsort(joint)
    positions = np.arange(len(joint))
    starts = np.zeros(len(joint), dtype=np.int64)
    new = joint[order[1:]] != joint[order[:-1]]
    starts[1:] = np.where(new, positions[1:], 0)
    ranks = np.empty(len(joint), dtype=np.uint64)
    ranks[order] = positions - np.maximum.accumulate(starts)
    return ranks


def _rows(matrix: sparse.csr_array) -> Index:
    """(nonzeros,) the row of each."""
    return np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))


def _unsigned(values: Tensor) -> Hashes:
    return values.numpy().astype(np.uint64)
