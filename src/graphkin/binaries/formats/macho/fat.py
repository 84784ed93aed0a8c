"""Fat Mach-O files: one slice for each architecture."""

from __future__ import annotations

import struct
from collections.abc import Iterator

from graphkin.binaries.function import Skipped
from graphkin.errors import FormatError

MAGIC, MAGIC_64 = b"\xca\xfe\xba\xbe", b"\xca\xfe\xba\xbf"
ENTRY, ENTRY_64 = struct.Struct(">5I"), struct.Struct(">2I2Q2I")
MAX_SLICES = 30
"""A Java class begins with the same magic; its version, which follows, is at least 45."""
NAMES = {
    0x01000007: "x86_64",
    0x0100000C: "arm64",
    0x0200000C: "arm64_32",
    7: "i386",
    12: "arm",
    18: "ppc",
    0x01000012: "ppc64",
}
ARM64E = 2


def is_fat(data: bytes) -> bool:
    return data.startswith((MAGIC, MAGIC_64))


def slices(data: bytes, label: str, skipped: list[Skipped]) -> Iterator[tuple[str, bytes]]:
    """Architecture and content of every slice; those that overlap or end early are reported.

    Raises:
        FormatError: for a file that has the magic of a fat file but is none.
    """
    count = int.from_bytes(data[4:8], "big")
    if count > MAX_SLICES:
        raise FormatError(
            f"{label} is a Java class, or a damaged fat file: it would have {count} slices"
        )
    entry = ENTRY if data.startswith(MAGIC) else ENTRY_64
    if not count or len(data) < 8 + count * entry.size:
        raise FormatError(f"{label} is a damaged fat file: its list of slices is cut off")
    taken: list[tuple[int, int]] = []
    for number in range(count):
        kind, subtype, start, size, *_ = entry.unpack_from(data, 8 + number * entry.size)
        name = NAMES.get(kind, f"cpu {kind:#x}")
        if name == "arm64" and subtype & 0xFF == ARM64E:
            name = "arm64e"
        end = start + size
        if end > len(data) or any(start < other and begin < end for begin, other in taken):
            reason = "its slice overlaps another" if end <= len(data) else "the file ends inside it"
            skipped.append(Skipped(f"{label}({name})", "", reason))
            continue
        taken.append((start, end))
        yield name, data[start:end]
