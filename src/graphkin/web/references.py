"""Functions by reference: ``upload:FILE:NUMBER`` of a file that was sent, or ``library:ID``."""

from __future__ import annotations

import re
import threading
from collections import OrderedDict
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from graphkin._support.files import hash_file
from graphkin.binaries.function import MEMBER, Block, Function
from graphkin.binaries.inputs import split_member
from graphkin.errors import ConfigError, GraphkinError
from graphkin.graphs.converters.named import NamedGraph
from graphkin.graphs.words import is_large
from graphkin.library.candidates import EncodedQuery
from graphkin.library.library import Library
from graphkin.library.own_graphs import LABEL
from graphkin.library.records import Stored
from graphkin.library.scan import MIN_BLOCKS, Query, around_of, encode_among
from graphkin.library.signals import Surroundings
from graphkin.results.document import FunctionRef
from graphkin.results.graph import ShownGraph
from graphkin.results.text import encodable
from graphkin.web.upload_reader import Reader
from graphkin.web.uploads import Uploads

UPLOADED = re.compile(r"upload:([0-9a-f]{64}):(\d{1,9})", re.ASCII)
STORED = re.compile(r"library:(\d{1,19})", re.ASCII)
NOT_AT_HAND = "the file is not at hand: mnemonics only"
MOST_HASHES = 1000
MOST_TEXTS = 32
"""Functions whose text is kept: a comparison is often asked for again."""

K = TypeVar("K")
V = TypeVar("V")


class References:
    """Looks functions up; every method may be called by any thread."""

    def __init__(self, library: Library, uploads: Uploads, reader: Reader, most_bytes: int) -> None:
        self._library = library
        self._most_bytes = most_bytes
        self._uploads = uploads
        self._reader = reader
        self._hashes: OrderedDict[tuple[str, int, int], str] = OrderedDict()
        self._texts: OrderedDict[str, tuple[Function, bool]] = OrderedDict()
        self._lock = threading.Lock()

    def query(self, reference: str) -> Query:
        """The function with its graph, ready to be looked up."""
        uploaded = UPLOADED.fullmatch(reference)
        if uploaded:
            upload = self._uploads.get(uploaded[1])
            return upload.query(self._uploads.function(upload.id, int(uploaded[2])), reference)
        stored = self._stored(reference)
        (graph,) = self._library.engine.graphs([stored.id])
        entry = stored.entry
        ref = FunctionRef(
            kind=stored.kind,
            function=entry.function,
            binary=entry.binary,
            address=entry.address,
            blocks=stored.nodes,
            reference=reference,
        )
        return Query(ref, graph, entry.architecture)

    def encoded(self, reference: str) -> Query:
        """The same, with all that its file tells of what is around it."""
        query, model = self.query(reference), self._library.model
        if model.ranking is None:
            return query
        uploaded = UPLOADED.fullmatch(reference)
        if uploaded is None:
            number = self._stored(reference).id
            (signals,) = model.signals_from(self._library.engine.signals([number]))
            (vector,) = self._library.engine.vectors([number])
            return query._replace(encoded=EncodedQuery(query.graph, vector, signals))
        upload = self._uploads.get(uploaded[1])
        functions = self._uploads.functions(upload.id)
        member = functions[int(uploaded[2])].member
        of_file = [function for function in functions if function.member == member]
        places = [Surroundings(function.address or 0, function.callees) for function in of_file]
        large = [is_large(function.graph, MIN_BLOCKS) for function in of_file]
        around = (
            upload.query(of_file[number], reference) for number in around_of(query, places, large)
        )
        return encode_among(model, query, around)

    def named_graph(self, reference: str) -> NamedGraph:
        """A graph of somebody's own, with its name and class; one of the library has numbers where
        its file had labels."""
        query, label = self.query(reference), None
        uploaded = UPLOADED.fullmatch(reference)
        if uploaded:
            label = self._uploads.function(uploaded[1], int(uploaded[2])).label
        else:
            label = self._stored(reference).entry.tags.get(LABEL)
        return NamedGraph(query.ref.function, query.graph, label, None, query.ref.binary)

    def graph(self, reference: str) -> ShownGraph:
        """The same as people see it."""
        named, embedder = self.named_graph(reference), self._library.embedder
        (read,) = embedder.read([named.graph])
        return ShownGraph.of(named, read, embedder.vocabulary)

    def with_text(self, reference: str) -> tuple[Function, bool]:
        """The function with its instructions; False where only their mnemonics are known."""
        with self._lock:
            known = self._texts.get(reference)
        if known is None:
            known = self._read(reference)
            with self._lock:
                _keep(self._texts, reference, known, MOST_TEXTS)
        return known

    def _read(self, reference: str) -> tuple[Function, bool]:
        uploaded = UPLOADED.fullmatch(reference)
        if uploaded:
            return self._uploads.with_text(uploaded[1], int(uploaded[2])), True
        stored = self._stored(reference)
        function = self._from_disk(stored)
        return (function, True) if function is not None else (self._from_graph(stored), False)

    def _stored(self, reference: str) -> Stored:
        match = STORED.fullmatch(reference)
        if not match or int(match[1]) >= 2**63:
            raise ConfigError(
                f"{encodable(reference[:100])!r} names no function; write upload:FILE:NUMBER with "
                "the SHA-256 of a file that was sent, or library:ID"
            )
        return self._library.engine.fetch([int(match[1])])[0]

    def _from_disk(self, stored: Stored) -> Function | None:
        """The function as its file has it, where that is unchanged."""
        entry = stored.entry
        if entry.address is None or not entry.file_hash:
            return None
        try:
            container, inner = split_member(Path(entry.binary))
            if inner is not None:
                if not self._is_small(container):
                    return None
                function = self._reader.function(container, entry.address, f"!{inner}")
            else:
                path, member = Path(entry.binary), None
                inside = MEMBER.match(entry.binary)
                if inside and not path.exists():
                    path, member = Path(inside[1]), inside[2]
                if self._hash(path) != entry.file_hash:
                    return None
                function = self._reader.function(path, entry.address, member)
        except (OSError, ValueError, GraphkinError):
            return None
        is_same = len(function.blocks) == stored.nodes and function.file_hash == entry.file_hash
        return replace(function, binary=entry.binary) if is_same else None

    def _hash(self, path: Path) -> str | None:
        if not self._is_small(path):
            return None
        facts = path.stat()
        key = (str(path), facts.st_mtime_ns, facts.st_size)
        with self._lock:
            known = self._hashes.get(key)
        if known is None:
            known = hash_file(path)
            with self._lock:
                _keep(self._hashes, key, known, MOST_HASHES)
        return known

    def _is_small(self, path: Path) -> bool:
        """Whether there is such a file, and it is not too large to be read for one request.

        A library names whatever paths its maker chose.
        """
        return path.is_file() and path.stat().st_size <= self._most_bytes

    def _from_graph(self, stored: Stored) -> Function:
        """The function as its graph has it; blocks are numbered, as their addresses are lost."""
        entry, graph = stored.entry, self._library.engine.graphs([stored.id])[0]
        decode = self._library.model.vocabulary.decode
        bags = graph.node_tokens
        blocks = tuple(
            Block(number, 1, tuple(map(decode, bags.bag(number))) if bags is not None else ())
            for number in range(graph.num_nodes)
        )
        return Function(
            name=entry.function,
            address=entry.address or 0,
            size=entry.size or 0,
            blocks=blocks,
            edges=tuple((int(source), int(target)) for source, target in graph.edges),
            architecture=entry.architecture,
            format="",
            file_hash=entry.file_hash,
            binary=f"{entry.binary} ({NOT_AT_HAND})",
            compiler=entry.compiler or None,
        )


def _keep(known: OrderedDict[K, V], key: K, value: V, most: int) -> None:
    known[key] = value
    while len(known) > most:
        known.popitem(last=False)
