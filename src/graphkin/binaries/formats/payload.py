"""What a program carries with it and unpacks when it starts, which is no code of its own.

The loader of such a file is an ordinary program: it is read in full, and says nothing of what the
file is for. So what it carries is named, as a member that could not be read.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from graphkin.binaries.image import Image

TAIL = 1 << 16
"""Bytes at the end of a file that hold the marks of what it carries, signatures behind included."""
PYINSTALLER = b"MEI\x0c\x0b\x0a\x0b\x0e"
STATICX = b"\0.staticx.archive\0"
APPIMAGE = (b"AI\x01", b"AI\x02")
APPIMAGE_OFFSET = 8
COMPRESSED = (b"\n\x1f\x8b\x08", b"\nBZh", b"\n\xfd7zXZ\0", b"\n\x28\xb5\x2f\xfd")
"""How data of gzip, bzip2, xz and zstd begin behind the last line of a script."""
LEAST_BYTES = 4096
"""Bytes behind a program that may be a signature or padding."""
NO_BITS = 8
"""The type of a section that takes no room in the file."""
PE_OFFSET, PE_SECTION, PE_SIGNATURE = 0x3C, 40, 4
"""Where a PE file says where its header is; bytes of a row in its table of sections; the number of
the directory of signatures."""


class Payload(NamedTuple):
    """What a program carries."""

    name: str
    """What it is, as the name of a member."""
    advice: str
    """Why it was not read, and what to do."""


def payload(data: bytes, image: Image) -> Payload | None:
    """What a program carries that is not read; None where there is nothing.

    Args:
        data: the file.
        image: what was read of it.
    """
    tail = data[-TAIL:]
    if PYINSTALLER in tail:
        return Payload("archive of PyInstaller", _advice("pyinstxtractor"))
    if image.format == "elf" and STATICX in tail:
        return Payload("archive of staticx", _advice("objcopy -O binary -j .staticx.archive"))
    if image.format == "elf" and data.startswith(APPIMAGE, APPIMAGE_OFFSET):
        return Payload("image of the AppImage", _advice("--appimage-extract of the file itself"))
    ends = {"elf": _elf_end, "pe": _pe_end}
    if image.format not in ends:
        return None
    try:
        left = len(data) - ends[image.format](data)
    except struct.error:
        return None
    if left < LEAST_BYTES:
        return None
    return Payload(
        f"{left:,} bytes behind the program",
        "no header of it covers them; cut them off, and name them as a file of their own",
    )


def script(data: bytes) -> str:
    """What a script is, as the end of a sentence; makeself and gzexe make some that carry files."""
    if not any(mark in data for mark in COMPRESSED):
        return "a script, not a binary"
    return "a script with compressed data in it, not a binary; unpack that first, or use unblob"


def _advice(tool: str) -> str:
    return f"the program unpacks it when it starts; unpack it first ({tool})"


def _elf_end(data: bytes) -> int:
    """Where that ends which the headers of an ELF file tell of."""
    is_wide, order = data[4] == 2, "<" if data[5] == 1 else ">"
    head = struct.unpack_from(f"{order}{'QQ' if is_wide else 'II'}", data, 32 if is_wide else 28)
    counts = struct.unpack_from(f"{order}HHHH", data, 54 if is_wide else 42)
    (segments, sections), (segment_size, segment_count, section_size, count) = head, counts
    if sections and not count:
        return len(data)  # more sections than the header can count
    ends: list[int] = [sections + section_size * count, segments + segment_size * segment_count]
    if max(ends) > len(data):
        return len(data)
    for at in range(segments, segments + segment_size * segment_count, segment_size or 1):
        if is_wide:
            offset, _, _, size = struct.unpack_from(f"{order}QQQQ", data, at + 8)
        else:
            offset, _, _, size = struct.unpack_from(f"{order}IIII", data, at + 4)
        ends.append(offset + size)
    for at in range(sections, sections + section_size * count, section_size or 1):
        kind = struct.unpack_from(f"{order}I", data, at + 4)[0]
        layout = f"{order}QQ" if is_wide else f"{order}II"
        offset, size = struct.unpack_from(layout, data, at + (24 if is_wide else 16))
        ends.append(offset + size if kind != NO_BITS else 0)
    return max(ends)


def _pe_end(data: bytes) -> int:
    """The same of a PE file; its signature and symbols count as part of it."""
    start = struct.unpack_from("<I", data, PE_OFFSET)[0]
    count, _, symbols, symbol_count, optional = struct.unpack_from("<HIIIH", data, start + 6)
    table = start + 24 + optional
    ends: list[int] = [table + PE_SECTION * count]
    if symbols:
        strings = symbols + 18 * symbol_count
        ends.append(strings + struct.unpack_from("<I", data, strings)[0])
    for at in range(table, table + PE_SECTION * count, PE_SECTION):
        size, offset = struct.unpack_from("<II", data, at + 16)
        ends.append(offset + size)
    is_wide = struct.unpack_from("<H", data, start + 24)[0] == 0x20B
    directory = start + 24 + (112 if is_wide else 96) + 8 * PE_SIGNATURE
    offset, size = struct.unpack_from("<II", data, directory)
    ends.append(offset + size)
    return max(ends)
