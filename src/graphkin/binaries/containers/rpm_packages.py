"""RPM packages: two headers, then a compressed cpio archive."""

from __future__ import annotations

import struct
from collections.abc import Iterator

from graphkin.binaries.containers.base import Entry, Format, Opening
from graphkin.binaries.containers.stream import Stream
from graphkin.errors import FormatError

MAGIC = b"\xed\xab\xee\xdb"
LEAD = 96
HEADER_MAGIC = b"\x8e\xad\xe8\x01"
HEADER = struct.Struct(">4s4x2I")
INDEX_ENTRY = 16
MOST_HEADER = 256 << 20
"""Bytes of a header, as RPM itself has it."""


def members(stream: Stream, opening: Opening) -> Iterator[Entry]:
    """The payload, which is a layer."""
    stream.skip(LEAD)
    _skip_header(stream)
    stream.skip(-stream.position % 8)
    _skip_header(stream)
    yield Entry("payload", stream, is_layer=True, is_archive=True)


def _skip_header(stream: Stream) -> None:
    magic, entries, size = HEADER.unpack(stream.exactly(HEADER.size))
    length = INDEX_ENTRY * entries + size
    if magic != HEADER_MAGIC or length > MOST_HEADER:
        raise FormatError(f"it is damaged at byte {stream.position - HEADER.size}")
    stream.skip(length)


FORMATS = (Format("an RPM package", lambda head: head.startswith(MAGIC), members),)
