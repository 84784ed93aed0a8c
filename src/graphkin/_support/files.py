"""Whole files: errors that name them, and writing that never costs what was there before."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import re
import stat
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from random import SystemRandom

from graphkin.errors import FormatError, StorageError

PathLike = str | os.PathLike[str]
LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789_"
RANDOM = re.compile(f"[{LETTERS}]{{8}}")
"""The end of the names of new files."""
COMPANIONS = ("-wal", "-shm", "-journal")
"""Endings of what SQLite keeps beside a file that it writes."""


def read_file(path: PathLike) -> bytes:
    """The bytes of a file."""
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise FormatError(f"cannot read {path}: {error.strerror or error}") from error


def hash_file(path: PathLike) -> str:
    """SHA-256 of a file, in hexadecimal, whatever its size.

    Raises:
        FormatError: where it cannot be read, or is not a regular file; a pipe would never end.
    """
    try:
        with open(path, "rb", opener=_open_regular) as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise FormatError(f"cannot read {path}: {error.strerror or error}") from error


@contextlib.contextmanager
def storing(action: str, note: str = "") -> Iterator[None]:
    """Raises a StorageError, "cannot ``action``: why" and a note, for an OSError inside."""
    try:
        yield
    except StorageError:
        raise
    except OSError as error:
        raise StorageError(f"cannot {action}: {error.strerror or error}{note}") from error


def write_atomically(path: PathLike, content: bytes) -> None:
    """:func:`write_all_atomically` for one file."""
    write_all_atomically({Path(path): content})


def write_all_atomically(contents: Mapping[Path, bytes]) -> None:
    """Writes files beside their places, flushes them to disk, and only then moves them in.

    Raises:
        StorageError: where one cannot be written; existing files are intact, all of them.
    """
    files: list[_Replacement] = []
    path = next(iter(contents))
    try:
        for path, content in contents.items():
            file = _Replacement(path)
            files.append(file)
            file.temporary.write_bytes(content)
            file.flush()
        for file in files:
            path = file.path
            file.move()
    except BaseException:
        for file in files:
            file.drop()
        with storing(f"write {path}"):
            raise


@contextlib.contextmanager
def replacing(path: PathLike, *, prefix: str | None = None) -> Iterator[Path]:
    """A new file beside ``path`` to write to, which takes its place when the block ends.

    It is flushed to disk before, and gone where the block fails. Missing folders are made.

    Args:
        path: the file to write or to replace.
        prefix: how the name of the new file begins, by default ``.NAME.``

    Raises:
        StorageError: where it cannot be written; an existing file is intact.
    """
    with storing(f"write {path}"):
        file = _Replacement(Path(path), prefix)
        try:
            yield file.temporary
            file.flush()
            file.move()
        except BaseException:
            file.drop()
            raise


@contextlib.contextmanager
def locked(path: PathLike, busy: str, *, wait: float = 0.0) -> Iterator[None]:
    """Holds the lock of a folder, or of a file, which is made where it is absent.

    Args:
        path: what to lock.
        busy: what to say where another process holds the lock.
        wait: seconds to wait for another process.

    Raises:
        StorageError: where another process holds the lock, or the file cannot be made.
    """
    import fcntl  # Locking needs POSIX, importing this module does not.

    flags = os.O_RDONLY if os.path.isdir(path) else os.O_RDWR | os.O_CREAT
    with storing(f"lock {path}"):
        handle = os.open(path, flags, 0o644)
    try:
        until = time.monotonic() + wait
        with storing(f"lock {path}"):
            while True:
                try:
                    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    if time.monotonic() >= until:
                        raise StorageError(busy) from None
                time.sleep(0.01)
        try:
            yield
        finally:
            # A process forked meanwhile shares the lock, and would keep it.
            fcntl.flock(handle, fcntl.LOCK_UN)
    finally:
        os.close(handle)


def sync_folder(folder: PathLike) -> None:
    """Flushes the names in a folder to disk, where the file system has such a thing."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError as error:
        # File systems over object storage have no folders to flush.
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(handle)


def sweep(path: PathLike, prefix: str | None = None) -> None:
    """Removes the new files that killed processes left beside ``path``, as far as that can be."""
    path = Path(path)
    prefix = prefix or f".{path.name}."
    with contextlib.suppress(OSError):
        for name in os.listdir(path.parent):
            if name.startswith(prefix) and RANDOM.fullmatch(name, len(prefix)):
                _remove_unless_locked(path.parent / name)


def _remove_unless_locked(path: Path) -> None:
    """Who still writes a file holds its lock; the system takes it from a process that ends."""
    with contextlib.suppress(OSError, ImportError):
        import fcntl

        handle = os.open(path, os.O_RDWR | os.O_NOFOLLOW)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            remove_with_companions(path)
        finally:
            os.close(handle)


def remove_with_companions(path: Path) -> None:
    """Removes a file, and what SQLite left beside it."""
    remove_companions(path)
    path.unlink()


def remove_companions(path: Path) -> None:
    """Removes what SQLite left beside a file."""
    for companion in COMPANIONS:
        path.with_name(f"{path.name}{companion}").unlink(missing_ok=True)


class _Replacement:
    """A new file beside the one whose place it will take, locked until then."""

    def __init__(self, path: Path, prefix: str | None = None) -> None:
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, "Is a directory")
        path.parent.mkdir(parents=True, exist_ok=True)
        sweep(path, prefix)
        self.path, self._mode = path, _mode_of(path)
        self._handle, self.temporary = _open_new(
            path.parent, prefix or f".{path.name}.", 0o666 if self._mode is None else 0o600
        )
        with contextlib.suppress(OSError, ImportError):
            import fcntl

            fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def flush(self) -> None:
        with open(self.temporary, "rb+") as file:
            os.fsync(file.fileno())
        if self._mode is not None:
            os.chmod(self.temporary, self._mode)

    def move(self) -> None:
        os.replace(self.temporary, self.path)
        self._close()

    def drop(self) -> None:
        with contextlib.suppress(OSError):
            remove_with_companions(self.temporary)
        self._close()

    def _close(self) -> None:
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1


def _mode_of(path: Path) -> int | None:
    """What others may do with a file, or None where there is none."""
    return stat.S_IMODE(path.stat().st_mode) & 0o777 if path.is_file() else None


def _open_new(folder: Path, prefix: str, mode: int) -> tuple[int, Path]:
    """A new file of a random name. Not by :mod:`tempfile`, whose files are private: the system
    alone takes the umask from a mode without setting it for all threads, as to ask for it does."""
    while True:
        path = folder / (prefix + "".join(SystemRandom().choices(LETTERS, k=8)))
        with contextlib.suppress(FileExistsError):
            return os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, mode), path


def _open_regular(path: str, flags: int) -> int:
    if os.path.exists(path) and not os.path.isfile(path):
        raise OSError(errno.EINVAL, "it is not a regular file")
    return os.open(path, flags)
