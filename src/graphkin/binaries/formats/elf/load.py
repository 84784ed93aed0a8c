"""ELF files to images: executables, shared objects and relocatable objects."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from graphkin.binaries.formats.eh_frame import unwind_ranges
from graphkin.binaries.formats.elf import mips, powerpc
from graphkin.binaries.formats.elf.constants import (
    COPY,
    OTHER_MACHINES,
    RELATIVE,
    UNDEFINED,
    FileKind,
    Machine,
    Tag,
)
from graphkin.binaries.formats.elf.debug_file import find_debug_file
from graphkin.binaries.formats.elf.debug_folders import DebugFolders
from graphkin.binaries.formats.elf.exidx import index_ranges, index_starts, past_padding
from graphkin.binaries.formats.elf.hidden_code import hides_code
from graphkin.binaries.formats.elf.objects import link
from graphkin.binaries.formats.elf.reader import ElfFile, Section, read_elf
from graphkin.binaries.formats.elf.sections import (
    code_at,
    comment,
    content_of,
    has_all_segments,
    is_cut,
    is_loaded,
    line_sections,
    section_regions,
    segment_regions,
)
from graphkin.binaries.formats.elf.stubs import stubs
from graphkin.binaries.formats.elf.symbol_damage import symbol_damage
from graphkin.binaries.formats.elf.symbol_table import ElfSymbol, SymbolTable
from graphkin.binaries.formats.elf.symbols import (
    defined_functions,
    function_symbols,
    without_thumb_bit,
)
from graphkin.binaries.formats.elf.symbols import marks as elf_marks
from graphkin.binaries.formats.golang.symbols import go_ranges, with_go_functions
from graphkin.binaries.formats.intermediate import GIMPLE_ADVICE, GIMPLE_SECTION
from graphkin.binaries.formats.names import is_noreturn, stack_failures
from graphkin.binaries.image import Image, Region, disjoint
from graphkin.binaries.recovery.ranges import Symbol
from graphkin.binaries.starts.clues import Clues, words_into_code
from graphkin.binaries.starts.locate import locate
from graphkin.binaries.starts.sweep import addresses
from graphkin.errors import FormatError

ARCHITECTURES: dict[int, str] = {
    Machine.X86_64: "x86-64",
    Machine.I386: "x86",
    Machine.AARCH64: "aarch64",
    Machine.ARM: "arm",
    Machine.MIPS: "mips",
    Machine.RISCV: "riscv64",
    Machine.PPC: "ppc",
    Machine.PPC64: "ppc64le",
}
BIG_ENDIAN = frozenset(["mips", "ppc", "ppc64le"])
"""Processors whose byte order is looked at with the rest of the header; the others are
little-endian."""
POINTERS = {
    "x86-64": 8,
    "x86": 4,
    "aarch64": 8,
    "arm": 4,
    "mips": 4,
    "mipsel": 4,
    "mips64": 8,
    "mips64el": 8,
    "riscv64": 8,
    "ppc": 4,
    "ppc64le": 8,
}
NO_PROGRAM = 1 << 63
"""Addresses from here on belong to kernels: what a file says to lie there is not its own, and
columns of addresses have a sign."""
STUB_SECTIONS = (".plt", ".iplt", ".MIPS.stubs")
ENTRY_TAGS = (Tag.INIT, Tag.FINI)
HIDDEN = (
    "its table of sections does not show all code that its segments run; it is read by its segments"
)
NO_EXECUTABLE = (
    "it tells of functions and has no code: it may be a debug file, whose code is in another file"
)
TABLES = frozenset(["symbols", "exported symbols", "unwind tables"])
"""What a file that was cut off has left, if there is anything to read in it."""


def load_elf(data: bytes, label: str, debug_folders: DebugFolders | None = None) -> Image:
    """Reads an ELF file, and its debug file if ``debug_folders`` have one.

    Raises:
        FormatError: for a file whose headers cannot be read, or an architecture that we do not.
    """
    binary = read_elf(data, label)
    architecture = _architecture(binary, label)
    if binary.header.kind == FileKind.RELOCATABLE:
        image = _relocatable(binary, data, architecture)
    else:
        image = _linked(binary, data, architecture, debug_folders)
    if not image.extents and architecture.startswith("mips"):
        note = mips.compressed_note(len(mips.compressed(binary)))
        if note is not None:
            raise FormatError(f"{label} has no function that graphkin reads: {note}")
    if not image.extents and image.note is None:
        image.note = _missing_code(binary, image)
    remarks = [image.remark, symbol_damage(binary)]
    image.remark = "; ".join(remark for remark in remarks if remark) or None
    is_told = bool(TABLES.intersection(image.tried)) and bool(image.extents)
    if is_cut(binary, data):
        reason = f"truncated or damaged: its headers point beyond its {len(data)} bytes"
        has_all_code = bool(image.extents) and has_all_segments(binary, data)
        if not is_told and not has_all_code:
            raise FormatError(f"{label} is {reason}")
        # Without sections, data beside the code is searched for functions, too.
        if not binary.sections and image.note is None:
            image.note = f"the file is {reason}; functions may be missing, or be data"
    return image


def _missing_code(binary: ElfFile, image: Image) -> str | None:
    """What is known of the code of a file that has none; None for a file of data."""
    if any(region.executable for region in image.regions):
        return None
    if any(section.name.startswith(GIMPLE_SECTION) for section in binary.sections):
        return GIMPLE_ADVICE
    tables = (binary.symbols, binary.dynamic_symbols)
    if binary.header.entry or any(item for table in tables for item in defined_functions(table)):
        return NO_EXECUTABLE
    return None


def _architecture(binary: ElfFile, label: str) -> str:
    """The name of the processor, with its width and byte order where there are several."""
    header = binary.header
    name = ARCHITECTURES.get(header.machine)
    if name is None:
        machine = OTHER_MACHINES.get(header.machine, f"machine {header.machine}")
        known = ", ".join(POINTERS)
        raise FormatError(f"{label} is code for {machine}; graphkin reads {known}")
    if name not in BIG_ENDIAN and binary.header.order == "big":
        raise FormatError(f"{label} is big-endian; graphkin reads little-endian code for {name}")
    wide = header.is_wide
    if name == "riscv64" and not wide:
        raise FormatError(
            f"{label} is code for RISC-V of 32 bits; graphkin reads RISC-V of 64 bits"
        )
    if name == "riscv64" and header.kind == FileKind.RELOCATABLE:
        raise FormatError(f"{label} is an object of RISC-V; graphkin reads it once it is linked")
    if name == "mips":
        mips.check(binary, label)
        return f"mips{'64' * wide}{'el' if binary.header.order == 'little' else ''}"
    if name.startswith("ppc"):
        powerpc.check(binary, label)
    return name


def _linked(
    binary: ElfFile, data: bytes, architecture: str, debug_folders: DebugFolders | None
) -> Image:
    sections = list(binary.sections)
    exported = [item.address for item in _functions(binary.dynamic_symbols, is_mips=False)]
    is_hiding = bool(sections) and hides_code(binary, [*_entries(binary), *exported])
    regions = [] if is_hiding else disjoint(section_regions(sections, data))
    regions = regions or disjoint(segment_regions(binary, data))
    order = binary.header.order
    slots, pointers, imports = _relocations(binary)
    debug, remark = find_debug_file(binary, data, debug_folders)
    is_mips = architecture.startswith("mips")
    has_marks = architecture in ("arm", "aarch64")
    static = _functions(binary.symbols, is_mips)
    if debug is not None:
        static = [*_functions(debug.binary.symbols, is_mips), *static]
    symbols = [*static, *_functions(binary.dynamic_symbols, is_mips)]
    symbols = with_go_functions(symbols, regions, architecture, pointers)
    marks = _marks(binary, sections) if has_marks else []
    lines = line_sections(sections, data, order)
    if debug is not None:
        marks = marks or (debug.marks() if has_marks else [])
        lines = lines or line_sections(debug.binary.sections, debug.data, order)
    got = _small_data(binary) if architecture == "riscv64" else _table_base(sections)
    named: dict[int, str] = {}
    compressed: set[int] = set()
    if is_mips:
        got = mips.global_pointer(binary)
        table = mips.global_slots(binary, POINTERS[architecture])
        slots |= {address: name for address, name, _, _ in table}
        pointers |= {address: value for address, _, value, _ in table if value}
        imports |= {address: name for address, name, _, is_import in table if is_import}
        named = mips.imports(binary)
        compressed = mips.compressed(binary)
    plt = [(s.address, s.size) for s in sections if s.name.startswith(STUB_SECTIONS)]
    local_entries: dict[int, int] = {}
    if architecture.startswith("ppc"):
        regions = powerpc.without_writable_code(regions)
        if architecture == "ppc64le":
            got = powerpc.table_of_contents(binary, regions, order)
            known = [binary] if debug is None else [binary, debug.binary]
            local_entries = powerpc.local_entries(known)
        made = powerpc.stubs(regions, slots, plt, POINTERS[architecture], got, order)
        named, plt = made.names, [(start, end - start) for start, end in made.ranges]
    else:
        named |= dict(
            entry
            for start, size in plt
            for entry in stubs(architecture, code_at(regions, start, size), start, slots, got)
        )
    defined = {slots[at]: pointers[at] for at in slots.keys() & pointers.keys() - imports.keys()}
    imports |= {stub: name for stub, name in named.items() if name not in defined}
    got = got if got is not None and got < NO_PROGRAM else None
    imports = {address: name for address, name in imports.items() if address < NO_PROGRAM}
    noreturn = {address: name for address, name in (slots | named).items() if is_noreturn(name)}
    unwind = [
        item
        for section in sections
        if section.name == ".eh_frame"
        for item in unwind_ranges(
            content_of(section, data), section.address, POINTERS[architecture], order
        )
        if not any(start <= item.start < start + size for start, size in plt)
        and item.start & ~1 not in compressed
    ]
    index: list[int] = []
    if architecture == "arm":
        for section in sections:
            if section.name == ".ARM.exidx":
                content = content_of(section, data)
                starts = index_starts(content, section.address)
                index += [past_padding(start, regions) for start in starts]
                unwind += [
                    item._replace(start=start)
                    for item in index_ranges(content, section.address)
                    if (start := past_padding(item.start, regions)) < item.end
                ]
    entries = _entries(binary)
    values = _pointers(binary, regions, pointers, POINTERS[architecture])
    # Code that is not read would be searched in vain.
    is_complete = bool(static) or bool(compressed)
    if architecture == "arm":
        symbols, states = without_thumb_bit(symbols)
        states |= {value & ~1: "t" for value in values.tolist() if value & 1}
        states |= {entry & ~1: "t" if entry & 1 else "a" for entry in entries}
        entries, values = [*(entry & ~1 for entry in entries), *index], values & ~1
        is_complete = is_complete and bool(marks)
        marks = marks or sorted(states.items())
    noreturn |= {symbol.address: symbol.name for symbol in symbols if is_noreturn(symbol.name)}
    noreturn |= {
        local: noreturn[start] for local, start in local_entries.items() if start in noreturn
    }
    image = Image(
        "elf",
        architecture,
        regions,
        [],
        [],
        frozenset(noreturn),
        pointers,
        comment(sections, data),
        got,
        lines,
        mips.compressed_note(len(compressed)),
        marks,
        stack_failures(noreturn),
        order,
        imports,
        local_entries | {stub: defined[name] for stub, name in named.items() if name in defined},
        remark=remark,
    )
    tables = {
        "symbols": static,
        "exported symbols": len(symbols) > len(static),
        "unwind tables": unwind or index,
        "entry points": entries,
    }
    clues = Clues(
        symbols,
        is_complete,
        unwind,
        entries,
        values,
        [(start, start + size) for start, size in plt],
        tuple(name for name, has in tables.items() if has),
        [(item.start, item.end) for item in go_ranges(symbols)],
        powerpc.notes(regions, order) if architecture == "ppc64le" else (),
    )
    if is_hiding and image.remark is None:
        image.remark = HIDDEN
    return locate(image, clues)


def _functions(symbols: SymbolTable, is_mips: bool) -> list[Symbol]:
    def base(symbol: ElfSymbol) -> int | None:
        return None if is_mips and not mips.is_read(symbol) else 0

    return list(function_symbols(symbols, base))


def _entries(binary: ElfFile) -> list[int]:
    """Where the loader enters the file."""
    entries = [binary.header.entry]
    for tag in ENTRY_TAGS:
        entries.append(binary.dynamic.get(tag) or 0)
    return [entry for entry in entries if entry]


def _pointers(
    binary: ElfFile, regions: Sequence[Region], pointers: dict[int, int], width: int
) -> NDArray[np.int64]:
    """Words that may hold the address of a function: relocations know them in all files but
    those that are loaded where they were linked."""
    # On MIPS, a word without a symbol is moved as a whole, and its relocation has no address.
    is_mips = binary.header.machine == Machine.MIPS
    if binary.header.kind == FileKind.EXECUTABLE or is_mips or not pointers:
        return words_into_code(regions, width, binary.header.order)
    return addresses(pointers.values())


def _relocatable(binary: ElfFile, data: bytes, architecture: str) -> Image:
    linked = link(binary, data)
    compressed = mips.compressed(binary) if architecture.startswith("mips") else set()
    unwind = [
        item
        for start, content in linked.unwind
        for item in unwind_ranges(content, start, POINTERS[architecture], binary.header.order)
    ]
    if architecture == "arm":
        linked.symbols, states = without_thumb_bit(linked.symbols)
        linked.marks = linked.marks or sorted(states.items())
    noreturn = {address: name for address, name in linked.names.items() if is_noreturn(name)}
    noreturn |= {item.address: item.name for item in linked.symbols if is_noreturn(item.name)}
    image = Image(
        "elf",
        architecture,
        linked.regions,
        [],
        [],
        frozenset(noreturn),
        compiler=comment(list(binary.sections), data),
        got=linked.got,
        note=mips.compressed_note(len(compressed)),
        imports=linked.names,
        marks=linked.marks,
        stack_failures=stack_failures(noreturn),
        byte_order=binary.header.order,
    )
    return locate(image, Clues(linked.symbols, True, unwind, tables=("symbols", "unwind tables")))


def _marks(binary: ElfFile, sections: Sequence[Section]) -> list[tuple[int, str]]:
    """Mapping symbols of what is loaded; clang has them in debug sections too, which start at 0."""
    loaded = {number for number, section in enumerate(sections) if is_loaded(section)}
    return elf_marks(binary.symbols, lambda symbol: 0 if symbol.section in loaded else None)


def _relocations(
    binary: ElfFile,
) -> tuple[dict[int, str], dict[int, int], dict[int, str]]:
    """Slots that hold the address of a named function, words that the loader fills in, and
    those of the slots whose symbols other files define."""
    slots: dict[int, str] = {}
    pointers: dict[int, int] = {}
    imports: dict[int, str] = {}
    machine = binary.header.machine
    relative, copy = RELATIVE.get(machine, -1), COPY.get(machine)
    for table in binary.relocations:
        columns = table.columns
        is_relative = columns.kinds == relative
        # Without an addend the word itself counts from the start of the file.
        if columns.addends is not None:
            known = is_relative & (columns.addends != 0)
            pointers |= zip(
                columns.offsets[known].tolist(), columns.addends[known].tolist(), strict=True
            )
        for offset, kind, symbol, addend in table.of(~is_relative):
            if symbol is None:
                continue
            slots[offset] = symbol.name
            if symbol.value:
                pointers[offset] = symbol.value + (addend or 0)
            if symbol.name and (symbol.section == UNDEFINED or kind == copy):
                imports[offset] = symbol.name
    return slots, pointers, imports


def _small_data(binary: ElfFile) -> int | None:
    """What RISC-V has in ``gp``: so far into the small data that signed offsets reach all of it."""
    for symbol in binary.symbols:
        if symbol.name == "__global_pointer$":
            return symbol.value
    starts = (section.address for section in binary.sections if section.name == ".sdata")
    start = next(starts, None)
    return None if start is None else start + 0x800


def _table_base(sections: Iterable[Section]) -> int | None:
    """Where 32-bit code has its global offset table."""
    addresses = {section.name: section.address for section in sections}
    return addresses.get(".got.plt", addresses.get(".got"))
