"""Relocations of an ELF file: the places to be written, by columns.

They come as rows with or without an addend, and as addresses with maps of bits.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from graphkin.binaries.formats.elf.layouts import Rows
from graphkin.binaries.formats.elf.symbol_table import ElfSymbol, SymbolTable

PART = 1 << 14
"""Rows that are made into Python's numbers at a time."""


class Relocation(NamedTuple):
    """One relocation."""

    offset: int
    """An address; in objects an offset in the section."""
    kind: int
    symbol: ElfSymbol | None
    addend: int | None
    """None where it is in the place itself."""


@dataclass(frozen=True)
class RelocationColumns:
    """Relocations, without the symbols that they name."""

    offsets: NDArray[np.uint64]
    kinds: NDArray[np.uint32]
    symbols: NDArray[np.uint32]
    """Numbers in a symbol table."""
    addends: NDArray[np.int64] | None
    """None where they are in the places themselves."""

    def __len__(self) -> int:
        return len(self.offsets)


@dataclass(frozen=True)
class RelocationTable:
    """Relocations, the symbols that they name, and what they change."""

    columns: RelocationColumns
    symbols: SymbolTable
    section: int = 0
    """The number of the section that they change in objects; 0 in linked files."""

    def of(self, chosen: NDArray[np.bool_] | None = None) -> Iterator[Relocation]:
        """The relocations, or those that are chosen, in their order."""
        columns, count = self.columns, len(self.symbols)
        numbers = np.arange(len(columns)) if chosen is None else np.flatnonzero(chosen)
        known: dict[int, ElfSymbol] = {}
        for start in range(0, len(numbers), PART):
            part = numbers[start : start + PART]
            addends: list[int | None] = [None] * len(part)
            if columns.addends is not None:
                addends = columns.addends[part].tolist()
            for offset, kind, symbol, addend in zip(
                columns.offsets[part].tolist(),
                columns.kinds[part].tolist(),
                columns.symbols[part].tolist(),
                addends,
                strict=True,
            ):
                if symbol < count and symbol not in known:
                    known[symbol] = self.symbols[symbol]
                yield Relocation(offset, kind, known.get(symbol), addend)


def columns_of(table: Rows) -> RelocationColumns:
    """The columns of rows with or without an addend."""
    names = table.dtype.names or ()
    if "info" in names:
        info = table["info"]
        shift = 32 if info.itemsize == 8 else 8
        kinds, symbols = info & ((1 << shift) - 1), info >> shift
    else:
        kinds, symbols = table["kind"], table["symbol"]
    return RelocationColumns(
        table["offset"].astype(np.uint64),
        kinds.astype(np.uint32),
        symbols.astype(np.uint32),
        table["addend"].astype(np.int64) if "addend" in names else None,
    )


def columns_of_bit_maps(words: NDArray[Any], kind: int, most: int) -> RelocationColumns:
    """The columns of relative relocations that are told by addresses and maps of bits.

    An even word is an address; bit ``n`` of an odd one is the ``n``-th word behind what was told
    before it.

    Args:
        words: the table.
        kind: of the relocations.
        most: relocations to be read; a hostile table may have 63 for each of its words.
    """
    width = words.itemsize
    values = words.astype(np.uint64)
    is_map = (values & 1).astype(bool)
    numbers = np.arange(len(values))
    address = np.maximum.accumulate(np.where(is_map, -1, numbers))
    is_told = address >= 0
    counts = np.where(is_map, np.bitwise_count(values >> 1), 1) * is_told
    is_told &= np.cumsum(counts, dtype=np.int64) <= most
    places = [values[~is_map & is_told]]
    maps = np.flatnonzero(is_map & is_told)
    bits = 8 * width - 1
    bases = values[address[maps]] + (width * (1 + bits * (maps - address[maps] - 1))).astype("u8")
    for bit in range(bits):
        chosen = (values[maps] >> np.uint64(bit + 1) & np.uint64(1)).astype(bool)
        places.append(bases[chosen] + np.uint64(width * bit))
    offsets = np.sort(np.concatenate(places))
    return RelocationColumns(
        offsets,
        np.full(len(offsets), kind, np.uint32),
        np.zeros(len(offsets), np.uint32),
        None,
    )
