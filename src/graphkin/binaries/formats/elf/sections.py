"""What the sections and segments of an ELF file hold."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator

import lief

from graphkin.binaries.formats.names import text
from graphkin.binaries.image import ByteOrder, LineSections, Region

ALLOC = int(lief.ELF.Section.FLAGS.ALLOC)
WRITABLE = int(lief.ELF.Section.FLAGS.WRITE)
EXECUTABLE = int(lief.ELF.Section.FLAGS.EXECINSTR)
COMPRESSED = 0x800
MAX_INFLATED = 256 << 20
MAX_COMMENT = 200


def byte_order(binary: lief.ELF.Binary) -> ByteOrder:
    """What the header says of all numbers."""
    is_little = binary.header.identity_data == lief.ELF.Header.ELF_DATA.LSB
    return "little" if is_little else "big"


def is_loaded(section: lief.ELF.Section) -> bool:
    """Whether a section has bytes, and they end up in memory."""
    return bool(section.flags & ALLOC) and section.type != lief.ELF.Section.TYPE.NOBITS


def content_of(section: lief.ELF.Section, data: bytes) -> bytes:
    """The bytes that the file really has of a section."""
    if section.type == lief.ELF.Section.TYPE.NOBITS:
        return b""
    return data[section.file_offset : section.file_offset + section.size]


def is_cut(binary: lief.ELF.Binary, data: bytes) -> bool:
    """Whether headers tell of bytes that the file does not have."""
    header = binary.header
    ends = [header.section_header_offset + header.numberof_sections * header.section_header_size]
    ends += [segment.file_offset + segment.physical_size for segment in binary.segments]
    ends += [
        section.file_offset + section.size for section in binary.sections if is_loaded(section)
    ]
    return max(ends) > len(data)


def section_regions(sections: Iterable[lief.ELF.Section], data: bytes) -> Iterator[Region]:
    """What the sections of a file put into memory."""
    view = memoryview(data)
    for section in sections:
        if is_loaded(section):
            start = section.file_offset
            content = view[start : start + section.size]
            executable, writable = section.flags & EXECUTABLE, section.flags & WRITABLE
            yield Region(section.virtual_address, content, bool(executable), bool(writable))


def segment_regions(binary: lief.ELF.Binary, data: bytes) -> Iterator[Region]:
    """For files whose section headers were removed."""
    view = memoryview(data)
    for segment in binary.segments:
        if segment.type == lief.ELF.Segment.TYPE.LOAD:
            start = segment.file_offset
            content = view[start : start + segment.physical_size]
            executable = segment.has(lief.ELF.Segment.FLAGS.X)
            writable = segment.has(lief.ELF.Segment.FLAGS.W)
            yield Region(segment.virtual_address, content, executable, writable)


def code_at(regions: Iterable[Region], start: int, size: int) -> bytes:
    """The bytes of a section of code."""
    region = next((r for r in regions if r.start <= start < r.end), None)
    if region is None:
        return b""
    return bytes(region.data[start - region.start : start - region.start + size])


def comment(sections: Iterable[lief.ELF.Section], data: bytes) -> str | None:
    """What compilers say of themselves."""
    for section in sections:
        if section.name == ".comment":
            lines = content_of(section, data)[: 4 * MAX_COMMENT].split(b"\0")
            joined = "; ".join(dict.fromkeys(text(line) for line in lines if line))
            return joined[:MAX_COMMENT] or None
    return None


def line_sections(
    sections: Iterable[lief.ELF.Section], data: bytes, order: ByteOrder
) -> LineSections | None:
    """The tables of lines, where a file has them."""
    by_name = {text(section.name): section for section in sections}
    names = (".debug_line", ".debug_line_str", ".debug_str")
    if names[0] not in by_name:
        return None
    line, line_str, string = (
        _inflated(by_name[name], data, order) if name in by_name else b"" for name in names
    )
    return LineSections(line, line_str, string, order)


def _inflated(section: lief.ELF.Section, data: bytes, order: ByteOrder) -> bytes:
    """The bytes of a section that may be compressed; none where that is not zlib's format."""
    content = content_of(section, data)
    if not section.flags & COMPRESSED:
        return content
    wide = data[4] == 2  # ELFCLASS64
    header, size_at = (24, slice(8, 16)) if wide else (12, slice(4, 8))
    size = min(int.from_bytes(content[size_at], order), MAX_INFLATED)
    try:
        return zlib.decompressobj().decompress(content[header:], size)
    except zlib.error:
        return b""
