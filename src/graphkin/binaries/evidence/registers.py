"""Addresses and constants that code builds in registers, followed as the blocks lie in memory.

Processors with instructions of one size need two or more to make an address or a large constant.
Compilers keep those together, or put the first part ahead of loops; following the order in memory
instead of paths finds nearly all of them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence

from graphkin.binaries.evidence import tokens as said
from graphkin.binaries.evidence.collect import Body
from graphkin.binaries.evidence.comparisons import added_by_condition
from graphkin.binaries.evidence.data import LOAD, TAKE
from graphkin.binaries.evidence.operations import pack
from graphkin.binaries.evidence.paths import Paths, Value
from graphkin.binaries.evidence.register_steps import (
    ADD,
    BELOW,
    CONSTANT,
    COPY,
    FORGET,
    FROM_PC,
    INDEXED,
    INSERT,
    JOIN,
    LOW,
    MEMORY,
    PAGE,
    POOL,
    REAL,
    REGISTER_CALL,
    SUM,
    UPPER,
    Step,
)  # fmt: skip
from graphkin.binaries.recovery.architecture import CALL

_HALF = 0xFFFF
_CALL, _JUMP, _ADDRESS = pack("call"), pack("jump"), pack("address")


def follow(
    body: Body,
    steps: Sequence[Step],
    *,
    clobbered: frozenset[str],
    conditions: dict[str, int | None],
    counter: Callable[[int], int],
    known: dict[str, Value] | None = None,
    table: Value | None = None,
    branches: Sequence[tuple[int, int, bool]] = (),
) -> None:
    """Notes what the instructions say.

    Args:
        body: the function.
        steps: what stands at ``body.positions``.
        clobbered: registers that a call does not keep.
        conditions: as :func:`added_by_condition` has them.
        counter: what an instruction at a position reads from pc.
        known: what registers hold at the start.
        table: what the registers hold that MIPS reads its global offset table through.
        branches: positions of branches, rising, where they go, and whether they may run on;
            registers hold there what they did here.
    """
    places, listing = body.places, body.listing
    say = body.say
    mask, got = places.mask, places.image.got
    known = {} if known is None else known
    made: list[Value] = []
    calls = [at for at, kind in zip(listing.controls, listing.kinds, strict=True) if kind == CALL]
    at_calls = frozenset(calls)
    calls.append(len(listing.addresses))
    number, next_call = 0, calls[0]
    paths = Paths(branches, known) if branches else None
    next_path = sys.maxsize if paths is None else 0
    for position, step in zip(body.positions, steps, strict=True):
        if position >= next_path and paths is not None:
            next_path = paths.pass_by(position)
        if position > next_call:
            for register in [name for name in known if name in clobbered]:
                del known[register]
            while calls[number] < position:
                number += 1
            next_call = calls[number]
        dst = step.dst
        if step.is_plain:
            if dst in known:
                del known[dst]
            continue
        if step.tokens:
            say(position, step.tokens)
        action = step.action
        if action == FORGET:
            if step.against is not None:
                added = added_by_condition(body, position, conditions)
                say(position, said.number(step.against + added))
            if dst in known:
                del known[dst]
            continue
        result: Value | None = None
        if action == MEMORY:
            holder = known.get(step.base)
            if holder is not None and holder is table:
                result = _from_global_table(body, position, step, holder, made)
            elif holder is not None and holder.is_address:
                place = (holder.value + step.value) & mask
                value = body.refer(position, place, step.role, step.real)
                if value is not None:
                    result = Value(value, position, True, False)
            elif step.value:
                say(position, said.offset(step.value))
            if step.other in known:
                del known[step.other]
        elif action == COPY:
            result = known.get(step.base)
        elif action == LOW:
            source = known.get(step.base)
            if source is None or not (source.is_address or _is_upper(source.value)):
                say(position, said.offset(step.value))
            else:
                source.is_noted = False
                result = Value(
                    (source.value + step.value) & mask, position, source.is_address, True
                )
                made.append(result)
                if not source.value & _HALF:
                    body.codes[position] = 0
        elif action == ADD:
            source = known.get(step.base)
            if source is None or not source.is_address:
                say(position, said.offset(step.value))
            else:
                # Compilers count neighbours in memory from one address.
                source.is_noted = False
                result = Value((source.value + step.value) & mask, position, True, True)
                made.append(result)
        elif action == CONSTANT:
            result = Value(step.value & mask, position, False, True)
            made.append(result)
        elif action == SUM:
            result = _sum(body, position, step, known, counter, made)
        elif action == UPPER:
            value = step.value & mask
            # Files that are not moved have addresses in their code, in two halves.
            is_page = places.is_fixed and places.is_near(value)
            result = Value(value, position, is_page, not is_page)
            made.append(result)
        elif action == JOIN:
            source = known.get(step.base)
            if source is not None and not source.is_address and _is_upper(source.value):
                source.is_noted = False
                result = Value((source.value | step.value) & mask, position, False, True)
                made.append(result)
                body.codes[position] = 0
            else:
                say(position, said.number(step.value))
        elif action == BELOW:
            source = known.get(step.base)
            if source is not None and not source.is_address and source.is_noted:
                # ``7 < x`` is ``x >= 8``.
                source.is_noted = False
                say(position, said.number(source.value + 1))
        elif action == PAGE:
            result = Value(step.value & mask, position, True, False)
        elif action == INSERT:
            source = known.get(dst)
            if source is not None and not source.is_address:
                kept = ~(0xFFFF << step.real)
                source.value = (source.value & kept | step.value) & mask
                result = source
        elif action == POOL:
            result = _from_pool(body, position, step, counter, made)
        elif action == FROM_PC:
            origin = counter(position) & ~3 if step.base == "pc" else 0
            result = Value((origin + step.value) & mask, position, True, True)
            made.append(result)
        elif action == INDEXED:
            result = _from_table(body, position, step, known, got)
        elif action == REAL:
            source = known.get(step.base)
            if source is not None and not source.is_address:
                source.is_noted = False
                raw = (source.value & ((1 << 8 * step.real) - 1)).to_bytes(step.real, "little")
                say(position, said.real_of(raw))
        elif action == REGISTER_CALL and step.base in known:
            body.codes[position] = _CALL if position + 1 in at_calls else _JUMP
        if dst:
            if result is None:
                if dst in known:
                    del known[dst]
            else:
                known[dst] = result
    for item in made:
        if not item.is_noted:
            continue
        is_fixed = places.is_fixed and places.is_mapped(item.value)
        if item.is_address or is_fixed:
            body.refer(item.position, item.value, TAKE)
        else:
            say(item.position, said.number(item.value))


def _is_upper(value: int) -> bool:
    """Whether a constant has nothing but an upper half."""
    return value != 0 and not value & _HALF


def _from_global_table(
    body: Body, position: int, step: Step, holder: Value, made: list[Value]
) -> Value | None:
    """An entry of the table: a symbol's, or the file's own, with the address of a page or of
    something hidden."""
    places = body.places
    place = (holder.value + step.value) & places.mask
    body.codes[position] = 0 if step.dst == "t9" else _ADDRESS
    if places.is_slot(place):
        value = body.refer(position, place, step.role)
        # What other files define has no address here, but is known all the same.
        return Value(value or 0, position, True, False)
    value = places.image.word(place, places.width)
    if value is None:
        return None
    made.append(Value(value, position, True, bool(value & _HALF)))
    return made[-1]


def _from_pool(
    body: Body, position: int, step: Step, counter: Callable[[int], int], made: list[Value]
) -> Value | None:
    """A word between the code: a constant, unless pc is added to it later."""
    places = body.places
    place = step.value if step.base != "pc" else (counter(position) & ~3) + step.value
    if step.real:
        body.say(position, said.real_of(places.image.read(place, step.real), places.is_big))
        return None
    value = places.image.word(place, places.width)
    if value is None:
        return None
    made.append(Value(value, position, False, True))
    return made[-1]


def _sum(
    body: Body,
    position: int,
    step: Step,
    known: dict[str, Value],
    counter: Callable[[int], int],
    made: list[Value],
) -> Value | None:
    """A constant and pc, or a constant and an address, make an address."""
    first, second = known.get(step.base), known.get(step.index)
    if "pc" in (step.base, step.index):
        source = second if step.base == "pc" else first
        origin = counter(position)
    elif first is not None and second is not None and first.is_address != second.is_address:
        source, origin = (second, first.value) if first.is_address else (first, second.value)
    else:
        return None
    if source is None:
        return None
    for value in (first, second):
        if value is not None:
            value.is_noted = False
    made.append(Value((origin + source.value) & body.places.mask, position, True, True))
    return made[-1]


def _from_table(
    body: Body, position: int, step: Step, known: dict[str, Value], got: int | None
) -> Value | None:
    """A load from the linker's table, with its base and the offset in registers."""
    values = [known[name] for name in (step.base, step.index) if name in known]
    offsets = [item for item in values if not item.is_address]
    if not offsets or step.role != LOAD:
        return None
    bases = [item.value for item in values if item.is_address]
    for base in (*bases, *(() if got is None else (got,))):
        place = (base + offsets[0].value) & body.places.mask
        if body.places.is_slot(place):
            offsets[0].is_noted = False
            value = body.refer(position, place, LOAD)
            return None if value is None else Value(value, position, True, False)
    return None
