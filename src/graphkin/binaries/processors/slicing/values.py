"""Addresses that code puts into registers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, TypeGuard

from graphkin.binaries.image import Image
from graphkin.binaries.processors.slicing.effects import (
    NONE,
    Call,
    Effect,
    Load,
    Mask,
    Semantics,
    Shift,
    Store,
    Sum,
)
from graphkin.binaries.processors.walk import Walk
from graphkin.binaries.recovery.listing import Listing

REACH = (4000, 300, 60, 60, 60)
"""Instructions to look back for an address, for its parts, for their parts, and so on."""
MAX_DEPTH = len(REACH) - 1
NEAR = 60
"""Instructions to look back for what was left in a register last."""
BUDGET = 50_000
"""Instructions to look at for one question, for crafted code could have the reaches multiply."""
TREE_DEPTH = 6

Slot = tuple[int, int]
"""A place on the stack: the register that it is counted from, and the distance."""


class Tree(NamedTuple):
    """How a value was computed; equal ones are equal values."""

    kind: str
    number: int = 0
    parts: tuple[Tree, ...] = ()


class Values:
    """Reads addresses out of the instructions as they lie in memory.

    Args:
        image: the binary.
        semantics: what instructions do.
        pointer: width of an address in bytes.
    """

    def __init__(self, image: Image, semantics: Semantics, pointer: int) -> None:
        self._image = image
        self._semantics = semantics
        self._pointer = pointer
        self._limit = (1 << 8 * pointer) - 1
        self._left = 0
        """What is left of the budget."""

    def slot(self, effect: Effect, listing: Listing) -> Slot | None:
        """The place on the stack that a load or a store uses."""
        if not isinstance(effect, Store | Load):
            return None
        if isinstance(effect, Load) and effect.selector != NONE:
            return None
        is_frame = effect.base in self._semantics.frames(listing)
        return (effect.base, effect.displacement) if is_frame else None

    def writes(self, effect: Effect, register: int) -> bool:
        """Whether an instruction changes a register."""
        if isinstance(effect, Call):
            return register in self._semantics.scratch
        return effect.target == register

    def _is_copy(self, effect: Effect, listing: Listing) -> TypeGuard[Sum]:
        """Whether an instruction does nothing but move a register whose value is not known."""
        return (
            isinstance(effect, Sum)
            and effect.second == NONE
            and not effect.constant
            and effect.first != NONE
            and effect.first not in self._semantics.fixed(listing)
        )

    def writer(
        self, listing: Listing, walk: Walk, register: int, position: int
    ) -> tuple[int, Effect] | None:
        """The nearest instruction ahead that wrote a register; spills to the stack are crossed."""
        at, effect, _ = self._source(listing, walk, register, position)
        return None if effect is None else (at, effect)

    def _source(
        self, listing: Listing, walk: Walk, register: int, position: int
    ) -> tuple[int, Effect | None, int | Slot]:
        """(position, effect, register) of what wrote a value; without an effect, the register or
        the place on the stack that it came from."""
        location: int | Slot = register
        at = position
        for at in walk.back(listing, position, NEAR):
            effect = self._semantics.effect(listing, at)
            if isinstance(location, tuple):
                if isinstance(effect, Store) and self.slot(effect, listing) == location:
                    location = effect.source
                continue
            if not self.writes(effect, location):
                continue
            if self._is_copy(effect, listing):
                location = effect.first
            elif isinstance(effect, Load) and (slot := self.slot(effect, listing)) is not None:
                location = slot
            else:
                return at, effect, location
        return at, None, location

    def constants(
        self, listing: Listing, register: int, position: int, depth: int = 0
    ) -> Iterator[int]:
        """Addresses put into a register: ahead of a position, nearest first, then behind it."""
        if register == NONE:
            yield 0
            return
        fixed = self._semantics.fixed(listing).get(register)
        if fixed is not None:
            yield fixed
            return
        reach = REACH[depth]
        if not depth:
            self._left = BUDGET
        rows = [*range(position - 1, max(-1, position - 1 - reach), -1)]
        if not depth:
            rows += range(position, min(len(listing.mnemonics), position + reach))
        registers, slots, is_written = {register}, set[Slot](), False
        for at in rows:
            self._left -= 1
            if self._left < 0:
                return
            effect = self._semantics.effect(listing, at)
            if isinstance(effect, Store):
                if slots and self.slot(effect, listing) in slots:
                    registers.add(effect.source)
                continue
            if effect.target not in registers:
                continue
            is_first, is_written = not is_written, True
            if self._is_copy(effect, listing):
                registers.add(effect.first)
                continue
            slot = self.slot(effect, listing)
            if slot is not None:
                if is_first and not depth:
                    yield from self._stored(listing, slot)
                slots.add(slot)
                continue
            value = self._value(listing, at, effect, depth)
            if value is not None:
                yield value
        if not is_written and position - 1 <= reach:
            known = self._semantics.at_entry(listing)
            yield from (known[name] for name in registers if name in known)

    def _stored(self, listing: Listing, slot: Slot) -> Iterator[int]:
        """Addresses that the function keeps in a place on the stack, wherever it stores them."""
        for at in range(min(len(listing.mnemonics), BUDGET)):
            effect = self._semantics.effect(listing, at)
            if isinstance(effect, Store) and self.slot(effect, listing) == slot:
                value = self.exact(listing, effect.source, at)
                if value is not None:
                    yield value

    def called(self, listing: Listing, register: int, position: int) -> int | None:
        """Where a call through a register goes: an address, or the slot that it is read from."""
        end = max(-1, position - 1 - NEAR)
        while (written := self._last_write(listing, register, position, end)) is not None:
            position, effect = written
            if self._is_copy(effect, listing):
                register = effect.first
            elif isinstance(effect, Load):
                return self._exact_place(listing, position, effect, 0)
            else:
                return self.exact(listing, register, position + 1)
        return None

    def _last_write(
        self, listing: Listing, register: int, position: int, end: int
    ) -> tuple[int, Effect] | None:
        """The nearest instruction behind ``end``, and ahead of a position, that wrote to it."""
        semantics = self._semantics
        is_scratch = register in semantics.scratch
        words = listing.words()[end + 1 : position]
        words.reverse()
        rows = range(position - 1, end, -1)
        for at, usual in zip(rows, map(semantics.usual, words), strict=True):
            if usual.target == register or (is_scratch and type(usual) is Call):
                effect = semantics.effect(listing, at)
                if effect.target == register or (is_scratch and type(effect) is Call):
                    return at, effect
        return None

    def exact(self, listing: Listing, register: int, position: int, depth: int = 0) -> int | None:
        """What the instructions just ahead leave in a register; None where that is not fixed."""
        if register == NONE:
            return 0
        fixed = self._semantics.fixed(listing).get(register)
        if fixed is not None or depth > MAX_DEPTH:
            return fixed
        written = self._last_write(listing, register, position, max(-1, position - 1 - NEAR))
        if written is None:
            return self._semantics.at_entry(listing).get(register) if position <= NEAR else None
        at, effect = written
        if isinstance(effect, Sum):
            first = self.exact(listing, effect.first, at, depth + 1)
            # A sum of something unknown is unknown, whatever the rest is.
            second = None if first is None else self.exact(listing, effect.second, at, depth + 1)
            if first is None or second is None:
                return None
            return (first + second + effect.constant) & self._limit
        if isinstance(effect, Load):
            address = self._exact_place(listing, at, effect, depth)
            return None if address is None else self._image.word(address, effect.width)
        return None

    def _exact_place(self, listing: Listing, at: int, effect: Load, depth: int) -> int | None:
        if effect.selector != NONE or effect.base == NONE:
            return None
        base = self.exact(listing, effect.base, at, depth + 1)
        if base is None:
            return None
        return (base + effect.displacement) & self._limit

    def tree(
        self, listing: Listing, walk: Walk, register: int, position: int, depth: int = 0
    ) -> Tree:
        """How the value of a register was computed, without spills and copies."""
        if register == NONE:
            return Tree("zero")
        at, effect, location = self._source(listing, walk, register, position)
        if isinstance(location, tuple):
            return Tree("slot", location[1], (Tree("register", location[0]),))
        source = Tree("register", location)
        if effect is None:
            return source
        if depth == TREE_DEPTH or isinstance(effect, Call):
            return Tree("written", at, (source,))

        def parts(*registers: int) -> tuple[Tree, ...]:
            return tuple(self.tree(listing, walk, operand, at, depth + 1) for operand in registers)

        if isinstance(effect, Sum):
            return Tree("sum", effect.constant, parts(effect.first, effect.second))
        if isinstance(effect, Load):
            return Tree("load", effect.displacement, parts(effect.base, effect.selector))
        if isinstance(effect, Shift):
            return Tree("shift", effect.bits, parts(effect.source))
        if isinstance(effect, Mask):
            kind = "moved mask" if effect.moved else "mask"
            return Tree(kind, effect.bits, parts(effect.source))
        return Tree("written", at, (source,))

    def _first(self, listing: Listing, register: int, position: int, depth: int) -> int | None:
        if depth >= MAX_DEPTH:
            return None
        return next(self.constants(listing, register, position, depth + 1), None)

    def _value(self, listing: Listing, at: int, effect: Effect, depth: int) -> int | None:
        """What an instruction leaves in its target."""
        if isinstance(effect, Sum):
            first = self._first(listing, effect.first, at, depth)
            second = None if first is None else self._first(listing, effect.second, at, depth)
            if first is None or second is None:
                return None
            return (first + second + effect.constant) & self._limit
        if isinstance(effect, Shift):
            source = self._first(listing, effect.source, at, depth)
            return None if source is None else (source << effect.bits) & self._limit
        if isinstance(effect, Load):
            address = self._place(listing, at, effect, depth)
            return None if address is None else self._image.word(address, effect.width)
        return None

    def _place(self, listing: Listing, at: int, effect: Load, depth: int) -> int | None:
        base = self._first(listing, effect.base, at, depth)
        index = None if base is None else self._first(listing, effect.selector, at, depth)
        if base is None or index is None:
            return None
        return (base + index + effect.displacement) & self._limit
