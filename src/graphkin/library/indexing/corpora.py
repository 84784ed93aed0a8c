"""Corpora of functions on their way into a library."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from graphkin._support.files import PathLike
from graphkin.binaries.corpus import BinaryRecord, FunctionCorpus
from graphkin.binaries.extraction import FileSummary
from graphkin.binaries.function import Skipped, base_name, is_unnamed
from graphkin.binaries.workers import Done, Failure
from graphkin.errors import FormatError
from graphkin.graphs.vocabulary import Vocabulary
from graphkin.graphs.words import is_large
from graphkin.library.indexing.batches import Pending, Stream, pending
from graphkin.library.indexing.file_queue import FileJob


class CorpusJob:
    """A corpus whose functions are to be added, binary by binary."""

    def __init__(
        self, corpus: FunctionCorpus, min_blocks: int, *, named_only: bool = False
    ) -> None:
        self._corpus = corpus
        self._min_blocks = min_blocks
        self._named_only = named_only
        self.settings = f"corpus {corpus.digest()} min_blocks={min_blocks}"
        if named_only:
            self.settings += " named_only"
        self.jobs: Mapping[BinaryRecord, FileJob] = {
            binary: FileJob(binary.path, binary.build, binary.file_hash)
            for binary in corpus.binaries
        }
        """The file of each binary; members of one archive share theirs."""

    def __len__(self) -> int:
        return len(set(self.jobs.values()))

    def without(self, finished: set[tuple[str, str]]) -> set[FileJob]:
        """Leaves out the files that the library holds, and returns them."""
        before = set(self.jobs.values())
        self.jobs = {
            binary: job
            for binary, job in self.jobs.items()
            if (job.file_hash, self.settings) not in finished
        }
        return before - set(self.jobs.values())

    def stream(self, vocabulary: Vocabulary, tags: Mapping[str, str]) -> Stream:
        """The functions in the words of a model, as if they had just been read."""
        left = dict.fromkeys(self.jobs.values(), 0)
        try:
            numbers = list(self._numbers())
            for _, job in numbers:
                left[job] += 1
            for number, job in numbers:
                yield job, self._function(number, job, vocabulary, tags)
                left[job] -= 1
                if not left[job]:
                    del left[job]
                    yield job, FileSummary(0, [])
                    yield job, Done()
        except FormatError as error:
            for job in left:
                yield job, Failure(str(error))
            return
        for job in left:
            yield job, FileSummary(0, [])
            yield job, Done()

    def _numbers(self) -> Iterator[tuple[int, FileJob]]:
        """Functions of the files to add."""
        for number in range(len(self._corpus)):
            job = self.jobs.get(self._corpus.entry(number).binary)
            if job is not None:
                yield number, job

    def _function(
        self, number: int, job: FileJob, vocabulary: Vocabulary, tags: Mapping[str, str]
    ) -> Pending:
        graph = self._corpus.graph(number, vocabulary)
        entry = self._corpus.entry(number)
        made = pending(graph, job, entry.binary, entry.name, entry.address, entry.size, tags)
        is_small = not is_large(graph, self._min_blocks)
        return made._replace(
            callees=tuple(entry.callees),
            is_small=is_small,
            is_unnamed=self._named_only and not is_small and is_unnamed(base_name(entry.name)),
        )


def open_corpora(
    paths: Iterable[PathLike],
    min_blocks: int,
    skipped: list[Skipped],
    *,
    named_only: bool = False,
) -> list[CorpusJob]:
    """Corpora that can be opened; the others are added to ``skipped``."""
    corpora = []
    for path in paths:
        try:
            corpora.append(CorpusJob(FunctionCorpus.open(path), min_blocks, named_only=named_only))
        except (FormatError, OSError) as error:
            skipped.append(Skipped(str(path), "", str(error)))
    return corpora
