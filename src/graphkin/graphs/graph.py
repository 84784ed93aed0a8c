"""The graph record: immutable, and validated once, when it is made."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from graphkin.errors import GraphError

FloatArray = NDArray[np.float32]
IntArray = NDArray[np.int32]
OffsetArray = NDArray[np.int64]
WordArray = NDArray[np.uint64]

MAX_NODES = np.iinfo(np.int32).max
NODE_KINDS = ("constant", "dense", "tokens")
EDGE_KINDS = ("constant", "dense", "types")
"""Of input; files store their positions here, so kinds are only added at the end."""


@dataclass(frozen=True, eq=False)
class TokenBags:
    """A bag of token ids for every node, packed.

    Node ``i`` holds ``ids[offsets[i]:offsets[i + 1]]``; a bag may be empty.
    """

    ids: IntArray
    """(M,) int32, token ids >= 0."""
    offsets: OffsetArray
    """(N + 1,) int64, rising from 0 to M."""

    @classmethod
    def from_lists(cls, bags: Sequence[Sequence[int]]) -> TokenBags:
        """Packs one sequence of token ids per node."""
        try:
            offsets = np.cumsum([0, *(len(bag) for bag in bags)], dtype=np.int64)
            ids = [token for bag in bags for token in bag]
        except TypeError as error:
            raise GraphError(
                f"node_tokens must hold one list of token ids for each node: {error}"
            ) from error
        return cls(_integers(ids, "node_tokens", np.int32), offsets)

    @classmethod
    def from_sizes(cls, ids: IntArray, sizes: ArrayLike) -> TokenBags:
        """All ids one after the other, cut into bags of these sizes."""
        sizes = np.asarray(sizes)
        offsets = np.zeros(len(sizes) + 1, dtype=np.int64)
        np.cumsum(sizes, out=offsets[1:])
        return cls(ids, offsets)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def bag(self, node: int) -> list[int]:
        """The token ids of one node."""
        return [int(token) for token in self.ids[self.offsets[node] : self.offsets[node + 1]]]


@dataclass(frozen=True, eq=False)
class WordBags:
    """A bag of words of an open vocabulary for every node, packed: each word is its hash.

    Node ``i`` holds ``hashes[offsets[i]:offsets[i + 1]]``; a bag may be empty. See
    :mod:`graphkin.graphs.words` for what a hash is made of.
    """

    hashes: WordArray
    """(M,) uint64."""
    offsets: OffsetArray
    """(N + 1,) int64, rising from 0 to M."""

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def bag(self, node: int) -> WordArray:
        """The hashes of one node."""
        return self.hashes[self.offsets[node] : self.offsets[node + 1]]

    def counted(self) -> tuple[WordArray, NDArray[np.int64]]:
        """The distinct words of the whole graph, rising, and how often each is there."""
        return self._counted

    @cached_property
    def _counted(self) -> tuple[WordArray, NDArray[np.int64]]:
        words, counts = np.unique(self.hashes, return_counts=True)
        return _frozen(words), _frozen(counts)


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Graph:
    """One graph. Arrays are read-only copies in the canonical dtypes below.

    Nodes are numbered from 0. A self loop is one message from a node to itself;
    duplicate edges are kept, and each carries a message. Leave both node inputs
    (or both edge inputs) out for the paper's constant input of 1s.

    Args:
        num_nodes: number of nodes, at least 1.
        edges: (E, 2) pairs (source, target); an undirected edge is listed once.
        directed: whether messages run along an edge only from source to target.
        node_features: (N, F) finite floats.
        node_tokens: one list of token ids per node, or a :class:`TokenBags`.
        node_words: hashed words of an open vocabulary, beside any other input of the nodes.
        node_labels: one text for each node, such as ``["C", "N"]``, alone or beside features; a
            model's vocabulary makes tokens of them.
        edge_features: (E, F) finite floats, in the order of ``edges``.
        edge_types: (E,) type ids >= 0, in the order of ``edges``.
        edge_labels: one text for each edge, such as ``["single", "double"]``; a model's vocabulary
            makes types of them.

    Example:
        >>> triangle = Graph(3, [(0, 1), (1, 2), (2, 0)])
        >>> triangle
        Graph(num_nodes=3, num_edges=3, undirected)
    """

    num_nodes: int
    edges: IntArray
    """(E, 2) int32."""
    directed: bool
    node_features: FloatArray | None
    """(N, F) float32, or None."""
    node_tokens: TokenBags | None
    """Bags of token ids, or None."""
    edge_features: FloatArray | None
    """(E, F) float32, or None."""
    edge_types: IntArray | None
    """(E,) int32, or None."""
    node_words: WordBags | None
    """Bags of hashed words, or None."""
    node_labels: tuple[str, ...] | None
    """N texts, or None."""
    edge_labels: tuple[str, ...] | None
    """E texts, or None."""

    def __init__(
        self,
        num_nodes: int,
        edges: ArrayLike = (),
        *,
        directed: bool = False,
        node_features: ArrayLike | None = None,
        node_tokens: TokenBags | Sequence[Sequence[int]] | None = None,
        edge_features: ArrayLike | None = None,
        edge_types: ArrayLike | None = None,
        node_words: WordBags | None = None,
        node_labels: Sequence[str] | None = None,
        edge_labels: Sequence[str] | None = None,
    ) -> None:
        if not isinstance(directed, bool | np.bool_):
            raise GraphError(f"directed must be True or False, got {directed!r}")
        count = _node_count(num_nodes)
        edge_array = _edges(edges, count)
        if node_features is not None and node_tokens is not None:
            raise GraphError("a graph takes node_features or node_tokens, not both")
        if node_labels is not None and node_tokens is not None:
            raise GraphError("a graph takes node_labels or node_tokens, not both")
        if edge_features is not None and edge_types is not None:
            raise GraphError("a graph takes edge_features or edge_types, not both")
        if edge_labels is not None and (edge_features is not None or edge_types is not None):
            raise GraphError("a graph takes edge_labels, or edge_features or edge_types, not both")
        fields: dict[str, Any] = {
            "num_nodes": count,
            "edges": edge_array,
            "directed": bool(directed),
            "node_features": _features(node_features, count, "node_features", "node"),
            "node_tokens": _tokens(node_tokens, count),
            "edge_features": _features(edge_features, len(edge_array), "edge_features", "edge"),
            "edge_types": _types(edge_types, len(edge_array)),
            "node_words": _words(node_words, count),
            "node_labels": _labels(node_labels, count, "node"),
            "edge_labels": _labels(edge_labels, len(edge_array), "edge"),
        }
        for name, value in fields.items():
            object.__setattr__(self, name, value)

    @property
    def num_edges(self) -> int:
        """Edges as listed: an undirected edge counts once."""
        return len(self.edges)

    @property
    def node_kind(self) -> str:
        """``constant``, ``dense``, ``tokens`` or, before a vocabulary reads them, ``labels``."""
        if self.node_features is not None:
            return "dense"
        if self.node_labels is not None:
            return "labels"
        return "tokens" if self.node_tokens is not None else "constant"

    @property
    def edge_kind(self) -> str:
        """``constant``, ``dense``, ``types`` or, before a vocabulary reads them, ``labels``."""
        if self.edge_features is not None:
            return "dense"
        if self.edge_labels is not None:
            return "labels"
        return "types" if self.edge_types is not None else "constant"

    @property
    def has_words(self) -> bool:
        """Whether nodes carry hashed words, be they none."""
        return self.node_words is not None

    @property
    def has_labels(self) -> bool:
        """Whether nodes carry labels as text, which a vocabulary has yet to read."""
        return self.node_labels is not None

    @property
    def has_text(self) -> bool:
        """Whether nodes or edges carry labels as text."""
        return self.node_labels is not None or self.edge_labels is not None

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The arrays that are present, by name: all that the graph holds but its two scalars."""
        arrays: dict[str, NDArray[Any]] = {"edges": self.edges}
        if self.node_features is not None:
            arrays["node_features"] = self.node_features
        if self.node_tokens is not None:
            arrays["token_ids"] = self.node_tokens.ids
            arrays["token_offsets"] = self.node_tokens.offsets
        if self.edge_features is not None:
            arrays["edge_features"] = self.edge_features
        if self.edge_types is not None:
            arrays["edge_types"] = self.edge_types
        if self.node_words is not None:
            arrays["word_hashes"] = self.node_words.hashes
            arrays["word_offsets"] = self.node_words.offsets
        return arrays

    def digest(self) -> str:
        """SHA-256 of the content: equal graphs (same numbering and order) have equal digests."""
        # Joined, for each update of a hash lets another thread take over, and then waits for it.
        parts = [f"graph {self.num_nodes} {self.directed}".encode()]
        for name, array in self.arrays().items():
            parts += [f"{name}{array.shape}".encode(), array.tobytes()]
        if self.node_labels is not None:
            parts.append(repr(self.node_labels).encode("utf-8", "surrogatepass"))
        if self.edge_labels is not None:
            parts.append(b"edges" + repr(self.edge_labels).encode("utf-8", "surrogatepass"))
        return hashlib.sha256(b"".join(parts)).hexdigest()

    def permuted(self, order: ArrayLike) -> Graph:
        """The same graph with its nodes renumbered: old node ``i`` becomes ``order[i]``."""
        new_index = _integers(order, "order", np.int64)
        if not np.array_equal(np.sort(new_index), np.arange(self.num_nodes)):
            raise GraphError(
                f"order must be a permutation of 0..{self.num_nodes - 1}, got {new_index.tolist()}"
            )
        old_index = np.argsort(new_index)
        tokens, words = self.node_tokens, self.node_words
        return Graph(
            self.num_nodes,
            new_index[self.edges],
            directed=self.directed,
            node_features=None if self.node_features is None else self.node_features[old_index],
            node_tokens=None if tokens is None else [tokens.bag(int(i)) for i in old_index],
            edge_features=self.edge_features,
            edge_types=self.edge_types,
            node_words=None if words is None else _permuted(words, old_index),
            node_labels=self._labels_at(old_index),
            edge_labels=self.edge_labels,
        )

    def _labels_at(self, nodes: OffsetArray) -> list[str] | None:
        if self.node_labels is None:
            return None
        return [self.node_labels[node] for node in nodes.tolist()]

    def __reduce__(self) -> tuple[Any, ...]:
        # Copies and unpickled graphs are made anew, so that they are as immutable.
        return _restored, (
            self.num_nodes,
            self.edges,
            self.directed,
            self.node_features,
            self.node_tokens,
            self.edge_features,
            self.edge_types,
            self.node_words,
            self.node_labels,
            self.edge_labels,
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Graph):
            return NotImplemented
        return self.digest() == other.digest()

    def __hash__(self) -> int:
        return hash(self.digest())

    def __repr__(self) -> str:
        kinds = [f"{self.node_kind} nodes"] if self.node_kind != "constant" else []
        kinds += ["labels"] if self.has_labels and self.node_kind == "dense" else []
        kinds += [f"{self.edge_kind} edges"] if self.edge_kind != "constant" else []
        kinds += [f"{len(self.node_words.hashes)} words"] if self.node_words is not None else []
        direction = "directed" if self.directed else "undirected"
        parts = [f"num_nodes={self.num_nodes}", f"num_edges={self.num_edges}", direction, *kinds]
        return f"Graph({', '.join(parts)})"


def _restored(
    num_nodes: int,
    edges: IntArray,
    directed: bool,
    node_features: FloatArray | None,
    node_tokens: TokenBags | None,
    edge_features: FloatArray | None,
    edge_types: IntArray | None,
    node_words: WordBags | None = None,
    node_labels: tuple[str, ...] | None = None,
    edge_labels: tuple[str, ...] | None = None,
) -> Graph:
    return Graph(
        num_nodes,
        edges,
        directed=directed,
        node_features=node_features,
        node_tokens=node_tokens,
        edge_features=edge_features,
        edge_types=edge_types,
        node_words=node_words,
        node_labels=node_labels,
        edge_labels=edge_labels,
    )


def _permuted(words: WordBags, old_index: OffsetArray) -> WordBags:
    bags = [words.bag(int(node)) for node in old_index]
    offsets = np.cumsum([0, *(len(bag) for bag in bags)], dtype=np.int64)
    return WordBags(np.concatenate(bags), offsets)


def _node_count(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise GraphError(f"num_nodes must be an integer, got {value!r}")
    if not 1 <= value <= MAX_NODES:
        raise GraphError(f"num_nodes must lie in 1..{MAX_NODES}, got {value}")
    return int(value)


def _integers(values: ArrayLike, name: str, dtype: type[np.integer[Any]]) -> NDArray[Any]:
    """A copy of ``values`` as integers; floats, strings and values past the dtype are refused."""
    try:
        array = np.asarray(values)
    except (ValueError, TypeError, RuntimeError) as error:
        raise GraphError(f"{name} must be a regular array of integers: {error}") from error
    if array.size == 0:
        return np.zeros(array.shape, dtype=dtype)
    if array.dtype.kind not in "iu":
        raise GraphError(f"{name} must hold integers, got dtype {array.dtype}")
    if array.dtype == dtype:
        return array.copy()
    limits = np.iinfo(dtype)
    low, high = array.min(), array.max()
    if low < limits.min or high > limits.max:
        raise GraphError(
            f"{name} holds {high if high > limits.max else low}, past {dtype.__name__}"
        )
    return array.astype(dtype)


def _frozen(array: NDArray[Any]) -> NDArray[Any]:
    array.flags.writeable = False
    return array


def _edges(edges: ArrayLike, num_nodes: int) -> IntArray:
    array = _integers(edges, "edges", np.int32)
    if array.size == 0:
        return _frozen(np.zeros((0, 2), dtype=np.int32))
    if array.ndim != 2 or array.shape[1] != 2:
        raise GraphError(f"edges must have shape (E, 2), got {array.shape}")
    out_of_range = (array < 0) | (array >= num_nodes)
    if out_of_range.any():
        row = int(np.argmax(out_of_range.any(axis=1)))
        raise GraphError(
            f"edge {row} is {tuple(array[row].tolist())}, but nodes are 0..{num_nodes - 1}"
        )
    return _frozen(np.ascontiguousarray(array))


def _features(values: ArrayLike | None, count: int, name: str, item: str) -> FloatArray | None:
    if values is None:
        return None
    try:
        array = np.asarray(values)
    except (ValueError, TypeError, RuntimeError) as error:
        raise GraphError(f"{name} must be a regular array of numbers: {error}") from error
    if array.size == 0 and count == 0 and array.ndim < 2:
        array = np.zeros((0, 1), dtype=np.float32)
    if array.dtype.kind not in "fiub":
        raise GraphError(f"{name} must hold numbers, got dtype {array.dtype}")
    if array.ndim != 2:
        raise GraphError(f"{name} must have shape ({count}, F), got {array.shape}")
    if array.shape[0] != count:
        raise GraphError(f"{name} has {array.shape[0]} rows for {count} {item}s")
    if array.shape[1] == 0:
        raise GraphError(f"{name} has no columns; leave it out for constant input")
    with np.errstate(over="ignore"):
        array = array.astype(np.float32)
    finite = np.isfinite(array)
    if not finite.all():
        row, column = np.argwhere(~finite)[0].tolist()
        raise GraphError(f"{name}[{row}, {column}] is {array[row, column]}; values must be finite")
    return _frozen(np.ascontiguousarray(array))


def _tokens(values: TokenBags | Sequence[Sequence[int]] | None, num_nodes: int) -> TokenBags | None:
    if values is None:
        return None
    bags = values if isinstance(values, TokenBags) else TokenBags.from_lists(values)
    ids = _integers(bags.ids, "node_tokens", np.int32)
    offsets = _bag_offsets(bags.offsets, ids, num_nodes, "node_tokens", "token")
    if len(ids) and ids.min() < 0:
        raise GraphError(f"token ids must be >= 0, got {ids.min()}")
    return TokenBags(_frozen(ids), _frozen(offsets))


def _labels(values: Sequence[str] | None, count: int, item: str) -> tuple[str, ...] | None:
    if values is None:
        return None
    name = f"{item}_labels"
    if isinstance(values, str):
        raise GraphError(f"{name} must be one text for each {item}, got the text {values!r}")
    labels = tuple(values)
    if len(labels) != count:
        raise GraphError(f"{name} has {len(labels)} labels for {count} {item}s")
    numbers = {"node": "node_tokens or node_features", "edge": "edge_types or edge_features"}
    for place, label in enumerate(labels):
        if not isinstance(label, str):
            raise GraphError(
                f"{name}[{place}] is {label!r}; labels are text, and numbers are {numbers[item]}"
            )
    return tuple(map(str, labels))


def _words(bags: WordBags | None, num_nodes: int) -> WordBags | None:
    if bags is None:
        return None
    if not isinstance(bags, WordBags):
        raise GraphError(f"node_words must be WordBags, got a {type(bags).__name__}")
    hashes = _integers(bags.hashes, "node_words", np.uint64)
    offsets = _bag_offsets(bags.offsets, hashes, num_nodes, "node_words", "word")
    return WordBags(_frozen(hashes), _frozen(offsets))


def _bag_offsets(
    values: ArrayLike, ids: NDArray[Any], num_nodes: int, name: str, item: str
) -> OffsetArray:
    """Offsets of one bag for each node, checked against the ids that they cut."""
    offsets = _integers(values, f"{item} offsets", np.int64)
    if ids.ndim != 1 or offsets.ndim != 1:
        raise GraphError(
            f"{item} ids and offsets must be flat, got shapes {ids.shape} and {offsets.shape}"
        )
    if len(offsets) != num_nodes + 1:
        raise GraphError(f"{name} has {len(offsets) - 1} bags for {num_nodes} nodes")
    if offsets[0] != 0 or offsets[-1] != len(ids) or (offsets[1:] < offsets[:-1]).any():
        raise GraphError(f"{item} offsets must rise from 0 to {len(ids)}")
    return offsets


def _types(values: ArrayLike | None, num_edges: int) -> IntArray | None:
    if values is None:
        return None
    array = _integers(values, "edge_types", np.int32)
    if array.shape != (num_edges,):
        raise GraphError(f"edge_types must have shape ({num_edges},), got {array.shape}")
    if len(array) and array.min() < 0:
        raise GraphError(f"edge types must be >= 0, got {array.min()}")
    return _frozen(array)


def check_has_no_labels(graph: Graph) -> None:
    """Refuses a graph that is to be kept as numbers while its labels are text."""
    if graph.has_text:
        raise GraphError(
            "a graph with labels as text is kept in GraphML or JSON lines; elsewhere its labels "
            "are numbers, which vocabulary.read(graph) makes"
        )


def running_offsets(counts: NDArray[Any]) -> OffsetArray:
    """(N,) counts -> (N + 1,) offsets, from 0 to their sum."""
    offsets = np.zeros(len(counts) + 1, dtype=np.int64)
    np.cumsum(counts, out=offsets[1:])
    return offsets
