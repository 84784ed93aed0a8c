"""Relocations of MIPS objects, which come in pairs, and through a global offset table.

An address is in two instructions, and so is what is to be added to it: a relocation of the upper
half waits for the one of the lower half. The table is made here, with the entries that the code
asks for.
"""

from __future__ import annotations

from typing import NamedTuple

from graphkin.binaries.image import ByteOrder

GOT_BYTES = 1 << 16
"""All that ``$gp`` reaches."""
GP_OFFSET = 0x7FF0
ENTRY = 4
GP_DISTANCE = "_gp_disp"
"""A symbol that stands for the distance from an instruction to what ``$gp`` points to."""


class MipsTarget(NamedTuple):
    """The symbol of a relocation."""

    name: str
    address: int
    is_local: bool


class _Upper(NamedTuple):
    """A relocation that waits for the lower half of its address."""

    content: bytearray
    offset: int
    place: int
    is_entry: bool
    """It is reached through the table, which has the upper half."""


class MipsRelocator:
    """Applies the relocations of one object of the ABI o32, in the order of the file.

    Args:
        got: where the global offset table is to lie.
        order: of the bytes of a word.
    """

    def __init__(self, got: int, order: ByteOrder) -> None:
        self.got = got
        self.global_pointer = got + GP_OFFSET
        self.table = bytearray()
        """The content of the global offset table."""
        self.slot_names: dict[int, str] = {}
        """Entries of the table for symbols."""
        self._order = order
        self._entries: dict[int, int] = {}
        """Value of an entry to its address."""
        self._upper: dict[MipsTarget, list[_Upper]] = {}

    def apply(
        self, kind: str, content: bytearray, offset: int, address: int, target: MipsTarget
    ) -> None:
        """Writes what a relocation asks for; kinds that no control flow depends on do nothing."""
        if offset + ENTRY > len(content):
            return
        word = self._word(content, offset)
        low = (word & 0x7FFF) - (word & 0x8000)
        if kind == "MIPS_HI16" or (kind == "MIPS_GOT16" and target.is_local):
            upper = _Upper(content, offset, address, kind == "MIPS_GOT16")
            self._upper.setdefault(target, []).append(upper)
        elif kind == "MIPS_LO16":
            for upper in self._upper.pop(target, []):
                self._write_upper(upper, target, low)
            value = target.address
            if target.name == GP_DISTANCE:
                value = self.global_pointer - address + 4
            self._write_half(content, offset, value + low)
        elif kind in ("MIPS_GOT16", "MIPS_CALL16"):
            slot = self._slot(target.address)
            if slot is not None:
                self.slot_names[slot] = target.name
                self._write_half(content, offset, slot - self.global_pointer)
        elif kind == "MIPS_26":
            value = target.address + ((word & 0x3FFFFFF) << 2)
            self._write(content, offset, word & 0xFC000000 | value >> 2 & 0x3FFFFFF)
        elif kind == "MIPS_PC16":
            self._write_half(content, offset, (target.address + 4 * low - address) >> 2)
        elif kind == "MIPS_GPREL16":
            self._write_half(content, offset, target.address + low - self.global_pointer)
        elif kind in ("MIPS_32", "MIPS_GPREL32", "MIPS_PC32"):
            origins = {"MIPS_GPREL32": self.global_pointer, "MIPS_PC32": address}
            self._write(content, offset, word + target.address - origins.get(kind, 0))

    def _write_upper(self, upper: _Upper, target: MipsTarget, low: int) -> None:
        half = self._word(upper.content, upper.offset) & 0xFFFF
        value = target.address + (half << 16) + low
        if target.name == GP_DISTANCE:
            value = self.global_pointer - upper.place + (half << 16) + low
        # The lower half is signed, so that the upper one may have to be one more.
        page = (value + 0x8000) & 0xFFFF0000
        if not upper.is_entry:
            self._write_half(upper.content, upper.offset, page >> 16)
        elif (slot := self._slot(page)) is not None:
            self._write_half(upper.content, upper.offset, slot - self.global_pointer)

    def _slot(self, value: int) -> int | None:
        """The entry of the table that holds a value; None when the table is full."""
        slot = self._entries.get(value)
        if slot is None and len(self.table) + ENTRY <= GOT_BYTES:
            slot = self._entries[value] = self.got + len(self.table)
            self.table += (value & 0xFFFFFFFF).to_bytes(ENTRY, self._order)
        return slot

    def _word(self, content: bytearray, offset: int) -> int:
        return int.from_bytes(content[offset : offset + ENTRY], self._order)

    def _write(self, content: bytearray, offset: int, word: int) -> None:
        content[offset : offset + ENTRY] = (word & 0xFFFFFFFF).to_bytes(ENTRY, self._order)

    def _write_half(self, content: bytearray, offset: int, value: int) -> None:
        self._write(content, offset, self._word(content, offset) & 0xFFFF0000 | value & 0xFFFF)
