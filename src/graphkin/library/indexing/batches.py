"""From functions to rows of a library: graphs in the model's words, batches, vectors."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from graphkin.binaries.corpus import BinaryRecord, FunctionRecord
from graphkin.binaries.coverage import Coverage
from graphkin.binaries.extraction import FileSummary
from graphkin.binaries.function import Skipped
from graphkin.binaries.workers import Done, Failure
from graphkin.graphs import Graph, TokenBags
from graphkin.graphs.vocabulary import Vocabulary
from graphkin.library.indexing.file_queue import FileJob, Result
from graphkin.library.records import KnownFunction, Row, Vector

if TYPE_CHECKING:
    from graphkin.library.models import SearchModel

BATCH = 1000
"""Functions that are embedded and stored at once."""
REMEMBERED = 100_000
"""Vectors of the latest distinct graphs that are kept: builds of one library share many."""


class Pending(NamedTuple):
    """A function that is ready to be embedded."""

    key: bytes
    entry: KnownFunction
    graph_hash: str
    graph: Graph


@dataclass(frozen=True)
class FileEnd:
    """All that will come of a file has come."""

    path: str
    file_hash: str
    """Empty where the library must not count the file as finished."""
    settings: str
    small: int = 0
    skipped: list[Skipped] = field(default_factory=list)
    seconds: float = 0.0
    """CPU time that reading took."""
    coverages: list[Coverage] = field(default_factory=list)


@dataclass
class Batch:
    """Functions to embed at once, of whichever files they are."""

    functions: list[Pending] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    """Functions by file, with those that were dropped since."""
    ends: list[FileEnd] = field(default_factory=list)
    """Files whose last function is in this batch, or in one before."""
    known_files: set[str] = field(default_factory=set)
    """Hashes of the files whose functions were dropped."""

    def without(self, known: Callable[[Iterable[bytes]], set[bytes]]) -> Batch:
        """The same batch without functions that the library holds already."""
        present = known([function.key for function in self.functions])
        left = [function for function in self.functions if function.key not in present]
        files = {item.entry.file_hash for item in self.functions if item.key in present}
        return Batch(left, self.counts, self.ends, files)


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
    results: Iterable[tuple[FileJob, Result]], vocabulary: Vocabulary, tags: Mapping[str, str]
) -> Stream:
    """Makes graphs and entries of what was read."""
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
        yield job, pending(graph, job, result.binary, result.name, address, size, tags)


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
    """Cuts a stream into batches; a file ends in the batch of its last function, or later.

    A file that changed while it was read is not finished: the next run reads it again.
    """
    batch = Batch()
    summaries: dict[str, FileSummary] = {}
    changed: set[str] = set()
    for job, result in stream:
        if isinstance(result, Pending):
            batch.functions.append(result)
            batch.counts[job.path] += 1
            if result.entry.file_hash != job.file_hash:
                changed.add(job.path)
        elif isinstance(result, FileSummary):
            summaries[job.path] = result
        else:
            summary = summaries.pop(job.path, FileSummary(0, []))
            skipped = list(summary.skipped)
            if isinstance(result, Failure):
                skipped.append(Skipped(job.path, "", _reason(result, job)))
            is_whole = isinstance(result, Done) and job.path not in changed
            file_hash = job.file_hash if is_whole else ""
            batch.ends.append(
                FileEnd(
                    job.path,
                    file_hash,
                    settings,
                    summary.small,
                    skipped,
                    summary.seconds,
                    summary.coverages,
                )
            )
        if len(batch.functions) >= BATCH or len(batch.ends) >= BATCH:
            yield batch
            batch = Batch()
    if batch.functions or batch.ends:
        yield batch


def _reason(failure: Failure, job: FileJob) -> str:
    """In words that name the file, and not the copy that was read."""
    return failure.reason if job.copy is None else failure.reason.replace(job.copy, job.path)


class Embedding:
    """Makes rows; a graph that came a short while ago is not embedded again."""

    def __init__(self, model: SearchModel) -> None:
        self._model = model
        self._made: dict[str, Vector] = {}

    def chunk(self, batch: Batch) -> Chunk:
        """Embeds a batch."""
        started = time.thread_time()
        distinct = {
            function.graph_hash: function.graph
            for function in batch.functions
            if function.graph_hash not in self._made
        }
        if distinct:
            vectors = self._model.vectors(list(distinct.values()))
            # Copies, because a view would keep the vectors of the whole batch.
            self._made |= zip(distinct, map(np.copy, vectors), strict=True)
        rows = [Row(*function, self._made[function.graph_hash]) for function in batch.functions]
        for graph_hash in list(self._made)[: max(0, len(self._made) - REMEMBERED)]:
            del self._made[graph_hash]
        spent = time.thread_time() - started
        return Chunk(rows, batch.counts, batch.ends, spent, batch.known_files)
