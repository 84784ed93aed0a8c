"""What LIEF calls things in ELF files, for the readers of linked files and of objects."""

from __future__ import annotations

import lief

from graphkin.binaries.extents import Symbol

ALLOC = int(lief.ELF.Section.FLAGS.ALLOC)
EXECUTABLE = int(lief.ELF.Section.FLAGS.EXECINSTR)
KINDS = (lief.ELF.Symbol.TYPE.FUNC, lief.ELF.Symbol.TYPE.GNU_IFUNC)
RANKS = {lief.ELF.Symbol.BINDING.GLOBAL: 0, lief.ELF.Symbol.BINDING.WEAK: 1}


def is_loaded(section: lief.ELF.Section) -> bool:
    """Whether a section has bytes, and they end up in memory."""
    return bool(section.flags & ALLOC) and section.type != lief.ELF.Section.TYPE.NOBITS


def is_function(symbol: lief.ELF.Symbol) -> bool:
    """Whether a symbol is a function that this file defines."""
    return symbol.type in KINDS and bool(symbol.shndx)


def function_symbol(symbol: lief.ELF.Symbol, base: int = 0) -> Symbol:
    """A symbol whose value counts from ``base``."""
    rank = RANKS.get(symbol.binding, len(RANKS))
    return Symbol(base + symbol.value, symbol.size, text(symbol.name), rank)


def text(name: str | bytes) -> str:
    """LIEF gives bytes for names that are not UTF-8."""
    return name.decode("utf-8", "replace") if isinstance(name, bytes) else name
