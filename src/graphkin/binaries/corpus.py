"""A corpus of functions on disk: their graphs, and what is known of each function and file.

A corpus is a graph store with one file more, ``functions.json``, which holds the mnemonics that
the tokens stand for, and a record of every binary. The metadata of a graph say the rest, and
name the binary by its number.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from graphkin._support.files import PathLike, read_file, write_atomically
from graphkin.binaries.call_graph import FunctionCalls, FunctionNode
from graphkin.binaries.function import Function, base_name
from graphkin.errors import ConfigError, FormatError
from graphkin.graphs.graph import Graph, IntArray, TokenBags, WordBags, running_offsets
from graphkin.graphs.store import GraphStore
from graphkin.graphs.vocabulary import Reads, Vocabulary

SentArray = tuple[str, bytes]
"""What the numbers of an array are, and their bytes."""
DOCUMENT = "functions.json"
FORMAT = {"format": "graphkin function corpus", "version": 1}
LIBRARY_END = re.compile(
    r"(?:\.so(?:\.\d+)*|(?:\.\d+)*\.dylib|\.dll|\.exe|\.sys|\.lib|\.a|\.o|\.obj)?"
    r"(?:\.BinExport)?$",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class BinaryRecord:
    """What the functions of one binary share."""

    path: str
    """Of the file, as it was named; ``outer!inner`` for a member of a container."""
    part: str
    """The member of an archive, ``(adler32.o)``; empty for the whole file."""
    build: str
    """The folder that the file lies in, which names the configuration: ``gcc-12-O2``."""
    library: str
    """The name of the file without its ending: ``libavcodec`` of ``libavcodec.so.59``."""
    architecture: str
    format: str
    file_hash: str
    compiler: str | None = None

    @classmethod
    def of(cls, function: Function, file: PathLike, build: str | None = None) -> BinaryRecord:
        """The record of the binary that a function was read from, with the file it lies in."""
        folder, library = _folder_and_library(os.path.abspath(file))
        return cls(
            path=str(file),
            part=function.binary.removeprefix(str(file)),
            build=build or folder,
            library=library,
            architecture=function.architecture,
            format=function.format,
            file_hash=function.file_hash,
            compiler=function.compiler,
        )


@lru_cache(maxsize=1)
def _folder_and_library(path: str) -> tuple[str, str]:
    """The name of a file's folder, and of the library in it; functions come file by file."""
    name = Path(path).name
    return Path(path).parent.name, library_name(name.rpartition("!")[2] or name)


class FunctionRecord(NamedTuple):
    """A function on its way into a corpus: small, and quick to send between processes."""

    binary: BinaryRecord
    name: str
    metadata: dict[str, Any]
    num_nodes: int
    edges: IntArray
    words: tuple[str, ...]
    """The mnemonics that occur, each once."""
    word_ids: IntArray
    """Positions in ``words``, for every instruction in turn."""
    word_offsets: NDArray[np.int64]
    """Where the instructions of each block begin, and where the last end."""
    said: WordBags | None = None
    """What each block says; then ``words`` are operations."""
    calls: FunctionCalls | None = None
    """What it refers to, where it is known what it says."""

    @classmethod
    def of(
        cls,
        function: Function,
        file: PathLike,
        build: str | None = None,
        features: Reads = "mnemonics",
    ) -> FunctionRecord:
        """The record of a function that was read from a file; its folder is its build."""
        has_words = features == "evidence"
        words = function.numbered_words(has_words)
        metadata: dict[str, Any] = {
            "address": function.address,
            "size": function.size,
            "unit": function.unit,
            "defined_in": function.defined_in,
        }
        if has_words:
            metadata["callees"] = list(function.internal_callees) or None
        return cls(
            BinaryRecord.of(function, file, build),
            function.name,
            {key: value for key, value in metadata.items() if value is not None},
            len(function.blocks),
            np.array(function.edges, dtype=np.int32).reshape(-1, 2),
            words.names,
            words.ids,
            running_offsets(np.array(words.lengths)),
            function.word_bags() if has_words else None,
            _calls(function, file) if has_words else None,
        )

    def __reduce__(self) -> tuple[Any, ...]:
        # Arrays as plain bytes: numpy takes several times as long to pickle a small one.
        said = None if self.said is None else (_bytes(self.said.hashes), _bytes(self.said.offsets))
        return _received, (
            *(self.binary, self.name, self.metadata, self.num_nodes, self.words),
            *(_bytes(self.edges), _bytes(self.word_ids), _bytes(self.word_offsets)),
            *(said, self.calls),
        )


def _bytes(array: NDArray[Any]) -> SentArray:
    return array.dtype.str, array.tobytes()


def _received(
    binary: BinaryRecord,
    name: str,
    metadata: dict[str, Any],
    num_nodes: int,
    words: tuple[str, ...],
    edges: SentArray,
    word_ids: SentArray,
    word_offsets: SentArray,
    said: tuple[SentArray, SentArray] | None,
    calls: FunctionCalls | None,
) -> FunctionRecord:
    """A record of what its ``__reduce__`` gave; its arrays cannot be written."""
    return FunctionRecord(
        binary,
        name,
        metadata,
        num_nodes,
        _array(edges).reshape(-1, 2),
        words,
        _array(word_ids),
        _array(word_offsets),
        None if said is None else WordBags(*map(_array, said)),
        calls,
    )


def _array(content: SentArray) -> NDArray[Any]:
    kind, data = content
    return np.frombuffer(data, kind)


def _calls(function: Function, file: PathLike) -> FunctionCalls:
    part = function.binary.removeprefix(str(file))
    node = FunctionNode(part, function.address, function.name)
    return FunctionCalls(node, function.callees or (), function.links)


@dataclass(frozen=True)
class CorpusFunction:
    """One function of a corpus."""

    name: str
    binary: BinaryRecord
    address: int
    size: int
    unit: str | None = None
    """The source file that a static function is local to."""
    defined_in: str | None = None
    """The file that the debug information names."""
    callees: Sequence[int] = ()
    """Addresses of functions of the same file that it calls; only with evidence."""

    @property
    def base_name(self) -> str:
        """The name in the source, without what compilers append."""
        return base_name(self.name)


@lru_cache
def _translation(own: Vocabulary, other: Vocabulary) -> IntArray:
    """(T,) the token of another vocabulary for each of a corpus."""
    return other.encode(own.decode(token) for token in range(len(own)))


class FunctionCorpus:
    """Reads a corpus; :class:`CorpusWriter` makes one.

    Example:
        >>> corpus = FunctionCorpus.open("corpus.graphs")  # doctest: +SKIP
        >>> corpus.entry(0).name, corpus.store[0]  # doctest: +SKIP
        ('deflate', Graph(num_nodes=103, num_edges=163, directed, tokens nodes))
    """

    def __init__(self, path: PathLike) -> None:
        self.path = Path(path)
        document = _read(self.path / DOCUMENT)
        self.words = Vocabulary.from_json(document.get("words"))
        """The mnemonics, or operations: token ``i`` of a graph is ``words.decode(i)``."""
        self.store = GraphStore.open(path, len(self.words))
        # A glance beside all that is done with a corpus, and its graphs have no checksums.
        self.store.verify()
        if self.store.kind is not None and self.store.kind.has_words:
            self.words = replace(self.words, reads="evidence")
        self.binaries = _binaries(self.path / DOCUMENT, document.get("binaries"))

    @classmethod
    def open(cls, path: PathLike) -> FunctionCorpus:
        return cls(path)

    def __len__(self) -> int:
        return len(self.store)

    def digest(self) -> str:
        """SHA-256 of all content; where the binaries lay does not count, their builds do."""
        binaries = [asdict(binary) | {"path": ""} for binary in self.binaries]
        values = [self.store.digest(), self.words.to_json(), binaries]
        return hashlib.sha256(json.dumps(values).encode()).hexdigest()

    def graph(self, number: int, vocabulary: Vocabulary) -> Graph:
        """A function in the words of a model: a corpus numbers words in the order they came.

        Raises:
            ConfigError: where the corpus and the model read different things of functions.
        """
        if self.words.reads != vocabulary.reads:
            raise ConfigError(
                f"{self.path} holds {self.words.reads} of functions, and the model reads "
                f"{vocabulary.reads}; extract the binaries again"
            )
        stored = self.store[number]
        bags = stored.node_tokens
        if bags is None or vocabulary.words == self.words.words:
            return stored
        tokens = _translation(self.words, vocabulary)
        return Graph(
            stored.num_nodes,
            stored.edges,
            directed=True,
            node_tokens=TokenBags(tokens[bags.ids], bags.offsets),
            node_words=stored.node_words,
        )

    @cached_property
    def entries(self) -> list[CorpusFunction]:
        """Every function, in the order of the store."""
        return [self.entry(number) for number in range(len(self))]

    def entry(self, number: int) -> CorpusFunction:
        """What is known of one function."""
        values = self.store.metadata(number)
        try:
            values["binary"] = self.binaries[values["binary"]]
            function = CorpusFunction(self.store.name(number), **values)
            _check_types(function)
            return function
        except (KeyError, IndexError, TypeError) as error:
            raise FormatError(
                f"{self.path}: graph {number} has no record of a function: {error!r}"
            ) from error


class CorpusWriter:
    """Adds functions to a new corpus, in batches."""

    def __init__(self, path: PathLike) -> None:
        self._path = Path(path)
        self._store = GraphStore.create(path)
        self._words: dict[str, int] = {}
        self._binaries: dict[BinaryRecord, int] = {}
        self._describe()

    def add(self, records: Iterable[FunctionRecord]) -> None:
        """Adds a batch, all of it or nothing."""
        graphs, names, metadata = [], [], []
        for record in records:
            tokens = [self._words.setdefault(word, len(self._words) + 1) for word in record.words]
            ids = np.array(tokens, dtype=np.int32)[record.word_ids]
            bags = TokenBags(ids, record.word_offsets)
            graphs.append(
                Graph(
                    record.num_nodes,
                    record.edges,
                    directed=True,
                    node_tokens=bags,
                    node_words=record.said,
                )
            )
            names.append(record.name)
            number = self._binaries.setdefault(record.binary, len(self._binaries))
            metadata.append({"binary": number, **record.metadata})
        # Words that no graph uses yet do no harm; tokens without words would.
        self._describe()
        self._store.append(graphs, names, metadata)

    def _describe(self) -> None:
        content = {
            "words": list(self._words),
            "binaries": [asdict(binary) for binary in self._binaries],
        }
        document = FORMAT | {"digest": _digest(content)} | content
        write_atomically(self._path / DOCUMENT, json.dumps(document, indent=1).encode() + b"\n")


def library_name(file_name: str) -> str:
    """``libavcodec`` of ``libavcodec.so.59.37.100``, ``sqlite3`` of ``sqlite3.exe``."""
    return LIBRARY_END.sub("", file_name) or file_name


def _read(file: Path) -> Mapping[str, Any]:
    if not file.is_file():
        raise FormatError(
            f"{file.parent} is not a corpus of functions: it has no {file.name}; "
            "make one by: graphkin extract BINARY... -o corpus.graphs"
        )
    try:
        document = json.loads(read_file(file))
    except (ValueError, RecursionError) as error:
        raise FormatError(f"{file} is not valid JSON: {error}") from error
    header = {key: document.get(key) for key in FORMAT} if isinstance(document, dict) else {}
    if header != FORMAT:
        raise FormatError(
            f"{file} is not a corpus that this graphkin reads: {header}, not {FORMAT}"
        )
    content = {key: document.get(key) for key in ("words", "binaries")}
    if document.get("digest") != _digest(content):
        raise FormatError(f"{file} is damaged: its digest is another; extract the binaries again")
    return content


def _check_types(function: CorpusFunction) -> None:
    """Raises a TypeError for a value that no function has."""
    for number in (function.address, function.size, *function.callees):
        if not isinstance(number, int) or not 0 <= number < 2**64:
            raise TypeError(f"expected a number of 64 bits, got {number!r}")
    for text in (function.unit, function.defined_in):
        if not isinstance(text, str | None):
            raise TypeError(f"expected text, got {text!r}")


def _digest(content: Mapping[str, Any]) -> str:
    """Of the document itself, against changes to it."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _binaries(file: Path, values: object) -> list[BinaryRecord]:
    known = {field.name for field in fields(BinaryRecord)}
    if not isinstance(values, list) or not all(
        isinstance(value, dict) and set(value) == known for value in values
    ):
        raise FormatError(f"{file}: binaries must be records of {', '.join(sorted(known))}")
    return [BinaryRecord(**value) for value in values]
