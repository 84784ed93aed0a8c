"""A corpus of graphs with names and metadata on disk: flat arrays, memory-mapped.

A store is a directory, ``corpus.graphs`` say, of little-endian arrays::

    manifest.json   kind and number of graphs; length and checksum of the three data files
    index.i64       (G + 1, 4) running totals of nodes, edges, tokens and bytes of text:
                    graph i lies between rows i and i + 1
    words.u32       for each graph in turn, as 32-bit words: its edges (E, 2) int32; its nodes
                    as (N, F) float32 features, or all token ids and then (N,) bag sizes
                    int32; its edges as (E, F) float32 features, or (E,) int32 types.
                    Graphs with hashed words have them behind their token ids: (M,) uint64,
                    (N,) bag sizes int32, and the number of token ids; all of it counts as tokens
    texts.jsonl     for each graph one line of JSON: [name, metadata]
    lock            held while an append runs

All graphs are of one kind, so that the totals alone say where the words of a graph begin, and
all that it needs lies side by side. Files that only grow at their end can be mapped whole,
and make an append safe: it writes behind the committed length of each file, syncs, and
commits by renaming a new manifest over the old one. Whatever interrupts it leaves bytes that
no manifest counts: readers never map them, and the next append cuts them off.
Checksums run on from append to append: the manifest stays small however many there are.
"""

from __future__ import annotations

import hashlib
import json
import operator
import os
import struct
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from functools import cached_property
from itertools import accumulate, pairwise, zip_longest
from pathlib import Path
from typing import Any, SupportsIndex, overload

import numpy as np
from numpy.typing import NDArray

from graphkin._support.files import locked, storing, sync_folder, write_atomically
from graphkin.errors import FormatError, GraphError, GraphkinError, StorageError
from graphkin.graphs.graph import (
    EDGE_KINDS,
    NODE_KINDS,
    Graph,
    TokenBags,
    WordBags,
    check_has_no_labels,
)

FORMAT = {"format": "graphkin graph store", "version": 1}
FILES = INDEX, WORDS, TEXTS = "index.i64", "words.u32", "texts.jsonl"
INTACT = "; what was committed is intact"
ROW = struct.Struct("<4q")
INT, FLOAT = np.dtype("<i4"), np.dtype("<f4")
TO_JSON = json.JSONEncoder(allow_nan=False, sort_keys=True).encode


@dataclass(frozen=True)
class GraphKind:
    """What all graphs of a store share.

    A width is the number of 32-bit words stored for each node or edge: the feature columns
    where they are dense, 1 for tokens (the size of a bag) and types, 0 for constant input.
    """

    directed: bool
    node_kind: str
    node_width: int
    edge_kind: str
    edge_width: int
    has_words: bool = field(default=False, repr=False)

    @classmethod
    def of(cls, graph: Graph) -> GraphKind:
        nodes, edges = graph.node_features, graph.edge_features
        node_width = int(graph.node_kind != "constant") if nodes is None else nodes.shape[1]
        edge_width = int(graph.edge_kind != "constant") if edges is None else edges.shape[1]
        has_words = graph.node_words is not None
        return cls(
            graph.directed, graph.node_kind, node_width, graph.edge_kind, edge_width, has_words
        )

    def is_sound(self) -> bool:
        """Whether all values are of their types."""
        widths = (self.node_width, self.edge_width)
        return (
            isinstance(self.directed, bool)
            and isinstance(self.has_words, bool)
            and self.node_kind in NODE_KINDS
            and self.edge_kind in EDGE_KINDS
            and all(type(width) is int and 0 <= width < 2**31 for width in widths)
        )

    def words(self, nodes: int, edges: int, tokens: int) -> list[int]:
        """How many words the edges, token ids, node inputs and edge inputs take."""
        return [2 * edges, tokens, self.node_width * nodes, self.edge_width * edges]


@dataclass(frozen=True)
class _Manifest:
    """A committed state."""

    graphs: int = 0
    kind: GraphKind | None = None
    content: str = ""
    """Hex SHA-256, chained from graph to graph."""
    lengths: Sequence[int] = (0, 0, 0)
    """Bytes of each of ``FILES``."""
    crc32: Sequence[int] = (0, 0, 0)

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON; stores without hashed words look as they did before there were any."""
        values = asdict(self)
        if self.kind is not None and not self.kind.has_words:
            del values["kind"]["has_words"]
        return values

    def digest(self) -> str:
        """Of the manifest itself, against changes to it."""
        text = json.dumps(FORMAT | self.to_dict(), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()

    @classmethod
    def read(cls, path: Path) -> _Manifest:
        file = path / "manifest.json"
        with storing(f"read {file}", INTACT):
            text = file.read_bytes() if file.is_file() else b"{}"
        try:
            values = json.loads(text)
            header = {key: values.pop(key, None) for key in FORMAT}
        except (ValueError, AttributeError, TypeError, RecursionError):
            header = {}
        if header != FORMAT:
            raise FormatError(
                f"{path} is not a graph store that this graphkin reads: expected {file.name} with "
                f"{FORMAT}, got {header}; check the path, or use the graphkin that wrote it"
            )
        try:
            digest = values.pop("digest")
            values["kind"] = values["kind"] and GraphKind(**values["kind"])
            manifest = cls(**values)
        except (KeyError, TypeError) as error:
            raise _damaged(file, f"wrong fields: {error}") from error
        if not manifest.is_sound():
            raise _damaged(file, "its values are not those of a store")
        if manifest.digest() != digest:
            raise _damaged(file, f"expected digest {digest}, got {manifest.digest()}")
        return manifest

    def is_sound(self) -> bool:
        """Whether all values are of their types: whoever made a file could make its digest too."""
        numbers = [self.graphs, *_listed(self.lengths), *_listed(self.crc32)]
        return (
            all(type(number) is int and number >= 0 for number in numbers)
            and len(numbers) == 1 + 2 * len(FILES)
            and isinstance(self.content, str)
            and (self.kind is None or self.kind.is_sound())
        )

    def commit(
        self, path: Path, graphs: int, kind: GraphKind | None, content: bytes, *data: bytearray
    ) -> None:
        """Writes ``data`` behind the bytes of each file, then the manifest that counts it."""
        lengths = [length + len(new) for length, new in zip(self.lengths, data, strict=True)]
        checksums = [zlib.crc32(new, crc) for crc, new in zip(self.crc32, data, strict=True)]
        after = _Manifest(graphs, kind, content.hex(), lengths, checksums)
        text = json.dumps(FORMAT | {"digest": after.digest()} | after.to_dict(), indent=1)
        try:
            for name, length, new in zip(FILES, self.lengths, data, strict=True):
                _write(path / name, length, new)
            try:
                write_atomically(path / "manifest.json", text.encode())
            except StorageError as error:
                raise StorageError(f"{error}{INTACT}") from error
            in_already = "though the graphs are in, so do not append them again"
            with storing(f"sync {path}, {in_already}", INTACT):
                sync_folder(path)
        except BaseException:
            # Give the space back, unless an interrupt came after the rename. What fails here
            # is left to the next append.
            with suppress(OSError, GraphkinError):
                if _Manifest.read(path) == self:
                    for name, length in zip(FILES, self.lengths, strict=True):
                        os.truncate(path / name, length)
            raise


class GraphStore(Sequence[Graph]):
    """A corpus on disk. It shows the state as of ``open`` or of its own last ``append``.

    Example:
        >>> store = GraphStore.create("corpus.graphs")
        >>> store.append([Graph(2, [(0, 1)])], names=["edge"], metadata=[{"file": "a.out"}])
        range(0, 1)
        >>> GraphStore.open("corpus.graphs")[0]
        Graph(num_nodes=2, num_edges=1, undirected)
    """

    def __init__(self, path: str | os.PathLike[str], num_tokens: int | None = None) -> None:
        self._path = Path(path)
        self._num_tokens = num_tokens
        self._load()

    @classmethod
    def create(cls, path: str | os.PathLike[str]) -> GraphStore:
        """Makes an empty store in a new directory."""
        path = Path(path)
        with storing(f"create {path}", INTACT):
            path.mkdir()
            _Manifest().commit(path, 0, None, b"", bytearray(ROW.size), bytearray(), bytearray())
            sync_folder(path.absolute().parent)
        return cls(path)

    @classmethod
    def open(cls, path: str | os.PathLike[str], num_tokens: int | None = None) -> GraphStore:
        """Opens a store to read and to append, in a time that does not depend on its size.

        Args:
            path: the directory.
            num_tokens: a graph with a token of this number or above is taken for damage.
        """
        return cls(path, num_tokens)

    def _load(self) -> None:
        manifest = _Manifest.read(self._path)
        kind = manifest.kind
        try:
            maps = list(map(_map, (self._path / name for name in FILES), manifest.lengths))
            index = maps[0].view("<i8").reshape(manifest.graphs + 1, 4)
            totals = index[-1].tolist()
            words = sum(kind.words(*totals[:3])) if kind else 0
            counted = [index.nbytes, words * INT.itemsize, totals[3]]
            if counted != manifest.lengths or bool(kind) != bool(manifest.graphs):
                raise ValueError(f"it counts {counted} bytes, the manifest {manifest.lengths}")
        except FormatError:
            raise
        except (ValueError, IndexError, TypeError, OverflowError) as error:
            raise _damaged(self._path / INDEX, str(error)) from error
        self._manifest, self._maps, self._index, self._totals = manifest, maps, index, totals
        self._words = maps[1].view(INT)
        for cached in ("node_counts", "edge_counts"):
            self.__dict__.pop(cached, None)

    @property
    def kind(self) -> GraphKind | None:
        """What all graphs share, fixed by the first append; None while there are none."""
        return self._manifest.kind

    @cached_property
    def node_counts(self) -> NDArray[np.int64]:
        """(G,) int64, from the index alone."""
        return np.diff(self._index[:, 0])

    @cached_property
    def edge_counts(self) -> NDArray[np.int64]:
        """(G,) int64, edges as listed, from the index alone."""
        return np.diff(self._index[:, 1])

    def __len__(self) -> int:
        return self._manifest.graphs

    def __reduce__(self) -> tuple[type[GraphStore], tuple[Path, int | None]]:
        """A worker process opens the store anew instead of receiving its arrays."""
        return GraphStore, (self._path, self._num_tokens)

    @overload
    def __getitem__(self, item: SupportsIndex) -> Graph: ...
    @overload
    def __getitem__(self, item: slice) -> list[Graph]: ...
    def __getitem__(self, item: SupportsIndex | slice) -> Graph | list[Graph]:
        if isinstance(item, slice):
            return self.fetch(range(*item.indices(len(self))))
        return self.fetch([item])[0]

    def name(self, index: SupportsIndex) -> str:
        """The name of one graph; empty where none was given."""
        return self._text(index)[0]

    def metadata(self, index: SupportsIndex) -> dict[str, Any]:
        """The metadata of one graph, as JSON keeps them; empty where none were given."""
        return self._text(index)[1]

    def digest(self) -> str:
        """SHA-256 of kind, graphs, names and metadata, however they were cut into appends."""
        has_words = self.kind is not None and self.kind.has_words
        content = f"{FORMAT} {self.kind} {self._manifest.content}{' words' * has_words}"
        return hashlib.sha256(content.encode()).hexdigest()

    def verify(self) -> None:
        """Reads every file whole; a FormatError names the first that its checksum disowns."""
        for name, data, expected in zip(FILES, self._maps, self._manifest.crc32, strict=True):
            if (actual := zlib.crc32(data.data)) != expected:
                raise _damaged(self._path / name, f"expected CRC-32 {expected}, got {actual}")

    def append(
        self,
        graphs: Iterable[Graph],
        names: Iterable[str] | None = None,
        metadata: Iterable[Mapping[str, Any]] | None = None,
    ) -> range:
        """Adds graphs behind the last committed one: all of them, or none where it fails.

        An append is gathered in memory and waits for the disk a few times: give it thousands
        of graphs rather than one or all. Returns the indices of the new graphs.

        Raises:
            GraphError: a graph of another kind, or metadata that are not JSON.
            StorageError: writing failed, or another writer is at work.
        """
        busy = f"cannot lock {self._path}: another writer holds it; wait for that"
        with locked(self._path / "lock", busy):
            self._load()
            kind, start, totals = self.kind, len(self), self._totals
            content, stop = bytes.fromhex(self._manifest.content), start
            data = bytearray(), bytearray(), bytearray()
            for graph, text in _entries(graphs, names, metadata):
                check_has_no_labels(graph)
                own = GraphKind.of(graph)
                kind = kind or own
                if own != kind:
                    raise GraphError(
                        f"graph {stop - start} of the append is {own}, the store holds {kind}; "
                        "keep one kind in a store"
                    )
                sizes = graph.num_nodes, graph.num_edges, _token_words(graph), len(text)
                totals = list(map(operator.add, totals, sizes))
                record = ROW.pack(*totals), _words(graph), text
                content = hashlib.sha256(b"".join((content, *record))).digest()
                for gathered, new in zip(data, record, strict=True):
                    gathered += new
                stop += 1
            if stop > start:
                self._manifest.commit(self._path, stop, kind, content, *data)
            self._load()
        return range(start, stop)

    def fetch(self, indices: Iterable[SupportsIndex]) -> list[Graph]:
        """The graphs at ``indices``, in that order."""
        return [self._graph(index) for index in indices]

    def _graph(self, index: SupportsIndex) -> Graph:
        row, (*start, _), (*stop, _) = self._locate(index)
        kind = self._manifest.kind
        assert kind is not None, "a store with graphs has a kind"
        nodes, edges, tokens = map(operator.sub, stop, start)
        cuts = accumulate(kind.words(nodes, edges, tokens), initial=sum(kind.words(*start)))
        ends, ids, node_inputs, edge_inputs = (self._words[a:b] for a, b in pairwise(cuts))
        try:
            words = None
            if kind.has_words:
                ids, words = _split_words(ids, nodes)
            has_bags = kind.node_kind == "tokens"
            bags = TokenBags.from_sizes(ids, node_inputs) if has_bags else None
            largest = int(ids.max(initial=0))
            if has_bags and self._num_tokens is not None and largest >= self._num_tokens:
                raise GraphError(f"token {largest} of {self._num_tokens}")
            return Graph(
                nodes,
                ends.reshape(edges, 2),
                directed=kind.directed,
                node_features=_dense(kind.node_kind, node_inputs, kind.node_width),
                node_tokens=bags,
                edge_features=_dense(kind.edge_kind, edge_inputs, kind.edge_width),
                edge_types=edge_inputs if kind.edge_kind == "types" else None,
                node_words=words,
            )
        except (GraphError, ValueError) as error:
            raise _damaged(self._path / WORDS, f"graph {row}: {error}") from error

    def _text(self, index: SupportsIndex) -> tuple[str, dict[str, Any]]:
        row, (*_, start), (*_, stop) = self._locate(index)
        try:
            name, metadata = json.loads(self._maps[2][start:stop].tobytes())
            return str(name), dict(metadata)
        except (ValueError, TypeError, RecursionError) as error:
            raise _damaged(self._path / TEXTS, f"graph {row}: {error}") from error

    def _locate(self, index: SupportsIndex) -> tuple[int, list[int], list[int]]:
        """The row of a graph in the index, and the totals before and after it."""
        row = operator.index(index)
        row += len(self) if row < 0 else 0
        if not 0 <= row < len(self):
            raise IndexError(f"graph {index} of a store of {len(self)} graphs")
        starts, stops = self._index[row : row + 2].tolist()
        for start, stop, total in zip(starts, stops, self._totals, strict=True):
            if not 0 <= start <= stop <= total:
                raise _damaged(self._path / INDEX, f"graph {row}: {start}..{stop} of {total}")
        return row, starts, stops


def _entries(
    graphs: Iterable[Graph],
    names: Iterable[str] | None,
    metadata: Iterable[Mapping[str, Any]] | None,
) -> Iterator[tuple[Graph, bytes]]:
    """Each graph with its line of text."""
    columns = (() if column is None else column for column in (names, metadata))
    for position, (graph, name, extra) in enumerate(zip_longest(graphs, *columns)):
        name = "" if names is None else name
        extra = {} if metadata is None else extra
        if not (isinstance(graph, Graph) and isinstance(name, str) and isinstance(extra, Mapping)):
            got = ", ".join(type(value).__name__ for value in (graph, name, extra))
            raise GraphError(
                f"entry {position} of the append must be a Graph, a str and a dict, got {got}; "
                "give one name and one dict for each graph"
            )
        try:
            text = TO_JSON([name, dict(extra)])
        except (TypeError, ValueError, RecursionError) as error:
            raise GraphError(f"metadata of graph {position} are not JSON: {error}") from error
        yield graph, f"{text}\n".encode()


def _token_words(graph: Graph) -> int:
    """How many 32-bit words hold a graph's token ids, and its hashed words behind them."""
    tokens = 0 if graph.node_tokens is None else len(graph.node_tokens.ids)
    if graph.node_words is None:
        return tokens
    return tokens + 2 * len(graph.node_words.hashes) + graph.num_nodes + 1


def _words(graph: Graph) -> bytes:
    tokens, words = graph.node_tokens, graph.node_words
    arrays: list[NDArray[Any] | None] = [graph.edges]
    if tokens is not None:
        arrays.append(tokens.ids)
    if words is not None:
        count = 0 if tokens is None else len(tokens.ids)
        sizes = np.diff(words.offsets).astype(np.int32)
        arrays += [words.hashes, sizes, np.array([count], dtype=np.int32)]
    if tokens is not None:
        arrays.append(np.diff(tokens.offsets).astype(np.int32))
    arrays += [graph.node_features, graph.edge_features, graph.edge_types]
    present = [array for array in arrays if array is not None]
    little = (array.astype(array.dtype.newbyteorder("<"), copy=False) for array in present)
    return b"".join(array.tobytes() for array in little)


def _split_words(stored: NDArray[Any], nodes: int) -> tuple[NDArray[Any], WordBags]:
    """Token ids and hashed words of what ``_words`` put one behind the other."""
    count = int(stored[-1]) if len(stored) else -1
    rest = len(stored) - 1 - nodes - count
    if count < 0 or rest < 0 or rest % 2:
        raise GraphError(f"{len(stored)} words cannot hold {count} tokens and {nodes} sizes")
    hashes = np.frombuffer(stored[count : count + rest].tobytes(), dtype="<u8")
    sizes = stored[count + rest : -1]
    offsets = np.zeros(nodes + 1, dtype=np.int64)
    np.cumsum(sizes, out=offsets[1:])
    return stored[:count], WordBags(hashes, offsets)


def _dense(kind: str, words: NDArray[Any], width: int) -> NDArray[Any] | None:
    return words.view(FLOAT).reshape(-1, width) if kind == "dense" else None


def _listed(values: object) -> list[Any]:
    return list(values) if isinstance(values, list | tuple) else [values]


def _map(file: Path, length: int) -> NDArray[np.uint8]:
    with storing(f"read {file}", INTACT):
        actual = file.stat().st_size if file.exists() else 0
        if actual < length:
            raise FormatError(
                f"{file} is truncated: expected {length} bytes, found {actual}; "
                "restore it from a copy"
            )
        return np.asarray(
            np.memmap(file, np.uint8, "r", shape=length) if length else np.zeros(0, np.uint8)
        )


def _write(file: Path, start: int, data: bytearray) -> None:
    """Puts ``data`` at ``start``, as the end of the file, and waits for the disk."""
    with storing(f"write {file}", INTACT), open(file, "ab", buffering=0) as handle:
        handle.truncate(start)
        view = memoryview(data)
        while view:
            view = view[os.write(handle.fileno(), view) :]
        os.fsync(handle.fileno())


def _damaged(file: Path, reason: str) -> FormatError:
    return FormatError(f"{file} is damaged: {reason}; restore it from a copy")
