"""What is wrong with the tables of symbols of a file, which is read without them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from graphkin.binaries.formats.elf.constants import FileKind, SectionKind, SymbolKind
from graphkin.binaries.formats.elf.layouts import Rows, layouts, rows
from graphkin.binaries.formats.elf.reader import ElfFile, Section

TABLES: dict[int, str] = {
    SectionKind.SYMBOLS: "symbols",
    SectionKind.DYNAMIC_SYMBOLS: "exported symbols",
}

RESERVED = 0xFF00
"""Numbers of sections from here on have a meaning of their own."""


def symbol_damage(binary: ElfFile) -> str | None:
    """A remark about tables that lost names, or all of their rows; None where none did."""
    problems = [
        f"its table of {TABLES[section.kind]} is damaged: {problem}"
        for section in binary.sections
        if section.kind in TABLES and (problem := _problem(binary, section)) is not None
    ]
    if not problems:
        return None
    return "; ".join(dict.fromkeys(problems)) + "; functions may lack their names"


def _problem(binary: ElfFile, section: Section) -> str | None:
    layout = layouts(binary.header.is_wide, binary.header.order).symbol
    end = len(binary.data)
    if section.offset + section.size > end:
        return "it lies beyond the end of the file"
    if section.size % layout.itemsize:
        return f"its {section.size:,} bytes are not a whole number of rows"
    if not section.size:
        return None
    names = binary.sections[section.link] if section.link < len(binary.sections) else None
    if names is None or names.kind != SectionKind.STRINGS:
        return f"section {section.link}, which should have its names, has none"
    if names.offset + names.size > end:
        return "its names lie beyond the end of the file"
    table = rows(binary.data, layout, section.offset, section.size // layout.itemsize)
    lost = int((table["name"] >= max(names.size, 1)).sum())
    if lost:
        return f"{lost:,} of its names lie outside the table of names"
    return _lost_rows(binary, table, names)


def _lost_rows(binary: ElfFile, table: Rows, names: Section) -> str | None:
    """What most rows have lost. Linkers leave an odd row now and then, and no more."""
    named = table["name"][table["name"] > 0]
    texts = np.frombuffer(binary.data, np.uint8, names.size, names.offset)
    if _are_most(empty := texts[named] == 0):
        return f"{int(empty.sum()):,} of its names are empty"
    blank = table.view((np.uint8, table.dtype.itemsize)).any(axis=1) == 0
    if _are_most(blank[1:], 0.25):
        return f"{int(blank.sum()):,} of its rows are empty"
    if binary.header.kind == FileKind.RELOCATABLE:
        return None
    is_function = (table["info"] & 15 == SymbolKind.FUNCTION) & (table["section"] > 0)
    values = table["value"][is_function & (table["section"] < RESERVED)]
    outside = _outside(values.astype(np.float64), binary.sections)
    if _are_most(outside):
        return f"the addresses of {int(outside.sum()):,} of its functions are in no section"
    return None


def _outside(values: NDArray[np.float64], sections: Sequence[Section]) -> NDArray[np.bool_]:
    """Which addresses are in no section, or at the end of one."""
    spans = sorted((float(item.address), float(item.address + item.size)) for item in sections)
    starts = np.array([start for start, _ in spans])
    # The furthest end of all sections that begin no later.
    ends = np.maximum.accumulate([-1.0, *(end for _, end in spans)])
    outside: NDArray[np.bool_] = values > ends[np.searchsorted(starts, values, "right")]
    return outside


def _are_most(chosen: NDArray[np.bool_], share: float = 0.5) -> bool:
    return bool(len(chosen) and chosen.mean() > share)
