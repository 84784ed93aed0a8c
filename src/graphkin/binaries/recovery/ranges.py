"""From symbols and unwind tables to the ranges of functions: aliases, gaps and lies sorted out."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import deque
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import NamedTuple

from graphkin.binaries.image import Extent, Region, UnwindRange

COLD = re.compile(r"\.cold(?:\.\d+)?$")


class Symbol(NamedTuple):
    """A function symbol as the file has it."""

    address: int
    size: int
    name: str
    rank: int = 0
    """Lower is preferred among names of one address: global, weak, local."""
    unit: str | None = None
    """The source file of a local symbol, where the symbol table tells."""


class _Start(NamedTuple):
    """An address where a function, or a part of one, begins."""

    address: int
    size: int
    """0 where nothing tells."""
    names: tuple[str, ...]
    is_part: bool
    unit: str | None = None


def arrange(
    symbols: Iterable[Symbol], unwind: Sequence[UnwindRange], regions: Sequence[Region]
) -> tuple[list[Extent], list[tuple[int, int]]]:
    """Functions and split-off parts, each sorted by address.

    A size that leaves the region is a lie, and counts as no size: the function then ends where
    the unwind table says, or at the next start. Ranges that overlap are all kept, for some
    assembly has functions with several entries.
    """
    code = sorted(region for region in regions if region.executable)
    bounds = _Bounds(code)
    starts = _merge(symbols, unwind, bounds)
    by_unwind = {item.start: item.end for item in unwind}
    extents, parts = [], []
    for number, start in enumerate(starts):
        limit = bounds.end_of(start.address)
        assert limit is not None
        end = start.address + start.size
        if not start.size or end > limit:
            following = starts[number + 1].address if number + 1 < len(starts) else limit
            end = min(by_unwind.get(start.address, following), limit)
        if start.is_part:
            parts.append((start.address, end))
        else:
            name, *aliases = start.names or (f"sub_{start.address:x}",)
            extents.append(Extent(start.address, end, name, tuple(aliases), start.unit))
    return extents, parts


class _Bounds:
    """Ends of the executable regions."""

    def __init__(self, code: Sequence[Region]) -> None:
        self._starts = [region.start for region in code]
        self._ends = [region.end for region in code]

    def end_of(self, address: int) -> int | None:
        number = bisect_right(self._starts, address) - 1
        return self._ends[number] if number >= 0 and address < self._ends[number] else None


def _merge(
    symbols: Iterable[Symbol], unwind: Sequence[UnwindRange], bounds: _Bounds
) -> list[_Start]:
    starts: dict[int, _Start] = {}
    inside = [symbol for symbol in symbols if bounds.end_of(symbol.address) is not None]
    inside.sort(key=lambda symbol: symbol.address)
    for address, group in groupby(inside, key=lambda symbol: symbol.address):
        same = sorted(group, key=_preference)
        names = tuple(dict.fromkeys(symbol.name for symbol in same if symbol.name))
        size = max(symbol.size for symbol in same)
        is_part = bool(names) and _is_cold(names)
        starts[address] = _Start(address, size, names, is_part, same[0].unit)
    covered_to = 0
    spans = deque((start.address, start.address + start.size) for start in starts.values())
    for item in sorted(unwind):
        while spans and spans[0][0] <= item.start:
            covered_to = max(covered_to, spans.popleft()[1])
        if item.start in starts or item.start < covered_to:
            continue
        if bounds.end_of(item.start) is not None:
            size = item.end - item.start
            starts[item.start] = _Start(item.start, size, (), item.is_part)
    return sorted(starts.values())


def _is_cold(names: Sequence[str]) -> bool:
    return all(COLD.search(name) for name in names)


def _preference(symbol: Symbol) -> tuple[int, int, int, str]:
    """Global names first; then those without underscores in front, which are the public ones."""
    bare = symbol.name.lstrip("_")
    return symbol.rank, len(symbol.name) - len(bare), len(symbol.name), symbol.name
