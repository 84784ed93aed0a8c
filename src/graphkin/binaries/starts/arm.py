"""Function starts on 32-bit ARM: two instruction sets, and constants between the functions.

Which set some code is in is told by who calls it (``bl`` keeps the state, ``blx`` changes it), by
the lowest bit of a pointer to it, and where neither is known, by its looks: ARM instructions are
words whose top four bits, the condition, nearly always say: always.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from graphkin.binaries.image import Image, Region
from graphkin.binaries.processors.arm import Arm
from graphkin.binaries.recovery.architecture import BRANCH, CALL, JUMP, PLAIN, SELECT, STOP
from graphkin.binaries.starts.sweep import (
    FILLER,
    NOT_CODE,
    NOWHERE,
    SAVES_LINK,
    Sweep,
    joined,
    nowhere,
    signed,
    words,
)

Values = NDArray[np.int64]
Flags = NDArray[np.bool_]

WINDOW = 16
"""Words whose looks are judged together."""
MOSTLY_ARM, SOME_ARM, SOME_THUMB = 0.3, 0.6, 0.1
"""Shares of words that begin like common ARM instructions: above the first, a program is ARM, else
Thumb, with a stretch of ARM above the second. ARM code has about 0.7 of them, Thumb code 0.05.
Below the last share of words without a condition, a stretch of an ARM program is Thumb."""
ROUNDS = 3
LITERAL_ROUNDS = 5
ALWAYS, NEVER = 14, 15

ARM_FORMS = (
    (0x0FFFFFF0, 0x012FFF10, JUMP),
    (0x0FFFFFFF, 0x012FFF1E, STOP),
    (0x0FFFFFF0, 0x012FFF30, CALL),
    (0x0C10F000, 0x0410F000, JUMP),
    (0x0FFFFFFF, 0x049DF004, STOP),
    (0x0E108000, 0x08108000, STOP),
    (0x0FEFFFF0, 0x01A0F000, JUMP),
    (0x0FFFFFFF, 0x01A0F00E, STOP),
    (0x0FE0F000, 0x0080F000, JUMP),
)
"""(mask, bits, kind) of transfers through registers and memory, whatever their condition."""
ARM_RESERVES = (
    (0x0FFF0000, 0x092D0000),
    (0x0FFF0FFF, 0x052D0004),
    (0x0FFFF000, 0x024DD000),
    (0x0FBF0E00, 0x0D2D0A00),
)
ARM_RELEASES = (
    (0x0FFF8000, 0x08BD0000),
    (0x0FFFF000, 0x028DD000),
    (0x0FFF0FFF, 0x049D0004),
    (0x0FBF0E00, 0x0CBD0A00),
)
ARM_FILLERS = (0xE320F000, 0xE1A00000)
NARROW_FORMS = (
    (0xFF87, 0x4700, JUMP),
    (0xFFFF, 0x4770, STOP),
    (0xFF87, 0x4780, CALL),
    (0xFF00, 0xBD00, STOP),
    (0xFF87, 0x4687, JUMP),
    (0xFFFF, 0x46F7, STOP),
    (0xFF87, 0x4487, JUMP),
    (0xFF00, 0xDE00, STOP),
    (0xFF00, 0xBE00, STOP),
)
THUMB_NOP = 0xBF00
NARROW_FILLERS = (THUMB_NOP, 0x46C0, 0x0000)
WIDE_FORMS = (
    (0xFE508000, 0xE8108000, STOP),
    (0xFF70F000, 0xF850F000, JUMP),
    (0xFFFFFFFF, 0xF85DFB04, STOP),
    (0xFFF0FFE0, 0xE8D0F000, JUMP),
    (0xFFF0F000, 0xF7F0A000, STOP),
)
THUMB_RESERVES = (
    (0xFFFF0000, 0xE92D0000),
    (0xFFFF0FFF, 0xF84D0D04),
    (0xFBEF8F00, 0xF1AD0D00),
    (0xFBFF8F00, 0xF2AD0D00),
    (0xFFBF0E00, 0xED2D0A00),
)
THUMB_RELEASES = (
    (0xFFFF8000, 0xE8BD0000),
    (0xFBEF8F00, 0xF10D0D00),
    (0xFBFF8F00, 0xF20D0D00),
    (0xFFBF0E00, 0xECBD0A00),
    (0xFFFF0FFF, 0xF85D0B04),
)
MAX_CASES = 1024
COMPARE_REACH = 4
"""Instructions between the comparison of an index and the jump by a table."""
ADD_REACH = 8
"""Instructions between the load of a distance and the addition of the program counter."""


class ArmFacts:
    """ARM and Thumb, little-endian."""

    alignment = 4
    padded = 4

    def __init__(self) -> None:
        self.architecture = Arm()

    def sweep(self, image: Image, regions: Sequence[Region]) -> Sweep:
        regions = [region for region in regions if len(region.data) >= 8]
        if not regions:
            return _empty()
        commons = np.concatenate([_is_common(words(region.data, 4)) for region in regions])
        is_arm = bool(commons.mean() > MOSTLY_ARM)
        code = [_Code.of(region, is_arm) for region in regions]
        hints = {address: state == "t" for address, state in image.marks}
        called: dict[int, bool] = {}
        for _ in range(ROUNDS):
            for piece in code:
                piece.settle(called | hints)
            sweep = joined([piece.decoded() for piece in code])
            found = _called(sweep)
            if found == called:
                break
            called = found
        return sweep


@dataclass(frozen=True)
class _Code:
    """A region, read both ways."""

    start: int
    word: Values
    half: Values
    is_thumb: Flags
    """(W,) for each word, whether it is Thumb."""

    @classmethod
    def of(cls, region: Region, is_arm: bool) -> _Code:
        """By the looks.

        Args:
            region: the code.
            is_arm: whether most of the program is.
        """
        lead = -region.start % 4
        word, half = words(region.data[lead:], 4), words(region.data[lead:], 2)
        if is_arm:
            # Tables of addresses look like neither, so that more is looked at together.
            is_thumb = _share(word >> 28 == ALWAYS, 4 * WINDOW) < SOME_THUMB
        else:
            is_thumb = _share(_is_common(word), WINDOW) < SOME_ARM
        return cls(region.start + lead, word, half, is_thumb)

    def settle(self, states: Mapping[int, bool]) -> None:
        """Writes what is known of single functions over the looks, up to the next of them."""
        is_thumb = self.is_thumb
        end = self.start + 4 * len(self.word)
        rising = sorted(address for address in states if self.start <= address < end)
        for number, address in enumerate(rising):
            first, state = (address - self.start) // 4, states[address]
            if is_thumb[first] == state:
                continue
            following = rising[number + 1] if number + 1 < len(rising) else end
            last = max(first + 1, min((following - self.start) // 4, first + WINDOW))
            # The looks change where the function ends, if not at the next known one.
            changes = np.flatnonzero(is_thumb[first:last] == state)
            is_thumb[first : first + int(changes[0]) if len(changes) else last] = state

    def decoded(self) -> Sweep:
        edges = (np.flatnonzero(np.diff(self.is_thumb)) + 1).tolist()
        parts = []
        for first, last in zip([0, *edges], [*edges, len(self.word)], strict=True):
            here = self.start + 4 * first
            if self.is_thumb[first]:
                end = len(self.half) if last == len(self.word) else 2 * last
                parts.append(_thumb(self.half[2 * first : end], here))
            else:
                parts.append(_arm(self.word[first:last], here))
        return joined(parts)


def _empty() -> Sweep:
    none = np.empty(0, dtype=np.int64)
    flags = np.empty(0, dtype=bool)
    small = np.empty(0, dtype=np.uint8)
    return Sweep(none, none, small, none, none, flags, small.astype(np.int8), small, none)


def _is_common(word: Values) -> Flags:
    """Whether words begin like the common instructions of ARM, as those of Thumb hardly do; but
    ``nop; b`` does, of which code for a switch that is not optimised has many."""
    return np.asarray((word >> 27 == 0b11100) & (word & 0xFFFF != THUMB_NOP))


def _share(flags: Flags, window: int) -> NDArray[np.float64]:
    """(W,) the share of flags that are set among so many around each."""
    ones = np.ones(window)
    middle = slice(window // 2, window // 2 + len(flags))
    return np.convolve(flags, ones)[middle] / np.convolve(np.ones(len(flags)), ones)[middle]


def _called(sweep: Sweep) -> dict[int, bool]:
    """The state in which each target is called, where all calls agree."""
    rows = np.flatnonzero((sweep.kind == CALL) & (sweep.target >= 0))
    # The lowest bit of a call's pointer says whether it changes the state.
    is_thumb = (sweep.state[rows] == ord("t")) ^ (sweep.pointer[rows] == 1)
    votes: dict[int, int] = {}
    for target, state in zip(sweep.target[rows].tolist(), is_thumb.tolist(), strict=True):
        votes[target] = votes.get(target, 0) + (1 if state else -1)
    return {target: vote > 0 for target, vote in votes.items() if vote}


def _frame(
    code: Values, reserves: Iterable[tuple[int, int]], releases: Iterable[tuple[int, int]]
) -> NDArray[np.int8]:
    frame = np.zeros(len(code), dtype=np.int8)
    for change, forms in ((1, reserves), (-1, releases)):
        for mask, bits in forms:
            frame[code & mask == bits] = change
    return frame


def _arm(word: Values, start: int) -> Sweep:
    address = start + 4 * np.arange(len(word), dtype=np.int64)
    condition = word >> 28
    kind = np.full(len(word), PLAIN, dtype=np.uint8)
    target = np.full(len(word), NOWHERE, dtype=np.int64)
    pointer = np.full(len(word), NOWHERE, dtype=np.int64)
    for mask, bits, meaning in ARM_FORMS:
        kind[(word & mask == bits) & (condition != NEVER)] = meaning
    has_condition = condition != ALWAYS
    kind[has_condition & (kind == STOP)] = BRANCH
    kind[has_condition & (kind == JUMP)] = SELECT
    distance = 4 * signed(word, 24) + 8
    is_branch = word & 0x0E000000 == 0x0A000000
    is_linked = (word & 0x01000000 != 0) | (condition == NEVER)
    kind[is_branch] = np.where(is_linked, CALL, np.where(has_condition, BRANCH, JUMP))[is_branch]
    changes = is_branch & (condition == NEVER)
    target[is_branch] = (address + distance + 2 * (changes & (word >> 24 & 1 == 1)))[is_branch]
    pointer[changes] = 1
    kind[word & 0xFFF000F0 == 0xE7F000F0] = STOP
    kind[np.isin(word, ARM_FILLERS)] = FILLER
    kind[word == 0] = NOT_CODE
    near = np.isin(word & 0x0FFF0000, (0x028F0000, 0x024F0000)) & (condition != NEVER)
    amount = _rotated(word)
    amount = np.where(word & 0x00800000, amount, -amount)
    pointer[near] = (address + 8 + amount)[near]
    literal, width = np.zeros(len(word), dtype=np.int64), np.zeros(len(word), dtype=np.int64)
    for mask, bits, scale, bytes_ in (
        (0x0F7F0000, 0x051F0000, 1, 4),
        (0x0F3F0F00, 0x0D1F0A00, 4, 4),
        (0x0F3F0F00, 0x0D1F0B00, 4, 8),
    ):
        rows = (word & mask == bits) & (condition != NEVER)
        amount = word & 0xFFF if scale == 1 else (word & 0xFF) * 4
        amount = np.where(word & 0x00800000, amount, -amount)
        literal[rows], width[rows] = (address + 8 + amount)[rows], bytes_
    for offset in (0, 4):
        rows = np.flatnonzero(width > offset)
        at = (literal[rows] + offset - start) // 4
        at = at[(at >= 0) & (at < len(word))]
        kind[at], target[at], pointer[at] = NOT_CODE, NOWHERE, NOWHERE
    _mark_addresses(kind, word)
    _fill_literals(pointer, kind, literal, width, word, start, 4)
    frame = _frame(word, ARM_RESERVES, ARM_RELEASES)
    frame[word & 0x0FFFE000 == 0x092D4000] = SAVES_LINK
    size = np.full(len(word), 4, dtype=np.int64)
    state = np.full(len(word), ord("a"), dtype=np.uint8)
    origin = nowhere(len(address))
    return Sweep(address, size, kind, target, pointer, frame > 0, frame, state, origin)


def _fill_literals(
    pointer: Values,
    kind: NDArray[np.uint8],
    literal: Values,
    width: Values,
    values: Values,
    start: int,
    step: int,
) -> None:
    """A load of a constant may load the address of a function."""
    rows = np.flatnonzero((width == 4) & (kind == PLAIN))
    at = (literal[rows] - start) // step
    inside = (at >= 0) & (at < len(values) - 1)
    rows, at = rows[inside], at[inside]
    value = values[at] if step == 4 else values[at] | values[at + 1] << 16
    pointer[rows] = value & ~1


def _mark_addresses(kind: NDArray[np.uint8], word: Values) -> None:
    """The addresses behind ``cmp R, #N; ldrls pc, [pc, R, lsl #2]; b default``."""
    for row in np.flatnonzero(word & 0x0FFFFFF0 == 0x079FF100).tolist():
        for ahead in range(max(0, row - 3), row):
            if word[ahead] & 0x0FF00000 == 0x03500000:
                count = int(_rotated(word[ahead : ahead + 1])[0]) + 1
                kind[row + 2 : row + 2 + min(count, MAX_CASES)] = NOT_CODE


def _rotated(word: Values) -> Values:
    turn, value = (word >> 8 & 15) * 2, word & 0xFF
    return (value >> turn | value << (32 - turn)) & 0xFFFFFFFF


def _thumb(half: Values, start: int) -> Sweep:
    """Reads some times: constants are known only by the instructions that load them, and look
    like such instructions themselves."""
    is_data = np.zeros(len(half), dtype=bool)
    for _ in range(LITERAL_ROUNDS):
        at, code, is_wide = _thumb_instructions(half, is_data)
        literal, width = _thumb_literals(at, code, start)
        data = np.zeros(len(half), dtype=bool)
        usable = np.flatnonzero((width > 0) & ~is_data[at])
        for offset in range(0, 8, 2):
            rows = usable[width[usable] > offset]
            where = (literal[rows] + offset - start) // 2
            data[where[(where >= 0) & (where < len(half))]] = True
        _mark_tables(data, half, at, code)
        if np.array_equal(data, is_data):
            break
        is_data = data
    at, code, is_wide = _thumb_instructions(half, is_data)
    literal, width = _thumb_literals(at, code, start)
    address = start + 2 * at
    kind, target, changes = _thumb_kinds(address, code, is_wide)
    dead = is_data[at] | (is_wide & is_data[np.minimum(at + 1, len(half) - 1)])
    kind[dead], target[dead] = NOT_CODE, NOWHERE
    width[dead] = 0
    pointer = np.full(len(at), NOWHERE, dtype=np.int64)
    _fill_literals(pointer, kind, literal, width, half, start, 2)
    _add_counter(pointer, address, code, width)
    pointer[(kind == CALL) & changes] = 1
    frame = _frame(code, THUMB_RESERVES, THUMB_RELEASES)
    narrow = ~is_wide
    frame[narrow & ((code & 0xFE00 == 0xB400) | (code & 0xFF80 == 0xB080))] = 1
    frame[(narrow & (code & 0xFF00 == 0xB500)) | (code & 0xFFFFE000 == 0xE92D4000)] = SAVES_LINK
    frame[narrow & ((code & 0xFF00 == 0xBC00) | (code & 0xFF80 == 0xB000))] = -1
    frame[dead] = 0
    size = np.where(is_wide, 4, 2).astype(np.int64)
    state = np.full(len(at), ord("t"), dtype=np.uint8)
    origin = nowhere(len(address))
    return Sweep(address, size, kind, target, pointer, frame > 0, frame, state, origin)


def _thumb_instructions(half: Values, is_data: Flags) -> tuple[Values, Values, Flags]:
    """(position in halves, bits, whether it has two halves) of every instruction.

    A half that begins a wide instruction is known by its top bits. In a row of such halves every
    second one begins an instruction, whatever was ahead of the row.
    """
    wide = (half >> 11 >= 0b11101) & ~is_data
    rows = np.arange(len(half))
    begins = wide & ~np.concatenate([[False], wide[:-1]])
    first = np.maximum.accumulate(np.where(begins, rows, -1))
    leads = wide & ((rows - first) % 2 == 0)
    leads[-1:] = False
    follows = np.concatenate([[False], leads[:-1]])
    at = np.flatnonzero(~follows)
    is_wide = leads[at]
    second = half[np.minimum(at + 1, len(half) - 1)]
    return at, np.where(is_wide, half[at] << 16 | second, half[at]), is_wide


def _thumb_literals(at: Values, code: Values, start: int) -> tuple[Values, Values]:
    """Where loads relative to the program counter load from, and how many bytes; 0 for others.

    ``adr`` counts as one: position-independent code takes no address of near code, but loads
    pairs of words by it.
    """
    base = (start + 2 * at + 4) & ~3
    literal, width = np.zeros(len(at), dtype=np.int64), np.zeros(len(at), dtype=np.int64)
    is_wide = code > 0xFFFF
    for rows, amount, bytes_ in (
        (~is_wide & (code & 0xF800 == 0x4800), (code & 0xFF) * 4, 4),
        (code & 0xFFFF0000 == 0xF8DF0000, code & 0xFFF, 4),
        (code & 0xFFFF0000 == 0xF85F0000, -(code & 0xFFF), 4),
        (code & 0xFFBF0F00 == 0xED9F0A00, (code & 0xFF) * 4, 4),
        (code & 0xFFBF0F00 == 0xED9F0B00, (code & 0xFF) * 4, 8),
        (code & 0xFFFF0000 == 0xE9DF0000, (code & 0xFF) * 4, 8),
        (~is_wide & (code & 0xF800 == 0xA000), (code & 0xFF) * 4, 8),
    ):
        literal[rows], width[rows] = (base + amount)[rows], bytes_
    return literal, width


def _mark_tables(data: Flags, half: Values, at: Values, code: Values) -> None:
    """The tables of ``tbb`` and ``tbh`` lie behind them, up to the nearest of their targets, and
    no longer than the comparison ahead says."""
    raw = half.astype("<u2").tobytes()
    for row in np.flatnonzero(code & 0xFFFFFFE0 == 0xE8DFF000).tolist():
        width = 1 + int(code[row] >> 4 & 1)
        first = 2 * int(at[row]) + 4
        offset, stop = first, min(len(raw), first + width * _cases_ahead(code, row))
        while offset + width <= stop:
            entry = int.from_bytes(raw[offset : offset + width], "little")
            stop = min(stop, first + 2 * entry)
            offset += width
        if offset > first:
            data[first // 2 : (offset + 1) // 2] = True


def _cases_ahead(code: Values, row: int) -> int:
    """Cases of a ``tbb`` or ``tbh``, by a comparison of its index close ahead."""
    register = int(code[row] & 15)
    for ahead in range(row - 1, max(-1, row - COMPARE_REACH - 1), -1):
        is_compared = register < 8 and code[ahead] & 0xFFFFFF00 == 0x2800 | register << 8
        if is_compared or code[ahead] & 0xFFFFFF00 == 0xF1B00F00 | register << 16:
            return int(code[ahead] & 0xFF) + 1
    return MAX_CASES


def _thumb_kinds(
    address: Values, code: Values, is_wide: Flags
) -> tuple[NDArray[np.uint8], Values, Flags]:
    """Kinds, targets, and whether a call changes the state."""
    kind = np.full(len(code), PLAIN, dtype=np.uint8)
    target = np.full(len(code), NOWHERE, dtype=np.int64)
    narrow = ~is_wide
    counter = address + 4
    for mask, bits, meaning in NARROW_FORMS:
        kind[narrow & (code & mask == bits)] = meaning
    short = narrow & (code & 0xF000 == 0xD000) & (code >> 8 & 15 < 14)
    kind[short], target[short] = BRANCH, (counter + 2 * signed(code, 8))[short]
    jump = narrow & (code & 0xF800 == 0xE000)
    kind[jump], target[jump] = JUMP, (counter + 2 * signed(code, 11))[jump]
    zero = narrow & (code & 0xF500 == 0xB100)
    kind[zero] = BRANCH
    target[zero] = (counter + ((code >> 9 & 1) << 6 | (code >> 3 & 31) << 1))[zero]
    kind[narrow & np.isin(code, NARROW_FILLERS)] = FILLER
    for mask, bits, meaning in WIDE_FORMS:
        kind[is_wide & (code & mask == bits)] = meaning
    kind[code == 0xF3AF8000] = FILLER
    sign = code >> 26 & 1
    high, low = ~(code >> 13 ^ sign) & 1, ~(code >> 11 ^ sign) & 1
    far = sign << 24 | high << 23 | low << 22 | (code >> 16 & 0x3FF) << 12 | (code & 0x7FF) << 1
    far = signed(far, 25)
    branches = is_wide & (code & 0xF8008000 == 0xF0008000)
    form = code & 0xD000
    for bits, meaning in ((0xD000, CALL), (0x9000, JUMP)):
        rows = branches & (form == bits)
        kind[rows], target[rows] = meaning, (counter + far)[rows]
    changes = branches & (form == 0xC000) & (code & 1 == 0)
    kind[changes], target[changes] = CALL, ((counter & ~3) + far)[changes]
    near = sign << 20 | (code >> 11 & 1) << 19 | (code >> 13 & 1) << 18
    near = signed(near | (code >> 16 & 0x3F) << 12 | (code & 0x7FF) << 1, 21)
    rows = branches & (form == 0x8000) & (code >> 22 & 15 < 14)
    kind[rows], target[rows] = BRANCH, (counter + near)[rows]
    conditional = _conditional(code, narrow)
    kind[conditional & (kind == STOP)] = BRANCH
    kind[conditional & (kind == JUMP)] = np.where(target >= 0, BRANCH, SELECT)[
        conditional & (kind == JUMP)
    ]
    return kind, target, changes


def _conditional(code: Values, narrow: Flags) -> Flags:
    """Instructions that ``it`` makes conditional: one to four behind it, as its mask says."""
    mask = code & 15
    begins = narrow & (code & 0xFF00 == 0xBF00) & (mask != 0)
    covers = np.zeros(len(code), dtype=bool)
    for length, lowest in ((1, 8), (2, 4), (3, 2), (4, 1)):
        rows = np.flatnonzero(begins & (mask & -mask == lowest))
        for offset in range(1, length + 1):
            inside = rows[rows + offset < len(code)] + offset
            covers[inside] = True
    return covers


def _add_counter(pointer: Values, address: Values, code: Values, width: Values) -> None:
    """``ldr R, =distance; add R, pc``: what position-independent code has for an address."""
    loads = np.flatnonzero((width == 4) & (code & 0xF800 == 0x4800) & (code <= 0xFFFF))
    register = code[loads] >> 8 & 7
    todo = np.ones(len(loads), dtype=bool)
    for reach in range(1, ADD_REACH + 1):
        rows = np.minimum(loads + reach, len(code) - 1)
        adds = todo & (code[rows] == 0x4478 | register)
        where = loads[adds]
        value = pointer[where] + address[rows[adds]] + 4
        pointer[where] = value & 0xFFFFFFFE
        todo &= ~adds
