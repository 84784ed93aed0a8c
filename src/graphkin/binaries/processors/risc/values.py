"""Addresses that code of ARM or AArch64 puts into registers."""

from __future__ import annotations

from collections.abc import Iterator

from graphkin.binaries.image import Image
from graphkin.binaries.processors.risc.operands import (
    Memory,
    family,
    number,
    parse_memory,
    plain_name,
    split,
)
from graphkin.binaries.recovery.listing import Listing

REACH = (4000, 300, 60, 60, 60)
"""Instructions to look back for an address, for its parts, for their parts, and so on."""
MAX_DEPTH = len(REACH) - 1
BUDGET = 50_000
"""Instructions to look at for one question, for crafted code could have the reaches multiply."""
SETTERS = frozenset(["adr", "adrp", "add", "mov", "movt", "ldr"])
"""Instructions that can make an address."""
_READERS = """str strb strh stp strd cmp cmn tst teq b bl blx blr br bx ret nop push pop cbz cbnz
              tbz tbnz"""
NO_WRITERS = frozenset(_READERS.split())


class Values:
    """Reads addresses out of the instructions as they lie in memory.

    Args:
        image: the binary.
        pointer: width of an address in bytes.
    """

    def __init__(self, image: Image, pointer: int) -> None:
        self._image = image
        self._pointer = pointer
        self._left = 0
        """What is left of the budget."""

    def program_counter(self, listing: Listing, position: int) -> int:
        """What an instruction of 32-bit ARM reads from pc."""
        return listing.addresses[position] + (4 if listing.state(position) == "t" else 8)

    def constants(
        self, listing: Listing, register: str, position: int, depth: int = 0
    ) -> Iterator[int]:
        """Addresses put into a register: ahead of a position, nearest first, then behind it."""
        reach = REACH[depth]
        if not depth:
            self._left = BUDGET
        rows = [*range(position - 1, max(-1, position - reach), -1)]
        if not depth:
            rows += range(position, min(len(listing.mnemonics), position + reach))
            yield from self._unspilled(listing, register, position)
        registers, slots = {register}, set[str]()
        for at in rows:
            self._left -= 1
            if self._left < 0:
                return
            name = plain_name(listing.mnemonics[at])
            if slots and name == "str":
                source, target = split(listing.text(at))[:2]
                if parse_memory(target).text in slots:
                    registers.add(family(source))
            if name not in SETTERS:
                continue
            parts = split(listing.text(at))
            if family(parts[0]) not in registers or len(parts) < 2:
                continue
            if name == "mov" and number(parts[1]) is None:
                registers.add(family(parts[1]))
            elif name == "ldr" and (memory := parse_memory(parts[1])).is_stack:
                slots.add(memory.text)
            elif depth or name != "adrp":
                value = self._value(listing, at, name, parts, depth)
                if value is not None:
                    yield value

    def _unspilled(self, listing: Listing, register: str, position: int) -> Iterator[int]:
        """What was stored to the place on the stack that a register was just loaded from."""
        for at in range(position - 1, max(-1, position - REACH[-1]), -1):
            writer = written(listing, register, at)
            if writer is None:
                continue
            name, parts = writer
            if name != "ldr" or len(parts) != 2 or not parse_memory(parts[1]).is_stack:
                return
            operand = parse_memory(parts[1]).text
            for store in range(at - 1, max(-1, at - REACH[0]), -1):
                self._left -= 1
                if plain_name(listing.mnemonics[store]) == "str":
                    source, target = split(listing.text(store))[:2]
                    if parse_memory(target).text == operand:
                        value = self._first(listing, family(source), store, 0)
                        if value is not None:
                            yield value
            return

    def slot(
        self, listing: Listing, register: str, position: int, depth: int = MAX_DEPTH - 1
    ) -> int | None:
        """Where the value of a register was loaded from, if that address is fixed.

        Args:
            listing: the function's instructions.
            register: the register.
            position: where its value is used.
            depth: how many steps of :data:`REACH` are not taken.
        """
        self._left = BUDGET
        for at in range(position - 1, max(-1, position - REACH[-1]), -1):
            if listing.mnemonics[at] in ("ret", "b", "br", "bx"):
                break
            text = written(listing, register, at)
            if text is not None:
                name, parts = text
                if name != "ldr" or len(parts) != 2 or "[" not in parts[1]:
                    break
                return self._place(listing, at, parse_memory(parts[1]), depth)
        return None

    def _first(self, listing: Listing, register: str, position: int, depth: int) -> int | None:
        if register == "pc":
            return self.program_counter(listing, position)
        if depth >= MAX_DEPTH:
            return None
        return next(self.constants(listing, register, position, depth + 1), None)

    def _value(
        self, listing: Listing, at: int, name: str, parts: list[str], depth: int
    ) -> int | None:
        """What an instruction leaves in its first operand."""
        if name == "ldr":
            return self._loaded(listing, at, parts, depth)
        last = number(parts[-1])
        if name == "adr" and self._pointer == 4 and last is not None:
            return (self.program_counter(listing, at) & ~3) + last
        if name != "movt" and len(parts) == 2 and last is not None:
            # adr and adrp of AArch64 show the address itself.
            return last if name != "add" else self._sum(listing, at, parts[0], last, depth)
        if name == "movt" and last is not None:
            low = self._first(listing, family(parts[0]), at, depth)
            return None if low is None else last << 16 | low & 0xFFFF
        if name != "add" or len(parts) > 3:
            return None
        if last is not None:
            return self._sum(listing, at, parts[1], last, depth)
        other = self._first(listing, family(parts[-1]), at, depth)
        return None if other is None else self._sum(listing, at, parts[-2], other, depth)

    def _sum(self, listing: Listing, at: int, register: str, other: int, depth: int) -> int | None:
        value = self._first(listing, family(register), at, depth)
        return None if value is None else (value + other) & ((1 << 8 * self._pointer) - 1)

    def _loaded(self, listing: Listing, at: int, parts: list[str], depth: int) -> int | None:
        """A word of a literal pool or of the global offset table."""
        address = number(parts[1])
        if address is None:
            address = self._place(listing, at, parse_memory(parts[1]), depth)
        return None if address is None else self._image.word(address, self._pointer)

    def _place(self, listing: Listing, at: int, memory: Memory, depth: int) -> int | None:
        base = self._first(listing, memory.base, at, depth)
        if base is None or memory.shift:
            return None
        if memory.base == "pc":
            base &= ~3
        if not memory.selector:
            return base + memory.displacement
        return self._sum(listing, at, memory.selector, base, depth)


def written(listing: Listing, register: str, position: int) -> tuple[str, list[str]] | None:
    """(mnemonic, operands) of an instruction that writes a register; None for any other."""
    name = plain_name(listing.mnemonics[position])
    if name in NO_WRITERS:
        return None
    parts = split(listing.text(position))
    return (name, parts) if family(parts[0]) == register else None
