"""Jump tables of gcc and clang on ARM and AArch64: where a table is, how long, and what it holds.

The forms met in practice, with T the table, I the index and O the place entries count from::

    adr O; ldrb R, [T, I]; add R, O, R, lsl #2; br R        AArch64; ldrh and ldrsw likewise
    ldrsw R, [T, I, lsl #2]; add R, T, R; br R              AArch64, relative to the table
    ldr R, [T, I, lsl #3]; br R                             absolute; computed goto
    ldrls pc, [pc, I, lsl #2]                               ARM, absolute, behind the next one
    addls pc, pc, I, lsl #2                                 ARM, into a row of branches
    adr T; ldr pc, [T, I, lsl #2]                           ARM and Thumb, absolute
    adr T; ldr R, [T, I, lsl #2]; add pc, T, R              ARM, relative to the table
    adr T; ldr R, [T, I, lsl #2]; add R, T; bx R            Thumb, relative to the table
    tbb [pc, I]; tbh [pc, I, lsl #1]                        Thumb, halved distances

Registers are followed backwards through the instructions as they lie in memory, which is how
compilers keep these sequences.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from graphkin.binaries.image import Image
from graphkin.binaries.processors.risc.bounds import entries
from graphkin.binaries.processors.risc.operands import (
    CONDITIONS,
    Memory,
    family,
    number,
    parse_memory,
    plain_name,
    shift_of,
    split,
)
from graphkin.binaries.processors.risc.values import Values, written
from graphkin.binaries.processors.table_entries import MAX_CANDIDATES, TableEntries
from graphkin.binaries.processors.table_entries import Table as GenericTable
from graphkin.binaries.processors.walk import Walk
from graphkin.binaries.recovery.architecture import Architecture
from graphkin.binaries.recovery.listing import Listing

NEAR = 60
"""Instructions to look back for the load from the table."""
WIDTHS = {"ldrb": 1, "ldrsb": 1, "ldrh": 2, "ldrsh": 2, "ldrsw": 4}
MODIFIERS = ("lsl", "uxt", "sxt")
SIGNED_LOADS = frozenset(["ldrsb", "ldrsh", "ldrsw"])
Table = GenericTable[str]
"""A table with the name of the register that holds the index."""


class RiscTables:
    """Reads the jump tables of one function.

    Args:
        image: the binary.
        architecture: the processor.
        pointer: width of an address in bytes.
        step: what the address of an instruction is a multiple of.
    """

    def __init__(self, image: Image, architecture: Architecture, pointer: int, step: int) -> None:
        self._walk = Walk(architecture, image)
        self._pointer = pointer
        self._values = Values(image, pointer)
        self._entries = TableEntries(image, pointer, step)

    def __call__(self, listing: Listing, position: int, guess: bool) -> list[int] | None:
        """Targets of an indirect jump; None when only a guess could tell how many there are.

        A jump through a register that comes from no table, as in a tail call, has no targets.
        """
        candidates = self._find(listing, position)

        def length(table: Table) -> int | None:
            return entries(listing, self._walk, table.load, table.selector, table.condition)

        return self._entries.targets(listing, position, candidates, length, guess)

    def _find(self, listing: Listing, position: int) -> Iterator[Table]:
        """Tables that the jump may read, the likeliest first."""
        raw = listing.mnemonics[position].removesuffix(".w")
        parts = split(listing.text(position))
        name, condition = _unconditional(raw)
        if name in ("tbb", "tbh"):
            memory = parse_memory(parts[0])
            start = listing.addresses[position] + 4
            if memory.base == "pc":
                width = 1 if name == "tbb" else 2
                yield Table(start, width, False, 1, start, memory.selector, position)
        elif name == "ldr" and len(parts) == 2:
            yield from self._absolute(listing, parse_memory(parts[1]), position, condition)
        elif name == "add":
            yield from self._sum(listing, parts, position, condition)
        elif parts[0] != "pc":
            yield from self._from_register(listing, family(parts[0]), position)
        elif len(parts) == 2:
            yield from self._from_register(listing, family(parts[1]), position)

    def _from_register(self, listing: Listing, register: str, position: int) -> Iterator[Table]:
        """Follows what was jumped to back to the load from a table."""
        for at, name, parts in self._writers(listing, register, position):
            if name == "add":
                yield from self._sum(listing, parts, at)
            elif name == "ldr" and len(parts) == 2 and "[" in parts[1]:
                memory = parse_memory(parts[1])
                if memory.is_stack:
                    yield from self._spilled(listing, memory, at)
                else:
                    yield from self._absolute(listing, memory, at)
            elif name in ("mov", "orr") and len(parts) > 1 and number(parts[1]) is None:
                # ``orr R, R, #1`` selects Thumb.
                yield from self._from_register(listing, family(parts[1]), at)
            return

    def _spilled(self, listing: Listing, memory: Memory, position: int) -> Iterator[Table]:
        """The target was kept on the stack: goes on from where it was stored."""
        for at in range(position - 1, max(-1, position - NEAR), -1):
            if plain_name(listing.mnemonics[at]) == "str":
                source, target = split(listing.text(at))[:2]
                if parse_memory(target).text == memory.text:
                    yield from self._from_register(listing, family(source), at)
                    return

    def _absolute(
        self, listing: Listing, memory: Memory, position: int, condition: str = ""
    ) -> Iterator[Table]:
        """Tables of addresses."""
        if not memory.selector:
            yield from self._added(listing, memory, position)
            return
        for start, index in self._starts(listing, memory, position):
            yield Table(start, self._pointer, False, 0, 0, index, position, condition)

    def _added(self, listing: Listing, memory: Memory, position: int) -> Iterator[Table]:
        """``add A, T, I, lsl #2; ldr R, [A]``: -O0."""
        for at, name, parts in self._writers(listing, memory.base, position):
            if name == "add" and len(parts) == 4 and not memory.displacement:
                for start in self._values.constants(listing, family(parts[1]), at):
                    yield Table(start, self._pointer, False, 0, 0, family(parts[2]), at)
            return

    def _writers(
        self, listing: Listing, register: str, position: int
    ) -> Iterator[tuple[int, str, list[str]]]:
        """(position, mnemonic, operands) of what wrote a register, the nearest first."""
        for at in self._walk.back(listing, position, NEAR):
            writer = written(listing, register, at)
            if writer is not None:
                yield at, *writer

    def _starts(self, listing: Listing, memory: Memory, position: int) -> Iterator[tuple[int, str]]:
        """(address, index) that a load may read from."""
        if memory.base == "pc":
            yield self._values.program_counter(listing, position) & ~3, memory.selector
            return
        for start in self._values.constants(listing, memory.base, position):
            yield start, memory.selector
        if not memory.shift:
            # [A, B]: either may be the table.
            for start in self._values.constants(listing, memory.selector, position):
                yield start, memory.base

    def _sum(
        self, listing: Listing, parts: list[str], position: int, condition: str = ""
    ) -> Iterator[Table]:
        """``add R, O, X, lsl #2``: entries that count from O."""
        modifier = parts.pop() if parts[-1].startswith(MODIFIERS) else ""
        shift, signed = shift_of(modifier), modifier.startswith("sxt")
        first, second = (family(part) for part in parts[-2:])
        if first == "pc" and shift == 2:
            start = self._values.program_counter(listing, position)
            yield Table(start, 0, False, 0, 0, second, position, condition)
            return
        for origin, entry in ((first, second), (second, first)):
            for table in islice(self._loads(listing, entry, origin, position), MAX_CANDIDATES):
                yield table._replace(shift=shift, signed=table.signed or signed)

    def _loads(self, listing: Listing, entry: str, origin: str, position: int) -> Iterator[Table]:
        """Tables that ``entry`` was loaded from, with ``origin`` to count from."""
        for at, name, parts in self._writers(listing, entry, position):
            width = 4 if name == "ldr" else WIDTHS.get(name)
            memory = parse_memory(parts[-1])
            if width is None or not memory.selector:
                return
            signed = name in SIGNED_LOADS or width == 4
            kept = memory.base == origin and not any(
                writer[0] > at for writer in islice(self._writers(listing, origin, position), 1)
            )
            bases = [] if kept else self._values.constants(listing, origin, position)
            base = next(iter(bases), None)
            for start, selector in self._starts(listing, memory, at):
                counted_from = start if kept else base
                if counted_from is not None:
                    yield Table(start, width, signed, 0, counted_from, selector, at)
            return


def _unconditional(name: str) -> tuple[str, str]:
    """A mnemonic of 32-bit ARM without its condition, and the condition."""
    for base in ("ldr", "add", "mov", "bx"):
        rest = name.removeprefix(base)
        if name.startswith(base) and rest in CONDITIONS:
            return base, rest
    return name, ""
