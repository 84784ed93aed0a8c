"""A folder of bundles of bytes, each named by its content.

A bundle is written beside its place, flushed to disk, and moved in: what has a name is whole, and
two writers of one bundle write the same. So any number of machines may share the folder, on any
file system that they have mounted::

    folder/ab/ab34...    SHA-256 of the content, in hexadecimal

Many graphs share a bundle: a file for each would take a block of the disk, and a wait for it, for
a few hundred bytes.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

from graphkin._support.files import storing, sync_folder, write_atomically
from graphkin.errors import FormatError, StorageError

NAME = re.compile("[0-9a-f]{64}")
FAN_OUT = 2
"""Characters of a name that choose its subfolder: 256 of them."""
INTACT = "; what was written before is intact"


class Piece(NamedTuple):
    """A run of bytes of a bundle."""

    bundle: str
    start: int
    size: int


class Bundle(NamedTuple):
    """A bundle as the folder lists it."""

    name: str
    size: int
    modified: float
    """Seconds since 1970; last written, or found to be there by a writer of the same content."""


class BundleStore:
    """Bundles in a folder, which is made by the first write."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)

    def put(self, parts: Sequence[bytes]) -> list[Piece]:
        """Writes one bundle, and returns where each part lies in it; equal parts lie together.

        When it returns, the bundle survives a loss of power.
        """
        starts: dict[bytes, int] = {}
        end = 0
        for part in parts:
            if part not in starts:
                starts[part] = end
                end += len(part)
        content = b"".join(starts)
        name = hashlib.sha256(content).hexdigest()
        path = self._path(name)
        with storing(f"write {path}", INTACT):
            if not _touched(path, len(content)):
                write_atomically(path, content)
                for folder in (path.parent, path.parent.parent):
                    sync_folder(folder)
        return [Piece(name, starts[part], len(part)) for part in parts]

    def read(self, pieces: Sequence[Piece]) -> list[bytes]:
        """The bytes of pieces, in the order given.

        Raises:
            FormatError: a bundle is missing or too short.
        """
        contents: dict[Piece, bytes] = {}
        for bundle, own in groupby(sorted(set(pieces)), key=attrgetter("bundle")):
            path = self._path(bundle)
            with _readable(path), open(path, "rb") as file:
                for piece in own:
                    file.seek(piece.start)
                    contents[piece] = file.read(piece.size)
                    if len(contents[piece]) != piece.size:
                        raise FormatError(
                            f"{path} is truncated: no {piece.size} bytes at {piece.start}; "
                            "restore it from a copy"
                        )
        return [contents[piece] for piece in pieces]

    def read_whole(self, bundle: str) -> bytes:
        """A bundle, checked against its name."""
        path = self._path(bundle)
        with _readable(path):
            content = path.read_bytes()
        if (actual := hashlib.sha256(content).hexdigest()) != bundle:
            raise FormatError(
                f"{path} is damaged: its content has the SHA-256 {actual}; restore it from a copy"
            )
        return content

    def __iter__(self) -> Iterator[Bundle]:
        """Every bundle, in the order of names."""
        with storing(f"list {self.folder}", INTACT):
            for folder in sorted(self.folder.glob("?" * FAN_OUT)):
                for path in sorted(folder.iterdir()):
                    if not NAME.fullmatch(path.name):
                        continue
                    with suppress(FileNotFoundError):
                        status = path.stat()
                        yield Bundle(path.name, status.st_size, status.st_mtime)

    def discard_leftovers(self, before: float) -> None:
        """Deletes what writers that were killed before some time left behind."""
        with storing(f"clear {self.folder}", INTACT):
            for path in sorted(self.folder.glob(f"{'?' * FAN_OUT}/.*")):
                with suppress(FileNotFoundError):
                    if path.stat().st_mtime < before:
                        path.unlink()

    def discard(self, bundle: str) -> None:
        """Deletes a bundle, if it is there."""
        path = self._path(bundle)
        with storing(f"delete {path}", INTACT):
            path.unlink(missing_ok=True)

    def _path(self, bundle: str) -> Path:
        if not NAME.fullmatch(bundle):
            raise FormatError(f"{bundle!r} is not the name of a bundle in {self.folder}")
        return self.folder / bundle[:FAN_OUT] / bundle


def _touched(path: Path, size: int) -> bool:
    """Whether a bundle is there already, whole; it then counts as just written.

    One that is there but cannot be touched, say as the file of another user, is written again.
    """
    try:
        os.utime(path)
        return path.stat().st_size == size
    except OSError:
        return False


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError as error:
        raise FormatError(
            f"{path} is missing; is the folder of the graphs the right one, and mounted?"
        ) from error
    except OSError as error:
        raise StorageError(f"cannot read {path}: {error.strerror or error}") from error
