"""A binary as flow recovery sees it, whatever the container: regions of bytes, and names."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, NamedTuple

DATA, THUMB = "d", "t"
ByteOrder = Literal["little", "big"]
MAX_RANGES = 5_000_000
"""Ranges that are read of one unwind table."""


class Region(NamedTuple):
    """A run of addresses that has bytes."""

    start: int
    data: bytes | memoryview | bytearray
    executable: bool
    writable: bool = False

    @property
    def end(self) -> int:
        return self.start + len(self.data)


def disjoint(regions: Iterable[Region]) -> list[Region]:
    """Sorted by address; where two overlap, which only damaged files have, the first stays."""
    kept: list[Region] = []
    for region in sorted((r for r in regions if len(r.data)), key=lambda r: r.start):
        if not kept or region.start >= kept[-1].end:
            kept.append(region)
    return kept


class Extent(NamedTuple):
    """Where a function lies."""

    start: int
    end: int
    name: str
    aliases: tuple[str, ...] = ()
    unit: str | None = None
    """The source file of a function that is local to it."""


class UnwindRange(NamedTuple):
    """A range of code with one frame description."""

    start: int
    end: int
    is_part: bool
    """The frame exists already at the first instruction: a part split off from a function."""


class LineSections(NamedTuple):
    """The contents of ``.debug_line`` and of the two sections that its names lie in."""

    line: bytes
    line_str: bytes = b""
    str: bytes = b""
    byte_order: ByteOrder = "little"


LOWEST_FIXED = 0x100000
"""Files whose first address is below are moved by the loader, so that a number in their code is
not an address."""


@dataclass
class Image:
    """One loaded binary."""

    format: str
    architecture: str
    regions: list[Region]
    """Sorted by address, without overlaps."""
    extents: list[Extent]
    """The functions, sorted by address."""
    fragments: list[tuple[int, int]]
    """Sorted ranges that belong to whichever function jumps into them (gcc's ``.cold``)."""
    noreturn: frozenset[int]
    """Functions, stubs and slots of the linker that a call never comes back from."""
    pointers: Mapping[int, int] = field(default_factory=dict)
    """Words that the loader fills in: address to value."""
    compiler: str | None = None
    got: int | None = None
    """Base of the global offset table, which 32-bit code counts from."""
    lines: LineSections | None = None
    """Line tables of the debug information."""
    note: str | None = None
    """What a reader of the results should know: functions that may be missing."""
    marks: Sequence[tuple[int, str]] = ()
    """Sorted (address, state): what lies from there on. ``a`` is ARM, ``t`` Thumb, ``x`` AArch64
    and ``d`` data. Without any, all is code in the only state that the processor has."""
    stack_failures: frozenset[int] = frozenset()
    """Those of ``noreturn`` that report an overwritten stack, as far as names tell."""
    byte_order: ByteOrder = "little"
    """Of words in data; on the processors that have both, of instructions as well."""
    imports: Mapping[int, str] = field(default_factory=dict)
    """Stubs and slots that lead to symbols of other files: address to name."""
    forwards: Mapping[int, int] = field(default_factory=dict)
    """Stubs and slots that lead to symbols of the same file: address to address."""
    code_bytes: int = 0
    """Bytes of code, without stubs of the linker and padding."""
    recovered_bytes: int = 0
    """Those of them that lie inside functions."""
    tried: tuple[str, ...] = ()
    """What the functions were looked for by."""
    remark: str | None = None
    """What helps to know and is no loss: a debug file that does not fit."""

    @property
    def is_fixed(self) -> bool:
        """Whether numbers in the code can be addresses."""
        return bool(self.regions) and self.regions[0].start >= LOWEST_FIXED

    @cached_property
    def _starts(self) -> list[int]:
        return [region.start for region in self.regions]

    @cached_property
    def _mark_addresses(self) -> list[int]:
        return [address for address, _ in self.marks]

    @cached_property
    def _fragment_starts(self) -> list[int]:
        return [start for start, _ in self.fragments]

    def region(self, address: int) -> Region | None:
        """The region that holds an address."""
        number = bisect_right(self._starts, address) - 1
        if number < 0 or address >= self.regions[number].end:
            return None
        return self.regions[number]

    def read(self, address: int, size: int) -> bytes:
        """Up to ``size`` bytes; fewer, or none, where the region ends first."""
        region = self.region(address)
        if region is None:
            return b""
        offset = address - region.start
        return bytes(region.data[offset : offset + size])

    def word(self, address: int, width: int) -> int | None:
        """A word in the byte order of the file, as the loader would leave it."""
        moved = self.pointers.get(address)
        if moved is not None:
            return moved
        raw = self.read(address, width)
        return int.from_bytes(raw, self.byte_order) if len(raw) == width else None

    def pieces(self, start: int, end: int) -> list[tuple[int, int, str]]:
        """(start, end, state) of the code in a range; data is left out."""
        if not self.marks:
            return [(start, end, "")]
        first = bisect_right(self._mark_addresses, start) - 1
        last = bisect_left(self._mark_addresses, end)
        state = self.marks[first][1] if first >= 0 else ""
        pieces: list[tuple[int, int, str]] = []
        for address, following in [*self.marks[first + 1 : last], (end, "")]:
            if address > start and state != DATA:
                if pieces and pieces[-1][1:] == (start, state):
                    start = pieces.pop()[0]
                pieces.append((start, address, state))
            start, state = address, following
        return pieces

    def fragment(self, address: int) -> tuple[int, int] | None:
        """The split-off part that holds an address."""
        number = bisect_right(self._fragment_starts, address) - 1
        if number < 0 or address >= self.fragments[number][1]:
            return None
        return self.fragments[number]
