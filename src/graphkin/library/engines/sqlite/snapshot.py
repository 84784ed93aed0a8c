"""A side file of arrays that can always be made again: mapped, and summed when it is opened.

The file holds a magic, the length and CRC-32 of a JSON head, the head, and the arrays, each at
a multiple of 64 bytes. The head carries whatever state the arrays belong to, so that a reader
can tell whether they are stale, and a checksum of each array. A file that is missing, cut off,
damaged, foreign or of another version is as good as none: nothing is lost with it but time.

The format is our own because safetensors copies what it reads into memory: 0.5 s for 5 million
entries (300 MB). And it is not written by ``replacing``: under the fixed name of a locked file,
what a killed writer left is taken over, not left lying about.
"""

from __future__ import annotations

import json
import mmap
import os
import struct
import zlib
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

MAGIC = b"kinscan3"
PREFIX = struct.Struct("<8sII")
ALIGNMENT = 64
PAGE = 4096
BLOCK = 256
"""Pages that are summed up at a time, while they are in the processor's cache."""
WEIGHTS = np.cumprod(np.full(PAGE // 8, 0x9E3779B97F4A7C15, np.uint64))
"""(PAGE / 8,) of the words of a page, modulo 2^64: odd, and all different."""


class Snapshot(NamedTuple):
    state: Mapping[str, Any]
    """What the writer said of the arrays."""
    arrays: Mapping[str, NDArray[Any]]
    """Read-only, and mapped: pages are read when they are used."""


def read_snapshot(path: Path) -> Snapshot | None:
    """The arrays of a side file, or None where there is none that can be used."""
    try:
        with open(path, "rb") as file:
            magic, length, checksum = PREFIX.unpack(file.read(PREFIX.size))
            if magic != MAGIC or length > os.fstat(file.fileno()).st_size:
                return None
            head = file.read(length)
            if zlib.crc32(head) != checksum:
                return None
            values = json.loads(head)
            content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            first = _aligned(PREFIX.size + length)
            if len(content) != first + values["bytes"]:
                return None
            arrays = {}
            for name, (kind, shape, start, checksum) in values["arrays"].items():
                arrays[name] = _view(content, kind, shape, first + start)
                if _checksum(arrays[name]) != checksum:
                    return None
            return Snapshot(values["state"], arrays)
    except (OSError, ValueError, KeyError, TypeError, struct.error):
        return None


def _checksum(array: NDArray[Any]) -> int:
    """CRC-32 of the sums of all rows and columns of blocks; a row is a page, a column a word of it.

    A change of one page, whatever it is, changes the sum of a column. Words that trade places
    change the sums of two columns, or within a column those of two pages; the weights tell pages
    of the same words in another order apart. A CRC of the content would take twice the time.
    """
    content = array.reshape(-1).view(np.uint8)
    whole = len(content) // PAGE * PAGE
    pages = content[:whole].view(np.uint64).reshape(-1, PAGE // 8)
    checksum = zlib.crc32(content[whole:].tobytes())
    for start in range(0, len(pages), BLOCK):
        block = pages[start : start + BLOCK]
        for sums in (np.einsum("ij,j->i", block, WEIGHTS), block.sum(axis=0, dtype=np.uint64)):
            checksum = zlib.crc32(sums.tobytes(), checksum)
    return checksum


def _view(content: mmap.mmap, kind: str, shape: list[int], start: int) -> NDArray[Any]:
    count = int(np.prod(shape, dtype=np.int64))
    return np.frombuffer(content, np.dtype(kind), count, start).reshape(shape)


def write_snapshot(path: Path, snapshot: Snapshot) -> bool:
    """Writes a side file beside its place, flushes it, and moves it in.

    Returns whether it did: where it cannot, because the folder is not writable, the disk is
    full, or another process is at it, whatever was there stays.
    """
    new = path.with_name(f"{path.name}.new")
    try:
        with open(new, "ab") as file:
            if not _lock(file.fileno(), new):
                return False
            try:
                _write(file.fileno(), snapshot)
                os.replace(new, path)
            except BaseException:
                with suppress(OSError):
                    os.unlink(new)
                raise
    except (OSError, ImportError):
        return False
    return True


def _lock(handle: int, path: Path) -> bool:
    """Whether the file is this process's alone; what a killed process left is taken over."""
    import fcntl  # Where there is none, there are no side files.

    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    # Another process may have moved the file into its place just before it let go of it.
    own, there = os.fstat(handle), os.stat(path)
    return (own.st_dev, own.st_ino) == (there.st_dev, there.st_ino)


def _write(handle: int, snapshot: Snapshot) -> None:
    arrays = {name: np.ascontiguousarray(array) for name, array in snapshot.arrays.items()}
    layout, total = {}, 0
    for name, array in arrays.items():
        layout[name] = array.dtype.str, array.shape, total, _checksum(array)
        total += _aligned(array.nbytes)
    values = {"state": snapshot.state, "arrays": layout, "bytes": total}
    head = json.dumps(values).encode()
    os.ftruncate(handle, 0)
    prefix = PREFIX.pack(MAGIC, len(head), zlib.crc32(head))
    _put(handle, prefix + head)
    for array in arrays.values():
        _put(handle, array.data.cast("B") if array.nbytes else b"")
    os.fsync(handle)


def _aligned(length: int) -> int:
    return -(-length // ALIGNMENT) * ALIGNMENT


def _put(handle: int, data: bytes | memoryview) -> None:
    """Writes data, and zeros up to where the next may begin."""
    for part in (memoryview(data), memoryview(bytes(_aligned(len(data)) - len(data)))):
        while part:
            part = part[os.write(handle, part) :]
