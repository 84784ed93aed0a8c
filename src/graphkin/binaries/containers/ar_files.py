"""``ar`` archives that are not static libraries: Debian packages, and archives of other files."""

from __future__ import annotations

import re
from collections.abc import Iterator

from graphkin.binaries.containers.base import Entry, Opening
from graphkin.binaries.containers.stream import Stream
from graphkin.errors import FormatError

MAGIC = b"!<arch>\n"
HEADER = 60
DEBIAN = b"debian-binary"
LAYER = re.compile(r"(?:control|data)\.tar(?:\.\w+)?$")
MOST_NAMES = 1 << 20
"""Bytes of the table of long names."""


def members(stream: Stream, opening: Opening) -> Iterator[Entry]:
    """Every member; of a Debian package, the two archives are layers."""
    is_package = is_debian(stream.peek(len(MAGIC) + HEADER))
    stream.skip(len(MAGIC))
    names = b""
    while stream.peek(1):
        opening.meter.member()
        header = stream.exactly(HEADER)
        size_text = header[48:58].strip()
        if header[58:60] != b"`\n" or not size_text.isdigit():
            raise FormatError(f"it is damaged at byte {stream.position - HEADER}")
        size, raw = int(size_text), header[:16].rstrip()
        part = stream.part(size)
        if raw == b"//":
            names = part.exactly(min(size, MOST_NAMES))
        elif raw not in (b"/", b"/SYM64/"):
            if raw.startswith(b"#1/") and raw[3:].isdigit():
                raw = part.exactly(min(int(raw[3:]), size, MOST_NAMES)).rstrip(b"\0")
            elif raw.startswith(b"/") and raw[1:].isdigit():
                raw = names[int(raw[1:]) :].partition(b"\n")[0]
            name = raw.rstrip(b"/").decode("utf-8", "replace")
            yield Entry(name, part, is_layer=is_package and bool(LAYER.match(name)))
        part.leave()
        if size % 2 and stream.peek(1):
            stream.skip(1)


def is_debian(head: bytes) -> bool:
    """Whether a file begins as a Debian package does."""
    return head.startswith(MAGIC + DEBIAN)


def first_content(head: bytes) -> bytes:
    """What is known of the first member that is not a table of the archive."""
    offset = len(MAGIC)
    while len(header := head[offset : offset + HEADER]) == HEADER:
        size_text = header[48:58].strip()
        if not size_text.isdigit():
            break
        start, size = offset + HEADER, int(size_text)
        if header[:16].rstrip() not in (b"/", b"//", b"/SYM64/"):
            return head[start : start + size]
        offset = start + size + size % 2
    return b""
