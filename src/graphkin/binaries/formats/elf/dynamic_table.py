"""What an ELF file tells the loader: values, and tables by their addresses.

It is all that is left in files whose section headers were removed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from graphkin.binaries.formats.elf.android_relocations import unpacked
from graphkin.binaries.formats.elf.constants import Tag
from graphkin.binaries.formats.elf.layouts import Layouts, rows
from graphkin.binaries.formats.elf.relocation_table import (
    RelocationColumns,
    columns_of,
    columns_of_bit_maps,
)

PART = 1 << 14
"""Links of a chain that are looked at a time."""


@dataclass(frozen=True)
class DynamicTable:
    """The dynamic table of a file."""

    values: Mapping[int, int]
    """Each tag with its first value."""
    data: bytes
    """The file."""
    layouts: Layouts
    offset_of: Callable[[int], int | None]
    """Where in the file an address is."""

    def get(self, tag: Tag) -> int | None:
        """The value of a tag, where there is one."""
        return self.values.get(tag)

    def offset(self, tag: Tag) -> int | None:
        """Where in the file a table is, which the value of a tag is the address of."""
        address = self.values.get(tag)
        return self.offset_of(address) if address else None

    def content(self, tag: Tag, size_tag: Tag) -> bytes:
        """The bytes of a table."""
        offset = self.offset(tag)
        size = self.values.get(size_tag, 0)
        return b"" if offset is None else self.data[offset : offset + size]

    def relocations(self, relative: int | None) -> Iterator[RelocationColumns]:
        """The relocations of each table.

        Args:
            relative: the kind of relocations that count from where the file is loaded.
        """
        rel, rela = self.layouts.rel, self.layouts.rela
        has_addends = self.get(Tag.PLT_RELOCATIONS_KIND) == Tag.RELA
        for tag, size_tag, layout in (
            (Tag.RELA, Tag.RELA_SIZE, rela),
            (Tag.REL, Tag.REL_SIZE, rel),
            (Tag.PLT_RELOCATIONS, Tag.PLT_RELOCATIONS_SIZE, rela if has_addends else rel),
        ):
            content = self.content(tag, size_tag)
            if content:
                yield columns_of(rows(content, layout, 0, len(content)))
        is_wide = self.layouts.word.itemsize == 8
        for tag, size_tag in (
            (Tag.ANDROID_RELA, Tag.ANDROID_RELA_SIZE),
            (Tag.ANDROID_REL, Tag.ANDROID_REL_SIZE),
        ):
            content = self.content(tag, size_tag)
            if content:
                yield unpacked(content, is_wide, tag == Tag.ANDROID_RELA)
        for tag, size_tag in (
            (Tag.RELR, Tag.RELR_SIZE),
            (Tag.ANDROID_RELR, Tag.ANDROID_RELR_SIZE),
        ):
            content = self.content(tag, size_tag)
            if content and relative is not None:
                words = rows(content, self.layouts.word, 0, len(content))
                yield columns_of_bit_maps(words, relative, len(self.data) // words.itemsize)

    def hashed_symbols(self) -> int:
        """How many symbols there are, as far as the table of their hashes tells."""
        start = self.offset(Tag.HASH)
        if start is not None:
            head = rows(self.data, self.layouts.half, start, 2).tolist()
            if len(head) == 2 and start + 4 * (2 + sum(head)) <= len(self.data):
                return int(head[1])
        start = self.offset(Tag.GNU_HASH)
        return 0 if start is None else self._gnu_hashed_symbols(start)

    def _gnu_hashed_symbols(self, start: int) -> int:
        """The last symbol is the end of the chain that begins last."""
        head = rows(self.data, self.layouts.half, start, 4).tolist()
        if len(head) < 4:
            return 0
        bucket_count, first, filter_words, _ = head
        at = start + 16 + filter_words * self.layouts.word.itemsize
        buckets = rows(self.data, self.layouts.half, at, bucket_count)
        last = int(buckets.max()) if len(buckets) else 0
        if last < first:
            return int(first)
        at += 4 * (bucket_count + last - first)
        while len(links := rows(self.data, self.layouts.half, at, PART)):
            ends = np.flatnonzero(links & 1)
            if len(ends):
                return last + int(ends[0]) + 1
            last += len(links)
            at += 4 * len(links)
        return last
