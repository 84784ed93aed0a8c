"""What is wrong with the tables of symbols of a file, which is read without them."""

from __future__ import annotations

from graphkin.binaries.formats.elf.constants import SectionKind
from graphkin.binaries.formats.elf.layouts import layouts, rows
from graphkin.binaries.formats.elf.reader import ElfFile, Section

TABLES: dict[int, str] = {
    SectionKind.SYMBOLS: "symbols",
    SectionKind.DYNAMIC_SYMBOLS: "exported symbols",
}


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
    return f"{lost:,} of its names lie outside the table of names" if lost else None
