"""Whole files: errors that name them, and writing that never costs what was there before."""

from __future__ import annotations

import contextlib
import errno
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

from graphkin.errors import ConfigError, FormatError, StorageError

PathLike = str | os.PathLike[str]


PICTURES = (".png", ".svg", ".pdf")


def picture_ending(path: PathLike) -> str:
    """The ending of a picture's file, in small letters; another than ``PICTURES`` is refused."""
    ending = Path(path).suffix.lower()
    if ending not in PICTURES:
        raise ConfigError(f"cannot draw {path}: name a file that ends in {', '.join(PICTURES)}")
    return ending


def read_file(path: PathLike) -> bytes:
    """The bytes of a file."""
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise FormatError(f"cannot read {path}: {error.strerror or error}") from error


def write_atomically(path: PathLike, content: bytes) -> None:
    """:func:`write_all_atomically` for one file."""
    write_all_atomically({Path(path): content})


def write_all_atomically(contents: Mapping[Path, bytes]) -> None:
    """Writes files beside their places, flushes them to disk, and only then moves them in.

    Raises:
        StorageError: where one cannot be written; existing files are intact, all of them.
    """
    written: list[tuple[str, Path]] = []
    path = next(iter(contents))
    try:
        for path, content in contents.items():
            if path.is_dir():
                raise IsADirectoryError(errno.EISDIR, "Is a directory")
            path.parent.mkdir(parents=True, exist_ok=True)
            handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
            written.append((temporary, path))
            with os.fdopen(handle, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            os.chmod(temporary, 0o644)
        for temporary, path in written:
            os.replace(temporary, path)
    except OSError as error:
        for temporary, _ in written:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
        raise StorageError(f"cannot write {path}: {error.strerror or error}") from error
