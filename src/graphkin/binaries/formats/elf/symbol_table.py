"""Symbols of an ELF file: rows of a table that are made into records when they are asked for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from graphkin.binaries.formats.elf.constants import ELSEWHERE
from graphkin.binaries.formats.elf.layouts import Rows

PART = 1 << 14
"""Rows that are made into Python's numbers at a time."""
OVERLAP = 4
SHORT = 1 << 16
"""All names of a table together may have so many times its bytes, and this many more. The names of
linkers overlap only where one is the end of another; a hostile file may have a million names in one
long run of bytes."""


class StringTable:
    """Names, by their offsets.

    Args:
        data: the table, as far as the file has it.
    """

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._names: dict[int, str] = {}
        self._room = OVERLAP * len(data) + SHORT

    def at(self, offset: int) -> str:
        """The name at an offset; none beyond the table.

        Bytes that are not UTF-8 are kept, as surrogates.
        """
        name = self._names.get(offset)
        if name is None:
            end = self._data.find(b"\0", offset, offset + self._room)
            raw = self._data[offset : end if end >= 0 else offset + self._room]
            self._room -= len(raw)
            name = self._names[offset] = raw.decode("utf-8", "surrogateescape")
        return name


class ElfSymbol(NamedTuple):
    """One symbol."""

    name: str
    value: int
    """An address; in objects an offset in a section."""
    size: int
    kind: int
    """A :class:`~graphkin.binaries.formats.elf.constants.SymbolKind`, or another number."""
    binding: int
    section: int
    """The number of the section that it is in; 0 for a symbol of another file."""
    other: int
    """What processors have to say of it, and who may see it."""


class SymbolTable:
    """The symbols of a table, in its order.

    Args:
        table: its rows.
        strings: the names.
        section_numbers: of all symbols, where some do not fit into the rows.
    """

    def __init__(
        self, table: Rows, strings: StringTable, section_numbers: NDArray[np.uint32] | None = None
    ) -> None:
        self._rows, self._strings = table, strings
        self._sections: NDArray[Any] = table["section"]
        if section_numbers is not None:
            self._sections = self._sections.astype(np.uint32)
            known = self._sections[: len(section_numbers)]
            np.copyto(known, section_numbers[: len(known)], where=known == ELSEWHERE)

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, number: int) -> ElfSymbol:
        return next(self._records(self._rows[number : number + 1], self._sections[number:]))

    def __iter__(self) -> Iterator[ElfSymbol]:
        return self.of_kinds()

    def of_kinds(self, *kinds: int) -> Iterator[ElfSymbol]:
        """The symbols of some kinds; all of them if none are named."""
        for start in range(0, len(self), PART):
            part, sections = self._rows[start : start + PART], self._sections[start : start + PART]
            if kinds:
                chosen = np.isin(part["info"] & 0xF, kinds)
                part, sections = part[chosen], sections[chosen]
            yield from self._records(part, sections)

    def _records(self, part: Rows, sections: NDArray[Any]) -> Iterator[ElfSymbol]:
        at = self._strings.at
        for (name, value, size, info, other), section in zip(
            part[["name", "value", "size", "info", "other"]].tolist(),
            sections.tolist(),
            strict=False,
        ):
            yield ElfSymbol(at(name), value, size, info & 0xF, info >> 4, section, other)
