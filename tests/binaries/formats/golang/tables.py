"""Go's tables of functions made by hand, after Go's own description of each version."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import NamedTuple

MAGICS = {2: 0xFFFFFFFB, 16: 0xFFFFFFFA, 18: 0xFFFFFFF0, 20: 0xFFFFFFF1}


class Form(NamedTuple):
    """What a table looks like."""

    version: int
    big: bool = False
    pointer: int = 8

    @property
    def order(self) -> str:
        return ">" if self.big else "<"

    def words(self, *values: int) -> bytes:
        return struct.pack(f"{self.order}{len(values)}{'Q' if self.pointer == 8 else 'I'}", *values)


FORMS = [
    Form(version, big, pointer) for version in MAGICS for big in (False, True) for pointer in (4, 8)
]


def table(form: Form, functions: Sequence[tuple[int, str]], end: int, text: int = 0) -> bytes:
    """The bytes of ``.gopclntab``.

    Args:
        form: version, byte order, width of an address.
        functions: (start, name), sorted by address.
        end: of the code.
        text: what the header calls the start of the code, since Go 1.18.
    """
    order, version = form.order, form.version
    header = struct.pack(f"{order}IBBBB", MAGICS[version], 0, 0, 1, form.pointer)
    names, name_at = b"", []
    for _, name in functions:
        name_at.append(len(names))
        names += name.encode("utf-8", "surrogateescape") + b"\0"
    names += b"\0" * (-len(names) % 8)
    start_code = "I" if version >= 18 else "Q" if form.pointer == 8 else "I"
    width = struct.calcsize(f"{order}{start_code}")
    list_size = (2 * len(functions) + 1) * width + 4
    # A record: start, name, and further numbers, of which the reader needs none.
    record_size = width + 4 + 28
    if version == 2:
        names_at = len(header) + form.pointer + list_size + record_size * len(functions)
        records_at, base = names_at - record_size * len(functions), 0
        name_base = names_at
    else:
        words = 8 if version >= 18 else 7
        names_at = len(header) + words * form.pointer
        base = names_at + len(names)
        records_at, name_base = list_size, 0
    rows = records = b""
    for number, (start, _) in enumerate(functions):
        rows += struct.pack(f"{order}2{start_code}", start, records_at + number * record_size)
        records += struct.pack(f"{order}{start_code}i", start, name_base + name_at[number])
        records += b"\xaa" * 28
    rows += struct.pack(f"{order}{start_code}i", end, 0)
    if version == 2:
        return header + form.words(len(functions)) + rows + records + names
    counts = form.words(len(functions), 1) + (form.words(text) if version >= 18 else b"")
    # The parts between the names and the list are empty here.
    return header + counts + form.words(names_at, base, base, base, base) + names + rows + records


def elf(code: bytes, code_at: int, data: bytes, data_at: int) -> bytes:
    """An x86-64 program of two segments, without sections, as one that was stripped of all."""
    page = 0x1000
    heads = 64 + 2 * 56
    data_offset = page + -(-len(code) // page) * page
    header = b"\x7fELF\x02\x01\x01" + bytes(9)
    header += struct.pack("<HHIQQQIHHHHHH", 2, 62, 1, code_at, 64, 0, 0, 64, 56, 2, 64, 0, 0)
    for kind, offset, address, content in (
        (5, page, code_at, code),
        (6, data_offset, data_at, data),
    ):
        size = len(content)
        header += struct.pack("<IIQQQQQQ", 1, kind, offset, address, address, size, size, page)
    assert len(header) == heads
    return (header.ljust(page, b"\0") + code).ljust(data_offset, b"\0") + data
