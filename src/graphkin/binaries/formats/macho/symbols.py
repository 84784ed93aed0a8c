"""The symbol table of a Mach-O file, read as columns: large programs have a million entries."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import lief
import numpy as np
from numpy.typing import NDArray

from graphkin.binaries.recovery.ranges import Symbol

ENTRY = np.dtype(
    [("name", "<u4"), ("type", "u1"), ("section", "u1"), ("description", "<u2"), ("value", "<u8")]
)
DEBUG, KIND, IN_SECTION, EXTERNAL = 0xE0, 0x0E, 0x0E, 0x01
WEAK, SECOND_ENTRY = 0x80, 0x200
MAX_NAME = 1 << 16
LOCAL = 2
"""Rank of the names of static functions."""


@dataclass(frozen=True)
class SymbolTable:
    """Symbols by number."""

    entries: NDArray[Any]
    """(S,) of :data:`ENTRY`."""
    strings: bytes
    data: bytes

    @classmethod
    def of(cls, binary: lief.MachO.Binary, data: bytes) -> SymbolTable:
        """The table, as far as the file really has it."""
        command = binary.symbol_command
        if command is None:
            return cls(np.empty(0, dtype=ENTRY), b"", data)
        start = command.symbol_offset
        count = max(0, min(command.numberof_symbols, (len(data) - start) // ENTRY.itemsize))
        entries = np.frombuffer(data[start : start + count * ENTRY.itemsize], dtype=ENTRY)
        first = command.strings_offset
        return cls(entries, data[first : first + command.strings_size], data)

    def name(self, number: int) -> str:
        """A symbol's name in the source; "" for a number that no symbol has.

        C compilers of Apple put an underscore in front of every name.
        """
        if number >= len(self.entries):
            return ""
        start = int(self.entries["name"][number])
        end = self.strings.find(b"\0", start, start + MAX_NAME)
        raw = self.strings[start : end if end >= 0 else start + MAX_NAME]
        return raw.decode("utf-8", "replace").removeprefix("_")

    def defined(self, number: int) -> int | None:
        """The address of a symbol that this file defines."""
        if number >= len(self.entries):
            return None
        entry = self.entries[number]
        if entry["type"] & (DEBUG | KIND) != IN_SECTION:
            return None
        return int(entry["value"])

    def functions(self, sections: Iterable[int]) -> list[Symbol]:
        """Symbols inside the given sections, which count from 1."""
        entries = self.entries
        selected = (entries["type"] & (DEBUG | KIND)) == IN_SECTION
        selected &= np.isin(entries["section"], list(sections))
        selected &= (entries["description"] & SECOND_ENTRY) == 0
        functions = []
        for number in np.flatnonzero(selected).tolist():
            entry = entries[number]
            name = self.name(number)
            is_external = entry["type"] & EXTERNAL
            if not is_external and self._is_temporary(number):
                continue
            rank = (1 if entry["description"] & WEAK else 0) if is_external else LOCAL
            functions.append(Symbol(int(entry["value"]), 0, name, rank))
        return functions

    def indirect(self, start: int, count: int) -> list[int]:
        """Numbers of symbols, as the table of indirect symbols lists them."""
        count = max(0, min(count, (len(self.data) - start) // 4))
        numbers: list[int] = np.frombuffer(self.data, "<u4", count, start).tolist() if count else []
        return numbers

    def _is_temporary(self, number: int) -> bool:
        """Labels that the assembler made; they have no underscore in front."""
        start = int(self.entries["name"][number])
        return self.strings[start : start + 1] in (b"L", b"l")
