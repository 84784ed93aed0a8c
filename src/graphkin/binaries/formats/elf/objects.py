"""Relocatable objects, linked just enough to be read: with addresses, and fixups applied."""

from __future__ import annotations

from dataclasses import dataclass, field

from graphkin.binaries.formats.elf.constants import Binding, Machine, SectionFlag
from graphkin.binaries.formats.elf.mips import is_read
from graphkin.binaries.formats.elf.mips_relocations import GOT_BYTES, MipsRelocator, MipsTarget
from graphkin.binaries.formats.elf.reader import ElfFile
from graphkin.binaries.formats.elf.relocation_names import NAMES
from graphkin.binaries.formats.elf.relocations import Site, apply
from graphkin.binaries.formats.elf.sections import content_of, is_loaded
from graphkin.binaries.formats.elf.symbol_table import ElfSymbol
from graphkin.binaries.formats.elf.symbols import function_symbols, marks
from graphkin.binaries.image import Region
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


def link(binary: ElfFile, data: bytes) -> Linked:
    """Lays the sections out one behind the other, and applies the relocations between them."""
    homes: dict[int, tuple[int, bytearray]] = {}
    regions: list[Region] = []
    unwind: list[tuple[int, bytearray]] = []
    address = BASE
    for number, section in enumerate(binary.sections):
        if not is_loaded(section):
            continue
        content = bytearray(content_of(section, data))
        alignment = min(max(section.alignment, 16), MAX_ALIGNMENT)
        address = -(-address // alignment) * alignment
        homes[number] = (address, content)
        if content:
            executable = bool(section.flags & SectionFlag.EXECUTABLE)
            writable = bool(section.flags & SectionFlag.WRITABLE)
            regions.append(Region(address, content, executable, writable))
        if section.name == ".eh_frame":
            unwind.append((address, content))
        address += len(content) + STUB
    linked = Linked(regions, [], got=address)
    relocator: MipsRelocator | None = None
    if binary.header.machine == Machine.MIPS:
        relocator = MipsRelocator(-(-address // STUB) * STUB, binary.header.order)
        _apply(binary, homes, linked, relocator.got + GOT_BYTES, relocator)
        linked.got = relocator.global_pointer
        linked.names |= relocator.slot_names
        if relocator.table:
            regions.append(Region(relocator.got, relocator.table, False))
    else:
        _apply(binary, homes, linked, address + STUB)
    linked.unwind = [(start, bytes(content)) for start, content in unwind]

    def base(symbol: ElfSymbol) -> int | None:
        home = homes.get(symbol.section)
        if home is None or (relocator is not None and not is_read(symbol)):
            return None
        return home[0]

    linked.symbols.extend(function_symbols(binary.symbols, base))
    linked.marks = marks(binary.symbols, base)
    return linked


def _apply(
    binary: ElfFile,
    homes: dict[int, tuple[int, bytearray]],
    linked: Linked,
    outside: int,
    relocator: MipsRelocator | None = None,
) -> None:
    stubs: dict[str, int] = {}
    names = NAMES.get(binary.header.machine, {})
    for table in binary.relocations:
        if table.section not in homes:
            continue
        start, content = homes[table.section]
        for entry in table.of():
            symbol = entry.symbol
            if symbol is None:
                continue
            home = homes.get(symbol.section)
            if home is not None:
                value = home[0] + symbol.value
            else:
                value = stubs.setdefault(symbol.name, outside + STUB * len(stubs))
                linked.names[value] = symbol.name
            kind = names.get(entry.kind, "")
            place = start + entry.offset
            if relocator is not None:
                target = MipsTarget(symbol.name, value, symbol.binding == Binding.LOCAL)
                relocator.apply(kind, content, entry.offset, place, target)
            else:
                apply(kind, Site(content, entry.offset, place, value, entry.addend, linked.got))
