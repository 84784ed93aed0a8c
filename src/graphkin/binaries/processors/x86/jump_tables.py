"""Jump tables of gcc, clang and MSVC on x86: where the table is, how long, and what it holds.

The forms met in practice, with T the table and I the index::

    jmp [I*8 + T]                                              absolute
    mov R, [I*8 + T]; jmp R                                    absolute, -O0
    lea B, [rip + T]; movsxd R, [B + I*4]; add R, B; jmp R     relative to the table
    lea B, [rip + T]; movsxd R, [B + I*4];                     the same, assembly of glibc
        lea R, [B + R]; jmp R
    lea A, [I*4]; lea B, [rip + T]; mov R, [A + B]; cdqe;      the same, gcc -O0
        lea B, [rip + T]; add R, B; jmp R
    mov R, [G + I*4 + T - G]; add R, G; jmp R                  relative to G, 32 bit
    lea B, [rip + image]; mov R, [B + I*4 + T]; add R, B;      relative to the image, MSVC
        jmp R
    movzx I, byte [J + S]; jmp [I*4 + T]                       through bytes at S, MSVC

G is the base of the global offset table, to which 32-bit code gets by calling the instruction
behind the call: :func:`table_base`.

The registers are followed backwards through the instructions as they lie in memory. That is
not the order of execution, but the compilers keep these sequences together; a table address
that was computed far ahead (out of a loop, or spilled to the stack) is the nearest one found.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

from graphkin.binaries.image import Image
from graphkin.binaries.processors.x86.operands import (
    Memory,
    family,
    location_of,
    parse_memory,
    table_entries,
)
from graphkin.binaries.recovery.listing import Listing

FAR = 4000
"""Instructions to look back for a table's address."""
NEAR = 60
"""Instructions to look back for the load from the table."""
BYTES_REACH = 12
"""Instructions to look back for the load of an index from a table of bytes."""
MAX_ENTRIES = 1 << 16
MAX_CANDIDATES = 16
LOADS = ("mov", "movsxd", "movsx", "movzx")
MOVES = frozenset(["lea", "mov", "movabs"])
READ_ONLY = frozenset(["cmp", "test", "push", "call", "jmp", "bt", "nop", "cdqe", "cdq"])
REGISTER = re.compile(r"[a-z]\w*")


class Table(NamedTuple):
    """A jump table: ``length`` entries of ``width`` bytes, each counted from ``origin``."""

    address: int
    width: int
    origin: int
    """0 for tables of absolute addresses."""
    memory: Memory
    """How an entry is loaded, which names the index register."""
    load: int
    """Position of the load."""


class X86Tables:
    """Reads the jump tables of one function."""

    def __init__(self, image: Image, pointer: int) -> None:
        self._image = image
        self._pointer = pointer
        self._owners: dict[int, int] = {}
        """Table to the jump that reads it."""

    def __call__(self, listing: Listing, position: int, guess: bool) -> list[int] | None:
        """Targets of an indirect jump; None when only a guess could tell how many there are.

        A jump through memory that is not a table, as in a tail call, has no targets here.
        """
        best: list[int] = []
        chosen, rank = 0, (False, 0)
        for table in islice(self._find(listing, position), MAX_CANDIDATES):
            known = _before_bytes(listing, table)
            if known is None and not guess:
                known = table_entries(listing, table.load, table.memory)
                if not known:
                    return None
            length = min(known or MAX_ENTRIES, MAX_ENTRIES)
            targets = self._read(listing, table, length, known is not None)
            # Every table of a function holds valid targets, but each jump has a table of its own.
            is_free = self._owners.get(table.address, position) == position
            if (is_free, len(targets)) > rank and targets:
                rank, best, chosen = (is_free, len(targets)), targets, table.address
            if is_free and best and (guess or len(targets) == length):
                break
        self._owners.setdefault(chosen, position)
        return best

    def _read(self, listing: Listing, table: Table, length: int, known_length: bool) -> list[int]:
        """Targets up to a known length, where clang leaves entries that no index reaches without
        meaning; otherwise up to the first that is not an instruction of the function.
        """
        targets: list[int] = []
        for number in range(length):
            address = table.address + number * table.width
            if number and address in self._owners:
                break
            word = self._image.word(address, table.width)
            if word is None:
                break
            if table.origin:
                sign = 1 << (8 * table.width - 1)
                word = ((word ^ sign) - sign + table.origin) & ((1 << 8 * self._pointer) - 1)
            if listing.position(word) is not None or self._image.fragment(word) is not None:
                targets.append(word)
            elif not known_length:
                break
        return targets

    def _find(self, listing: Listing, position: int) -> Iterator[Table]:
        """Tables that the jump may read, the likeliest first."""
        text = listing.text(position)
        if "[" not in text:
            return self._from_register(listing, family(text), position)
        memory = parse_memory(text)
        if not memory.is_stack:
            return self._absolute(listing, memory, position)
        # The target itself was spilled: go on from where it was stored.
        for at in range(position - 1, max(-1, position - FAR), -1):
            if listing.mnemonics[at] == "mov":
                target, _, source = listing.text(at).partition(", ")
                if "[" in target and parse_memory(target).text == memory.text:
                    return self._from_register(listing, family(source), at)
        return iter(())

    def _from_register(self, listing: Listing, register: str, position: int) -> Iterator[Table]:
        """Follows what was jumped to back to the load from a table."""
        added = ""
        for at in range(position - 1, max(-1, position - NEAR), -1):
            name = listing.mnemonics[at]
            if name in READ_ONLY:
                continue
            target, _, source = listing.text(at).partition(", ")
            if "[" in target or family(target) not in (register, added):
                continue
            if name == "add" and "[" in source:
                return self._relative(listing, parse_memory(source), register, at)
            if name == "add":
                added = family(source)
            elif name == "lea":
                memory = parse_memory(source)
                if memory.other and not memory.displacement and family(target) == register:
                    register, added = memory.base, memory.other
            elif name in LOADS and "[" in source:
                memory = parse_memory(source)
                if memory.is_stack or memory.is_rip:
                    continue
                if not added:
                    return self._absolute(listing, memory, at)
                origin = register if family(target) == added else added
                return self._relative(listing, memory, origin, at)
            elif name == "mov" and REGISTER.fullmatch(source):
                if family(target) == register:
                    register = family(source)
                else:
                    added = family(source)
        return iter(())

    def _absolute(self, listing: Listing, memory: Memory, position: int) -> Iterator[Table]:
        """Tables of addresses."""
        width = self._pointer
        if memory.scale == width:
            bases = self._constants(listing, memory.base, position) if memory.base else iter([0])
            for base in bases:
                yield Table(base + memory.displacement, width, 0, memory, position)
        elif memory.other:
            # [A + B]: one of the two is the table, the other the scaled index.
            for candidate in (memory.other, memory.base):
                for start in self._constants(listing, candidate, position, NEAR):
                    yield Table(start, width, 0, memory, position)
        elif memory.base and not memory.scaled:
            # [A], after ``add A, T``: 32-bit code at -O0.
            for at in range(position - 1, max(-1, position - 4), -1):
                target, _, source = listing.text(at).partition(", ")
                if listing.mnemonics[at] == "add" and source.startswith("0x"):
                    if family(target) == memory.base:
                        yield Table(int(source, 16), width, 0, memory, at)
                    return

    def _relative(
        self, listing: Listing, memory: Memory, origin: str, position: int
    ) -> Iterator[Table]:
        """Tables whose entries count from the value of ``origin``."""
        if self._pointer == 4:
            yield from self._relative_to_got(listing, memory, origin, position)
            return
        if memory.scale == 1:
            for candidate in (memory.other, memory.base):
                for start in self._constants(listing, candidate, position, NEAR):
                    yield Table(start, 4, start, memory, position)
            return
        for start in self._constants(listing, memory.base, position):
            address = start + memory.displacement
            yield Table(address, 4, start, memory, position)
            if origin != memory.base:
                for other in islice(self._constants(listing, origin, position), 1):
                    yield Table(address, 4, other, memory, position)

    def _relative_to_got(
        self, listing: Listing, memory: Memory, origin: str, position: int
    ) -> Iterator[Table]:
        """32-bit code has no addresses relative to itself: all count from one table."""
        base = table_base(self._image, listing, origin, position)
        got = self._image.got if base is None else base
        if got is None:
            return
        if memory.base and origin not in (memory.base, memory.other):
            for start in self._constants(listing, memory.base, position):
                yield Table(start + memory.displacement, 4, got, memory, position)
        if memory.other:
            index = memory.base if origin == memory.other else memory.other
            memory = memory._replace(base=index, other="")
        yield Table(got + memory.displacement, 4, got, memory, position)

    def _constants(
        self, listing: Listing, register: str, position: int, reach: int = FAR
    ) -> Iterator[int]:
        """Addresses put into a register: ahead of a position, nearest first, then behind it."""
        got = table_base(self._image, listing, register, position) if self._pointer == 4 else None
        if got is not None:
            yield got
        registers, slots = {register}, set[str]()
        behind = min(len(listing.mnemonics), position + reach)
        for at in (*range(position - 1, max(-1, position - reach), -1), *range(position, behind)):
            if listing.mnemonics[at] not in MOVES:
                continue
            target, _, source = listing.text(at).partition(", ")
            if "[" in target:
                if slots and parse_memory(target).text in slots:
                    registers.add(family(source))
                continue
            if family(target) not in registers:
                continue
            if "[" in source:
                memory = parse_memory(source)
                if memory.is_rip and listing.mnemonics[at] == "lea":
                    yield listing.addresses[at] + listing.sizes[at] + memory.displacement
                elif memory.is_stack and at < position:
                    slots.add(memory.text)
                elif self._pointer == 4 and listing.mnemonics[at] == "lea" and not memory.scaled:
                    base = table_base(self._image, listing, memory.base, at)
                    if base is not None:
                        yield base + memory.displacement
            elif source.startswith("0x"):
                yield int(source, 16)
            elif REGISTER.fullmatch(source) and at < position:
                registers.add(family(source))


def _before_bytes(listing: Listing, table: Table) -> int | None:
    """Entries of a table whose index comes from bytes: MSVC puts those right behind the table."""
    for at in range(table.load - 1, max(-1, table.load - BYTES_REACH), -1):
        target, _, source = listing.text(at).partition(", ")
        if "[" in target or family(target) != table.memory.scaled:
            continue
        if listing.mnemonics[at] != "movzx" or not source.startswith("byte ptr ["):
            return None
        count, rest = divmod(
            parse_memory(source).displacement - table.memory.displacement, table.width
        )
        return count if not rest and 0 < count <= 256 else None
    return None


class _Keeps(dict[str, bool]):
    """By mnemonic, whether an instruction changes nothing that may hold the base of a table."""

    def __missing__(self, name: str) -> bool:
        keeps = name in READ_ONLY or name in ("pop", "leave", "ret") or name[0] == "j"
        self[name] = keeps
        return keeps


_KEEPS = _Keeps()


def table_base(image: Image, listing: Listing, register: str, position: int) -> int | None:
    """The base of the global offset table, where a register of 32-bit code holds it.

    That is ``call thunk; add R, N`` or ``call next; pop R; add R, N``, and copies of R.
    """
    origin = location = family(register)
    behind, up_to, same = listing.base_spans.get(origin, (0, -1, None))
    if behind < position <= up_to:
        return same
    limit = max(-1, position - FAR)
    names, writes = listing.mnemonics, listing.writes
    own = known_at = listing.bases.setdefault(location, {})
    first: int | None = None  # the nearest write of the register itself
    for at in range(position - 1, limit, -1):
        # Code calls through one register again and again.
        known = known_at.get(at + 1)
        if known is not None and known[0] > limit:
            own[position] = known
            listing.base_spans[origin] = (at if first is None else first, position, known[1])
            return known[1]
        name = names[at]
        if _KEEPS[name]:
            continue
        write = writes.get(at)
        if write is None:
            target, _, source = listing.text(at).partition(", ")
            write = writes[at] = location_of(target), source
        if write[0] != location:
            continue
        source = write[1]
        if first is None:
            first = at
        if name == "mov" and not source.startswith("0x"):
            location = location_of(source)
            known_at = listing.bases.setdefault(location, {})
            continue
        is_base = name == "add" and source[:1].isdigit()
        base = _base_of_call(listing, at, int(source, 0)) if is_base else None
        own[position] = (at, base)
        listing.base_spans[origin] = (first, position, base)
        return base
    if limit < 0:
        listing.base_spans[origin] = (-1 if first is None else first, position, None)
    return None


def _base_of_call(listing: Listing, position: int, distance: int) -> int | None:
    """What ``add R, distance`` makes of the address that a call just before it pushed."""
    for at in range(position - 1, max(-1, position - 6), -1):
        if listing.mnemonics[at] == "call":
            following = listing.addresses[at] + listing.sizes[at]
            return (following + distance) & 0xFFFFFFFF
    return None
