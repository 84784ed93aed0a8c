"""Packed batches: the nodes of many graphs in one array, edges as CSR, no padding.

A batch is built once, off the training loop's critical path; the models only read it.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from graphkin.errors import GraphError
from graphkin.graphs.graph import Graph, OffsetArray, WordBags, running_offsets
from graphkin.graphs.labels import similarity_labels
from graphkin.graphs.packing import (
    Neighbours,
    PackedWords,
    batch_edges,
    check_uniform,
    distinct_graphs,
    owners_of,
)
from graphkin.graphs.pair_groups import PairGroup, group_pairs

Index = OffsetArray


@dataclass(frozen=True, eq=False)
class Adjacency:
    """Messages sorted by the node that owns them (CSR). E counts messages, not listed edges."""

    offsets: Tensor
    """(N + 1,) int64: node i owns entries offsets[i]..offsets[i + 1]."""
    neighbours: Tensor
    """(E,) int64: the node at the other end."""
    owners: Tensor
    """(E,) int64: the owning node, rising."""
    edge_rows: Tensor
    """(E,) int64: row of the batch's edge input that belongs to the entry."""

    def to(self, device: torch.device | str) -> Adjacency:
        return Adjacency(*(tensor.to(device) for tensor in vars(self).values()))


@dataclass(frozen=True, eq=False)
class WordBatch:
    """The words of each owner, a graph or a node, one owner after the other."""

    hashes: Tensor
    """(M,) int64: the bits of the hashes, which are unsigned."""
    counts: Tensor
    """(M,) float32: how often the owner has the word."""
    offsets: Tensor
    """(owners + 1,) int64."""

    @classmethod
    def pack(cls, bags: Sequence[WordBags]) -> WordBatch:
        """The distinct words of each graph."""
        return cls._of(PackedWords.of_graphs(bags))

    @classmethod
    def pack_nodes(cls, bags: Sequence[WordBags]) -> WordBatch:
        """The words of each node of each graph; one that a node has twice is there twice."""
        return cls._of(PackedWords.of_nodes(bags))

    @classmethod
    def _of(cls, words: PackedWords) -> WordBatch:
        arrays = words.hashes.view(np.int64), words.counts, words.offsets
        return cls(*map(torch.from_numpy, arrays))

    def to(self, device: torch.device | str) -> WordBatch:
        return WordBatch(*(tensor.to(device) for tensor in vars(self).values()))


@dataclass(frozen=True, eq=False)
class GraphBatch:
    """G graphs with N nodes in all. An undirected edge gives two messages, a self loop one."""

    directed: bool
    node_offsets: Tensor
    """(G + 1,) int64: graph g owns nodes node_offsets[g]..node_offsets[g + 1]."""
    node_graph: Tensor
    """(N,) int64: the graph of each node."""
    incoming: Adjacency
    """Messages by receiving node; neighbours are the senders."""
    node_features: Tensor | None = None
    """(N, F) float32."""
    token_ids: Tensor | None = None
    """(M,) int64."""
    token_offsets: Tensor | None = None
    """(N + 1,) int64."""
    edge_features: Tensor | None = None
    """(R, F) float32, one row for each listed edge."""
    edge_types: Tensor | None = None
    """(R,) int64, one for each listed edge."""
    words: WordBatch | None = None
    """The hashed words of each graph."""
    node_words: WordBatch | None = None
    """The hashed words of each node."""

    @classmethod
    def pack(cls, graphs: Sequence[Graph]) -> GraphBatch:
        """Packs graphs that share their kind of node input, edge input and direction."""
        check_uniform(graphs)
        first = graphs[0]
        if first.has_text:
            raise GraphError(
                "the graphs have labels as text at their nodes, which are packed as tokens; a "
                "model with a vocabulary reads them: model.read(graphs)"
            )
        sizes = np.array([graph.num_nodes for graph in graphs], dtype=np.int64)
        node_offsets = running_offsets(sizes)
        edges = batch_edges(graphs, node_offsets)
        fields: dict[str, Any] = {}
        if first.node_kind == "dense":
            fields["node_features"] = _stack([graph.node_features for graph in graphs])
        if first.node_kind == "tokens":
            bags = [graph.node_tokens for graph in graphs if graph.node_tokens is not None]
            counts = np.concatenate([np.diff(bag.offsets) for bag in bags])
            fields["token_ids"] = _stack([bag.ids for bag in bags]).long()
            fields["token_offsets"] = torch.from_numpy(running_offsets(counts))
        if first.edge_kind == "dense":
            fields["edge_features"] = _stack([graph.edge_features for graph in graphs])
        if first.edge_kind == "types":
            fields["edge_types"] = _stack([graph.edge_types for graph in graphs]).long()
        if first.has_words:
            words = [graph.node_words for graph in graphs if graph.node_words is not None]
            fields["words"] = WordBatch.pack(words)
            fields["node_words"] = WordBatch.pack_nodes(words)
        return cls.from_arrays(node_offsets, edges, directed=first.directed, **fields)

    @classmethod
    def from_pyg(cls, batch: Any) -> GraphBatch:
        """A batch of PyG's ``DataLoader``, under the names that ``from_pyg`` reads of a graph.

        Undirected where every edge has its reverse with equal input, as a list of graphs would be.
        """
        from graphkin.graphs.converters.from_pyg import batch_arrays

        return cls.from_arrays(**batch_arrays(batch))

    @classmethod
    def from_arrays(
        cls, node_offsets: Index, edges: Index, *, directed: bool, **inputs: Any
    ) -> GraphBatch:
        """Builds the CSR from (R, 2) edges that already carry batch-wide node numbers."""
        num_nodes = int(node_offsets[-1])
        senders, receivers = edges[:, 0], edges[:, 1]
        rows = np.arange(len(edges), dtype=np.int64)
        if not directed:
            once = senders != receivers
            senders, receivers, rows = (
                np.concatenate([senders, receivers[once]]),
                np.concatenate([receivers, senders[once]]),
                np.concatenate([rows, rows[once]]),
            )
        return cls(
            directed=directed,
            node_offsets=torch.from_numpy(node_offsets),
            node_graph=torch.from_numpy(owners_of(node_offsets)),
            incoming=_adjacency(receivers, senders, rows, num_nodes),
            **inputs,
        )

    @classmethod
    def from_sorted_messages(
        cls, node_offsets: Index, message_offsets: Index, senders: Index
    ) -> GraphBatch:
        """A batch of undirected graphs with constant input, from messages sorted by receiver.

        Node i receives from ``senders[message_offsets[i]:message_offsets[i + 1]]``, in
        batch-wide node numbers; both directions of every edge must be listed. This is the
        way in for generators that have the sorted order for free.
        """
        return cls(
            directed=False,
            node_offsets=torch.from_numpy(node_offsets),
            node_graph=torch.from_numpy(owners_of(node_offsets)),
            incoming=Adjacency(
                offsets=torch.from_numpy(message_offsets),
                neighbours=torch.from_numpy(senders),
                owners=torch.from_numpy(owners_of(message_offsets)),
                edge_rows=torch.zeros(len(senders), dtype=torch.int64),
            ),
        )

    @property
    def num_graphs(self) -> int:
        return len(self.node_offsets) - 1

    @property
    def num_nodes(self) -> int:
        return len(self.node_graph)

    @property
    def num_messages(self) -> int:
        return len(self.incoming.neighbours)

    @property
    def node_kind(self) -> str:
        """``constant``, ``dense`` or ``tokens``."""
        if self.node_features is not None:
            return "dense"
        return "tokens" if self.token_ids is not None else "constant"

    @property
    def edge_kind(self) -> str:
        """``constant``, ``dense`` or ``types``."""
        if self.edge_features is not None:
            return "dense"
        return "types" if self.edge_types is not None else "constant"

    @cached_property
    def outgoing(self) -> Adjacency:
        """The transpose of ``incoming``: messages by sending node; neighbours are receivers."""
        senders = self.incoming.neighbours.cpu().numpy()
        receivers = self.incoming.owners.cpu().numpy()
        rows = self.incoming.edge_rows.cpu().numpy()
        adjacency = _adjacency(senders, receivers, rows, self.num_nodes)
        return adjacency.to(self.node_graph.device)

    @cached_property
    def in_degrees(self) -> Tensor:
        """(N,) int64: messages that each node receives."""
        return self.incoming.offsets.diff()

    @cached_property
    def degree_classes(self) -> tuple[Tensor, Tensor]:
        """Nodes by their numbers of messages: those of a class are alike for a first step.

        Returns:
            (C, 2) int64 messages received and sent by the nodes of each class, and (N,) int64
            the class of each node.
        """
        received = self.in_degrees.cpu().numpy()
        sent = received
        if self.directed:
            sent = np.bincount(self.incoming.neighbours.cpu().numpy(), minlength=len(received))
        base = int(sent.max()) + 1
        keys = received * base + sent if self.directed else received
        present = np.flatnonzero(np.bincount(keys))
        number = np.zeros(int(keys.max()) + 1, dtype=np.int64)
        number[present] = np.arange(len(present))
        degrees = np.divmod(present, base) if self.directed else (present, present)
        device = self.node_graph.device
        counts = torch.from_numpy(np.stack(degrees, axis=1)).to(device)
        return counts, torch.from_numpy(number[keys]).to(device)

    def to(self, device: torch.device | str) -> GraphBatch:
        """The batch on a device, with all that was derived from it; itself where it is there."""
        return _moved(self, self.node_graph.device, device)


@dataclass(frozen=True, eq=False)
class PairBatch:
    """P pairs of graphs of one batch.

    Triplets (G1, G2, G3) are the pairs (G1, G2), (G1, G3) in turn: row 2t is the positive
    pair of triplet t and row 2t + 1 its negative.
    """

    graphs: GraphBatch
    left: Tensor
    """(P,) int64: index of a pair's first graph."""
    right: Tensor
    """(P,) int64: index of its second."""
    labels: Tensor | None = None
    """(P,) float32: +1 similar and -1 dissimilar, or a pair's group or target value; None where the
    batch is made of triplets or lists."""
    consecutive: bool = False
    """Whether pair k is graphs 2k and 2k + 1, and those are all."""

    @classmethod
    def pack(
        cls,
        pairs: Sequence[tuple[Graph, Graph]],
        labels: ArrayLike | None = None,
        *,
        values: ArrayLike | None = None,
    ) -> PairBatch:
        """Packs pairs; every pair gets its own copy of its two graphs, as matching needs.

        Args:
            pairs: of graphs.
            labels: whether each pair is similar: 1 and -1, 1 and 0, or booleans; they become +1
                and -1.
            values: numbers that stay as they are: target values, or groups.
        """
        if not pairs:
            raise GraphError("a batch needs at least one pair")
        for position, pair in enumerate(pairs):
            if len(pair) != 2:
                raise GraphError(f"pair {position} holds {len(pair)} graphs, not 2")
        graphs = GraphBatch.pack([graph for pair in pairs for graph in pair])
        return cls.interleaved(graphs, _labels(labels, values, len(pairs)))

    @classmethod
    def pack_distinct(
        cls,
        pairs: Sequence[tuple[Graph, Graph]],
        labels: ArrayLike | None = None,
        *,
        values: ArrayLike | None = None,
    ) -> PairBatch:
        """Packs pairs whose graphs are encoded apart: a graph of several pairs is there once.

        Labels and values are those of :meth:`pack`.
        """
        graphs, left, right = distinct_graphs(pairs)
        numbers = _labels(labels, values, len(pairs))
        signs = None if numbers is None else torch.from_numpy(numbers)
        index = torch.from_numpy(left), torch.from_numpy(right)
        return cls(GraphBatch.pack(graphs), *index, signs)

    @classmethod
    def pack_triplets(cls, triplets: Sequence[tuple[Graph, Graph, Graph]]) -> PairBatch:
        """Packs triplets as two pairs each."""
        for position, triplet in enumerate(triplets):
            if len(triplet) != 3:
                raise GraphError(f"triplet {position} holds {len(triplet)} graphs, not 3")
        return cls.pack([pair for a, b, c in triplets for pair in ((a, b), (a, c))])

    @classmethod
    def interleaved(
        cls, graphs: GraphBatch, labels: Sequence[float] | NDArray[np.float32] | None = None
    ) -> PairBatch:
        """Pair k is graphs 2k and 2k + 1; labels are taken as they are."""
        if graphs.num_graphs % 2:
            raise GraphError(f"pairs need an even number of graphs, got {graphs.num_graphs}")
        if labels is not None and len(labels) != graphs.num_graphs // 2:
            raise GraphError(f"{len(labels)} labels for {graphs.num_graphs // 2} pairs")
        index = torch.arange(graphs.num_graphs)
        signs = None if labels is None else torch.tensor(labels, dtype=torch.float32)
        return cls(graphs, index[0::2], index[1::2], signs, consecutive=True)

    @property
    def num_pairs(self) -> int:
        return len(self.left)

    def split(self, vectors: Tensor) -> tuple[Tensor, Tensor]:
        """(graphs, G) rows of all graphs -> (P, G) of the first and of the second graphs."""
        if self.consecutive:
            left, right = vectors.view(self.num_pairs, 2, -1).unbind(dim=1)
            return left, right
        return vectors.index_select(0, self.left), vectors.index_select(0, self.right)

    @cached_property
    def groups(self) -> list[PairGroup]:
        """Pairs of similar size together, so that attention pads little.

        Raises:
            GraphError: where a graph belongs to several pairs, or to none: attention changes a
                node by its partner, so that each pair needs a copy of its own.
        """
        left, right = self.left.cpu().numpy(), self.right.cpu().numpy()
        uses = np.bincount(np.concatenate([left, right]), minlength=self.graphs.num_graphs)
        if (uses != 1).any():
            raise GraphError("matching needs each graph in exactly one pair; pack copies instead")
        groups = group_pairs(self.graphs.node_offsets.cpu().numpy(), left, right)
        device = self.graphs.node_graph.device
        return [group.to(device) for group in groups]

    def to(self, device: torch.device | str) -> PairBatch:
        """The batch on a device, with all that was derived from it; itself where it is there."""
        return _moved(self, self.left.device, device)


Record = TypeVar("Record", GraphBatch, PairBatch)


def _moved(record: Record, current: torch.device, device: torch.device | str) -> Record:
    if torch.device(device) == current:
        return record

    def move(value: Any) -> Any:
        if isinstance(value, tuple | list):
            return type(value)(move(item) for item in value)
        return value.to(device) if hasattr(value, "to") else value

    moved = copy.copy(record)
    # Fields, and the cached properties beside them.
    vars(moved).update({name: move(value) for name, value in vars(record).items()})
    return moved


def _labels(
    labels: ArrayLike | None, values: ArrayLike | None, count: int
) -> NDArray[np.float32] | None:
    """(count,) what a person says of pairs, by one of the two arguments."""
    if labels is not None and values is not None:
        raise GraphError("labels and values are both given; a batch has one of them")
    if labels is None and values is None:
        return None
    if labels is not None:
        numbers = similarity_labels(labels)
    else:
        numbers = np.array(values, dtype=np.float32)
        if numbers.ndim != 1 or not np.isfinite(numbers).all():
            raise GraphError(f"values must be a flat list of finite numbers, got {values!r:.80}")
    if len(numbers) != count:
        what = "labels" if values is None else "values"
        raise GraphError(f"{len(numbers)} {what} for {count} pairs; give one for each")
    return numbers


def _stack(arrays: Sequence[NDArray[Any] | None]) -> Tensor:
    return torch.from_numpy(np.concatenate([array for array in arrays if array is not None]))


def _adjacency(owners: Index, nodes: Index, rows: Index, num_nodes: int) -> Adjacency:
    neighbours = Neighbours.of(owners, nodes, rows, num_nodes)
    return Adjacency(*map(torch.from_numpy, neighbours))
