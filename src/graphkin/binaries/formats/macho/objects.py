"""Mach-O objects (``.o``): the fixups that a linker would apply, so that calls have targets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import lief

from graphkin.binaries.formats.macho.symbols import SymbolTable

RECORD = 8
STUB = 16
"""Bytes set aside for each symbol of another file."""
EMPTY_KINDS = (1, 12, 18)
"""Sections of zeros, which have no bytes in the file."""
X86_UNSIGNED, X86_BRANCHES, X86_SUBTRACTOR = 0, (1, 2, 3, 4, 6, 7, 8), 5
ARM_UNSIGNED, ARM_SUBTRACTOR, ARM_BRANCH, ARM_ADDEND = 0, 1, 2, 10
ARM_PAGES, ARM_OFFSETS = (3, 5), (4, 6)


class _Fixup(NamedTuple):
    offset: int
    number: int
    """Of a symbol when ``external``, else of a section."""
    width: int
    external: bool
    kind: int


def resolve(
    sections: Sequence[lief.MachO.Section],
    data: bytes,
    table: SymbolTable,
    architecture: str,
    names: dict[int, str],
) -> dict[int, memoryview | bytearray]:
    """Contents of the sections by number, with fixups to symbols applied.

    Args:
        names: filled with the symbols of other files, at addresses behind the sections.
    """
    outside = max((s.virtual_address + s.size for s in sections), default=0) + STUB
    linker = _Linker(table, -(-outside // STUB) * STUB, names)
    contents: dict[int, memoryview | bytearray] = {}
    for number, section in enumerate(sections):
        if int(section.type) in EMPTY_KINDS:
            continue
        content = bytearray(data[section.offset : section.offset + section.size])
        fixups = _fixups(data, section.relocation_offset, section.numberof_relocations)
        if architecture == "x86-64":
            linker.apply_x86(content, section.virtual_address, fixups)
        else:
            linker.apply_arm(content, section.virtual_address, fixups)
        contents[number] = content
    return contents


def _fixups(data: bytes, start: int, count: int) -> list[_Fixup]:
    fixups = []
    for at in range(start, min(start + count * RECORD, len(data) - RECORD + 1), RECORD):
        offset = int.from_bytes(data[at : at + 4], "little")
        word = int.from_bytes(data[at + 4 : at + 8], "little")
        width = 1 << (word >> 25 & 3)
        fixups.append(_Fixup(offset, word & 0xFFFFFF, width, bool(word >> 27 & 1), word >> 28))
    return fixups


class _Linker:
    """Knows where each symbol is."""

    def __init__(self, table: SymbolTable, outside: int, names: dict[int, str]) -> None:
        self._table = table
        self._outside = outside
        self._names = names
        self._places: dict[int, int] = {}

    def apply_x86(self, content: bytearray, start: int, fixups: Sequence[_Fixup]) -> None:
        subtracted = 0
        for fixup in fixups:
            end = fixup.offset + fixup.width
            if end > len(content) or not fixup.external:
                # What refers to a section is right as it stands.
                continue
            target = self._place(fixup.number)
            if fixup.kind == X86_SUBTRACTOR:
                subtracted = target
                continue
            addend = int.from_bytes(content[fixup.offset : end], "little", signed=True)
            if fixup.kind in X86_BRANCHES:
                target -= start + end
            elif fixup.kind != X86_UNSIGNED:
                continue
            _write(content, fixup, target + addend - subtracted)
            subtracted = 0

    def apply_arm(self, content: bytearray, start: int, fixups: Sequence[_Fixup]) -> None:
        subtracted = addend = 0
        for fixup in fixups:
            end = fixup.offset + fixup.width
            if fixup.kind == ARM_ADDEND:
                addend = (fixup.number ^ 0x800000) - 0x800000
                continue
            if end > len(content) or not fixup.external:
                continue
            target = self._place(fixup.number) + addend
            addend = 0
            if fixup.kind == ARM_SUBTRACTOR:
                subtracted = target
            elif fixup.kind == ARM_UNSIGNED:
                value = int.from_bytes(content[fixup.offset : end], "little", signed=True)
                _write(content, fixup, target + value - subtracted)
                subtracted = 0
            elif fixup.width == 4:
                word = int.from_bytes(content[fixup.offset : end], "little")
                _write(content, fixup, _instruction(word, fixup.kind, target, start + fixup.offset))

    def _place(self, number: int) -> int:
        """Where a symbol is; one of another file gets an address of its own."""
        defined = self._table.defined(number)
        if defined is not None:
            return defined
        if number not in self._places:
            address = self._outside + STUB * len(self._places)
            self._places[number] = address
            self._names[address] = self._table.name(number)
        return self._places[number]


def _write(content: bytearray, fixup: _Fixup, value: int) -> None:
    value %= 1 << 8 * fixup.width
    content[fixup.offset : fixup.offset + fixup.width] = value.to_bytes(fixup.width, "little")


def _instruction(word: int, kind: int, target: int, here: int) -> int:
    """An ARM64 instruction that refers to ``place``."""
    if kind == ARM_BRANCH:
        return word & ~0x3FFFFFF | (target - here) >> 2 & 0x3FFFFFF
    if kind in ARM_PAGES:
        pages = (target >> 12) - (here >> 12)
        return word & ~0x60FFFFE0 | (pages & 3) << 29 | (pages >> 2 & 0x7FFFF) << 5
    if kind in ARM_OFFSETS:
        offset = target & 0xFFF
        if word & 0x3B000000 == 0x39000000:
            # Loads and stores count in units of what they move.
            is_vector = word & 0x04800000 == 0x04800000
            offset >>= 4 if is_vector and not word >> 30 else word >> 30
        return word & ~(0xFFF << 10) | offset << 10
    return word
