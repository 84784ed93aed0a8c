"""What the sections and segments of an ELF file hold."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator

from graphkin.binaries.formats.elf.constants import (
    SectionFlag,
    SectionKind,
    SegmentFlag,
    SegmentKind,
)
from graphkin.binaries.formats.elf.reader import ElfFile, Section
from graphkin.binaries.formats.names import text
from graphkin.binaries.image import ByteOrder, LineSections, Region

MAX_INFLATED = 256 << 20
MAX_COMMENT = 200


def is_loaded(section: Section) -> bool:
    """Whether a section has bytes, and they end up in memory."""
    return bool(section.flags & SectionFlag.LOADED) and section.kind != SectionKind.NO_BYTES


def content_of(section: Section, data: bytes) -> bytes:
    """The bytes that the file really has of a section."""
    if section.kind == SectionKind.NO_BYTES:
        return b""
    return data[section.offset : section.offset + section.size]


def is_cut(binary: ElfFile, data: bytes) -> bool:
    """Whether headers tell of bytes that the file does not have."""
    ends = [binary.header.end_of_sections]
    ends += [segment.offset + segment.size for segment in binary.segments]
    ends += [section.offset + section.size for section in binary.sections if is_loaded(section)]
    return max(ends) > len(data)


def has_all_segments(binary: ElfFile, data: bytes) -> bool:
    """Whether all that a loader would put into memory is there."""
    loaded = [segment for segment in binary.segments if segment.kind == SegmentKind.LOAD]
    ends = [segment.offset + segment.size for segment in loaded]
    return bool(loaded) and max(ends) <= len(data)


def section_regions(sections: Iterable[Section], data: bytes) -> Iterator[Region]:
    """What the sections of a file put into memory."""
    view = memoryview(data)
    for section in sections:
        if is_loaded(section):
            start = section.offset
            content = view[start : start + section.size]
            executable = bool(section.flags & SectionFlag.EXECUTABLE)
            writable = bool(section.flags & SectionFlag.WRITABLE)
            yield Region(section.address, content, executable, writable)


def segment_regions(binary: ElfFile, data: bytes) -> Iterator[Region]:
    """For files whose section headers were removed."""
    view = memoryview(data)
    for segment in binary.segments:
        if segment.kind == SegmentKind.LOAD:
            start = segment.offset
            content = view[start : start + segment.size]
            executable = bool(segment.flags & SegmentFlag.EXECUTABLE)
            writable = bool(segment.flags & SegmentFlag.WRITABLE)
            yield Region(segment.address, content, executable, writable)


def code_at(regions: Iterable[Region], start: int, size: int) -> bytes:
    """The bytes of a section of code."""
    region = next((r for r in regions if r.start <= start < r.end), None)
    if region is None:
        return b""
    return bytes(region.data[start - region.start : start - region.start + size])


def comment(sections: Iterable[Section], data: bytes) -> str | None:
    """What compilers say of themselves."""
    for section in sections:
        if section.name == ".comment":
            lines = content_of(section, data)[: 4 * MAX_COMMENT].split(b"\0")
            joined = "; ".join(dict.fromkeys(text(line) for line in lines if line))
            return joined[:MAX_COMMENT] or None
    return None


def line_sections(
    sections: Iterable[Section], data: bytes, order: ByteOrder
) -> LineSections | None:
    """The tables of lines, where a file has them."""
    by_name = {section.name: section for section in sections}
    names = (".debug_line", ".debug_line_str", ".debug_str")
    if names[0] not in by_name:
        return None
    line, line_str, string = (
        _inflated(by_name[name], data, order) if name in by_name else b"" for name in names
    )
    return LineSections(line, line_str, string, order)


def _inflated(section: Section, data: bytes, order: ByteOrder) -> bytes:
    """The bytes of a section that may be compressed; none where that is not zlib's format."""
    content = content_of(section, data)
    if not section.flags & SectionFlag.COMPRESSED:
        return content
    wide = data[4] == 2  # ELFCLASS64
    header, size_at = (24, slice(8, 16)) if wide else (12, slice(4, 8))
    size = min(int.from_bytes(content[size_at], order), MAX_INFLATED)
    try:
        return zlib.decompressobj().decompress(content[header:], size)
    except zlib.error:
        return b""
