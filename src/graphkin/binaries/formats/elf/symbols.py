"""Function symbols and mapping symbols of ELF files, linked or not."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

from graphkin.binaries.formats.elf.constants import UNDEFINED, Binding, SymbolKind
from graphkin.binaries.formats.elf.symbol_table import ElfSymbol, SymbolTable
from graphkin.binaries.recovery.ranges import Symbol

FUNCTIONS = (SymbolKind.FUNCTION, SymbolKind.INDIRECT_FUNCTION)
RANKS: dict[int, int] = {Binding.GLOBAL: 0, Binding.WEAK: 1}
MARK = re.compile(r"\$([atdx])(?:\.|$)")


def defined_functions(symbols: SymbolTable) -> Iterator[ElfSymbol]:
    """The functions that this file defines."""
    return (item for item in symbols.of_kinds(*FUNCTIONS) if item.section != UNDEFINED)


def function_symbols(
    symbols: SymbolTable, base: Callable[[ElfSymbol], int | None]
) -> Iterator[Symbol]:
    """The functions of a symbol table, in its order.

    A file symbol stands before the local symbols of its file.

    Args:
        symbols: the whole table.
        base: what a symbol's value counts from; None for one to leave out.
    """
    unit: str | None = None
    for symbol in symbols.of_kinds(SymbolKind.FILE, *FUNCTIONS):
        if symbol.kind == SymbolKind.FILE:
            unit = symbol.name or None
        elif symbol.section != UNDEFINED and (start := base(symbol)) is not None:
            rank = RANKS.get(symbol.binding, len(RANKS))
            own = unit if rank == len(RANKS) else None
            yield Symbol(start + symbol.value, symbol.size, symbol.name, rank, own)


def marks(symbols: SymbolTable, base: Callable[[ElfSymbol], int | None]) -> list[tuple[int, str]]:
    """Mapping symbols (``$x``, ``$a.7``, ``$d``), sorted, as :attr:`Image.marks` has them."""
    states: dict[int, str] = {}
    for symbol in symbols.of_kinds(SymbolKind.NONE):
        if symbol.size == 0:
            match = MARK.match(symbol.name)
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
