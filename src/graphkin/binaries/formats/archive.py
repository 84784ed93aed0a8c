"""Files that hold several binaries: static archives (``.a``), and fat Mach-O files."""

from __future__ import annotations

import struct
from collections.abc import Iterator

from graphkin.binaries.function import Skipped
from graphkin.errors import FormatError

ARCHIVE, THIN_ARCHIVE = b"!<arch>\n", b"!<thin>\n"
HEADER = 60
FAT, FAT_64 = b"\xca\xfe\xba\xbe", b"\xca\xfe\xba\xbf"
SLICE, SLICE_64 = struct.Struct(">5I"), struct.Struct(">2I2Q2I")
MAX_SLICES = 30
"""A Java class begins with the magic of a fat file; its version, which follows, is at least 45."""
PROCESSORS = {
    0x01000007: "x86_64",
    0x0100000C: "arm64",
    0x0200000C: "arm64_32",
    7: "i386",
    12: "arm",
    18: "ppc",
    0x01000012: "ppc64",
}
ARM64E = 2
SHORT_IMPORT = b"\0\0\xff\xff\0\0"
"""How a name in an import library begins: no machine, all bits, version 0."""
COFF_MACHINES = (0x14C, 0x1C4, 0x8664, 0xAA64)
COFF_HEADER, COFF_SECTION = 20, 40
COFF_CODE = 0x20000020
"""Flags of sections with code, or that can be run."""


def members(data: bytes, label: str, skipped: list[Skipped]) -> Iterator[tuple[str, bytes]]:
    """Name and content of every object file in an archive.

    Each member begins where the one before it ends, so no archive can run in circles or
    overlap itself; a damaged header ends the list, and is reported in ``skipped``. So is an import
    library of Windows, which only lists names of a DLL, once for all of them.
    """
    offset = len(ARCHIVE)
    names = b""
    imports = 0
    while offset < len(data):
        header = data[offset : offset + HEADER]
        size_text = header[48:58].strip()
        if len(header) < HEADER or header[58:60] != b"`\n" or not size_text.isdigit():
            skipped.append(Skipped(label, "", f"the archive is damaged at byte {offset}"))
            return
        start, size = offset + HEADER, int(size_text)
        content = data[start : start + size]
        raw = header[:16].rstrip()
        offset = start + size + size % 2
        if raw == b"//":
            names = content
            continue
        if raw in (b"/", b"/SYM64/") or raw.startswith(b"__.SYMDEF"):
            continue
        if raw.startswith(b"#1/") and raw[3:].isdigit():
            # BSD archives put a long name in front of the content.
            length = int(raw[3:])
            raw, content = content[:length].rstrip(b"\0"), content[length:]
            if raw.startswith(b"__.SYMDEF"):
                continue
        elif raw.startswith(b"/") and raw[1:].isdigit():
            raw = names[int(raw[1:]) :].partition(b"\n")[0]
        name = raw.rstrip(b"/").decode("utf-8", "replace")
        if start + size > len(data):
            skipped.append(Skipped(f"{label}({name})", "", "the archive ends inside it"))
            return
        if content.startswith(SHORT_IMPORT):
            imports += 1
        elif not _is_coff_data(content):
            yield name, content
    if imports:
        listed = f"{imports:,} names" if imports > 1 else "one name"
        reason = f"it is an import library: it lists {listed} of a DLL, and that has the code"
        skipped.append(Skipped(label, "", reason, has_code=False))


def _is_coff_data(content: bytes) -> bool:
    """Whether a member is an object of Windows without code, as import libraries have them."""
    if len(content) < COFF_HEADER:
        return False
    machine, sections = struct.unpack_from("<2H", content)
    first = COFF_HEADER + int.from_bytes(content[16:18], "little")
    end = first + sections * COFF_SECTION
    if machine not in COFF_MACHINES or end > len(content):
        return False
    flags = (content[at + 36 : at + 40] for at in range(first, end, COFF_SECTION))
    return not any(int.from_bytes(flag, "little") & COFF_CODE for flag in flags)


def is_fat(data: bytes) -> bool:
    """Whether a file begins as fat Mach-O files do; Java classes do too."""
    return data.startswith((FAT, FAT_64))


def slice_count(data: bytes) -> int:
    """How many slices a fat file says that it has; more than ``MAX_SLICES`` for a Java class."""
    return int.from_bytes(data[4:8], "big")


def slices(data: bytes, label: str, skipped: list[Skipped]) -> Iterator[tuple[str, bytes]]:
    """Architecture and content of every slice; those that overlap or end early are reported.

    Raises:
        FormatError: for a file that has the magic of a fat file but is not one.
    """
    count = slice_count(data)
    if count > MAX_SLICES:
        raise FormatError(
            f"{label} is a Java class, or a damaged fat file: it would have {count} slices"
        )
    entry = SLICE if data.startswith(FAT) else SLICE_64
    if not count or len(data) < 8 + count * entry.size:
        raise FormatError(f"{label} is a damaged fat file: its list of slices is cut off")
    taken: list[tuple[int, int]] = []
    for number in range(count):
        kind, subtype, start, size, *_ = entry.unpack_from(data, 8 + number * entry.size)
        name = PROCESSORS.get(kind, f"cpu {kind:#x}")
        if name == "arm64" and subtype & 0xFF == ARM64E:
            name = "arm64e"
        end = start + size
        if end > len(data) or any(start < other and begin < end for begin, other in taken):
            reason = "its slice overlaps another" if end <= len(data) else "the file ends inside it"
            skipped.append(Skipped(f"{label}({name})", "", reason))
            continue
        taken.append((start, end))
        yield name, data[start:end]
