"""How the tables of ELF files are laid out, in 32 and 64 bits, in both byte orders."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from graphkin.binaries.image import ByteOrder

Rows = NDArray[np.void]
Layout = np.dtype[np.void]


class Layouts(NamedTuple):
    """The rows of each table; fields that nothing asks for have names all the same."""

    header: Layout
    section: Layout
    segment: Layout
    symbol: Layout
    dynamic: Layout
    rel: Layout
    rela: Layout
    word: np.dtype[np.unsignedinteger[Any]]
    """An address."""
    half: np.dtype[np.uint32]


@cache
def layouts(is_wide: bool, order: ByteOrder, is_mips: bool = False) -> Layouts:
    """The layouts of one kind of file.

    MIPS of 64 bits has a symbol and up to three kinds where others have one word, ``info``.
    """
    word, signed = ("u8", "i8") if is_wide else ("u4", "i4")
    prefix = "<" if order == "little" else ">"

    def layout(fields: str) -> Layout:
        pairs = [field.split(":") for field in fields.split()]
        kinds = {"word": word, "signed": signed}
        return np.dtype([(name, prefix + kinds.get(kind, kind)) for name, kind in pairs])

    info = "info:word"
    if is_wide and is_mips:
        info = "symbol:u4 special_symbol:u1 third_kind:u1 second_kind:u1 kind:u1"
    flags, late_flags = ("flags:u4", "") if is_wide else ("", "flags:u4")
    value, late_value = ("", "value:u8 size:u8") if is_wide else ("value:u4 size:u4", "")
    return Layouts(
        header=layout(
            "magic:u4 class:u1 data:u1 ident_version:u1 abi:u1 padding:u8 kind:u2 machine:u2 "
            "version:u4 entry:word segment_offset:word section_offset:word flags:u4 size:u2 "
            "segment_size:u2 segment_count:u2 section_size:u2 section_count:u2 names:u2"
        ),
        section=layout(
            "name:u4 kind:u4 flags:word address:word offset:word size:word link:u4 info:u4 "
            "alignment:word row_size:word"
        ),
        segment=layout(
            f"kind:u4 {flags} offset:word address:word physical_address:word size:word "
            f"memory_size:word {late_flags} alignment:word"
        ),
        symbol=layout(f"name:u4 {value} info:u1 other:u1 section:u2 {late_value}"),
        dynamic=layout("tag:word value:word"),
        rel=layout(f"offset:word {info}"),
        rela=layout(f"offset:word {info} addend:signed"),
        word=np.dtype(prefix + word),
        half=np.dtype(prefix + "u4"),
    )


def rows(data: bytes, layout: np.dtype[Any], offset: int, count: int) -> NDArray[Any]:
    """Rows of a table, as many of them as the file really has."""
    count = min(count, (len(data) - offset) // layout.itemsize)
    if count <= 0 or offset < 0:
        return np.empty(0, layout)
    return np.frombuffer(data, layout, count, offset)
