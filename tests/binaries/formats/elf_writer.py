"""Writes small ELF files, in 32 and 64 bits and both byte orders, to be read back."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from graphkin.binaries.formats.elf.symbol_table import ElfSymbol
from graphkin.binaries.image import ByteOrder

BASE = 0x10000
"""Where linked files are loaded."""
X86_64, MIPS = 62, 8
OBJECT, SHARED = 1, 3
LOAD, DYNAMIC = 1, 2


class NewSection(NamedTuple):
    """A section to be written."""

    name: str
    kind: int
    content: bytes = b""
    flags: int = 0
    link: int = 0
    info: int = 0


class ElfWriter(NamedTuple):
    """The layout of a file."""

    is_wide: bool
    order: ByteOrder
    machine: int = X86_64

    def pack(self, codes: str, *values: int) -> bytes:
        """As struct.pack; ``N`` and ``n`` are as wide as an address."""
        wide = codes.replace("N", "Q").replace("n", "q")
        narrow = codes.replace("N", "I").replace("n", "i")
        prefix = "<" if self.order == "little" else ">"
        return struct.pack(prefix + (wide if self.is_wide else narrow), *values)

    @property
    def word(self) -> int:
        return 8 if self.is_wide else 4

    def object_file(self, sections: Sequence[NewSection]) -> bytes:
        """A relocatable object with these sections behind the empty one, and their names last."""
        sections = [NewSection("", 0), *sections, NewSection(".shstrtab", 3)]
        strings, names = self.names([item.name for item in sections])
        sections[-1] = sections[-1]._replace(content=strings)
        body, rows = bytearray(self._header_bytes), bytearray()
        for section, name in zip(sections, names, strict=True):
            place = (len(body) if section.kind else 0, len(section.content))
            rows += self.pack("IINNNNIINN", name, section.kind, section.flags, 0, *place,
                              section.link, section.info, 1, 0)  # fmt: skip
            body += section.content
        table = (len(body), len(sections))
        body[: self._header_bytes] = self._header(OBJECT, sections=table)
        return bytes(body + rows)

    def linked_file(self, tables: Mapping[int, bytes], values: Mapping[int, int]) -> bytes:
        """A shared object without sections.

        Args:
            tables: what the loader finds at an address; by the tags of these addresses.
            values: other tags.
        """
        segment_bytes = 2 * (56 if self.is_wide else 32)
        body = bytearray(self._header_bytes + segment_bytes)
        tags = dict(values)
        for tag, content in tables.items():
            body += bytes(-len(body) % 8)
            tags[tag] = BASE + len(body)
            body += content
        body += bytes(-len(body) % 8)
        start = len(body)
        for tag, value in [*tags.items(), (0, 0)]:
            body += self.pack("NN", tag, value)
        segments = self._segment(LOAD, 0, len(body)) + self._segment(
            DYNAMIC, start, len(body) - start
        )
        body[self._header_bytes : self._header_bytes + segment_bytes] = segments
        body[: self._header_bytes] = self._header(SHARED, segments=(self._header_bytes, 2))
        return bytes(body)

    def symbols(self, symbols: Sequence[ElfSymbol]) -> tuple[bytes, bytes]:
        """The rows of a symbol table, and the names."""
        strings, offsets = self.names([symbol.name for symbol in symbols])
        rows = b""
        for item, name in zip(symbols, offsets, strict=True):
            kind = item.binding << 4 | item.kind
            if self.is_wide:
                rows += self.pack("IBBHQQ", name, kind, item.other, item.section, item.value,
                                  item.size)  # fmt: skip
            else:
                rows += self.pack("IIIBBH", name, item.value, item.size, kind, item.other,
                                  item.section)  # fmt: skip
        return rows, strings

    def relocation(self, offset: int, kind: int, symbol: int, *addend: int) -> bytes:
        """A row with or without an addend."""
        if self.is_wide and self.machine == MIPS:
            info = self.pack("IBBBB", symbol, 0, 0, 0, kind)
        else:
            info = self.pack("N", symbol << (32 if self.is_wide else 8) | kind)
        return self.pack("N", offset) + info + b"".join(self.pack("n", item) for item in addend)

    @staticmethod
    def names(names: Sequence[str]) -> tuple[bytes, list[int]]:
        """A string table, and where each name is in it."""
        table, offsets = bytearray(1), []
        for name in names:
            offsets.append(len(table) if name else 0)
            table += name.encode("utf-8", "surrogateescape") + b"\0" if name else b""
        return bytes(table), offsets

    @property
    def _header_bytes(self) -> int:
        return 64 if self.is_wide else 52

    def _header(
        self, kind: int, segments: tuple[int, int] = (0, 0), sections: tuple[int, int] = (0, 0)
    ) -> bytes:
        ident = bytes([1 + self.is_wide, 1 if self.order == "little" else 2, 1])
        head = b"\x7fELF" + ident + bytes(9)
        head += self.pack("HHINNN", kind, self.machine, 1, 0, segments[0], sections[0])
        sizes = (64, 56, 64) if self.is_wide else (52, 32, 40)
        return head + self.pack("IHHHHHH", 0, sizes[0], sizes[1], segments[1], sizes[2],
                                sections[1], max(sections[1] - 1, 0))  # fmt: skip

    def _segment(self, kind: int, offset: int, size: int) -> bytes:
        place = (offset, BASE + offset, BASE + offset, size, size)
        if self.is_wide:
            return self.pack("IIQQQQQQ", kind, 5, *place, 1)
        return self.pack("IIIIIIII", kind, *place, 5, 1)
