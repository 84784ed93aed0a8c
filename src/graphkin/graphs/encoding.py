"""A graph as a few bytes: what libraries keep of each graph.

The bytes are, little-endian::

    magic, version, traits, widths      4 bytes
    checksum                            u32, CRC-32 of all the other bytes
    nodes, edges                        u32 each
    tokens, or columns of node features u32, 0 for constant nodes
    columns of edge features            u32, 0 unless they are dense
    edges, token ids, sizes of bags, edge types    as far as the graph has them
    node features, edge features                   as far as the graph has them
    words, if it has any: their number (u32), hashes (u64), sizes of bags (u32)

Integers take 1, 2 or 4 bytes, whichever the largest of their array needs: most functions have
fewer than 256 blocks, and take a quarter of what their arrays hold.
"""

from __future__ import annotations

import struct
import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphkin.errors import FormatError, GraphError
from graphkin.graphs.graph import (
    EDGE_KINDS,
    NODE_KINDS,
    Graph,
    TokenBags,
    WordBags,
    check_has_no_labels,
    running_offsets,
)

MAGIC, VERSION = 0x4B, 1
HEAD = struct.Struct("<4B5I")
CHECKSUM = slice(4, 8)
INTEGERS = (np.dtype("<u1"), np.dtype("<u2"), np.dtype("<u4"))
FLOAT = np.dtype("<f4")
HASH = np.dtype("<u8")
COUNT = np.dtype("<u4")
KIND_BITS = 2
DIRECTED, WORDED = 1 << 2 * KIND_BITS, 1 << 2 * KIND_BITS + 1
"""Bits of the traits, above those of the kinds."""


def dump_graph(graph: Graph) -> bytes:
    """The bytes of a graph; equal graphs have equal bytes."""
    check_has_no_labels(graph)
    nodes, bags, edges = graph.node_features, graph.node_tokens, graph.edge_features
    integers = [graph.edges]
    integers += [] if bags is None else [bags.ids, bags.offsets[1:] - bags.offsets[:-1]]
    integers += [] if graph.edge_types is None else [graph.edge_types]
    sizes = [_size(array) for array in integers]
    traits = NODE_KINDS.index(graph.node_kind) | EDGE_KINDS.index(graph.edge_kind) << KIND_BITS
    traits |= DIRECTED * graph.directed | WORDED * (graph.node_words is not None)
    widths = sum(size << 2 * position for position, size in enumerate(sizes))
    extent = 0 if nodes is None else nodes.shape[1]
    extent = extent if bags is None else len(bags.ids)
    columns = 0 if edges is None else edges.shape[1]
    counts = graph.num_nodes, graph.num_edges, extent, columns
    body = [array.astype(INTEGERS[size]) for array, size in zip(integers, sizes, strict=True)]
    body += [array.astype(FLOAT, copy=False) for array in (nodes, edges) if array is not None]
    if graph.node_words is not None:
        hashes, offsets = graph.node_words.hashes, graph.node_words.offsets
        body += [np.array([len(hashes)], dtype=COUNT), hashes.astype(HASH, copy=False)]
        body.append(np.diff(offsets).astype(COUNT))
    data = bytearray(HEAD.pack(MAGIC, VERSION, traits, widths, 0, *counts))
    for array in body:
        data += array.tobytes()
    data[CHECKSUM] = zlib.crc32(data).to_bytes(4, "little")
    return bytes(data)


def load_graph(data: bytes) -> Graph:
    """The graph of what :func:`dump_graph` wrote.

    Raises:
        FormatError: the bytes are damaged, or of another version.
    """
    if len(data) < HEAD.size or data[0] != MAGIC:
        raise FormatError(f"expected the bytes of a graph, got {len(data)} that begin {data[:4]!r}")
    _, version, traits, widths, checksum, *counts = HEAD.unpack_from(data)
    if version != VERSION:
        raise FormatError(
            f"a graph is stored in version {version}, this graphkin reads {VERSION}; "
            "use the graphkin that wrote it"
        )
    unsummed = bytearray(data)
    unsummed[CHECKSUM] = bytes(4)
    if (actual := zlib.crc32(unsummed)) != checksum:
        raise FormatError(f"the bytes of a graph are damaged: CRC-32 {actual}, not {checksum}")
    try:
        return _Reader(data, widths).graph(traits, *counts)
    except (GraphError, ValueError, IndexError) as error:
        raise FormatError(f"the bytes of a graph are damaged: {error}") from error


class _Reader:
    """Takes one array after the other."""

    def __init__(self, data: bytes, widths: int) -> None:
        self._data, self._widths, self._start = data, widths, HEAD.size

    def graph(self, traits: int, nodes: int, edges: int, extent: int, columns: int) -> Graph:
        mask = (1 << KIND_BITS) - 1
        node_kind, edge_kind = NODE_KINDS[traits & mask], EDGE_KINDS[traits >> KIND_BITS & mask]
        ends = self._integers(2 * edges).reshape(edges, 2)
        bags = None
        if node_kind == "tokens":
            ids = self._integers(extent)
            bags = TokenBags.from_sizes(ids, self._integers(nodes))
        types = self._integers(edges) if edge_kind == "types" else None
        node_features = self._floats(nodes, extent) if node_kind == "dense" else None
        edge_features = self._floats(edges, columns) if edge_kind == "dense" else None
        words = None
        if traits & WORDED:
            hashes = self._take(HASH, int(self._take(COUNT, 1)[0]))
            words = WordBags(hashes, running_offsets(self._take(COUNT, nodes)))
        if self._start != len(self._data):
            raise ValueError(f"{len(self._data) - self._start} bytes are left over")
        return Graph(
            nodes,
            ends,
            directed=bool(traits & DIRECTED),
            node_features=node_features,
            node_tokens=bags,
            edge_features=edge_features,
            edge_types=types,
            node_words=words,
        )

    def _integers(self, count: int) -> NDArray[np.int32]:
        kind = INTEGERS[self._widths & 3]
        self._widths >>= 2
        return self._take(kind, count).astype(np.int32)

    def _floats(self, rows: int, columns: int) -> NDArray[np.float32]:
        return self._take(FLOAT, rows * columns).reshape(rows, columns).astype(np.float32)

    def _take(self, kind: np.dtype[Any], count: int) -> NDArray[Any]:
        if count > len(self._data):
            raise ValueError(f"{len(self._data)} bytes cannot hold {count} numbers")
        array = np.frombuffer(self._data, kind, count, self._start)
        self._start += array.nbytes
        return array


def _size(array: NDArray[Any]) -> int:
    """The place in ``INTEGERS`` of the smallest kind that holds an array."""
    largest = int(array.max()) if array.size else 0
    return (largest > 0xFF) + (largest > 0xFFFF)
