"""Relocations as Android's linker packs them: differences between neighbours, in groups."""

from __future__ import annotations

import numpy as np

from graphkin.binaries.cursor import leb128
from graphkin.binaries.formats.elf.relocation_table import RelocationColumns

MAGIC = b"APS2"
BY_INFO, BY_OFFSET, BY_ADDEND, HAS_ADDENDS = 1, 2, 4, 8
"""What the relocations of a group have in common."""
MOST = 1 << 22
"""Relocations to be read: those of a group may take no bytes at all."""


def unpacked(data: bytes, is_wide: bool, has_addends: bool) -> RelocationColumns:
    """The relocations of a packed table, as far as it can be read.

    Args:
        data: the table.
        is_wide: whether the file is one of 64 bits.
        has_addends: of the relocations; False where they are in the places themselves.
    """
    rows: list[tuple[int, int, int]] = []
    try:
        if data.startswith(MAGIC):
            _read(data, rows, (1 << 64 if is_wide else 1 << 32) - 1)
    except IndexError:
        pass  # cut, or damaged
    offsets = np.fromiter((offset for offset, _, _ in rows), np.uint64, len(rows))
    infos = np.fromiter((info for _, info, _ in rows), np.uint64, len(rows))
    addends = np.fromiter((addend for _, _, addend in rows), np.int64, len(rows))
    shift = 32 if is_wide else 8
    return RelocationColumns(
        offsets,
        (infos & np.uint64((1 << shift) - 1)).astype(np.uint32),
        (infos >> np.uint64(shift)).astype(np.uint32),
        addends if has_addends else None,
    )


def _read(data: bytes, rows: list[tuple[int, int, int]], mask: int) -> None:
    """Fills in (offset, info, addend).

    Raises:
        IndexError: where the table ends too early.
    """
    at = len(MAGIC)

    def number() -> int:
        nonlocal at
        start = at
        value, at = leb128(data, start)
        sign = 1 << (7 * (at - start) - 1)
        return (value ^ sign) - sign

    count, offset, addend = min(number(), MOST), number(), 0
    while len(rows) < count:
        size, flags = number(), number()
        if size <= 0:
            return
        step = number() if flags & BY_OFFSET else 0
        info = number() if flags & BY_INFO else 0
        if not flags & HAS_ADDENDS:
            addend = 0
        elif flags & BY_ADDEND:
            addend += number()
        for _ in range(min(size, count - len(rows))):
            offset += step if flags & BY_OFFSET else number()
            info = info if flags & BY_INFO else number()
            if flags & HAS_ADDENDS and not flags & BY_ADDEND:
                addend += number()
            signed = ((addend & mask) ^ (mask + 1) >> 1) - ((mask + 1) >> 1)
            rows.append((offset & mask, info & mask, signed))
