"""Go's table of functions, ``.gopclntab``, in each of the forms that its magic number tells.

The runtime needs it for stack traces, so that no tool strips it. Behind a header it has names, and
for each function a start and the offset of a record; they are sorted, and the end of the code
follows the last one. Before Go 1.16 all offsets count from the header, since then the header
tells where each part lies. Since Go 1.18 starts count from the beginning of the code, and Go 1.20
changed nothing but the magic number.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Buffer = bytes | bytearray | memoryview
ByteOrder = Literal["little", "big"]

VERSIONS = {0xFFFFFFFB: 2, 0xFFFFFFFA: 16, 0xFFFFFFF0: 18, 0xFFFFFFF1: 20}
"""Magic number to the first Go 1 that wrote it."""
LITTLE = re.compile(rb"\xff\xff\xff\0\0[\x01\x02\x04][\x04\x08]")
BIG = re.compile(rb"\xff\xff\xff[\xf0\xf1\xfa\xfb]\0\0[\x01\x02\x04][\x04\x08]")
"""Magic number, two zeros, bytes of the smallest instruction, bytes of a pointer. The first one
leaves out the first byte: a search for constant bytes takes a tenth of the time."""
HEADER_BYTES = 8
MOST_TRIED = 64
"""Places that look like a header; a real file has one."""
MAX_NAME = 1 << 16
MAX_TABLE = 256 << 20
"""Bytes of a table; that of a program of 100 MB has about 20 MB."""
LIMIT = 1 << 62
"""Addresses from here on are those of damage."""


@dataclass(frozen=True)
class FunctionTable:
    """The functions of a Go program."""

    version: int
    """2, 16, 18 or 20: the first Go 1 that wrote tables like this."""
    byte_order: ByteOrder
    pointer: int
    """Bytes of an address."""
    starts: NDArray[np.int64]
    """(F + 1,) rising; the last one is the end of the code."""
    text_slot: int | None
    """Offset, from the header, of the word that starts count from; None where they are addresses.
    The linker leaves it to relocations, and since Go 1.26 it is 0."""
    names: tuple[str, ...]
    """Of each function."""


def find_tables(data: Buffer) -> Iterator[tuple[int, FunctionTable]]:
    """Where tables begin in some bytes, and what they hold; the first is the likeliest."""
    view = memoryview(data)
    for start in islice(_headers(view), MOST_TRIED):
        table = read_table(view[start:])
        if table is not None:
            yield start, table


def _headers(view: memoryview) -> Iterator[int]:
    for match in LITTLE.finditer(view, 1):
        start = match.start() - 1
        if int.from_bytes(view[start : start + 4], "little") in VERSIONS:
            yield start
    yield from (match.start() for match in BIG.finditer(view))


def read_table(data: Buffer) -> FunctionTable | None:
    """The table that bytes begin with; None for what is not one, or is damaged."""
    view = memoryview(data)[:MAX_TABLE]
    is_big = BIG.match(view) is not None
    if not is_big and LITTLE.match(view, 1) is None:
        return None
    byte_order: ByteOrder = "big" if is_big else "little"
    version = VERSIONS.get(int.from_bytes(view[:4], byte_order))
    return None if version is None else _Reader(view, version, byte_order, view[7]).table()


class _Reader:
    """One table whose header was seen."""

    def __init__(self, data: memoryview, version: int, byte_order: ByteOrder, pointer: int) -> None:
        self._data = data
        self._version = version
        self._byte_order: ByteOrder = byte_order
        self._pointer = pointer
        self._prefix = "<" if byte_order == "little" else ">"

    def table(self) -> FunctionTable | None:
        count = self._word(0)
        if self._version == 2:
            names_at, names_end, records_at = 0, len(self._data), 0
            list_at = HEADER_BYTES + self._pointer
        else:
            # Two counts, since Go 1.18 the start of the code, then the offsets of five parts.
            first = 3 if self._version >= 18 else 2
            names_at, names_end = self._word(first), self._word(first + 1)
            records_at = list_at = self._word(first + 4)
        width = 4 if self._version >= 18 else self._pointer
        # The list ends with an address that has no record.
        size = 2 * count * width + width
        if not count or names_at >= len(self._data) or list_at + size > len(self._data):
            return None
        content = self._data[list_at : list_at + size]
        words = np.frombuffer(content, dtype=f"{self._prefix}u{width}")
        if words.max() >= LIMIT:
            return None
        starts = words[::2].astype(np.int64)
        # A function may be empty, where the linker needed only its name.
        if (np.diff(starts) < 0).any() or starts[0] == starts[-1]:
            return None
        offsets = records_at + words[1::2].astype(np.int64)
        names = self._names(names_at, names_end, self._name_offsets(offsets, width))
        if not any(names):
            return None
        return FunctionTable(
            self._version,
            self._byte_order,
            self._pointer,
            starts,
            HEADER_BYTES + 2 * self._pointer if self._version >= 18 else None,
            names,
        )

    def _word(self, number: int) -> int:
        """A word of the header; one that the bytes end before is too large for anything."""
        at = HEADER_BYTES + number * self._pointer
        content = self._data[at : at + self._pointer]
        return int.from_bytes(content, self._byte_order) if len(content) == self._pointer else LIMIT

    def _name_offsets(self, records: NDArray[np.int64], width: int) -> NDArray[np.int64]:
        """(F,) where names lie: a record has the start, and then the offset of the name."""
        at = records + width
        content = np.frombuffer(self._data, dtype=np.uint8)
        is_inside = (at >= 0) & (at + 4 <= len(content))
        at = np.where(is_inside, at, 0)
        raw = content[at[:, None] + np.arange(4)].copy()
        offsets = raw.view(f"{self._prefix}i4").ravel().astype(np.int64)
        return np.where(is_inside, offsets, -1)

    def _names(self, start: int, end: int, offsets: NDArray[np.int64]) -> tuple[str, ...]:
        """Text at some offsets; a function whose name is damaged has none.

        The linker writes each name once, so that all of them together are not longer than the
        table. Who made a table of overlapping names gets no more than that.
        """
        content = bytes(self._data[start:end])
        room = len(content)
        known: dict[int, str] = {}
        for offset in offsets.tolist():
            if offset in known:
                continue
            zero = content.find(b"\0", offset, offset + MAX_NAME) if offset >= 0 else -1
            room -= zero - offset if zero >= 0 else 0
            is_name = zero >= 0 and room >= 0
            known[offset] = content[offset:zero].decode("utf-8", "replace") if is_name else ""
        return tuple(known[offset] for offset in offsets.tolist())
