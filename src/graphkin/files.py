"""Whole files: errors that name them, and writing so that a crash, or a full disk, never costs what was there before."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path

from graphkin.errors import FormatError, StorageError

PathLike = str | os.PathLike[str]


def read_file(path: PathLike) -> bytes:
    """The bytes of a file."""
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise FormatError(f"cannot read {path}: {error.strerror or error}") from error


def write_atomically(path: PathLike, content: bytes) -> None:
    """Writes a file beside ``path``, flushes it to disk and moves it into place.

    Raises:
        StorageError: where the file cannot be written; an existing one is intact.
    """
    temporary: str | None = None
    path = Path(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except OSError as error:
        if temporary is not None:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
        raise StorageError(f"cannot write {path}: {error.strerror or error}") from error
