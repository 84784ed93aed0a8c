"""Which files are to be read into a library, and what one file gives on the way there."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import NamedTuple

from graphkin._support.files import hash_file
from graphkin.binaries.backends.base import Limits
from graphkin.binaries.backends.choose import Backend
from graphkin.binaries.corpus import FunctionRecord
from graphkin.binaries.extraction import FileSummary, build_names, read_records
from graphkin.binaries.function import Skipped
from graphkin.binaries.reading import reading_pool
from graphkin.binaries.workers import Done, Failure, WorkerPool
from graphkin.errors import FormatError


class FileJob(NamedTuple):
    """A file whose functions are to be added."""

    path: str
    """As it was named."""
    build: str
    """See :func:`graphkin.binaries.extraction.build_names`."""
    file_hash: str
    """SHA-256 of the file, in hexadecimal."""
    copy: str | None = None
    """Where the same bytes lie, if not at ``path``."""


@dataclass(frozen=True)
class ReadSettings:
    """How files are read. A file that was read in another way is read again."""

    min_blocks: int = 5
    backend: Backend = "auto"
    limits: Limits = field(default_factory=Limits)

    @property
    def text(self) -> str:
        """All that decides which functions a file gives."""
        return (
            f"{self.backend} min_blocks={self.min_blocks} seconds={self.limits.seconds:g} "
            f"function_bytes={self.limits.function_bytes}"
        )

    def pool(self, jobs: int) -> WorkerPool[FileJob, FunctionRecord | FileSummary]:
        """Processes that read files, and may be lost with them."""
        return reading_pool(jobs, partial(_read, settings=self), self.limits)


Result = FunctionRecord | FileSummary | Failure | Done
"""What a pool says of a file: functions, then a summary, then an end; or a failure at any time."""


def _read(job: FileJob, *, settings: ReadSettings) -> Iterator[FunctionRecord | FileSummary]:
    """Runs in a worker process."""
    path = Path(job.copy or job.path)
    results = read_records(
        path,
        builds={path: job.build},
        min_blocks=settings.min_blocks,
        backend=settings.backend,
        limits=settings.limits,
        with_files=False,
    )
    if job.copy is None:
        yield from results
        return
    for result in results:
        yield _renamed(result, job.copy, job.path)


def _renamed(
    result: FunctionRecord | FileSummary, copy: str, path: str
) -> FunctionRecord | FileSummary:
    """What was read from a copy, as if it had been read from the file itself."""
    if isinstance(result, FunctionRecord):
        return result  # its binary is named when it gets an entry
    skipped = [
        item._replace(
            binary=path + item.binary.removeprefix(copy), reason=item.reason.replace(copy, path)
        )
        for item in result.skipped
    ]
    return FileSummary(result.small, skipped, result.seconds)


@dataclass
class FileQueue:
    """Files that may have to be read."""

    files: Sequence[Path]
    known: int = 0
    """Files that are in the library, or copies of others; :meth:`jobs` counts them."""
    indexed: set[str] = field(default_factory=set)
    """Hashes of those that are in the library."""
    skipped: list[Skipped] = field(default_factory=list)
    """Files that could not be hashed."""

    def jobs(self, finished: set[tuple[str, str]], settings: str) -> Iterator[FileJob]:
        """The files that are not in the library, each content once; hashed as they are asked for.

        Args:
            finished: (file hash, settings) of those that are.
            settings: how files are read now.
        """
        builds = build_names(self.files)
        indexed = {file_hash for file_hash, how in finished if how == settings}
        seen = set(indexed)
        for file in self.files:
            try:
                digest = hash_file(file)
            except FormatError as error:
                self.skipped.append(Skipped(str(file), "", str(error)))
                continue
            if digest in seen:
                self.known += 1
                self.indexed |= {digest} & indexed
                continue
            seen.add(digest)
            yield FileJob(str(file), builds[file], digest)


def groups(
    jobs: Iterable[FileJob], most_bytes: int, most_files: int
) -> Iterator[tuple[FileJob, ...]]:
    """Runs of files that are small together, so that the start of a task is worth its while."""
    group: list[FileJob] = []
    total = 0
    for job in jobs:
        try:
            size = os.path.getsize(job.path)
        except OSError:  # the task will say what is wrong
            size = 0
        if group and (total + size > most_bytes or len(group) == most_files):
            yield tuple(group)
            group, total = [], 0
        group.append(job)
        total += size
    if group:
        yield tuple(group)
