"""What goes together when graphs are packed, as plain numbers: batches, pairs, CSR, words.

Nothing here needs torch, which takes a second to load: who only searches does without.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from graphkin.errors import GraphError
from graphkin.graphs.collections import listed
from graphkin.graphs.converters.any_graph import as_graph
from graphkin.graphs.converters.attributes import AttributeNames
from graphkin.graphs.graph import Graph, OffsetArray, WordArray, WordBags, running_offsets

Index = NDArray[np.int64]

MAX_NODES_PER_BATCH = 20_000
MAX_GRAPHS_PER_BATCH = 1_024
BLOCK_CELLS = 200_000
"""Cells of a block of pairs that are compared at once, at most, unless a single pair has more."""
CELLS_AT_ONCE = 1 << 20
"""Of a single pair: what is computed of each two nodes, and not kept."""


class Neighbours(NamedTuple):
    """Messages sorted by the node that owns them (CSR), E of them over N nodes."""

    offsets: Index
    """(N + 1,): node i owns entries offsets[i]..offsets[i + 1]."""
    nodes: Index
    """(E,): the node at the other end."""
    owners: Index
    """(E,): the owning node, rising."""
    rows: Index
    """(E,): row of the edge that the entry comes from."""

    @classmethod
    def of(cls, owners: Index, nodes: Index, rows: Index, num_nodes: int) -> Self:
        """Sorted from (E,) owners, nodes at the other end, and rows."""
        order = np.argsort(owners, kind="stable")
        offsets = running_offsets(np.bincount(owners, minlength=num_nodes))
        return cls(offsets, nodes[order], owners[order], rows[order])


class PackedWords(NamedTuple):
    """The words of each owner, a graph or a node, one owner after the other."""

    hashes: WordArray
    """(M,) uint64."""
    counts: NDArray[np.float32]
    """(M,): how often the owner has the word."""
    offsets: OffsetArray
    """(owners + 1,)."""

    @classmethod
    def of_graphs(cls, bags: Sequence[WordBags]) -> Self:
        """The distinct words of each graph."""
        counted = [bag.counted() for bag in bags]
        return cls(
            np.concatenate([words for words, _ in counted]),
            np.concatenate([count for _, count in counted]).astype(np.float32),
            running_offsets(np.array([len(words) for words, _ in counted])),
        )

    @classmethod
    def of_nodes(cls, bags: Sequence[WordBags]) -> Self:
        """The words of each node of each graph; one that a node has twice is there twice."""
        hashes = np.concatenate([bag.hashes for bag in bags])
        sizes = np.concatenate([np.diff(bag.offsets) for bag in bags])
        return cls(hashes, np.ones(len(hashes), np.float32), running_offsets(sizes))


def owners_of(offsets: Index) -> Index:
    """(M,) the owner of each entry, by (owners + 1,) offsets."""
    return np.repeat(np.arange(len(offsets) - 1, dtype=np.int64), np.diff(offsets))


def batch_edges(graphs: Sequence[Graph], node_offsets: Index) -> Index:
    """(R, 2) the edges of all graphs, in batch-wide node numbers."""
    counts = [graph.num_edges for graph in graphs]
    edges = np.concatenate([graph.edges for graph in graphs]).astype(np.int64)
    edges += np.repeat(node_offsets[:-1], counts)[:, None]
    return edges


def check_uniform(graphs: Sequence[Graph]) -> None:
    """Refuses a list of graphs that do not share direction and kinds of input."""
    if isinstance(graphs, Graph):
        raise GraphError("a list of graphs is needed, not one graph")
    if not graphs:
        raise GraphError("a batch needs at least one graph")
    first = graphs[0]
    if len(set(map(_kinds, graphs))) == 1:
        return
    for position, graph in enumerate(graphs):
        if not isinstance(graph, Graph):
            raise GraphError(
                f"graph {position} is a {type(graph).__name__}; convert it to a graphkin Graph"
            )
        for trait in ("directed", "node_kind", "edge_kind", "has_words", "has_labels"):
            expected, got = getattr(first, trait), getattr(graph, trait)
            if expected != got:
                raise GraphError(
                    f"graph {position} of the batch has {trait} {got!r}, graph 0 has "
                    f"{expected!r}; a batch takes one kind"
                )
        for trait in ("node_features", "edge_features"):
            values, reference = getattr(graph, trait), getattr(first, trait)
            if values is not None and values.shape[1] != reference.shape[1]:
                raise GraphError(
                    f"graph {position} of the batch has {values.shape[1]} {trait} columns, "
                    f"graph 0 has {reference.shape[1]}"
                )


def _kinds(graph: Graph) -> tuple[object, ...]:
    """What graphs of one batch have in common; of what is not a graph, the thing itself."""
    if not isinstance(graph, Graph):
        return (id(graph), None)
    features, edge_features = graph.node_features, graph.edge_features
    return (
        graph.directed,
        None if features is None else features.shape[1],
        graph.node_tokens is None,
        graph.node_words is None,
        graph.node_labels is None,
        None if edge_features is None else edge_features.shape[1],
        graph.edge_types is None,
        graph.edge_labels is None,
    )


def distinct_graphs(pairs: Sequence[tuple[Graph, Graph]]) -> tuple[list[Graph], Index, Index]:
    """The graphs of pairs, each object once; and (P,) the numbers of left and right graphs."""
    numbers: dict[int, int] = {}
    graphs: list[Graph] = []
    index = np.empty((len(pairs), 2), dtype=np.int64)
    for row, pair in enumerate(pairs):
        if len(pair) != 2:
            raise GraphError(f"pair {row} holds {len(pair)} graphs, not 2")
        for column, graph in enumerate(pair):
            number = numbers.setdefault(id(graph), len(graphs))
            if number == len(graphs):
                graphs.append(graph)
            index[row, column] = number
    return graphs, index[:, 0], index[:, 1]


def pair_blocks(left: Index, right: Index) -> list[Index]:
    """Pairs of similar size together, in blocks of at most ``BLOCK_CELLS`` padded cells.

    Args:
        left: (P,) nodes of the first graphs.
        right: (P,) nodes of the second ones.

    Returns:
        The numbers of the pairs of each block; together they are all.
    """
    larger = np.maximum(left, right)
    order = np.lexsort((np.minimum(left, right), larger))
    blocks, start = [], 0
    while start < len(order):
        # Sizes rise, so that the last pair of a block decides its padding.
        counts = np.arange(1, len(order) - start + 1)
        within = counts * larger[order[start:]] ** 2 <= BLOCK_CELLS
        count = max(1, int(within.sum()))
        blocks.append(order[start : start + count])
        start += count
    return blocks


def row_slices(rows: int, columns: int) -> Iterator[slice]:
    """Slices of rows with at most ``CELLS_AT_ONCE`` cells, or of one row each."""
    step = max(1, CELLS_AT_ONCE // max(columns, 1))
    for first in range(0, rows, step):
        yield slice(first, min(first + step, rows))


def checked_pairs(
    pairs: Iterable[Sequence[Any]], names: AttributeNames | None = None
) -> list[tuple[Graph, Graph]]:
    """The pairs as a list, of graphs of graphkin; anything but two of one kind is refused."""
    pairs = listed(pairs, "pairs")
    for position, pair in enumerate(pairs):
        if not isinstance(pair, tuple | list | np.ndarray):
            raise GraphError(f"pair {position} is a {type(pair).__name__}, not two graphs")
        if len(pair) != 2:
            raise GraphError(f"pair {position} holds {len(pair)} graphs, not 2")
    known: dict[int, Graph] = {}

    def converted(graph: Any, position: int) -> Graph:
        # A graph that is in many pairs stays one, so that it is encoded once.
        if id(graph) not in known:
            known[id(graph)] = as_graph(graph, position, names)
        return known[id(graph)]

    graphs = [
        (converted(pair[0], place), converted(pair[1], place)) for place, pair in enumerate(pairs)
    ]
    if graphs:
        check_uniform([graph for pair in graphs for graph in pair])
    return graphs


def size_batches(
    sizes: Sequence[int], graphs_per_item: int, nodes_at_once: int | None = None
) -> Iterator[list[int]]:
    """Splits items into batches of bounded size, small items with small ones.

    Args:
        sizes: nodes of each item (a graph, or a pair).
        graphs_per_item: graphs that an item packs.
        nodes_at_once: nodes of a batch, at most, unless a single item has more; by default
            ``MAX_NODES_PER_BATCH``.

    Yields:
        The item numbers of each batch; together they cover all.
    """
    most = MAX_NODES_PER_BATCH if nodes_at_once is None else nodes_at_once
    batch: list[int] = []
    nodes = 0
    for index in np.argsort(np.asarray(sizes), kind="stable").tolist():
        full = nodes + sizes[index] > most
        if batch and (full or (len(batch) + 1) * graphs_per_item > MAX_GRAPHS_PER_BATCH):
            yield batch
            batch, nodes = [], 0
        batch.append(index)
        nodes += sizes[index]
    if batch:
        yield batch
