"""ELF files as they are: headers, sections, segments, and tables that are read when asked for.

Counts and offsets are those of the file, and may be damaged or hostile: what lies beyond its bytes
is left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from graphkin.binaries.formats.elf.constants import (
    ELSEWHERE,
    RELATIVE,
    FileKind,
    Machine,
    SectionFlag,
    SectionKind,
    SegmentKind,
    Tag,
)
from graphkin.binaries.formats.elf.dynamic_table import DynamicTable
from graphkin.binaries.formats.elf.layouts import Layouts, layouts, rows
from graphkin.binaries.formats.elf.relocation_table import (
    RelocationColumns,
    RelocationTable,
    columns_of,
)
from graphkin.binaries.formats.elf.symbol_table import StringTable, SymbolTable
from graphkin.binaries.image import ByteOrder
from graphkin.errors import FormatError

MAGIC = b"\x7fELF"
NARROW_HEADER, WIDE_HEADER = 52, 64
"""Bytes of the file header of 32 and 64 bits."""
MAX_SECTIONS = 1 << 18
"""Objects with a section for each function have some ten thousand."""
MANY_SEGMENTS = 0xFFFF
"""Stands for a number of segments that is too large for its field."""


class Header(NamedTuple):
    """What the header of a file says."""

    is_wide: bool
    """Whether addresses have 64 bits."""
    order: ByteOrder
    kind: int
    machine: int
    flags: int
    """What only the processor knows the meaning of."""
    entry: int
    """The address of the first instruction; 0 without one."""
    end_of_sections: int
    """Offset behind the table of sections, which may be beyond the file."""


class Section(NamedTuple):
    """A part of a file that linkers know."""

    name: str
    kind: int
    flags: int
    address: int
    offset: int
    size: int
    link: int
    info: int
    alignment: int


class Segment(NamedTuple):
    """A part of a file that loaders know."""

    kind: int
    flags: int
    offset: int
    address: int
    size: int
    """Bytes in the file."""


@dataclass(frozen=True)
class ElfFile:
    """One ELF file."""

    data: bytes
    header: Header
    sections: list[Section]
    segments: list[Segment]
    _layouts: Layouts

    @cached_property
    def symbols(self) -> SymbolTable:
        """The symbols that linkers and debuggers use, and that can be stripped."""
        return self._symbols_of_section(self._first(SectionKind.SYMBOLS))

    @cached_property
    def dynamic_symbols(self) -> SymbolTable:
        """The symbols that the loader uses."""
        number = self._first(SectionKind.DYNAMIC_SYMBOLS)
        offset = self.dynamic.offset(Tag.SYMBOLS)
        if offset is None or (number is not None and self.sections[number].offset == offset):
            return self._symbols_of_section(number)
        # A file that defines nothing for others has nothing to hash.
        named = (int(columns.symbols.max(initial=0)) for columns in self._dynamic_relocations)
        count = max(self.dynamic.hashed_symbols(), 1 + max(named, default=0))
        strings = StringTable(self.dynamic.content(Tag.STRINGS, Tag.STRINGS_SIZE))
        return SymbolTable(rows(self.data, self._layouts.symbol, offset, count), strings)

    @cached_property
    def dynamic(self) -> DynamicTable:
        """What the loader is told."""
        places = [
            *((s.offset, s.size) for s in self.segments if s.kind == SegmentKind.DYNAMIC),
            *((s.offset, s.size) for s in self.sections if s.kind == SectionKind.DYNAMIC),
        ]
        values: dict[int, int] = {}
        for offset, size in places[:1]:
            layout = self._layouts.dynamic
            table = rows(self.data, layout, offset, size // layout.itemsize)
            ends = np.flatnonzero(table["tag"] == Tag.END)
            table = table[: ends[0]] if len(ends) else table
            # The first value of a tag is the one that counts.
            values = dict(table[::-1].tolist())
        return DynamicTable(values, self.data, self._layouts, self.offset_of)

    @cached_property
    def relocations(self) -> list[RelocationTable]:
        """Those of the sections of an object, and those that the loader applies to other files."""
        if self.header.kind == FileKind.RELOCATABLE:
            return [
                RelocationTable(columns, self._symbols_of_link(section), section.info)
                for section, columns in self._section_relocations()
            ]
        if self._dynamic_relocations:
            return [
                RelocationTable(columns, self.dynamic_symbols)
                for columns in self._dynamic_relocations
            ]
        # Programs without a loader have the functions that are chosen at their start.
        return [
            RelocationTable(columns, self._symbols_of_link(section))
            for section, columns in self._section_relocations()
            if section.flags & SectionFlag.LOADED
        ]

    def offset_of(self, address: int) -> int | None:
        """Where in the file an address is."""
        for segment in self.segments:
            is_inside = segment.address <= address < segment.address + segment.size
            if segment.kind == SegmentKind.LOAD and is_inside:
                return segment.offset + address - segment.address
        return None

    @cached_property
    def _dynamic_relocations(self) -> list[RelocationColumns]:
        return list(self.dynamic.relocations(RELATIVE.get(self.header.machine)))

    def _first(self, kind: SectionKind) -> int | None:
        """The number of the first section of a kind."""
        kinds = (section.kind for section in self.sections)
        return next((number for number, own in enumerate(kinds) if own == kind), None)

    def _section_relocations(self) -> Iterator[tuple[Section, RelocationColumns]]:
        # Tables do not overlap, but a thousand sections of a hostile file may be all of it each.
        room = len(self.data)
        for section in self.sections:
            if section.kind == SectionKind.RELOCATIONS_WITH_ADDENDS:
                layout = self._layouts.rela
            elif section.kind == SectionKind.RELOCATIONS:
                layout = self._layouts.rel
            else:
                continue
            size = min(section.size, room)
            table = rows(self.data, layout, section.offset, size // layout.itemsize)
            room -= table.nbytes
            yield section, columns_of(table)

    def _symbols_of_link(self, section: Section) -> SymbolTable:
        """The symbols that the relocations of a section name."""
        is_known = section.link < len(self.sections)
        kind = self.sections[section.link].kind if is_known else 0
        return self.dynamic_symbols if kind == SectionKind.DYNAMIC_SYMBOLS else self.symbols

    def _symbols_of_section(self, number: int | None) -> SymbolTable:
        layout = self._layouts.symbol
        if number is None:
            return SymbolTable(np.empty(0, layout), StringTable(b""))
        section = self.sections[number]
        table = rows(self.data, layout, section.offset, section.size // layout.itemsize)
        strings = b""
        if section.link < len(self.sections):
            names = self.sections[section.link]
            strings = self._content(names) if names.kind == SectionKind.STRINGS else b""
        return SymbolTable(table, StringTable(strings), self._section_numbers(number))

    def _section_numbers(self, number: int) -> NDArray[np.uint32] | None:
        """The sections of the symbols of a table, where some do not fit into it."""
        for section in self.sections:
            if section.kind == SectionKind.SECTION_NUMBERS and section.link == number:
                return rows(self.data, self._layouts.half, section.offset, section.size // 4)
        return None

    def _content(self, section: Section) -> bytes:
        if section.kind == SectionKind.NO_BYTES:
            return b""
        return self.data[section.offset : section.offset + section.size]


def read_elf(data: bytes, label: str) -> ElfFile:
    """Reads the headers of a file.

    Raises:
        FormatError: for a file without the header of one.
    """
    is_wide, order = _width_and_order(data)
    if not data.startswith(MAGIC) or len(data) < (WIDE_HEADER if is_wide else NARROW_HEADER):
        raise FormatError(f"{label} is a damaged ELF file: its headers cannot be read")
    row = rows(data, layouts(is_wide, order).header, 0, 1)[0]
    head = dict(zip(row.dtype.names, row.tolist(), strict=True))
    known = layouts(is_wide, order, head["machine"] == Machine.MIPS)
    if head["section_offset"]:
        head |= _large_numbers(head, rows(data, known.section, head["section_offset"], 1))
    header = Header(
        is_wide,
        order,
        head["kind"],
        head["machine"],
        head["flags"],
        head["entry"],
        head["section_offset"] + head["section_count"] * known.section.itemsize,
    )
    section_count = head["section_count"] if head["section_offset"] else 0
    table = rows(data, known.section, head["section_offset"], section_count)
    segments = rows(data, known.segment, head["segment_offset"], head["segment_count"])
    return ElfFile(
        data,
        header,
        _sections(data, table, head["names"]),
        [
            Segment(*row)
            for row in segments[["kind", "flags", "offset", "address", "size"]].tolist()
        ],
        known,
    )


def _width_and_order(data: bytes) -> tuple[bool, ByteOrder]:
    """What a file says of its numbers; if it says nothing, what makes sense of its header.

    Linux does not look at these bytes, so that somebody may have overwritten them.
    """
    width, order = data[4:5], data[5:6]
    is_little = order == b"\1" or (order != b"\2" and data[20:21] == b"\1")
    sizes = (data[52], data[53]) if len(data) > 53 else (0, 0)
    is_wide = width == b"\2" or (width != b"\1" and sizes[not is_little] == WIDE_HEADER)
    return is_wide, "little" if is_little else "big"


def _large_numbers(head: Mapping[str, int], first: NDArray[np.void]) -> dict[str, int]:
    """The numbers that do not fit into the header: the first section has them, and no more."""
    if not len(first) or any(first[0][["name", "kind", "flags", "address", "offset"]].tolist()):
        return {}
    size, link, info = first[0][["size", "link", "info"]].tolist()
    large: dict[str, int] = {}
    if not head["section_count"]:
        large["section_count"] = min(size, MAX_SECTIONS)
    if head["names"] == ELSEWHERE:
        large["names"] = link
    if head["segment_count"] == MANY_SEGMENTS:
        large["segment_count"] = min(info, MAX_SECTIONS)
    return large


def _sections(data: bytes, table: NDArray[np.void], name_section: int) -> list[Section]:
    strings = StringTable(b"")
    if name_section < len(table):
        offset, size = table[name_section][["offset", "size"]].tolist()
        strings = StringTable(data[offset : offset + size])
    fields = ["name", "kind", "flags", "address", "offset", "size", "link", "info", "alignment"]
    return [Section(strings.at(name), *row) for name, *row in table[fields].tolist()]
