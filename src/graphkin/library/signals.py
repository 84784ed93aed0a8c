"""What a search compares beside the code: vectors of a function, and of those around it.

A function's signals are one record of fixed size, in whole bytes: parts of the embedder's vector as
8-bit numbers with a scale each, and counts. An engine keeps them without knowing what they mean.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from graphkin.graphs import Graph
from graphkin.graphs.packing import Neighbours
from graphkin.graphs.words import KINDS, OFFSETS, kinds_of
from graphkin.models.answering import Embedder
from graphkin.models.light.run_sums import RunSums

Records = NDArray[np.void]
"""(N,) of the kind that :func:`record_kind` gives."""
Floats = NDArray[np.float32]
OWN = ("graph", "words", "offsets")
"""Parts of a function's own vector."""
CALLS = ("callees", "callers")
"""Of the functions that it calls, and that call it: graph and words side by side."""
AROUND = (*CALLS, "neighbours")
"""And the same of those that lie beside it in its file: what was written in one source file, and
linked from one object, stays together, whatever compiler made it."""
NEIGHBOURS = 4
"""Functions on either side that are neighbours."""
RARE = 5.0
"""Rarity from which on a word is worth looking for by itself."""


STACK = ("stack_load", "stack_store")
"""Operations of which code without optimization is full."""


class ComparedGraphs(NamedTuple):
    """What the graphs of a query and of N others tell, beside their vectors."""

    exact_words: Floats
    """(N,) the cosines of what both say."""
    operations_apart: Floats
    """(N,) how far the shares of their operations are apart, from 0 to 1."""
    on_stack: float
    """The share of the query's operations that use the stack."""
    on_stack_there: Floats
    """(N,) the same of the others."""


class Surroundings(NamedTuple):
    """Where a function stands in its file."""

    address: int
    callees: Sequence[int]
    """Addresses of functions of the same file that it calls."""


def record_kind(embedder: Embedder, around: Sequence[str] = AROUND) -> np.dtype[np.void]:
    """How the signals of a function lie in bytes.

    Args:
        embedder: what makes the vectors.
        around: which of ``AROUND`` there are.
    """
    config = embedder.config
    widths = {
        "graph": config.graph_dim,
        "words": config.word_dim,
        "offsets": config.offset_dim,
        **dict.fromkeys(around, config.graph_dim + config.word_dim),
    }
    fields: list[tuple[Any, ...]] = []
    for name, width in widths.items():
        fields += [(name, "i1", (width,)), (f"{name}_scale", "<f4")]
    counts = ("operations", "edges", "callee_count", "caller_count")
    fields += [(name, "<u4") for name in counts]
    return np.dtype([*fields, ("strength", "<f4"), ("in_file", "u1"), ("narrow", "u1")])


def signals_of(
    embedder: Embedder,
    graphs: Sequence[Graph],
    vectors: Floats,
    narrow: Sequence[bool],
    surroundings: Sequence[Surroundings] | None = None,
    around: Sequence[str] = AROUND,
) -> Records:
    """The signals of functions.

    Args:
        embedder: what made the vectors.
        graphs: N functions.
        vectors: (N, V) of :meth:`GraphEmbedder.encode`.
        narrow: whether each is of a processor with pointers of 32 bits.
        surroundings: where each stands, if they are all the functions of one file.
        around: which of ``AROUND`` are wanted.
    """
    records = np.zeros(len(graphs), record_kind(embedder, around))
    for name in OWN:
        _put(records, name, embedder.part(vectors, name))
    records["edges"] = [graph.num_edges for graph in graphs]
    records["operations"] = [
        0 if graph.node_tokens is None else len(graph.node_tokens.ids) for graph in graphs
    ]
    records["strength"] = _strengths(embedder, graphs)
    records["narrow"] = narrow
    if surroundings is not None:
        own = np.concatenate([embedder.part(vectors, name) for name in ("graph", "words")], axis=1)
        _add_surroundings(records, own, surroundings)
    return records


def _add_surroundings(records: Records, own: Floats, surroundings: Sequence[Surroundings]) -> None:
    rows = {item.address: row for row, item in enumerate(surroundings)}
    calls = np.array(
        [
            (row, rows[address])
            for row, item in enumerate(surroundings)
            for address in item.callees
            if address in rows
        ],
        dtype=np.int64,
    ).reshape(-1, 2)
    for name, from_, to in (("callees", 0, 1), ("callers", 1, 0)):
        owners, others = calls[:, from_], calls[:, to]
        linked = Neighbours.of(owners, others, np.arange(len(calls)), len(records))
        total = RunSums(linked.offsets, linked.nodes)(own)
        _put(records, name, _of_length_one(total))
    if "neighbours" in (records.dtype.names or ()):
        addresses = [item.address for item in surroundings]
        _put(records, "neighbours", _of_length_one(_sums_of_neighbours(own, addresses)))
    records["callee_count"] = [len(item.callees) for item in surroundings]
    records["caller_count"] = np.bincount(calls[:, 1], minlength=len(records))
    records["in_file"] = 1


def _sums_of_neighbours(own: Floats, addresses: Sequence[int]) -> Floats:
    """(N, D) the sums of the vectors of the functions that lie beside each."""
    order = np.argsort(addresses, kind="stable")
    in_order, sums = own[order], np.zeros_like(own)
    for distance in range(1, min(NEIGHBOURS + 1, len(own))):
        sums[order[distance:]] += in_order[:-distance]
        sums[order[:-distance]] += in_order[distance:]
    return sums


def _of_length_one(vectors: Floats) -> Floats:
    """Each vector divided by its length, if it has one."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    divided: Floats = (vectors / np.where(lengths > 0, lengths, 1)).astype(np.float32)
    return divided


def _put(records: Records, name: str, vectors: Floats) -> None:
    """Rounds to 8 bits, by the largest number of each vector."""
    largest = np.abs(vectors).max(axis=1, initial=0)
    scales = np.where(largest > 0, largest / 127, 1)
    records[name] = np.rint(vectors / scales[:, None])
    records[f"{name}_scale"] = np.where(largest > 0, scales, 0)


def cosines(query: np.void, records: Records, name: str) -> Floats:
    """(N,) the product of a part of one function with that of others; 0 where there is none."""
    own = query[name].astype(np.float32) * query[f"{name}_scale"]
    products: Floats = records[name].astype(np.float32) @ own * records[f"{name}_scale"]
    return products


def rare_words(embedder: Embedder, graph: Graph) -> tuple[NDArray[np.uint64], Floats]:
    """The words of a function that few others have, each once, and how rare they are."""
    said = _said(embedder, [graph])
    is_rare = said.rarity > RARE
    return said.hashes[is_rare], said.rarity[is_rare]


def rare_words_of(embedder: Embedder, graphs: Sequence[Graph]) -> list[NDArray[np.uint64]]:
    """The words of each function that few others have, each once and rising."""
    said = _said(embedder, graphs)
    is_rare = said.rarity > RARE
    ends = np.cumsum(np.bincount(said.owners[is_rare], minlength=len(graphs)))
    return np.split(said.hashes[is_rare], ends)[:-1]


def shared_words(embedder: Embedder, left: Graph, right: Graph) -> list[int]:
    """The words that two functions both say, offsets left out, the rarest first."""
    words = np.intersect1d(_distinct(left), _distinct(right), assume_unique=True)
    order = np.argsort(-embedder.words.rarity_of(words), kind="stable")
    return [int(word) for word in words[order]]


def compared_graphs(embedder: Embedder, query: Graph, others: Sequence[Graph]) -> ComparedGraphs:
    """What graphs tell that were read."""
    size = embedder.config.node_input_size
    shares = np.stack([_operation_shares(graph, size) for graph in (query, *others)])
    apart = np.abs(shares[1:] - shares[0]).sum(axis=1) / 2
    known = () if embedder.vocabulary is None else embedder.vocabulary.encode(STACK)
    on_stack = shares[:, [token for token in known if token]].sum(axis=1)
    words = word_cosines(embedder, query, others)
    return ComparedGraphs(words, apart, float(on_stack[0]), on_stack[1:])


def _operation_shares(graph: Graph, size: int) -> Floats:
    """(size,) the share of each operation in those of a function."""
    if graph.node_tokens is None or not len(graph.node_tokens.ids):
        return np.zeros(size, np.float32)
    counts = np.bincount(graph.node_tokens.ids, minlength=size)
    shares: Floats = (counts / counts.sum()).astype(np.float32)
    return shares


def word_cosines(embedder: Embedder, query: Graph, others: Sequence[Graph]) -> Floats:
    """(N,) the exact cosines of what a function says with what others say, offsets left out."""
    counted = [counted_words(graph) for graph in (query, *others)]
    rarity = embedder.words.rarity_of(np.concatenate([words for words, _ in counted]))
    ends = np.cumsum([len(words) for words, _ in counted])[:-1]
    weights = [
        (1 + np.log(counts)) * own
        for (_, counts), own in zip(counted, np.split(rarity, ends), strict=True)
    ]
    ours, own = counted[0][0], weights[0]
    cosines = np.zeros(len(others), np.float32)
    for row, ((theirs, _), other) in enumerate(zip(counted[1:], weights[1:], strict=True)):
        _, left, right = np.intersect1d(ours, theirs, assume_unique=True, return_indices=True)
        lengths = np.linalg.norm(own) * np.linalg.norm(other)
        cosines[row] = own[left] @ other[right] / lengths if lengths else 0
    return cosines


def counted_words(graph: Graph) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """The distinct words of a graph, offsets left out, and how often each is there."""
    if graph.node_words is None:
        return np.zeros(0, np.uint64), np.zeros(0, np.int64)
    hashes, counts = graph.node_words.counted()
    kept = kinds_of(hashes) != KINDS.index(OFFSETS)
    return hashes[kept], counts[kept]


def _strengths(embedder: Embedder, graphs: Sequence[Graph]) -> Floats:
    """(N,) the summed rarity of what each function says, offsets left out."""
    said = _said(embedder, graphs)
    return np.bincount(said.owners, said.rarity, len(graphs)).astype(np.float32)


class _Said(NamedTuple):
    """What functions say, offsets left out: M words, those of the first function first."""

    hashes: NDArray[np.uint64]
    """(M,) rising, and each once, in the words of a function."""
    rarity: Floats
    """(M,)"""
    owners: NDArray[np.int64]
    """(M,) whose they are."""


def _said(embedder: Embedder, graphs: Sequence[Graph]) -> _Said:
    distinct = [
        np.zeros(0, np.uint64) if graph.node_words is None else graph.node_words.counted()[0]
        for graph in graphs
    ]
    hashes = np.concatenate([np.zeros(0, np.uint64), *distinct])
    kept = kinds_of(hashes) != KINDS.index(OFFSETS)
    owners = np.repeat(np.arange(len(graphs)), list(map(len, distinct)))[kept]
    return _Said(hashes[kept], embedder.words.rarity_of(hashes[kept]), owners)


def _distinct(graph: Graph) -> NDArray[np.uint64]:
    """The words of a function, offsets left out, each once."""
    return counted_words(graph)[0]
