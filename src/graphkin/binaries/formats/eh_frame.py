"""Function starts of stripped files: the frame descriptions of ``.eh_frame``."""

from __future__ import annotations

from typing import NamedTuple

from graphkin.binaries.cursor import Cursor
from graphkin.binaries.image import MAX_RANGES, ByteOrder, UnwindRange

FRAME_SET = frozenset([0x05, 0x0C, 0x0D, 0x0E, 0x0F, 0x10, 0x11, 0x12, 0x13, 0x15, 0x16])
"""Rules for the frame or a saved register."""


class _Common(NamedTuple):
    """What a CIE says to the entries that refer to it."""

    encoding: int
    has_augmentation: bool


def unwind_ranges(
    data: bytes, address: int, pointer: int, order: ByteOrder = "little"
) -> list[UnwindRange]:
    """Every range described by the section at ``address``; damage ends the list early.

    Args:
        pointer: width of an address in bytes.
        order: of the bytes of a number.
    """
    ranges: list[UnwindRange] = []
    common: dict[int, _Common | None] = {}
    offset = 0
    while offset + 8 <= len(data) and len(ranges) < MAX_RANGES:
        length = int.from_bytes(data[offset : offset + 4], order)
        # 0 ends the table; 0xffffffff introduces 64-bit lengths, which no compiler writes.
        if length in (0, 0xFFFFFFFF) or offset + 4 + length > len(data):
            break
        body, end = offset + 4, offset + 4 + length
        identity = int.from_bytes(data[body : body + 4], order)
        try:
            if identity == 0:
                common[offset] = _common(Cursor(data, body + 4, end, order), pointer)
            else:
                entry = common.get(body - identity)
                if entry is not None:
                    cursor = Cursor(data, body + 4, end, order)
                    item = _entry(cursor, address, pointer, entry)
                    if item is not None:
                        ranges.append(item)
        except IndexError:
            common.setdefault(offset, None)
        offset = end
    return ranges


def _common(cursor: Cursor, pointer: int) -> _Common | None:
    version = cursor.unsigned(1)
    zero = cursor.data.find(b"\0", cursor.offset, cursor.limit)
    if zero < 0:
        return None
    augmentation = cursor.data[cursor.offset : zero]
    cursor.offset = zero + 1
    cursor.leb128()
    cursor.leb128()
    cursor.leb128() if version > 1 else cursor.unsigned(1)
    if not augmentation.startswith(b"z"):
        return _Common(0, False) if not augmentation else None
    cursor.leb128()
    encoding = 0
    for letter in augmentation[1:]:
        if letter == ord("R"):
            encoding = cursor.unsigned(1)
        elif letter == ord("L"):
            cursor.unsigned(1)
        elif letter == ord("P"):
            cursor.unsigned(_widths(pointer).get(cursor.unsigned(1) & 7, pointer))
        elif letter not in b"SB":
            return None
    return _Common(encoding, True)


def _widths(pointer: int) -> dict[int, int]:
    """Bytes of an address, by the lower bits of its encoding."""
    return {0: pointer, 2: 2, 3: 4, 4: 8}


def _entry(cursor: Cursor, address: int, pointer: int, common: _Common) -> UnwindRange | None:
    width = _widths(pointer).get(common.encoding & 7)
    if width is None or common.encoding & 0x80:
        return None
    here = address + cursor.offset
    start = cursor.unsigned(width)
    if common.encoding & 8:
        sign = 1 << (8 * width - 1)
        start = (start ^ sign) - sign
    if common.encoding & 0x70 == 0x10:
        start += here
    elif common.encoding & 0x70:
        return None
    start &= (1 << 8 * pointer) - 1
    size = cursor.unsigned(width)
    if not size:
        return None
    if common.has_augmentation:
        skip = cursor.leb128()
        cursor.offset += skip
    return UnwindRange(start, start + size, _has_frame(cursor))


def _has_frame(program: Cursor) -> bool:
    """Whether the rules change before the first step forward."""
    if program.offset >= program.limit:
        return False
    code = program.data[program.offset]
    # A function's own description starts with a step (or with padding, or nothing at all).
    return code >> 6 == 2 or code in FRAME_SET
