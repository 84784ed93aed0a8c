"""cpio archives: the payload of RPM packages, and the first file system of Linux."""

from __future__ import annotations

import re
import stat
import struct
from collections.abc import Iterator
from typing import NamedTuple

from graphkin.binaries.containers.base import Entry, Format, Opening
from graphkin.binaries.containers.stream import Stream
from graphkin.errors import FormatError

NEW, CHECKED, OLD = b"070701", b"070702", b"070707"
NEW_HEADER = re.compile(rb"07070[12](?:[0-9a-fA-F]{8}){13}")
OLD_HEADER = re.compile(rb"070707[0-7]{70}")
NEW_SIZE, OLD_SIZE = 110, 76
BINARY = {b"\xc7\x71": "<", b"\x71\xc7": ">"}
"""The oldest form has words of 16 bits in the byte order of its machine: 070707 as one of them."""
BINARY_SIZE = 26
TRAILER = b"TRAILER!!!"
MOST_NAME = 1 << 16
MOST_PATH = 4096
KINDS = (stat.S_IFREG, stat.S_IFDIR, stat.S_IFLNK, stat.S_IFCHR, stat.S_IFBLK, stat.S_IFIFO, 0)
"""Of members; the last of an archive has none."""


class _Header(NamedTuple):
    mode: int
    name_size: int
    size: int
    alignment: int


def members(stream: Stream, opening: Opening) -> Iterator[Entry]:
    """Regular files, then what follows the archive: initial file systems are several in a row."""
    while True:
        opening.meter.member()
        start = stream.position
        header = _header(stream)
        if not 0 < header.name_size <= MOST_NAME:
            raise FormatError(f"it is damaged: a name of {header.name_size} bytes")
        name = stream.exactly(header.name_size).rstrip(b"\0")
        _align(stream, start, header.alignment)
        start = stream.position
        part = stream.part(header.size)
        if name == TRAILER:
            break
        # Of several links to a file, all but one are empty.
        if stat.S_ISREG(header.mode) and header.size:
            yield Entry(name.decode("utf-8", "replace"), part)
        part.leave()
        _align(stream, start, header.alignment)
    stream.skip_zeros()
    if stream.peek(1):
        yield Entry("rest", stream, is_layer=True)


def _header(stream: Stream) -> _Header:
    if stream.peek(6) == OLD:
        raw = stream.exactly(OLD_SIZE)
        if not OLD_HEADER.fullmatch(raw):
            raise FormatError(f"it is damaged at byte {stream.position - OLD_SIZE}")
        return _Header(int(raw[18:24], 8), int(raw[59:65], 8), int(raw[65:76], 8), 1)
    if (order := BINARY.get(stream.peek(2))) is not None:
        words = struct.unpack(f"{order}13H", stream.exactly(BINARY_SIZE))
        # Numbers of 32 bits have their upper half first, whatever the order of bytes.
        return _Header(words[3], words[10], words[11] << 16 | words[12], 2)
    raw = stream.exactly(NEW_SIZE)
    if not NEW_HEADER.fullmatch(raw):
        raise FormatError(f"it is damaged at byte {stream.position - NEW_SIZE}")
    fields = [int(raw[at : at + 8], 16) for at in range(6, NEW_SIZE, 8)]
    return _Header(fields[1], fields[11], fields[6], 4)


def _align(stream: Stream, start: int, alignment: int) -> None:
    """Passes over the bytes that fill up a header or a content; the very last may lack them."""
    left = -(stream.position - start) % alignment
    if len(stream.peek(left)) == left:
        stream.skip(left)


def is_cpio(head: bytes) -> bool:
    """Whether a file begins as one does; two bytes are little, so the name must be there, too."""
    if head.startswith((NEW, CHECKED, OLD)):
        return True
    order = BINARY.get(head[:2])
    if order is None or len(head) < BINARY_SIZE:
        return False
    words = struct.unpack(f"{order}13H", head[:BINARY_SIZE])
    name = head[BINARY_SIZE : BINARY_SIZE + words[10]]
    is_named = 1 < words[10] <= MOST_PATH and name.endswith(b"\0") and b"\0" not in name[:-1]
    return is_named and stat.S_IFMT(words[3]) in KINDS


FORMATS = (Format("a cpio archive", is_cpio, members),)
