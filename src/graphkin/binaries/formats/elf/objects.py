"""Relocatable objects, linked just enough to be read: with addresses, and fixups applied."""

from __future__ import annotations

from dataclasses import dataclass, field

import lief

from graphkin.binaries.formats.elf.mips import is_read
from graphkin.binaries.formats.elf.mips_relocations import GOT_BYTES, MipsRelocator, MipsTarget
from graphkin.binaries.formats.elf.relocations import Site, apply
from graphkin.binaries.formats.elf.sections import EXECUTABLE, WRITABLE, is_loaded
from graphkin.binaries.formats.elf.symbols import function_symbols, marks
from graphkin.binaries.formats.names import text
from graphkin.binaries.image import ByteOrder, Region
from graphkin.binaries.recovery.ranges import Symbol

BASE = 0x10000
MAX_ALIGNMENT = 1 << 16
STUB = 16
"""Bytes set aside for each symbol of another file."""


@dataclass
class Linked:
    """An object with addresses."""

    regions: list[Region]
    symbols: list[Symbol]
    names: dict[int, str] = field(default_factory=dict)
    """Symbols of other files, at addresses of their own behind the sections."""
    unwind: list[tuple[int, bytes]] = field(default_factory=list)
    """Address and content of each ``.eh_frame``."""
    got: int = 0
    """A made-up global offset table, for what counts from it."""
    marks: list[tuple[int, str]] = field(default_factory=list)
    """As :attr:`Image.marks`."""


def link(binary: lief.ELF.Binary, data: bytes) -> Linked:
    """Lays the sections out one behind the other, and applies the relocations between them."""
    homes: dict[int, tuple[int, bytearray]] = {}
    regions: list[Region] = []
    unwind: list[tuple[int, bytearray]] = []
    address = BASE
    by_offset: dict[tuple[str, int], int] = {}
    for number, section in enumerate(binary.sections):
        if not is_loaded(section):
            continue
        content = bytearray(data[section.file_offset : section.file_offset + section.size])
        alignment = min(max(section.alignment, 16), MAX_ALIGNMENT)
        address = -(-address // alignment) * alignment
        homes[number] = (address, content)
        by_offset[text(section.name), section.file_offset] = number
        if content:
            executable, writable = section.flags & EXECUTABLE, section.flags & WRITABLE
            regions.append(Region(address, content, bool(executable), bool(writable)))
        if section.name == ".eh_frame":
            unwind.append((address, content))
        address += len(content) + STUB
    linked = Linked(regions, [], got=address)
    relocator: MipsRelocator | None = None
    if binary.header.machine_type == lief.ELF.ARCH.MIPS:
        order: ByteOrder = "little"
        if binary.header.identity_data == lief.ELF.Header.ELF_DATA.MSB:
            order = "big"
        relocator = MipsRelocator(-(-address // STUB) * STUB, order)
        _apply(binary, homes, by_offset, linked, relocator.got + GOT_BYTES, relocator)
        linked.got = relocator.global_pointer
        linked.names |= relocator.slot_names
        if relocator.table:
            regions.append(Region(relocator.got, relocator.table, False))
    else:
        _apply(binary, homes, by_offset, linked, address + STUB)
    linked.unwind = [(start, bytes(content)) for start, content in unwind]

    def base(symbol: lief.ELF.Symbol) -> int | None:
        home = homes.get(symbol.shndx)
        if home is None or (relocator is not None and not is_read(symbol)):
            return None
        return home[0]

    linked.symbols.extend(function_symbols(binary.symtab_symbols, base))
    linked.marks = marks(binary.symtab_symbols, base)
    return linked


def _apply(
    binary: lief.ELF.Binary,
    homes: dict[int, tuple[int, bytearray]],
    by_offset: dict[tuple[str, int], int],
    linked: Linked,
    outside: int,
    relocator: MipsRelocator | None = None,
) -> None:
    stubs: dict[str, int] = {}
    for entry in binary.relocations:
        section = entry.section
        symbol = entry.symbol if entry.has_symbol else None
        if section is None or symbol is None:
            continue
        number = by_offset.get((text(section.name), section.file_offset))
        if number is None:
            continue
        start, content = homes[number]
        home = homes.get(symbol.shndx)
        if home is not None:
            value = home[0] + symbol.value
        else:
            name = text(symbol.name)
            value = stubs.setdefault(name, outside + STUB * len(stubs))
            linked.names[value] = name
        kind = str(entry.type).rpartition(".")[2]
        if relocator is not None:
            is_local = symbol.binding == lief.ELF.Symbol.BINDING.LOCAL
            target = MipsTarget(text(symbol.name), value, is_local)
            relocator.apply(kind, content, entry.address, start + entry.address, target)
            continue
        addend = None if entry.is_rel else entry.addend
        site = Site(content, entry.address, start + entry.address, value, addend, linked.got)
        apply(kind, site)
