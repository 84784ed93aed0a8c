"""Where functions were defined, from DWARF's line tables (versions 2 to 5).

Line tables are what every level of debug information has: ``clang -g1`` leaves functions out
of ``.debug_info``. The row at the first address of a function names the file of its body, so
that a function of a header is told from one of the source file that includes it.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator
from contextlib import suppress
from functools import partial

from graphkin.binaries.cursor import Cursor
from graphkin.binaries.image import LineSections

COPY, ADVANCE_PC, SET_FILE, CONST_ADD_PC, FIXED_ADVANCE_PC = 1, 2, 4, 8, 9
END_SEQUENCE, SET_ADDRESS = 1, 2
PATH, DIRECTORY = 1, 2
MAX_ENTRIES = 1 << 16
MAX_NAME = 1 << 12
"""Bytes of a name of a file or folder."""


def defining_files(sections: LineSections, starts: Container[int]) -> dict[int, str]:
    """The path of the file in which the code at each start was written, where it is known.

    Of a damaged table counts what stands before the damage; the tables behind it are read.
    """
    files: dict[int, str] = {}
    for offset, end, wide in _tables(sections):
        with suppress(IndexError, ValueError):
            _Program(sections, offset, end, wide).run(starts, files)
    return files


def _tables(sections: LineSections) -> Iterator[tuple[int, int, bool]]:
    """Where each table begins, behind its length, and ends; and whether it has 64-bit offsets.

    Ends at a table that the section does not hold whole.
    """
    reader = Cursor(sections.line, 0, byte_order=sections.byte_order)
    with suppress(IndexError):
        while True:
            length = reader.unsigned(4)
            wide = length == 0xFFFFFFFF
            if wide:
                length = reader.unsigned(8)
            start, reader.offset = reader.offset, reader.offset + length
            if reader.offset > len(sections.line):
                return
            yield start, reader.offset, wide


class _Program:
    """The line number program of one compilation unit."""

    def __init__(self, sections: LineSections, offset: int, end: int, wide: bool) -> None:
        self._sections, self._end = sections, end
        self._offset_size = 8 if wide else 4
        reader = Cursor(sections.line, offset, byte_order=sections.byte_order)
        version = reader.unsigned(2)
        if not 2 <= version <= 5:
            raise ValueError(f"version {version}")
        if version >= 5:
            reader.unsigned(2)  # sizes of addresses and of segment selectors
        header_length = reader.unsigned(self._offset_size)
        self._start = reader.offset + header_length
        self._unit = reader.unsigned(1)
        # maximum operations (from version 4), default is_stmt, line base
        reader.unsigned(3 if version >= 4 else 2)
        self._line_range = reader.unsigned(1) or 1
        self._opcode_base = reader.unsigned(1)
        self._operands = [reader.unsigned(1) for _ in range(1, self._opcode_base)]
        if version >= 5:
            self._first_file = 0
            directories = [name for name, _ in self._entries(reader)]
            self._files = [_joined(directories, at, name) for name, at in self._entries(reader)]
        else:
            self._first_file = 1
            directories = ["", *iter(partial(reader.text, MAX_NAME), "")]
            self._files = []
            for name in iter(partial(reader.text, MAX_NAME), ""):
                self._files.append(_joined(directories, reader.leb128(), name))
                reader.leb128()  # time of the last change
                reader.leb128()  # length in bytes

    def _entries(self, reader: Cursor) -> Iterator[tuple[str, int]]:
        """Names, each with the number of its directory."""
        fields = [(reader.leb128(), reader.leb128()) for _ in range(reader.unsigned(1))]
        count = reader.leb128()
        if count > (MAX_ENTRIES if fields else 0):
            raise ValueError(f"{count} file names")
        for _ in range(count):
            values = {content: self._value(reader, form) for content, form in fields}
            name, directory = values.get(PATH, ""), values.get(DIRECTORY, 0)
            yield str(name), directory if isinstance(directory, int) else 0

    def _value(self, reader: Cursor, form: int) -> str | int:
        if form in (0x1F, 0x0E):  # DW_FORM_line_strp, DW_FORM_strp
            home = self._sections.line_str if form == 0x1F else self._sections.str
            return Cursor(home, reader.unsigned(self._offset_size)).text(MAX_NAME)
        readers: dict[int, Callable[[], str | int]] = {
            0x08: partial(reader.text, MAX_NAME),
            0x0F: reader.leb128,
            0x0B: lambda: reader.unsigned(1),
            0x05: lambda: reader.unsigned(2),
            0x06: lambda: reader.unsigned(4),
            0x07: lambda: reader.unsigned(8),
            0x1E: lambda: reader.unsigned(16),
            0x09: lambda: reader.unsigned(reader.leb128()),
        }
        if form not in readers:
            raise ValueError(f"form {form:#x}")
        return readers[form]()

    def run(self, starts: Container[int], files: dict[int, str]) -> None:
        """Notes the file of the first row at each start."""
        data, end, base = self._sections.line, self._end, self._opcode_base
        order = self._sections.byte_order
        # What each opcode from the base on adds to the address.
        steps = [0] * base + [
            (opcode - base) // self._line_range * self._unit for opcode in range(base, 256)
        ]
        reader = Cursor(data, self._start)
        address, file, at = 0, 1, self._start
        while at < end:
            opcode = data[at]
            at += 1
            if opcode >= base or opcode == COPY:
                address += steps[opcode]
                if address in starts and address not in files:
                    self._note(address, file, files)
            elif opcode == CONST_ADD_PC:
                address += steps[255]
            elif opcode == FIXED_ADVANCE_PC:
                address += int.from_bytes(data[at : at + 2], order)
                at += 2
            elif opcode == 0:
                reader.offset = at
                size = reader.leb128()
                at = reader.offset + size
                kind = data[reader.offset] if size else 0
                if kind == SET_ADDRESS:
                    address = int.from_bytes(data[reader.offset + 1 : at], order)
                elif kind == END_SEQUENCE:
                    address, file = 0, 1
            else:
                reader.offset = at
                values = [reader.leb128() for _ in range(self._operands[opcode - 1])]
                at = reader.offset
                if opcode == ADVANCE_PC:
                    address += values[0] * self._unit
                elif opcode == SET_FILE:
                    file = values[0]

    def _note(self, address: int, file: int, files: dict[int, str]) -> None:
        number = file - self._first_file
        if 0 <= number < len(self._files):
            files[address] = self._files[number]


def _joined(directories: list[str], number: int, name: str) -> str:
    """A path; the directory of the compilation itself, number 0, is left out."""
    if name.startswith("/") or not 0 < number < len(directories) or not directories[number]:
        return name
    return f"{directories[number]}/{name}"
