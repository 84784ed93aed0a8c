"""Whole files: errors that name them, and writing that never costs what was there before."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import tempfile
from collections.abc import Iterator, Mapping
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


def hash_file(path: PathLike) -> str:
    """SHA-256 of a file, in hexadecimal.

    Raises:
        FormatError: for what cannot be read, or is not a regular file; a pipe would never end.
    """
    if os.path.exists(path) and not os.path.isfile(path):
        raise FormatError(f"{path} is not a regular file; name a binary file")
    try:
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise FormatError(f"cannot read {path}: {error.strerror or error}") from error


@contextlib.contextmanager
def atomic_file(path: PathLike) -> Iterator[Path]:
    """An empty file beside ``path`` to be written; afterwards it is flushed and moved there.

    Raises:
        StorageError: where it cannot be written; what was at ``path`` before is intact.
    """
    path = Path(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            yield Path(name)
            os.fsync(handle)
            os.chmod(name, 0o644)
            os.replace(name, path)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(name)
            raise
        finally:
            os.close(handle)
    except StorageError:
        raise
    except OSError as error:
        raise StorageError(f"cannot write {path}: {error.strerror or error}") from error


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
