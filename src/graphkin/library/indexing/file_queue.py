"""Which files are to be read into a library, and what one file gives on the way there."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import NamedTuple

from graphkin._support.files import hash_file
from graphkin.binaries.backends.base import Limits
from graphkin.binaries.backends.choose import Backend
from graphkin.binaries.corpus import FunctionRecord
from graphkin.binaries.extraction import (
    BuiltInput,
    FileSummary,
    build_names,
    member_build,
    read_input,
)
from graphkin.binaries.function import Skipped
from graphkin.binaries.inputs import ContainerEnd, Input, Inputs, is_container
from graphkin.binaries.reading import reading_pool
from graphkin.binaries.workers import Done, Failure, WorkerPool
from graphkin.errors import FormatError
from graphkin.graphs.vocabulary import Reads


class FileJob(NamedTuple):
    """A file whose functions are to be added."""

    path: str
    """As it was named; ``outer!inner`` for a member of a container."""
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
    features: Reads = "mnemonics"
    """What the library's model reads of functions."""
    named_only: bool = False
    """Leave out functions whose names nobody knows."""

    @property
    def text(self) -> str:
        """All that decides which functions a file gives."""
        return (
            f"{self.backend} min_blocks={self.min_blocks} seconds={self.limits.seconds:g} "
            f"function_bytes={self.limits.function_bytes}"
            f"{' named_only' if self.named_only else ''}"
        )

    def pool(self, jobs: int) -> WorkerPool[FileJob, FunctionRecord | FileSummary]:
        """Processes that read files, and may be lost with them."""
        return reading_pool(jobs, partial(_read, settings=self), self.limits)


Result = FunctionRecord | FileSummary | Failure | Done
"""What a pool says of a file: functions, then a summary, then an end; or a failure at any time."""


def _read(job: FileJob, *, settings: ReadSettings) -> Iterator[FunctionRecord | FileSummary]:
    """Runs in a worker process."""
    file = Input(job.path, job.copy)
    yield from read_input(
        BuiltInput(file, job.build),
        # What is too small to be kept tells something of its callers.
        min_blocks=1 if settings.features == "evidence" else settings.min_blocks,
        backend=settings.backend,
        limits=settings.limits,
        with_files=False,
        features=settings.features,
    )


@dataclass
class _Container:
    """A container that is being unpacked, or whose members are being read."""

    file_hash: str
    left: set[str] = field(default_factory=set)
    """Members that have not ended, by their paths."""
    is_open: bool = True
    """More members may come."""
    is_whole: bool = True
    """Everything was read so far."""


@dataclass
class FileQueue:
    """Files that may have to be read.

    Args:
        files: files and containers.
        inputs: what opens containers.
        opens_known: containers that the library holds are opened as well, to learn which of its
            files are theirs.
    """

    files: Sequence[Path]
    inputs: Inputs
    opens_known: bool = False
    known: int = 0
    """Files that are in the library, or copies of others; :meth:`jobs` counts them."""
    indexed: set[str] = field(default_factory=set)
    """Hashes of those that are in the library."""
    members: int = 0
    """Files that came out of containers."""
    opened: int = 0
    """Containers that were unpacked to their end."""

    def __post_init__(self) -> None:
        self._containers: dict[str, _Container] = {}
        """By path, until all members have ended."""
        self._copies: dict[str, Input] = {}
        """Members that have not ended, by label."""
        self._hashes: dict[str, str] = {}
        """Of files that are to be read, by path."""

    @property
    def skipped(self) -> list[Skipped]:
        """Files that could not be hashed, and what was left out of containers."""
        return self.inputs.skipped

    @property
    def total(self) -> int:
        """Files, as far as they are known; containers count until they are unpacked."""
        return len(self.files) + self.members - self.opened

    def jobs(self, finished: set[tuple[str, str]], settings: str) -> Iterator[FileJob]:
        """The files that are not in the library, each content once; hashed as they are asked for.

        Args:
            finished: (file hash, settings) of those that are.
            settings: how files are read now.
        """
        builds = {str(file): build for file, build in build_names(self.files).items()}
        indexed = {file_hash for file_hash, how in finished if how == settings}
        seen: set[str] = set()
        files = self._new_files(indexed, seen)
        for item in self.inputs.inputs_and_ends(files):
            if isinstance(item, ContainerEnd):
                self._close(item)
                continue
            if item.container is None:
                yield FileJob(item.label, builds[item.label], self._hashes[item.label])
                continue
            container = self._container(item.container)
            self.members += 1
            if item.file_hash in seen | indexed:
                self.known += 1
                self.indexed |= {item.file_hash} & indexed
                item.discard()
                continue
            seen.add(item.file_hash)
            container.left.add(item.label)
            self._copies[item.label] = item
            build = member_build(builds[item.container], item.container, item.label)
            yield FileJob(item.label, build, item.file_hash, item.copy)

    def _container(self, path: str) -> _Container:
        return self._containers.setdefault(path, _Container(self._hashes[path]))

    def _new_files(self, indexed: set[str], seen: set[str]) -> Iterator[Path]:
        """The files and containers that the library does not hold."""
        for file in self.files:
            try:
                digest = hash_file(file)
            except FormatError as error:
                self.skipped.append(Skipped(str(file), "", str(error)))
                continue
            is_indexed = digest in indexed
            if digest in seen or is_indexed:
                self.known += 1
                self.indexed |= {digest} & indexed
                if digest in seen or not self.opens_known or not is_container(file):
                    continue
                self.known -= 1
            seen.add(digest)
            self._hashes[str(file)] = digest
            yield file

    def _close(self, end: ContainerEnd) -> None:
        container = self._container(end.path)
        container.is_open = False
        container.is_whole &= end.is_whole
        self.opened += 1

    def ended(self, ends: Mapping[str, bool]) -> list[str]:
        """The hashes of containers that are complete now.

        Args:
            ends: the paths of files that have ended, and whether the library holds all of them.
        """
        for path, is_whole in ends.items():
            copy = self._copies.pop(path, None)
            if copy is None or copy.container is None:
                continue
            copy.discard()
            container = self._containers[copy.container]
            container.left.discard(path)
            container.is_whole &= is_whole
        over = [path for path, item in self._containers.items() if not (item.is_open or item.left)]
        complete = [self._containers.pop(path) for path in over]
        return [item.file_hash for item in complete if item.is_whole]


def groups(
    jobs: Iterable[FileJob], most_bytes: int, most_files: int
) -> Iterator[tuple[FileJob, ...]]:
    """Runs of files that are small together, so that the start of a task is worth its while."""
    group: list[FileJob] = []
    total = 0
    for job in jobs:
        try:
            size = os.path.getsize(job.copy or job.path)
        except OSError:  # the task will say what is wrong
            size = 0
        if group and (total + size > most_bytes or len(group) == most_files):
            yield tuple(group)
            group, total = [], 0
        group.append(job)
        total += size
    if group:
        yield tuple(group)
