"""What an indexing run writes to a library, and what it has done in the end."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from glob import escape
from typing import TYPE_CHECKING

from graphkin.binaries.coverage import CoverageTotal
from graphkin.binaries.function import Skipped
from graphkin.library.indexing.batches import Chunk
from graphkin.library.indexing.corpora import CorpusJob
from graphkin.library.indexing.file_queue import FileQueue
from graphkin.library.records import Filter

if TYPE_CHECKING:
    from graphkin.library.library import Library


@dataclass
class IndexSummary:
    """What an indexing run did."""

    files: int = 0
    """Named or found, those in corpora included."""
    known_files: int = 0
    """Files that were not read, because the library holds all of them, or because their content
    came under another name before."""
    functions: int = 0
    """Read, without those that are left out."""
    added: int = 0
    known: int = 0
    """Functions that were read, and that the library held already."""
    tagged: int = 0
    """Functions that were there already, and got the tags, or other values of them."""
    small: int = 0
    """Functions left out because they have too few blocks."""
    unnamed: int = 0
    """Functions left out because nobody knows their names."""
    skipped: list[Skipped] = field(default_factory=list)
    """Functions and files that could not be read, with the reasons."""
    coverage: CoverageTotal = field(default_factory=CoverageTotal)
    """Of the files that were read."""
    architectures: Counter[str] = field(default_factory=Counter)
    """Functions that came, and were not known before, by processor."""
    warnings: tuple[str, ...] = ()
    """Why they may not be found: processors that the model was not trained on."""
    seconds: dict[str, float] = field(
        default_factory=lambda: dict.fromkeys(("extract", "embed", "store", "total"), 0.0)
    )
    """CPU time of reading and of embedding, over all processes; time of storing; of the run."""

    def rates(self) -> dict[str, float]:
        """Functions a second by stage; reading counts those that are left out, too."""
        functions = dict.fromkeys(self.seconds, self.functions)
        functions["extract"] += self.small + self.unnamed
        return {stage: functions[stage] / spent for stage, spent in self.seconds.items() if spent}


class LibraryWriter:
    """Writes chunks to the library, and keeps the summary."""

    def __init__(
        self,
        library: Library,
        summary: IndexSummary,
        listing: FileQueue,
        tags: Mapping[str, str],
        settings: str,
        progress: Callable[[int, int], None] | None,
    ) -> None:
        self._library = library
        self._settings = settings
        self._summary = summary
        self._listing = listing
        self._tags = tags
        self._progress = progress
        self._ended = 0
        self._others = 0
        """Files that the queue does not have."""
        self._counts: Counter[str] = Counter()
        """Functions of files that have not ended, as far as they came in this attempt."""
        self._most: Counter[str] = Counter()
        """The same in the best attempt."""
        self._known_files: set[str] = set()
        """Hashes of files of which the library held something before."""

    def __enter__(self) -> LibraryWriter:
        self._started = time.perf_counter()
        return self

    def expect(
        self, corpora: Iterable[CorpusJob], finished: set[tuple[str, str]], others: int
    ) -> None:
        """Counts the files in corpora, and some others, and leaves out what the library holds."""
        self._others = others
        for corpus in corpora:
            self._others += len(corpus)
            known = corpus.without(finished)
            self._summary.known_files += len(known)
            self._known_files |= {job.file_hash for job in known}
        self._report()

    def take(self, chunks: Generator[Chunk]) -> None:
        """Stores chunks as they come; a file is finished only when all its functions are in."""
        with closing(chunks):
            for chunk in chunks:
                started = time.perf_counter()
                added = self._store(chunk)
                self._finish_containers({end.path: bool(end.finished_hash) for end in chunk.ends})
                self._summary.added += added
                self._summary.architectures.update(row.entry.architecture for row in chunk.rows)
                self._known_files |= chunk.known_files
                if added < len(chunk.rows):
                    self._known_files |= {row.entry.file_hash for row in chunk.rows}
                self._summary.seconds["store"] += time.perf_counter() - started
                self._summary.seconds["embed"] += chunk.seconds
                self._count(chunk)
                self._report()
        self._finish_containers({})

    def _store(self, chunk: Chunk) -> int:
        """Writes a chunk at once, for each write waits for the disk; returns the rows added."""
        engine = self._library.engine
        with engine.one_write():
            added = self._library.add_rows(chunk.rows)
            engine.keep_call_graphs(
                {end.file_hash: end.call_graph for end in chunk.ends if end.call_graph}
            )
            engine.finish_files(
                (end.finished_hash, end.settings) for end in chunk.ends if end.finished_hash
            )
        return added

    def _finish_containers(self, ends: Mapping[str, bool]) -> None:
        """Remembers the containers of which everything is stored."""
        complete = self._listing.ended(ends)
        self._library.engine.finish_files((digest, self._settings) for digest in complete)

    def tag_files(self) -> None:
        """Gives the tags to everything in the library of files that were known, at least in part.

        Functions that were not known came with them.
        """
        hashes = sorted((self._known_files | self._listing.indexed) - {""})
        self.tag([Filter(file_hash=file_hash) for file_hash in hashes])

    def tag(self, parts: Sequence[Filter]) -> None:
        """Gives the tags to some parts of the library, where something lacks them."""
        if not self._tags:
            return
        engine = self._library.engine
        tags = {name: escape(value) for name, value in self._tags.items()}
        # Counted before anything is written: to read after each write costs more than the write.
        for part, lacking in [
            (part, engine.count(part) - engine.count(replace(part, tags=tags))) for part in parts
        ]:
            if lacking:
                engine.tag(part, self._tags)
                self._summary.tagged += lacking

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
            summary.unnamed += end.unnamed
            summary.skipped += end.skipped
            summary.coverage.add(end.coverages)
            summary.seconds["extract"] += end.seconds
        self._ended += len(chunk.ends)

    def _report(self) -> None:
        if self._progress is not None:
            listing, total = self._listing, self._listing.total + self._others
            done = self._summary.known_files + listing.known + len(listing.skipped) + self._ended
            self._progress(min(done, total), total)

    def __exit__(self, *_: object) -> None:
        summary = self._summary
        summary.files = self._listing.total + self._others
        summary.known_files += self._listing.known
        summary.skipped += self._listing.skipped
        summary.known = summary.functions - summary.added
        summary.seconds["total"] = time.perf_counter() - self._started
