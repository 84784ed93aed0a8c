"""The instructions of the Thumb set, one or two halves of a word each, as columns."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphkin.binaries.recovery.architecture import BRANCH, CALL, JUMP, PLAIN, SELECT, STOP
from graphkin.binaries.starts.arm_instructions import MAX_CASES, fill_literals
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
Flags = NDArray[np.bool_]

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
THUMB_ENTRIES = (0x46C04778, 0xE7FD4778)
"""Words that enter ARM code: ``bx pc; nop``, and ``bx pc; b .-2`` of newer linkers."""
NOP = 0xBF00
NARROW_FILLERS = (NOP, 0x46C0, 0x0000)
WIDE_FORMS = (
    (0xFE508000, 0xE8108000, STOP),
    (0xFF70F000, 0xF850F000, JUMP),
    (0xFFFFFFFF, 0xF85DFB04, STOP),
    (0xFFF0FFE0, 0xE8D0F000, JUMP),
    (0xFFF0F000, 0xF7F0A000, STOP),
)
RESERVES = (
    (0xFFFF0000, 0xE92D0000),
    (0xFFFF0FFF, 0xF84D0D04),
    (0xFBEF8F00, 0xF1AD0D00),
    (0xFBFF8F00, 0xF2AD0D00),
    (0xFFBF0E00, 0xED2D0A00),
)
RELEASES = (
    (0xFFFF8000, 0xE8BD0000),
    (0xFBEF8F00, 0xF10D0D00),
    (0xFBFF8F00, 0xF20D0D00),
    (0xFFBF0E00, 0xECBD0A00),
    (0xFFFF0FFF, 0xF85D0B04),
)
LITERAL_ROUNDS = 40
"""At most; nearly all code is settled after three or four."""
FAR_ENTRY = 4
"""Bytes of a distance in a table."""
COMPARE_REACH = 4
"""Instructions between the comparison of an index and the jump by a table."""
ADD_REACH = 8
"""Instructions between the load of a distance and the addition of the program counter."""


def read_thumb(half: Values, start: int) -> Sweep:
    """The instructions of some halves of words.

    They are read some times: constants are known only by the instructions that load them, and look
    like such instructions themselves.
    """
    is_data = np.zeros(len(half), dtype=bool)
    for _ in range(LITERAL_ROUNDS):
        at, code, is_wide = _instructions(half, is_data)
        literal, width = _literals(at, code, start)
        data = np.zeros(len(half), dtype=bool)
        usable = np.flatnonzero((width > 0) & ~is_data[at])
        for offset in range(0, 8, 2):
            rows = usable[width[usable] > offset]
            where = (literal[rows] + offset - start) // 2
            data[where[(where >= 0) & (where < len(half))]] = True
        _mark_tables(data, half, at, code)
        _mark_far_tables(data, half, at, code, start)
        if np.array_equal(data, is_data):
            break
        is_data = data
    at, code, is_wide = _instructions(half, is_data)
    literal, width = _literals(at, code, start)
    address = start + 2 * at
    kind, target, changes = _kinds(address, code, is_wide)
    dead = is_data[at] | (is_wide & is_data[np.minimum(at + 1, len(half) - 1)])
    kind[dead], target[dead] = NOT_CODE, NOWHERE
    width[dead] = 0
    pointer = np.full(len(at), NOWHERE, dtype=np.int64)
    fill_literals(pointer, kind, literal, width, half, start, 2)
    _add_counter(pointer, address, code, width)
    pointer[(kind == CALL) & changes] = 1
    frame = frame_changes(code, RESERVES, RELEASES)
    narrow = ~is_wide
    frame[narrow & ((code & 0xFE00 == 0xB400) | (code & 0xFF80 == 0xB080))] = 1
    frame[(narrow & (code & 0xFF00 == 0xB500)) | (code & 0xFFFFE000 == 0xE92D4000)] = SAVES_LINK
    frame[narrow & ((code & 0xFF00 == 0xBC00) | (code & 0xFF80 == 0xB000))] = -1
    frame[dead] = 0
    size = np.where(is_wide, 4, 2).astype(np.int64)
    state = np.full(len(at), ord("t"), dtype=np.uint8)
    origin = nowhere(len(address))
    return Sweep(address, size, kind, target, pointer, frame > 0, frame, state, origin)


def _instructions(half: Values, is_data: Flags) -> tuple[Values, Values, Flags]:
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


def _literals(at: Values, code: Values, start: int) -> tuple[Values, Values]:
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
        (code & 0xFFBF0F00 == 0xED1F0A00, -(code & 0xFF) * 4, 4),
        (code & 0xFFBF0F00 == 0xED1F0B00, -(code & 0xFF) * 4, 8),
        (code & 0xFFFF0000 == 0xE9DF0000, (code & 0xFF) * 4, 8),
        (code & 0xFFFF0000 == 0xE95F0000, -(code & 0xFF) * 4, 8),
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
        most = width * _cases_ahead(code, row, int(code[row] & 15))
        offset, stop = first, min(len(raw), first + most)
        while offset + width <= stop:
            entry = int.from_bytes(raw[offset : offset + width], "little")
            stop = min(stop, first + 2 * entry)
            offset += width
        if offset > first:
            data[first // 2 : (offset + 1) // 2] = True


def _mark_far_tables(data: Flags, half: Values, at: Values, code: Values, start: int) -> None:
    """Those of ``adr R, T; ldr S, [R, I, lsl #2]; add R, S; bx R``: distances from T, odd like all
    addresses of Thumb code."""
    raw = half.astype("<u2").tobytes()
    follows = code[1:] & 0xFFF00FF0 == 0xF8500020
    for row in np.flatnonzero((code[:-1] & 0xFFFFF800 == 0xA000) & follows).tolist():
        register = int(code[row] >> 8 & 7)
        behind = code[row + 2 : row + 4].tolist()
        goes = len(behind) == 2 and behind[0] & 0xFF00 == 0x4400 and behind[1] & ~0x78 == 0x4700
        if not goes or code[row + 1] >> 16 & 15 != register or behind[1] >> 3 & 15 != register:
            continue
        address = start + 2 * int(at[row])
        first = (address + 4 & ~3) + 4 * int(code[row] & 0xFF) - start
        if not 0 <= first - 2 * int(at[row + 3]) - 2 <= 2:
            continue
        most = FAR_ENTRY * _cases_ahead(code, row, int(code[row + 1] & 15))
        offset, stop = first, min(len(raw), first + most)
        while offset + FAR_ENTRY <= stop:
            entry = int.from_bytes(raw[offset : offset + FAR_ENTRY], "little", signed=True)
            if not entry & 1:
                break
            if entry > 0:
                stop = min(stop, first + entry - 1)
            offset += FAR_ENTRY
        data[first // 2 : offset // 2] = True


def _cases_ahead(code: Values, row: int, register: int) -> int:
    """Cases of a jump by a table, by a comparison of its index close ahead."""
    for ahead in range(row - 1, max(-1, row - COMPARE_REACH - 1), -1):
        is_compared = register < 8 and code[ahead] & 0xFFFFFF00 == 0x2800 | register << 8
        if is_compared or code[ahead] & 0xFFFFFF00 == 0xF1B00F00 | register << 16:
            return int(code[ahead] & 0xFF) + 1
    return MAX_CASES


def _kinds(
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
