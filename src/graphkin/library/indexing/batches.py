"""From functions to rows of a library: graphs in the model's words, batches, vectors."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from graphkin.binaries.call_graph import CallGraph, FunctionCalls
from graphkin.binaries.corpus import BinaryRecord, FunctionRecord
from graphkin.binaries.coverage import Coverage
from graphkin.binaries.extraction import FileSummary
from graphkin.binaries.function import Skipped, base_name, is_unnamed
from graphkin.binaries.workers import Done, Failure
from graphkin.graphs import Graph, TokenBags
from graphkin.graphs.vocabulary import Vocabulary
from graphkin.graphs.words import is_large
from graphkin.library.indexing.file_queue import FileJob, Result
from graphkin.library.records import KnownFunction, Row, Unstored
from graphkin.library.signals import Surroundings

if TYPE_CHECKING:
    from graphkin.library.models import SearchModel

BATCH = 1000
"""Functions that are embedded and stored at once, about: files are not split for it."""
REMEMBERED = 20_000
"""Vectors of the latest distinct graphs that are kept: builds of one library share many."""
LARGEST_FILE = 20_000
"""Functions of a file that are looked at together: what calls what is known among these."""


class Pending(NamedTuple):
    """A function that is ready to be embedded."""

    key: bytes
    entry: KnownFunction
    graph_hash: str
    graph: Graph
    callees: tuple[int, ...] | None = None
    """Addresses of functions of the same file that it calls, where all of the file is read."""
    calls: FunctionCalls | None = None
    """All that it refers to, likewise."""
    is_small: bool = False
    is_unnamed: bool = False
    """Whether named functions alone are asked for, and this is not one."""

    @property
    def is_kept(self) -> bool:
        """Else it is read for the sake of those that it calls or is called by."""
        return not self.is_small and not self.is_unnamed


@dataclass(frozen=True)
class FileEnd:
    """All that will come of a file has come."""

    path: str
    file_hash: str
    """Empty where the library must not count the file as finished."""
    settings: str
    small: int = 0
    unnamed: int = 0
    skipped: list[Skipped] = field(default_factory=list)
    seconds: float = 0.0
    """CPU time that reading took."""
    coverages: list[Coverage] = field(default_factory=list)
    call_graph: bytes = b""
    """Of the whole file, as a library keeps it; empty where it is not known."""

    @property
    def finished_hash(self) -> str:
        """The hash of a file that need not be read again; empty for one of which something was
        lost: what was said of that has to be said again."""
        return "" if any(item.is_loss for item in self.skipped) else self.file_hash


@dataclass
class Batch:
    """Functions to embed at once, those of a file together."""

    functions: list[Pending] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    """Functions by file, with those that were dropped since."""
    ends: list[FileEnd] = field(default_factory=list)
    """Files whose last function is in this batch, or in one before."""
    known_files: set[str] = field(default_factory=set)
    """Hashes of the files of which the library holds something."""
    known: set[bytes] = field(default_factory=set)
    """Keys of functions that the library holds, and that stand beside new ones in their files."""

    def take(self, path: str, functions: Sequence[Pending]) -> None:
        """Adds functions of a file."""
        self.functions += functions
        self.counts[path] += sum(function.is_kept for function in functions)

    def without(self, known: Callable[[Iterable[bytes]], set[bytes]]) -> Batch:
        """The same batch without files of which the library holds all that is here."""
        present = known([function.key for function in self.functions])
        if not present:
            return self
        new = {
            item.entry.file_hash
            for item in self.functions
            if item.is_kept and item.key not in present
        }
        left = [item for item in self.functions if item.entry.file_hash in new]
        files = {item.entry.file_hash for item in self.functions if item.key in present}
        return Batch(left, self.counts, self.ends, files, present)


@dataclass
class Chunk:
    """What is stored at once."""

    rows: list[Row]
    counts: Counter[str]
    ends: list[FileEnd]
    seconds: float
    """CPU time that embedding took."""
    known_files: set[str] = field(default_factory=set)
    """See :class:`Batch`."""


Stream = Iterator[tuple[FileJob, Pending | FileSummary | Failure | Done]]


def ready(
    results: Iterable[tuple[FileJob, Result]],
    vocabulary: Vocabulary,
    tags: Mapping[str, str],
    min_blocks: int = 1,
    *,
    named_only: bool = False,
) -> Stream:
    """Makes graphs and entries of what was read; what is not kept is marked so."""
    for job, result in results:
        if not isinstance(result, FunctionRecord):
            yield job, result
            continue
        tokens = vocabulary.encode(result.words)[result.word_ids]
        graph = Graph(
            result.num_nodes,
            result.edges,
            directed=True,
            node_tokens=TokenBags(tokens, result.word_offsets),
            node_words=result.said,
        )
        address, size = result.metadata["address"], result.metadata["size"]
        made = pending(graph, job, result.binary, result.name, address, size, tags)
        if result.said is not None and job.file_hash:
            callees = tuple(result.metadata.get("callees", ()))
            is_small = not is_large(graph, min_blocks)
            made = made._replace(callees=callees, calls=result.calls, is_small=is_small)
        if named_only and not made.is_small:
            made = made._replace(is_unnamed=is_unnamed(base_name(result.name)))
        yield job, made


def pending(
    graph: Graph,
    job: FileJob,
    binary: BinaryRecord,
    name: str,
    address: int,
    size: int,
    tags: Mapping[str, str],
) -> Pending:
    """A function with its entry and its key."""
    entry = KnownFunction(
        function=name,
        binary=job.path + binary.part,
        address=address,
        size=size,
        architecture=binary.architecture,
        compiler=binary.compiler or "",
        build=binary.build,
        file_hash=binary.file_hash,
        tags=tags,
    )
    graph_hash = graph.digest()
    return Pending(entry.key(graph_hash), entry, graph_hash, graph)


def batches(stream: Stream, settings: str) -> Iterator[Batch]:
    """Cuts a stream into batches; the functions of a file are in one, unless they are very many.

    A file that changed while it was read is not finished: the next run reads it again.
    """
    batch = Batch()
    coming: dict[str, list[Pending]] = {}
    small: Counter[str] = Counter()
    unnamed: Counter[str] = Counter()
    summaries: dict[str, FileSummary] = {}
    changed: set[str] = set()
    calls: dict[str, list[FunctionCalls]] = {}
    for job, result in stream:
        if isinstance(result, Pending):
            own = coming.setdefault(job.path, [])
            own.append(result)
            small[job.path] += result.is_small
            unnamed[job.path] += result.is_unnamed
            if result.calls is not None:
                calls.setdefault(job.path, []).append(result.calls)
            if len(own) >= LARGEST_FILE:
                batch.take(job.path, coming.pop(job.path))
            if result.entry.file_hash != job.file_hash:
                changed.add(job.path)
        elif isinstance(result, FileSummary):
            summaries[job.path] = result
        else:
            batch.take(job.path, coming.pop(job.path, []))
            summary = summaries.pop(job.path, FileSummary(0, []))
            skipped = list(summary.skipped)
            if isinstance(result, Failure):
                skipped.append(Skipped(job.path, "", _reason(result, job)))
            is_whole = isinstance(result, Done) and job.path not in changed
            file_hash = job.file_hash if is_whole else ""
            own_calls = calls.pop(job.path, [])
            batch.ends.append(
                FileEnd(
                    job.path,
                    file_hash,
                    settings,
                    summary.small + small.pop(job.path, 0),
                    unnamed.pop(job.path, 0),
                    skipped,
                    summary.seconds,
                    summary.coverages,
                    CallGraph.of(own_calls).to_bytes() if own_calls and is_whole else b"",
                )
            )
        if len(batch.functions) >= BATCH or len(batch.ends) >= BATCH:
            yield batch
            batch = Batch()
    for path, own in coming.items():
        batch.take(path, own)
    if batch.functions or batch.ends:
        yield batch


def _reason(failure: Failure, job: FileJob) -> str:
    """In words that name the file, and not the copy that was read."""
    return failure.reason if job.copy is None else failure.reason.replace(job.copy, job.path)


class Embedding:
    """Makes rows, file by file: what calls what in a file is part of what is known of it.

    A graph that came a short while ago is not embedded again.
    """

    def __init__(self, model: SearchModel) -> None:
        self._model = model
        self._made: dict[str, NDArray[np.float32]] = {}

    def chunk(self, batch: Batch) -> Chunk:
        """Embeds a batch."""
        started = time.thread_time()
        rows = [
            row
            for _, functions in groupby(batch.functions, key=_file_of)
            for row in self._rows(list(functions))
            if row.key not in batch.known
        ]
        spent = time.thread_time() - started
        return Chunk(rows, batch.counts, batch.ends, spent, batch.known_files)

    def _rows(self, functions: Sequence[Pending]) -> list[Row]:
        """Those of one file."""
        model = self._model
        surroundings = [
            Surroundings(item.entry.address or 0, item.callees)
            for item in functions
            if item.callees is not None
        ]
        encoded = model.encoded(
            [function.graph for function in functions],
            [function.entry.architecture for function in functions],
            surroundings if len(surroundings) == len(functions) else None,
            self._vectors(functions),
        )
        kept = [
            Unstored(item.key, item.entry, item.graph_hash, item.graph, number)
            for number, item in enumerate(functions)
            if item.is_kept
        ]
        return model.rows(kept, encoded)

    def _vectors(self, functions: Sequence[Pending]) -> NDArray[np.float32]:
        """(N, V) of the embedder."""
        new = {
            function.graph_hash: function.graph
            for function in functions
            if function.graph_hash not in self._made
        }
        if new:
            # Copies, because a view would keep the vectors of the whole file.
            vectors = self._model.embedder.encode(list(new.values()))
            self._made |= zip(new, map(np.copy, vectors), strict=True)
        vectors = np.stack([self._made[function.graph_hash] for function in functions])
        for graph_hash in list(self._made)[: max(0, len(self._made) - REMEMBERED)]:
            del self._made[graph_hash]
        return vectors


def _file_of(function: Pending) -> tuple[str, str]:
    return function.entry.binary, function.entry.file_hash
