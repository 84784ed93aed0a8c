"""The binaries inside a container, as files in a private folder: the task of a worker process.

A name out of a container never becomes a path. Members get names of ours, so links, devices,
absolute names and ``../`` do nothing; what a member is called is in its label, ``outer!inner``.
"""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import NamedTuple

from graphkin.binaries.backends.choose import begins_like_binary
from graphkin.binaries.containers import disk_images
from graphkin.binaries.containers.base import HEAD, Entry, Format, Opening, damage
from graphkin.binaries.containers.budget import Budget, Meter, OverBudget
from graphkin.binaries.containers.detect import container_format
from graphkin.binaries.containers.stream import PIECE, Stream
from graphkin.binaries.function import Skipped
from graphkin.errors import FormatError

SEPARATOR = "!"
MOST_LETTERS = 1024
"""Of a name."""
MOST_NAMES = 20_000
"""Names that are kept to say what is there, where something else was named."""
MOST_CLOSE = 5
BINEXPORT = ".BinExport"
"""The one ending that tells a backend something."""


@dataclass(frozen=True)
class UnpackJob:
    """A container to unpack."""

    path: str
    folder: str
    """Private; files are written there."""
    number: int
    """Of the container among those that share the folder."""
    budget: Budget
    seconds: float
    inside: tuple[str, ...] = ()
    """The only members that are wanted, ``inner`` of ``outer!inner``; each may be a folder of
    members, or a container inside. All, where it is empty."""
    as_is: bool = False
    """The members that are wanted are read as they are, even where they are containers."""


class Member(NamedTuple):
    """A file that lay in a container."""

    label: str
    """``outer!inner``"""
    path: str
    """Where its bytes lie now."""
    file_hash: str
    """SHA-256, in hexadecimal."""


class Absent(NamedTuple):
    """Nothing has a name that was asked for."""

    inside: str
    close: tuple[str, ...]
    """Names that are nearly the same."""


class TooLarge(FormatError):
    """A member over the limit of a file."""


def unpack(job: UnpackJob) -> Iterator[Member | Skipped | Absent]:
    """Members that look like binaries, as they are found, and what was skipped."""
    unpacking = _Unpacking(job)
    yield from unpacking.run()
    for inside in job.inside:
        if inside not in unpacking.seen:
            close = get_close_matches(inside, unpacking.names, n=MOST_CLOSE, cutoff=0.5)
            yield Absent(inside, tuple(close))


class _Unpacking:
    """One container on its way to members."""

    def __init__(self, job: UnpackJob) -> None:
        self._job = job
        self._meter = Meter(job.budget, os.path.getsize(job.path))
        self._labels: Counter[str] = Counter()
        self._files = 0
        self._found = 0
        self._damaged: set[tuple[str, str]] = set()
        """Containers, and what was said of their damage."""
        self.seen: set[str] = set()
        """Names that were asked for, and that something has."""
        self.names: list[str] = []
        """Of all members."""

    def run(self) -> Iterator[Member | Skipped]:
        path = Path(self._job.path)
        with open(path, "rb") as file:
            stream = Stream(file.read, path)
            kind = container_format(stream.peek(HEAD))
            try:
                yield from self._open(stream, kind or disk_images.UNKNOWN, str(path), 1)
            except OverBudget as error:
                yield Skipped(str(path), "", str(error))

    def _open(
        self, stream: Stream, kind: Format, label: str, depth: int
    ) -> Iterator[Member | Skipped]:
        """The members of a container; damage ends it, and leaves what it lies in alone."""
        notes: list[Skipped] = []

        def note(name: str, reason: str) -> None:
            notes.append(Skipped(f"{label}{SEPARATOR}{clean(name)}" if name else label, "", reason))

        if depth > self._job.budget.depth:
            yield Skipped(label, "", f"it lies more than {self._job.budget.depth} layers deep")
            return
        opening = Opening(label, self._meter, note, Path(self._job.folder), self._job.seconds)
        copy, damaged, found = None, None, self._found
        try:
            if kind.needs_file and stream.path is None:
                copy, damaged = self._copy_start(stream)
                stream = Stream(lambda size: b"", copy)
            with damage():
                for entry in kind.members(stream, opening):
                    yield from self._entry(entry, label, depth)
            if damaged is not None:
                raise damaged
        except FormatError as error:
            # Layers of one container end together.
            if (label, str(error)) not in self._damaged:
                self._damaged.add((label, str(error)))
                kept = "; what came before is kept" if self._found > found else ""
                yield Skipped(label, "", f"it is {kind.name}; {error}{kept}")
        finally:
            if copy is not None:
                copy.unlink(missing_ok=True)
        yield from notes

    def _entry(self, entry: Entry, label: str, depth: int) -> Iterator[Member | Skipped]:
        try:
            head = entry.stream.peek(HEAD)
        except FormatError as error:
            yield Skipped(f"{label}{SEPARATOR}{clean(entry.name)}", "", str(error))
            return
        kind = container_format(head)
        if entry.is_layer and kind is not None:
            yield from self._open(entry.stream, kind, label, depth + 1)
            return
        if entry.is_archive and not head:
            raise FormatError(f"it ends early: there is no {entry.name}")
        if entry.is_archive and kind is None:
            raise FormatError(
                f"its {entry.name} begins with {head[:8]!r}, no format that graphkin knows"
            )
        inner = self._label(f"{label}{SEPARATOR}{clean(entry.name)}")
        rank = self._rank(inner)
        if not rank:
            return
        is_wanted = rank == _EXACT and bool(self._job.inside)
        if kind is not None and not (is_wanted and self._job.as_is):
            yield from self._open(entry.stream, kind, inner, depth + 1)
        elif head and (is_wanted or begins_like_binary(head, entry.name)):
            try:
                path, digest = self._copy(entry.stream, entry.name)
            except FormatError as error:
                yield Skipped(inner, "", str(error))
            else:
                self._found += 1
                yield Member(inner, str(path), digest)

    def _label(self, label: str) -> str:
        """Two members of one name get labels of their own."""
        unique = label
        while unique in self._labels:
            self._labels[label] += 1
            unique = f"{label}#{self._labels[label]}"
        self._labels[unique] = 1
        return unique

    def _rank(self, label: str) -> int:
        """Whether a member is wanted itself, or may hold what is."""
        if not self._job.inside:
            return _EXACT
        name = label.removeprefix(self._job.path + SEPARATOR)
        rank = 0
        for inside in self._job.inside:
            is_below = name.startswith((inside + SEPARATOR, inside.rstrip("/") + "/"))
            if name == inside or is_below:
                self.seen.add(inside)
                rank = max(rank, _EXACT if name == inside else _NEAR)
            elif inside.startswith(name + SEPARATOR):
                rank = max(rank, _NEAR)
        if len(self.names) < MOST_NAMES:
            self.names.append(name)
        return rank

    def _copy(self, stream: Stream, name: str = "") -> tuple[Path, str]:
        """Writes a stream to a file with a name of ours."""
        path = self._path(BINEXPORT if name.lower().endswith(BINEXPORT.lower()) else "")
        try:
            return path, self._write(stream, path)
        except BaseException:
            with suppress(OSError):
                path.unlink()
            raise

    def _copy_start(self, stream: Stream) -> tuple[Path, FormatError | None]:
        """The same of a container, up to where its bytes are damaged: there may be members before
        that."""
        path = self._path()
        try:
            self._write(stream, path)
        except BaseException as error:
            if isinstance(error, FormatError) and not isinstance(error, TooLarge):
                return path, error
            with suppress(OSError):
                path.unlink()
            raise
        return path, None

    def _path(self, ending: str = "") -> Path:
        self._files += 1
        return Path(self._job.folder, f"{self._job.number}-{self._files}{ending}")

    def _write(self, stream: Stream, path: Path) -> str:
        """The hash of what was written."""
        most = self._job.budget.member_bytes
        sha, size = hashlib.sha256(), 0
        with open(path, "xb") as file:
            while piece := stream.read(PIECE):
                size += len(piece)
                if size > most:
                    raise TooLarge(f"it has more than {most:,} bytes, the limit of a file")
                sha.update(piece)
                file.write(piece)
        return sha.hexdigest()


_EXACT, _NEAR = 2, 1


def clean(name: str) -> str:
    """The name of a member as text that every place takes, without ``./`` and ``/`` in front."""
    text = (
        name.encode("utf-8", "surrogateescape").decode("utf-8", "replace").replace("\0", "\ufffd")
    )
    while text.startswith(("./", "/")):
        text = text.removeprefix(".").lstrip("/")
    return text[:MOST_LETTERS] or "unnamed"
