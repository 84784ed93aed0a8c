"""The instructions of the ARM set, one word each, as columns."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphkin.binaries.recovery.architecture import BRANCH, CALL, JUMP, PLAIN, SELECT, STOP
from graphkin.binaries.starts.sweep import (
    FILLER,
    NOT_CODE,
    NOWHERE,
    SAVES_LINK,
    Sweep,
    frame_changes,
    nowhere,
    signed,
)

Values = NDArray[np.int64]

ALWAYS, NEVER = 14, 15
"""Conditions."""
FORMS = (
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
RESERVES = (
    (0x0FFF0000, 0x092D0000),
    (0x0FFF0FFF, 0x052D0004),
    (0x0FFFF000, 0x024DD000),
    (0x0FBF0E00, 0x0D2D0A00),
)
RELEASES = (
    (0x0FFF8000, 0x08BD0000),
    (0x0FFFF000, 0x028DD000),
    (0x0FFF0FFF, 0x049D0004),
    (0x0FBF0E00, 0x0CBD0A00),
)
FILLERS = (0xE320F000, 0xE1A00000)
MAX_CASES = 1024


def read_arm(word: Values, start: int) -> Sweep:
    """The instructions of some words of code; constants that they load are none."""
    address = start + 4 * np.arange(len(word), dtype=np.int64)
    condition = word >> 28
    kind = np.full(len(word), PLAIN, dtype=np.uint8)
    target = np.full(len(word), NOWHERE, dtype=np.int64)
    pointer = np.full(len(word), NOWHERE, dtype=np.int64)
    for mask, bits, meaning in FORMS:
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
    kind[np.isin(word, FILLERS)] = FILLER
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
    fill_literals(pointer, kind, literal, width, word, start, 4)
    frame = frame_changes(word, RESERVES, RELEASES)
    frame[word & 0x0FFFE000 == 0x092D4000] = SAVES_LINK
    size = np.full(len(word), 4, dtype=np.int64)
    state = np.full(len(word), ord("a"), dtype=np.uint8)
    origin = nowhere(len(address))
    return Sweep(address, size, kind, target, pointer, frame > 0, frame, state, origin)


def fill_literals(
    pointer: Values,
    kind: NDArray[np.uint8],
    literal: Values,
    width: Values,
    values: Values,
    start: int,
    step: int,
) -> None:
    """Fills pointers in: a load of a constant may load the address of a function.

    Args:
        pointer: (N,) is written to.
        kind: (N,) of the instructions.
        literal: (N,) addresses that they load from.
        width: (N,) bytes that they load.
        values: the code, in units of ``step`` bytes.
        start: its address.
        step: bytes.
    """
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
