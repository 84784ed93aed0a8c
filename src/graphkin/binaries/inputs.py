"""The files that paths stand for: files as they are, those of folders, and those of containers.

Containers are unpacked by a worker process, one after the other, and each member is then read as
a file of its own. So the limits of a file hold for a member, a member that crashes its reader
costs nothing but itself, and the members of one large image keep all processes busy.
"""

from __future__ import annotations

import os
import re
from collections.abc import Generator, Iterable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from graphkin._support.files import PathLike
from graphkin.binaries.backends.base import Limits
from graphkin.binaries.backends.choose import looks_like_binary
from graphkin.binaries.containers import disk_images
from graphkin.binaries.containers.base import HEAD
from graphkin.binaries.containers.budget import Budget
from graphkin.binaries.containers.detect import container_format
from graphkin.binaries.containers.unpack import SEPARATOR, Absent, Member, UnpackJob, unpack
from graphkin.binaries.coverage import Coverage
from graphkin.binaries.function import Function, Skipped
from graphkin.binaries.targets import Target, parse_target, with_longer_members
from graphkin.binaries.workers import Done, Failure, WorkerPool
from graphkin.errors import ConfigError

UNPACK_MEMORY = 1 << 30
"""Of the process that unpacks: everything is streamed."""
PREFIX = "graphkin-"
"""How the names of private folders begin."""
CALLED_LIKE_A_BINARY = re.compile(r"\.(?:so(?:\.[\d.]+)?|a|o|ko|dll|exe|sys|dylib|elf)$")
"""An empty file of such a name is what a failed copy leaves."""


class Input(NamedTuple):
    """A file to read."""

    label: str
    """Its path as it was named; ``outer!inner`` for a member of a container."""
    copy: str | None = None
    """Where its bytes lie, if not at ``label``; it may be removed when it was read."""
    file_hash: str = ""
    """SHA-256 of a copy, in hexadecimal."""
    container: str | None = None
    """The path of the container that it lies in."""

    @property
    def path(self) -> str:
        """Where its bytes lie."""
        return self.copy or self.label

    def discard(self) -> None:
        """Removes the copy."""
        if self.copy is not None:
            with suppress(OSError):
                os.unlink(self.copy)

    def named(self, text: str) -> str:
        """A text about the copy, as one about the file itself."""
        return text if self.copy is None else text.replace(self.copy, self.label)

    def skip(self, item: Skipped) -> Skipped:
        """What was skipped, likewise."""
        return item._replace(binary=self.named(item.binary), reason=self.named(item.reason))

    def coverage(self, coverage: Coverage) -> Coverage:
        """What was recovered, likewise."""
        return replace(coverage, binary=self.named(coverage.binary))

    def function(self, function: Function) -> Function:
        """A function, likewise."""
        if self.copy is None:
            return function
        return replace(function, binary=self.label + function.binary.removeprefix(self.copy))


_Result = Member | Skipped | Absent | Failure | Done


class ContainerEnd(NamedTuple):
    """All members of a container were given."""

    path: str
    is_whole: bool
    """Whether it was unpacked to its end, and nothing was skipped."""


@dataclass
class Inputs:
    """Turns paths into files to read; a context, with a private folder for copies.

    Args:
        limits: what one file may cost; its time holds for unpacking a container as well.
        budget: what unpacking a container may cost.
        skipped: is filled with what cannot be read, or is left out.
        as_is: named files are not looked into, and folders are refused.
    """

    limits: Limits = field(default_factory=Limits)
    budget: Budget | None = None
    skipped: list[Skipped] = field(default_factory=list)
    as_is: bool = False

    def __enter__(self) -> Inputs:
        self._folder: TemporaryDirectory[str] | None = None
        self._opened = 0
        self._results: Generator[tuple[UnpackJob, _Result]] | None = None
        self._inside: dict[str, tuple[str, ...]] = {}
        """Members that were named, by their containers."""
        self._named: set[str] = set()
        self.absent: list[str] = []
        """Sentences about members that were named and are not there."""
        return self

    def __exit__(self, *_: object) -> None:
        if self._results is not None:
            self._results.close()  # a worker would go on to write into the folder
        if self._folder is not None:
            self._folder.cleanup()

    def files(self, paths: Iterable[PathLike]) -> list[Path]:
        """The files named, and what may be read in the folders named, each once.

        Of ``outer!inner`` it is the container, of which :meth:`inputs` gives what was named.
        """
        whole: set[str] = set()
        named: list[Path] = []
        for path in map(Path, paths):
            container, inside = split_member(path)
            if self.as_is and os.path.isdir(container):
                raise ConfigError(f"{path} is a folder; with --raw, name the files to read")
            named.append(container)
            if inside is None:
                whole.add(str(container))
            else:
                self._inside[str(container)] = (*self._inside.get(str(container), ()), inside)
        self._inside = {path: names for path, names in self._inside.items() if path not in whole}
        self._named.update(map(str, named))
        return distinct(files_in(named, self.skipped))

    def member_files(self, container: str, inside: str) -> list[Path]:
        """The container of a member that is known to be one, as :meth:`files` gives it."""
        path = Path(container)
        self._inside[str(path)] = (inside,)
        self._named.add(str(path))
        return [path]

    def inputs(self, files: Iterable[Path]) -> Iterator[Input]:
        """What is to be read of some files, in their order; containers are unpacked meanwhile.

        Args:
            files: as :meth:`files` gives them.
        """
        for item in self.inputs_and_ends(files):
            if isinstance(item, Input):
                yield item

    def inputs_and_ends(self, files: Iterable[Path]) -> Iterator[Input | ContainerEnd]:
        """The same, with the end of each container."""
        with_kind = ((file, self._is_opened(file)) for file in files)
        for is_opened, group in groupby(with_kind, key=lambda pair: pair[1]):
            paths = (str(file) for file, _ in group)
            yield from self._members(paths) if is_opened else map(Input, paths)

    def _is_opened(self, file: Path) -> bool:
        """Whether a file is a container, and not to be read as it is.

        What is of no known format may be a firmware, where a person named it.
        """
        if str(file) in self._inside:
            return True
        if self.as_is:
            return False
        return is_container(file) or (
            str(file) in self._named
            and os.path.isfile(file)
            and os.access(file, os.R_OK)
            and os.path.getsize(file) > 0
            and not looks_like_binary(file)
            and disk_images.can_search(file)
        )

    def _members(self, paths: Iterable[str]) -> Iterator[Input | ContainerEnd]:
        pool: WorkerPool[UnpackJob, Member | Skipped | Absent] = WorkerPool(
            1, unpack, seconds=self.limits.seconds, memory_bytes=UNPACK_MEMORY
        )
        jobs = map(self._job, paths)
        count, reasons = 0, 0
        with closing(pool.run(jobs)) as results:
            self._results = results
            for job, result in results:
                if isinstance(result, Member):
                    count += 1
                    yield Input(result.label, result.path, result.file_hash, job.path)
                elif isinstance(result, Skipped):
                    reasons += 1
                    self.skipped.append(result)
                elif isinstance(result, Absent):
                    reasons += 1
                    reason = _absent(job, result)
                    self.absent.append(reason)
                    self.skipped.append(
                        Skipped(f"{job.path}{SEPARATOR}{result.inside}", "", reason)
                    )
                elif isinstance(result, Failure):
                    self.skipped.append(Skipped(job.path, "", result.reason))
                    yield ContainerEnd(job.path, False)
                    count = reasons = 0
                else:
                    if count or job.inside or is_container(job.path):
                        yield ContainerEnd(job.path, not reasons and not job.inside)
                    else:
                        # Nobody knows what it is, and a backend says so best.
                        del self.skipped[len(self.skipped) - reasons :]
                        yield Input(job.path)
                    count = reasons = 0

    def _job(self, path: str) -> UnpackJob:
        if self._folder is None:
            self._folder = TemporaryDirectory(prefix=PREFIX)
        self._opened += 1
        return UnpackJob(
            path,
            self._folder.name,
            self._opened,
            self.budget or Budget(member_bytes=self.limits.file_bytes),
            self.limits.seconds,
            self._inside.get(path, ()),
            self.as_is,
        )


def find_target(text: str, limits: Limits = Limits()) -> Target:  # noqa: B008 (frozen)
    """What a text names, as :func:`~graphkin.binaries.targets.parse_target` reads it; but a member
    of a container that has colons in its name, and is there, is not cut at one.

    Only a text with a colon behind ``!`` has the container looked through, by a worker process.
    """
    target = parse_target(text)
    others = with_longer_members(target)
    if not others:
        return target
    names = tuple(dict.fromkeys(other.inside or "" for other in others))
    absent, is_whole = set(), True
    with TemporaryDirectory(prefix=PREFIX) as folder:
        budget = Budget(member_bytes=limits.file_bytes)
        job = UnpackJob(target.path, folder, 1, budget, limits.seconds, names, as_is=True)
        pool: WorkerPool[UnpackJob, Member | Skipped | Absent] = WorkerPool(
            1, unpack, seconds=limits.seconds, memory_bytes=UNPACK_MEMORY
        )
        with closing(pool.run([job])) as results:
            for _, result in results:
                if isinstance(result, Absent):
                    absent.add(result.inside)
                is_whole &= not isinstance(result, Failure)
    there = (other for other in others if is_whole and other.inside not in absent)
    return next(there, target)


def split_member(path: Path) -> tuple[Path, str | None]:
    """The container and the member of ``outer!inner``; the path itself where it is one."""
    if SEPARATOR not in str(path) or os.path.lexists(path):
        return path, None
    target = find_target(str(path))
    if target.inside is None or target.function is not None:
        return path, None
    return Path(target.path), target.binary.removeprefix(target.path + SEPARATOR)


def is_container(path: PathLike) -> bool:
    """Whether a file begins as a container does."""
    try:
        if not os.path.isfile(path):
            return False
        with open(path, "rb") as file:
            return container_format(file.read(HEAD)) is not None
    except OSError:
        return False


def files_in(paths: Iterable[PathLike], skipped: list[Skipped]) -> Iterator[Path]:
    """The files named, and the binaries and containers of the folders named, sorted.

    Links in folders are not followed; ``skipped`` is told of those that lead elsewhere, and of
    folders that cannot be searched. A file that cannot be read may be a binary, so it is among
    them, and so may an empty one that is called like one.
    """

    def note(error: OSError) -> None:
        skipped.append(Skipped(str(error.filename), "", f"cannot search: {error.strerror}"))

    for path in map(Path, paths):
        if not os.path.isdir(path):
            yield path
            continue
        links = 0
        for folder, below, names in os.walk(path, onerror=note):
            below.sort()
            links += sum(_leads_out(os.path.join(folder, name), path) for name in (*below, *names))
            for name in sorted(names):
                file = Path(folder, name)
                if os.path.islink(file) or not os.path.isfile(file):
                    continue
                if (
                    looks_like_binary(file)
                    or is_container(file)
                    or not os.access(file, os.R_OK)
                    or (CALLED_LIKE_A_BINARY.search(name) and not os.path.getsize(file))
                ):
                    yield file
        if links:
            reason = f"{links} symbolic links that lead out of it are not followed"
            if links == 1:
                reason = "a symbolic link that leads out of it is not followed"
            skipped.append(Skipped(str(path), "", reason, is_read=True))


def _leads_out(path: str, root: Path) -> bool:
    """Whether a path is a link to something that is not below a folder, and is there."""
    if not os.path.islink(path) or not os.path.exists(path):
        return False
    inside = os.path.join(os.path.realpath(root), "")
    return not os.path.join(os.path.realpath(path), "").startswith(inside)


def distinct(paths: Iterable[Path]) -> list[Path]:
    """Each file once, under the first of its names."""
    files: dict[str, Path] = {}
    for path in paths:
        files.setdefault(os.path.realpath(path), path)
    return list(files.values())


def _absent(job: UnpackJob, absent: Absent) -> str:
    if not is_container(job.path):
        return f"{job.path} is not a container, so it has no member {absent.inside}"
    hint = f"; the closest names are {', '.join(absent.close)}" if absent.close else ""
    return f"{job.path} has no member {absent.inside}{hint}"
