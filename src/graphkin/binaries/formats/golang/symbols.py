"""Function symbols of a Go program, from its table of functions."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from graphkin.binaries.formats.golang.table import LIMIT, FunctionTable, find_tables
from graphkin.binaries.image import Image, Region, UnwindRange
from graphkin.binaries.recovery.ranges import Symbol

RANK = 3
"""Of names from the table: a symbol table spells out what the table writes as ``[...]``."""
_LINKER_NAMES = """
    runtime.text runtime.etext go.buildid go:buildid go:textfipsstart go:textfipsend
"""
LINKER_NAMES = frozenset(_LINKER_NAMES.split())
"""Of the ends of code, and of an identity that lies between code: not functions."""
TEXT, LOWEST = 22, 20
"""Words of the runtime's ``moduledata``: where the code begins, and the first function."""
PADDING, SHORT_JUMP = b"\xcc", b"\xeb"
"""Of x86: ``int3``, and the opcode of a jump by one signed byte."""
FIXUP = (1 << 36) - 1
"""Bits of an address in Mach-O's chained fixups."""


def with_go_functions(
    symbols: Iterable[Symbol],
    regions: Sequence[Region],
    architecture: str,
    pointers: Mapping[int, int] | None = None,
) -> list[Symbol]:
    """Symbols, and those of Go's table of functions where the file has one.

    The section may have any name, or none: the table is found by its magic number, and taken
    if all its functions lie in code.

    Args:
        symbols: what the file's symbol tables have.
        regions: of the file.
        architecture: tells the padding behind a function, which is not a part of it.
        pointers: words that the loader fills in.
    """
    symbols = list(symbols)
    memory = Image("", architecture, list(regions), [], [], frozenset(), pointers or {})
    for region in regions:
        for offset, table in find_tables(region.data):
            for base in _bases(memory, region.start + offset, table):
                code = _code_of(memory, base + table.starts)
                if code is not None:
                    own = [symbol for symbol in symbols if symbol.name not in LINKER_NAMES]
                    return [*own, *_functions(table, base, code, architecture)]
    return symbols


def go_functions(symbols: Iterable[Symbol]) -> list[Symbol]:
    """Those of some symbols that Go's table has."""
    return [symbol for symbol in symbols if symbol.rank == RANK]


def go_ranges(symbols: Iterable[Symbol]) -> list[UnwindRange]:
    """The code of Go among some symbols, which has no other functions; none without any."""
    functions = go_functions(symbols)
    if not functions:
        return []
    end = max(symbol.address + symbol.size for symbol in functions)
    return [UnwindRange(min(functions).address, end, False)]


def _bases(memory: Image, address: int, table: FunctionTable) -> Iterator[int]:
    """What the starts of a table at ``address`` may count from."""
    if table.text_slot is None:
        yield 0
        return
    stored = _word(memory, address + table.text_slot, table)
    if stored:
        yield stored
        yield stored & FIXUP
    for module in _references(memory, address, table):
        text = _word(memory, module + TEXT * table.pointer, table)
        lowest = _word(memory, module + LOWEST * table.pointer, table)
        if text is not None and lowest == text + int(table.starts[0]):
            yield text


def _references(memory: Image, address: int, table: FunctionTable) -> Iterator[int]:
    """Where the address of the table stands: the runtime's ``moduledata`` begins with it."""
    yield from (slot for slot, value in memory.pointers.items() if value == address)
    try:
        packed = re.compile(re.escape(address.to_bytes(table.pointer, table.byte_order)))
    except OverflowError:
        return
    for region in memory.regions:
        if not region.executable:
            yield from (region.start + match.start() for match in packed.finditer(region.data))


def _word(memory: Image, address: int, table: FunctionTable) -> int | None:
    moved = memory.pointers.get(address)
    if moved is not None:
        return moved
    content = memory.read(address, table.pointer)
    return int.from_bytes(content, table.byte_order) if len(content) == table.pointer else None


def _code_of(memory: Image, starts: NDArray[np.int64]) -> Region | None:
    """The code that holds all functions; None where they lie elsewhere, or across regions."""
    if starts[0] < 0 or starts[-1] >= LIMIT:
        return None
    region = memory.region(int(starts[0]))
    if region is None or not region.executable or starts[-1] > region.end:
        return None
    return region


def _functions(
    table: FunctionTable, base: int, code: Region, architecture: str
) -> Iterator[Symbol]:
    content = bytes(code.data)
    offsets = (base + table.starts - code.start).tolist()
    for start, following, name in zip(offsets, offsets[1:], table.names, strict=False):
        if following > start and name not in LINKER_NAMES:
            size = _size(content[start:following], architecture)
            yield Symbol(code.start + start, size, name, RANK)


def _size(code: bytes, architecture: str) -> int:
    """Bytes of a function without the padding that aligns the next one."""
    if not architecture.startswith("x86"):
        return len(code)
    own = code.rstrip(PADDING)
    # The last byte of a short jump back may look like padding.
    is_cut = own.endswith(SHORT_JUMP) and len(own) < len(code)
    return len(own) + is_cut or len(code)
