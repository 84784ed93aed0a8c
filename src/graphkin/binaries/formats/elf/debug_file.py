"""What was stripped off an ELF file and is still at hand: symbols and line tables.

They lie in a debug file that the binary names, or compressed inside the binary. A debug file is
taken only if its checksum or its build id is the one that the binary has.
"""

from __future__ import annotations

import lzma
import os
import zlib
from collections.abc import Sequence
from dataclasses import dataclass

from graphkin.binaries.formats.elf.constants import SectionFlag, SectionKind
from graphkin.binaries.formats.elf.debug_folders import MAX_BUILD_ID, DebugFolders
from graphkin.binaries.formats.elf.reader import ElfFile, Section, read_elf
from graphkin.binaries.formats.elf.sections import content_of
from graphkin.binaries.formats.elf.symbols import defined_functions, marks
from graphkin.binaries.image import ByteOrder
from graphkin.errors import FormatError

MAX_MINI = 64 << 20
"""Bytes that ``.gnu_debugdata`` may grow to: symbols of functions, for a million of them."""
MAX_MINI_MEMORY = 128 << 20
BUILD_ID = 3
"""The type of a note that holds the build id."""
MAX_LINK = 255


@dataclass(frozen=True)
class DebugFile:
    """An ELF file whose addresses are those of a binary; it has what the binary lacks."""

    binary: ElfFile
    data: bytes

    def marks(self) -> list[tuple[int, str]]:
        """Mapping symbols of what is loaded; here these sections have no bytes."""
        sections = enumerate(self.binary.sections)
        loaded = {number for number, section in sections if section.flags & SectionFlag.LOADED}
        return marks(self.binary.symbols, lambda symbol: 0 if symbol.section in loaded else None)


def find_debug_file(
    binary: ElfFile, data: bytes, folders: DebugFolders | None
) -> tuple[DebugFile | None, str | None]:
    """The debug file of a binary, and why one that lies where it belongs was not read.

    Nothing is looked for where the binary has symbols and line tables.

    Args:
        binary: what was read of the binary.
        data: its bytes.
        folders: where to look; None to look only inside the binary.
    """
    sections = list(binary.sections)
    has_symbols = any(True for _ in defined_functions(binary.symbols))
    has_lines = any(section.name == ".debug_line" for section in sections)
    note = None
    if folders is not None and not (has_symbols and has_lines):
        debug, note = _separate(binary, sections, data, folders)
        if debug is not None:
            return debug, None
    if not has_symbols:
        for section in sections:
            if section.name == ".gnu_debugdata":
                return _parsed(_inflated(content_of(section, data)), binary), note
    return None, note


def _separate(
    binary: ElfFile,
    sections: Sequence[Section],
    data: bytes,
    folders: DebugFolders,
) -> tuple[DebugFile | None, str | None]:
    """The first debug file that fits, or why one does not."""
    note = None
    build_id = build_id_of(binary, data)
    for folder, path in folders.of_build_id(build_id):
        content, note = folders.read(folder, path)
        debug = _parsed(content, binary)
        if debug is not None and build_id_of(debug.binary, content) == build_id:
            return debug, None
    for section in sections:
        if section.name != ".gnu_debuglink":
            continue
        name, checksum = debug_link(content_of(section, data), binary.header.order)
        for folder, path in folders.of_link(name):
            content, problem = folders.read(folder, path)
            note = problem or note
            if content and zlib.crc32(content) != checksum:
                note = (
                    f"its debug information in {path} was not used: the checksum of that file is "
                    f"{zlib.crc32(content):08x}, expected {checksum:08x}"
                )
                continue
            debug = _parsed(content, binary)
            if debug is not None:
                return debug, None
    return None, note


def debug_link(content: bytes, byte_order: ByteOrder) -> tuple[str, int]:
    """The name of the debug file in ``.gnu_debuglink``, and its checksum; "" for damage."""
    name, zero, _ = content[: MAX_LINK + 1].partition(b"\0")
    at = (len(name) + 1 + 3) & ~3
    checksum = content[at : at + 4]
    if not zero or len(checksum) != 4:
        return "", 0
    return os.fsdecode(name), int.from_bytes(checksum, byte_order)


def build_id_of(binary: ElfFile, data: bytes) -> bytes:
    """The build id, from the notes; nothing where there is none."""
    order = binary.header.order
    for section in binary.sections:
        if section.kind != SectionKind.NOTE:
            continue
        content = content_of(section, data)
        at = 0
        while at + 12 <= len(content):
            name, size, kind = (
                int.from_bytes(content[at + 4 * n : at + 4 * n + 4], order) for n in range(3)
            )
            start = at + 12 + (name + 3 & ~3)
            if kind == BUILD_ID and content[at + 12 : at + 12 + name] == b"GNU\0":
                return content[start : start + size] if size <= MAX_BUILD_ID else b""
            at = start + (size + 3 & ~3)
    return b""


def _parsed(content: bytes, binary: ElfFile) -> DebugFile | None:
    """A debug file for the same processor as its binary."""
    if not content:
        return None
    try:
        debug = read_elf(content, "the debug file")
    except FormatError:
        return None
    header, own = debug.header, binary.header
    is_kin = (header.machine, header.is_wide, header.order) == (
        own.machine,
        own.is_wide,
        own.order,
    )
    return DebugFile(debug, content) if is_kin else None


def _inflated(content: bytes) -> bytes:
    """The file inside ``.gnu_debugdata``; nothing for damage, and for one that is too large."""
    try:
        reader = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=MAX_MINI_MEMORY)
        inflated = reader.decompress(content, MAX_MINI)
    except (lzma.LZMAError, EOFError):
        return b""
    return inflated if reader.eof else b""
