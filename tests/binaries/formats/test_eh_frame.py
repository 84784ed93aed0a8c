"""Frame descriptions, by the encodings that compilers choose."""

from __future__ import annotations

import pytest

from graphkin.binaries.formats.eh_frame import unwind_ranges
from graphkin.binaries.image import ByteOrder


def section(pointer: int, order: ByteOrder, personality: int) -> bytes:
    """A CIE with a personality routine, and the description of 0x400000..0x400040."""
    common = b"\x01zPLR\0" + bytes([1, 0x7C, 31, 3 + pointer, personality])
    common += (0x1234).to_bytes(pointer, order) + bytes([0xFF, 0x00])
    entry = (0x400000).to_bytes(pointer, order) + (0x40).to_bytes(pointer, order) + b"\0"
    common = bytes(4) + common + bytes(-len(common) % 4)
    link = (len(common) + 8).to_bytes(4, order)
    entry = link + entry + bytes(-len(entry) % 4)
    records = [len(item).to_bytes(4, order) + item for item in (common, entry)]
    return b"".join(records) + bytes(4)


@pytest.mark.parametrize("pointer", [4, 8])
@pytest.mark.parametrize("order", ["little", "big"])
def test_a_personality_routine_by_its_address(pointer: int, order: ByteOrder) -> None:
    """MIPS has it as an indirect pointer of the machine's width."""
    (item,) = unwind_ranges(section(pointer, order, 0x80), 0x8000, pointer, order)
    assert (item.start, item.end, item.is_part) == (0x400000, 0x400040, False)
