"""Function symbols and mapping symbols of ELF files, linked or not."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

import lief

from graphkin.binaries.formats.names import text
from graphkin.binaries.recovery.ranges import Symbol

KINDS = (lief.ELF.Symbol.TYPE.FUNC, lief.ELF.Symbol.TYPE.GNU_IFUNC)
RANKS = {lief.ELF.Symbol.BINDING.GLOBAL: 0, lief.ELF.Symbol.BINDING.WEAK: 1}
MARK = re.compile(r"\$([atdx])(?:\.|$)")


def is_function(symbol: lief.ELF.Symbol) -> bool:
    """Whether a symbol is a function that this file defines."""
    return symbol.type in KINDS and bool(symbol.shndx)


def function_symbols(
    symbols: Iterable[lief.ELF.Symbol], base: Callable[[lief.ELF.Symbol], int | None]
) -> Iterator[Symbol]:
    """The functions of a symbol table, in its order.

    A file symbol stands before the local symbols of its file.

    Args:
        symbols: the whole table.
        base: what a symbol's value counts from; None for one to leave out.
    """
    unit: str | None = None
    for symbol in symbols:
        if symbol.type == lief.ELF.Symbol.TYPE.FILE:
            unit = text(symbol.name) or None
        elif is_function(symbol) and (start := base(symbol)) is not None:
            rank = RANKS.get(symbol.binding, len(RANKS))
            own = unit if rank == len(RANKS) else None
            yield Symbol(start + symbol.value, symbol.size, text(symbol.name), rank, own)


def marks(
    symbols: Iterable[lief.ELF.Symbol], base: Callable[[lief.ELF.Symbol], int | None]
) -> list[tuple[int, str]]:
    """Mapping symbols (``$x``, ``$a.7``, ``$d``), sorted, as :attr:`Image.marks` has them."""
    states: dict[int, str] = {}
    for symbol in symbols:
        if symbol.type == lief.ELF.Symbol.TYPE.NOTYPE and symbol.size == 0:
            match = MARK.match(text(symbol.name))
            if match is not None and (start := base(symbol)) is not None:
                states[start + symbol.value] = match[1]
    return sorted(states.items())


def without_thumb_bit(symbols: Iterable[Symbol]) -> tuple[list[Symbol], dict[int, str]]:
    """Symbols at the addresses of their first instructions, and the state of each address."""
    plain: list[Symbol] = []
    states: dict[int, str] = {}
    for symbol in symbols:
        address = symbol.address & ~1
        plain.append(symbol._replace(address=address))
        states[address] = "t" if symbol.address & 1 else "a"
    return plain, states
