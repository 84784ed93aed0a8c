"""Code that runs, and that the table of sections does not show.

A loader goes by segments and never looks at sections, so that whoever wants to hide code has only
to change their table. Linkers leave no byte of a segment of code outside of sections but padding.
"""

from __future__ import annotations

from collections.abc import Iterator

from graphkin.binaries.formats.elf.constants import (
    SectionFlag,
    SectionKind,
    SegmentFlag,
    SegmentKind,
)
from graphkin.binaries.formats.elf.reader import WIDE_HEADER, ElfFile, Section, Segment

SEGMENT_ENTRY, SECTION_ENTRY = 56, 64
"""Bytes of a row of the table of segments, and of sections, at most."""
MOST_PADDING = 32
"""Bytes between sections that may be anything."""
MOST_FILLERS = 4
"""Different bytes in longer padding: zeros, or one instruction that traps."""


def hides_code(binary: ElfFile, entries: list[int]) -> bool:
    """Whether code lies outside of what sections call code.

    Args:
        binary: a linked file.
        entries: addresses where it is entered.
    """
    loaded = [s for s in binary.sections if s.flags & SectionFlag.LOADED and s.size]
    real = [section for section in loaded if section.kind != SectionKind.NO_BYTES]
    if all(section.kind == SectionKind.NOTE for section in real):
        return False  # debug information that was split off, or no sections at all
    for segment in binary.segments:
        if segment.kind != SegmentKind.LOAD or not segment.flags & SegmentFlag.EXECUTABLE:
            continue
        shown = [section for section in real if _is_mapped(section, segment)]
        if any(_is_filled(gap) for gap in _gaps(binary, segment, shown)):
            return True
        data = [s for s in shown if not s.flags & SectionFlag.EXECUTABLE]
        if any(s.address <= entry < s.address + s.size for s in data for entry in entries):
            return True
    return False


def _is_mapped(section: Section, segment: Segment) -> bool:
    """Whether a segment puts a section where the section says that it is."""
    is_inside = segment.offset <= section.offset < segment.offset + segment.size
    return is_inside and section.address - segment.address == section.offset - segment.offset


def _gaps(binary: ElfFile, segment: Segment, shown: list[Section]) -> Iterator[bytes]:
    """The bytes of a segment that are in none of its sections, nor in a table of the file."""
    spans = [(section.offset, section.offset + section.size) for section in shown]
    spans.append((0, WIDE_HEADER + SEGMENT_ENTRY * len(binary.segments)))
    end_of_table = binary.header.end_of_sections
    spans.append((end_of_table - SECTION_ENTRY * len(binary.sections), end_of_table))
    at, end = segment.offset, min(segment.offset + segment.size, len(binary.data))
    for start, stop in sorted(spans):
        if start > at:
            yield binary.data[at : min(start, end)]
        at = max(at, stop)
    yield binary.data[at:end]


def _is_filled(gap: bytes) -> bool:
    return len(gap) > MOST_PADDING and len(set(gap)) > MOST_FILLERS
