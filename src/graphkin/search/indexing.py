"""Bulk work: every function of many files into a library."""

from __future__ import annotations

import os
import time
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from graphkin.binaries.corpus import DOCUMENT
from graphkin.binaries.extraction import binaries_in, check_reading, distinct
from graphkin.binaries.native import Limits
from graphkin.binaries.source import Skipped
from graphkin.binaries.sources import Backend
from graphkin.binaries.vocabulary import Vocabulary
from graphkin.errors import ConfigError, FormatError
from graphkin.files import PathLike
from graphkin.search.functions import vocabulary_of
from graphkin.search.indexing_chunks import Batch, Chunk, Embedding, batches, ready
from graphkin.search.indexing_corpora import CorpusJob, open_corpora
from graphkin.search.indexing_jobs import FileJob, Listing, Reading
from graphkin.search.records import Entry

if TYPE_CHECKING:
    from graphkin.search.index import GraphIndex

AHEAD = 2
"""Batches that wait to be embedded while more files are read."""


@dataclass
class IndexSummary:
    """What an indexing run did."""

    files: int = 0
    """Named or found, those in corpora included."""
    known_files: int = 0
    """Files that were not read, because the library holds all of them, or because their content
    came under another name before. Their entries, tags included, are as they were."""
    functions: int = 0
    """Read, without the small ones."""
    added: int = 0
    known: int = 0
    """Functions that the library held already."""
    small: int = 0
    """Functions left out because they have too few blocks."""
    skipped: list[Skipped] = field(default_factory=list)
    """Functions and files that could not be read, with the reasons."""
    seconds: dict[str, float] = field(
        default_factory=lambda: dict.fromkeys(("extract", "embed", "store", "total"), 0.0)
    )
    """CPU time of reading and of embedding, over all processes; time of storing; of the run."""

    def rates(self) -> dict[str, float]:
        """Functions a second by stage; reading counts the small ones too."""
        functions = dict.fromkeys(self.seconds, self.functions)
        functions["extract"] += self.small
        return {stage: functions[stage] / spent for stage, spent in self.seconds.items() if spent}


def index_paths(
    index: GraphIndex,
    paths: Sequence[PathLike],
    *,
    tags: Mapping[str, str] | None = None,
    jobs: int = 1,
    min_blocks: int = 5,
    backend: Backend = "auto",
    limits: Limits | None = None,
    ray: str | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> IndexSummary:
    """Adds every function of some files to a library.

    A file is read once: when all its functions are stored, the library remembers its hash, and
    a later run with the same settings does not read it again. A run that was interrupted, or
    killed, goes on where it stopped when it is started again.

    Args:
        index: the library.
        paths: binaries, archives, folders that are searched for them, and corpora of functions.
        tags: given to every function that is added. What is there already keeps its own.
        jobs: processes that read files, while this one embeds. With Ray, the cluster decides.
        min_blocks: functions with fewer basic blocks are left out.
        backend: which source of functions reads the files.
        limits: what one file may cost.
        ray: ``local``, or the address of a Ray cluster, to read and embed files there.
        progress: called as ``progress(done, total)``, in files.

    Raises:
        FormatError: where there is nothing to read.
        StorageError: the library cannot be written; what was stored before is there.
    """
    if jobs < 1 or min_blocks < 1:
        raise ConfigError(f"jobs and min_blocks count from 1, got {jobs} and {min_blocks}")
    reading = Reading(min_blocks, backend, limits or Limits())
    check_reading(backend, reading.limits)
    tags = Entry.from_mapping({"tags": dict(tags or {})}).tags
    vocabulary = vocabulary_of(index.model)
    summary = IndexSummary()
    listing, corpora = _found(paths, min_blocks, summary.skipped)
    index.add_rows([])  # a library that does not exist yet begins here
    finished = index.engine.finished_files()
    files = listing.jobs(finished, reading.settings)
    with _Store(index, summary, listing, progress) as store:
        store.expect(corpora, finished)
        if ray is None:
            with closing(_file_batches(files, reading, jobs, vocabulary, tags)) as read:
                store.take(_embedded(index, read))
        else:
            from graphkin.search.ray_work import ray_chunks

            store.take(ray_chunks(files, index.model, reading, tags, ray, store.restart))
        with closing(_corpus_batches(corpora, vocabulary, tags)) as read:
            store.take(_embedded(index, read))
    return summary


def _found(
    paths: Sequence[PathLike], min_blocks: int, skipped: list[Skipped]
) -> tuple[Listing, list[CorpusJob]]:
    """The binaries, and the corpora, under some paths."""
    are_corpora = [os.path.isfile(Path(path, DOCUMENT)) for path in paths]
    named = list(zip(paths, are_corpora, strict=True))
    corpora = open_corpora(
        distinct(Path(path) for path, is_corpus in named if is_corpus), min_blocks, skipped
    )
    others = [path for path, is_corpus in named if not is_corpus]
    files = distinct(binaries_in(others, skipped))
    if not files and not any(are_corpora):
        listed = ", ".join(map(str, paths))
        raise FormatError(f"no binary and no corpus found in {listed or 'no paths at all'}")
    return Listing(files), corpora


def _file_batches(
    files: Iterable[FileJob],
    reading: Reading,
    jobs: int,
    vocabulary: Vocabulary,
    tags: Mapping[str, str],
) -> Generator[Batch]:
    # Closed at once, so that no worker outlives an error.
    with closing(reading.pool(jobs).run(files)) as results:  # type: ignore[type-var]
        yield from batches(ready(results, vocabulary, tags), reading.settings)


def _corpus_batches(
    corpora: Iterable[CorpusJob], vocabulary: Vocabulary, tags: Mapping[str, str]
) -> Generator[Batch]:
    for corpus in corpora:
        yield from batches(corpus.stream(vocabulary, tags), corpus.settings)


def _embedded(index: GraphIndex, read: Iterator[Batch]) -> Generator[Chunk]:
    """Embeds batches by a thread of their own, while the next are read.

    Reading stays with the caller's thread, so that Ctrl-C ends it at once; and so does the
    library, which belongs to one thread.
    """
    import torch

    embedding = Embedding(index.model)
    waiting: deque[Future[Chunk]] = deque()
    threads = torch.get_num_threads()
    # More threads than one are slower while other processes are busy.
    worker = ThreadPoolExecutor(1, initializer=torch.set_num_threads, initargs=(1,))
    try:
        for batch in read:
            new = batch.without(index.engine.known)
            waiting.append(worker.submit(embedding.chunk, new))
            if len(waiting) > AHEAD:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        worker.shutdown(cancel_futures=True)
        torch.set_num_threads(threads)


class _Store:
    """Writes chunks to the library, and keeps the summary."""

    def __init__(
        self,
        index: GraphIndex,
        summary: IndexSummary,
        listing: Listing,
        progress: Callable[[int, int], None] | None,
    ) -> None:
        self._index = index
        self._summary = summary
        self._listing = listing
        self._progress = progress
        self._ended = 0
        self._counts: Counter[str] = Counter()
        """Functions of files that have not ended, as far as they came in this attempt."""
        self._most: Counter[str] = Counter()
        """The same in the best attempt."""

    def __enter__(self) -> _Store:
        self._started = time.perf_counter()
        self._summary.files = len(self._listing.files)
        return self

    def expect(self, corpora: Iterable[CorpusJob], finished: set[tuple[str, str]]) -> None:
        """Counts the files in corpora, and leaves out what the library holds."""
        for corpus in corpora:
            self._summary.files += len(corpus)
            self._summary.known_files += corpus.without(finished)
        self._report()

    def take(self, chunks: Generator[Chunk]) -> None:
        """Stores chunks as they come; a file is finished only when all its functions are in."""
        with closing(chunks):
            for chunk in chunks:
                started = time.perf_counter()
                self._summary.added += self._index.add_rows(chunk.rows)
                for end in chunk.ends:
                    if end.file_hash:
                        self._index.engine.finish_file(end.file_hash, end.settings)
                self._summary.seconds["store"] += time.perf_counter() - started
                self._summary.seconds["embed"] += chunk.seconds
                self._count(chunk)
                self._report()

    def restart(self, path: str) -> None:
        """A file is read from its beginning again: what comes again is not counted twice."""
        self._counts.pop(path, None)

    def _count(self, chunk: Chunk) -> None:
        summary = self._summary
        for path, count in chunk.counts.items():
            self._counts[path] += count
            self._most[path] = max(self._most[path], self._counts[path])
        for end in chunk.ends:
            self._counts.pop(end.path, None)
            summary.functions += self._most.pop(end.path, 0)
            summary.small += end.small
            summary.skipped += end.skipped
            summary.seconds["extract"] += end.seconds
        self._ended += len(chunk.ends)

    def _report(self) -> None:
        if self._progress is not None:
            listing = self._listing
            done = self._summary.known_files + listing.known + len(listing.skipped) + self._ended
            self._progress(done, self._summary.files)

    def __exit__(self, *_: object) -> None:
        summary = self._summary
        summary.known_files += self._listing.known
        summary.skipped += self._listing.skipped
        summary.known = summary.functions - summary.added
        summary.seconds["total"] = time.perf_counter() - self._started
