"""Function starts of Mach-O's compact unwind information (``__unwind_info``)."""

from __future__ import annotations

import struct
from collections.abc import Iterator

HEADER = struct.Struct("<7I")
INDEX = struct.Struct("<3I")
PAGE = struct.Struct("<IHH")
REGULAR, COMPRESSED = 2, 3


def function_starts(content: bytes, base: int) -> Iterator[int]:
    """Addresses of the entries; linkers leave out functions that unwind like the one before.

    Args:
        base: address of the image's header, which all offsets count from.
    """
    if len(content) < HEADER.size:
        return
    *_, index, count = HEADER.unpack_from(content)
    last = min(index + count * INDEX.size, len(content) - INDEX.size + 1)
    for at in range(index, last, INDEX.size):
        first, page, _ = INDEX.unpack_from(content, at)
        # The last entry has no page: it marks the end of the code.
        if page:
            yield from (base + offset for offset in _page(content, page, first))


def _page(content: bytes, page: int, first: int) -> Iterator[int]:
    if page + PAGE.size > len(content):
        return
    kind, offset, count = PAGE.unpack_from(content, page)
    width = {REGULAR: 8, COMPRESSED: 4}.get(kind)
    if width is None:
        return
    for number in range(count):
        at = page + offset + number * width
        entry = content[at : at + 4]
        if len(entry) < 4:
            return
        value = int.from_bytes(entry, "little")
        yield value if kind == REGULAR else first + (value & 0xFFFFFF)
