"""Function starts on AArch64: every instruction is a word, read by masks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from graphkin.binaries.image import Image, Region, UnwindRange
from graphkin.binaries.processors.aarch64 import AArch64
from graphkin.binaries.recovery.architecture import BRANCH, CALL, JUMP, PLAIN, SELECT, STOP
from graphkin.binaries.starts.sweep import (
    FILLER,
    NOT_CODE,
    NOWHERE,
    SAVES_LINK,
    Sweep,
    frame_changes,
    joined,
    nowhere,
    signed,
    words,
)

NOP = 0xD503201F
KINDS = (
    (0xFC000000, 0x14000000, JUMP, 26, 0),
    (0xFC000000, 0x94000000, CALL, 26, 0),
    (0xFF000000, 0x54000000, BRANCH, 19, 5),
    (0x7E000000, 0x34000000, BRANCH, 19, 5),
    (0x7E000000, 0x36000000, BRANCH, 14, 5),
    (0xFFDFF000, 0xD61F0000, JUMP, 0, 0),
    (0xFFFFF000, 0xD65F0000, STOP, 0, 0),
    (0xFFFFF000, 0xD63F0000, CALL, 0, 0),
    (0xFFE0001F, 0xD4200000, STOP, 0, 0),
    (0xFFFF0000, 0x00000000, NOT_CODE, 0, 0),
    (0xFFFFFFFF, NOP, FILLER, 0, 0),
)
"""(mask, bits, kind, width and place of the field of the target in words)."""
PROLOGUES = (
    (0xFFFFFFFF, 0xD503233F),
    (0xFFFFFFFF, 0xD503245F),
    (0xFFC003E0, 0xA98003E0),
    (0xFFC003E0, 0x6D8003E0),
    (0xFF8003FF, 0xD10003FF),
    (0xFFE0FFFF, 0xCB2063FF),
    (0xFFE00FE0, 0xF8000FE0),
)
"""``paciasp``, ``bti c``, pairs and single registers pushed, room on the stack."""
RESERVES = PROLOGUES[2:]
RELEASES = (
    (0xFFC003E0, 0xA8C003E0),
    (0xFFC003E0, 0x6CC003E0),
    (0xFF8003FF, 0x910003FF),
    (0xFFE0FFFF, 0x8B2063FF),
    (0xFFE00FE0, 0xF84007E0),
)
"""The same the other way round."""
PAGE_REACH = 4
"""Instructions between ``adrp`` and the ``add`` that completes its address."""
LABEL_REACH = 4
"""Instructions between ``adr`` and the ``br`` of a jump table that counts from behind it."""
LINK_SAVES = ((0xFFC07FFF, 0xA9807BFD), (0xFFFFFFFF, 0xD503233F))
"""``stp x29, x30, [sp, #-N]!`` and ``paciasp``."""
MOVED = ((0x3B000000, 0x39000000), (0xFF000000, 0x9B000000))
"""Loads, stores and multiplications, which linkers move to veneers."""


class AArch64Facts:
    """AArch64, little-endian."""

    alignment = 16
    padded = 8

    def __init__(self) -> None:
        self.architecture = AArch64()

    def sweep(self, image: Image, regions: Sequence[Region]) -> Sweep:
        return joined([self._region(region) for region in regions])

    def _region(self, region: Region) -> Sweep:
        word = words(region.data, 4)
        address = region.start + 4 * np.arange(len(word), dtype=np.int64)
        kind = np.full(len(word), PLAIN, dtype=np.uint8)
        target = np.full(len(word), NOWHERE, dtype=np.int64)
        for mask, bits, meaning, width, shift in KINDS:
            rows = np.flatnonzero(word & mask == bits)
            kind[rows] = meaning
            if width:
                target[rows] = address[rows] + 4 * signed(word[rows] >> shift, width)
        prologue = np.zeros(len(word), dtype=bool)
        for mask, bits in PROLOGUES:
            prologue |= word & mask == bits
        frame = frame_changes(word, RESERVES, RELEASES)
        mask, bits = LINK_SAVES[0]
        frame[word & mask == bits] = SAVES_LINK
        size = np.full(len(word), 4, dtype=np.int64)
        state = np.zeros(len(address), dtype=np.uint8)
        pointer = _pointers(word, address)
        kind[_switches(kind, target, pointer, address)] = SELECT
        origin = nowhere(len(address))
        _hide_veneers(word, kind, target)
        entered = _entered_behind_calls(word, kind)
        origin[entered] = address[entered]
        return Sweep(address, size, kind, target, pointer, prologue, frame, state, origin)


def _pointers(word: NDArray[np.int64], address: NDArray[np.int64]) -> NDArray[np.int64]:
    """Of ``adr``, and of ``adrp`` with an ``add`` close behind, which stands at the ``add``."""
    pointer = np.full(len(word), NOWHERE, dtype=np.int64)
    distance = signed((word >> 5 & 0x7FFFF) << 2 | word >> 29 & 3, 21)
    is_near = word & 0x9F000000 == 0x10000000
    pointer[is_near] = (address + distance)[is_near]
    pages = np.flatnonzero(word & 0x9F000000 == 0x90000000)
    base = (address[pages] & ~0xFFF) + (distance[pages] << 12)
    for reach in range(1, PAGE_REACH + 1):
        inside = pages + reach < len(word)
        rows = pages[inside] + reach
        adds = word[rows] & 0xFFC00000 == 0x91000000
        adds &= word[rows] >> 5 & 31 == word[pages[inside]] & 31
        pointer[rows[adds]] = (base[inside] + (word[rows] >> 10 & 0xFFF))[adds]
    return pointer


def _switches(
    kind: NDArray[np.uint8],
    target: NDArray[np.int64],
    pointer: NDArray[np.int64],
    address: NDArray[np.int64],
) -> NDArray[np.int64]:
    """Rows of ``br`` that are no tail calls: gcc counts the cases from the instruction behind."""
    jumps = np.flatnonzero((kind == JUMP) & (target == NOWHERE))
    is_switch = np.zeros(len(jumps), dtype=bool)
    for reach in range(1, LABEL_REACH + 1):
        ahead = np.maximum(jumps - reach, 0)
        is_switch |= pointer[ahead] == address[jumps] + 4
    return jumps[is_switch]


def _entered_behind_calls(word: NDArray[np.int64], kind: NDArray[np.uint8]) -> NDArray[np.int64]:
    """Rows that save the address of return right behind a call, which has overwritten it: the
    call never comes back, and a function starts here."""
    saves = np.zeros(len(word), dtype=bool)
    for mask, bits in LINK_SAVES:
        saves |= word & mask == bits
    rows = np.flatnonzero(saves[1:] & (kind[:-1] == CALL)) + 1
    return np.asarray(rows, dtype=np.int64)


def veneers(regions: Sequence[Region]) -> Iterator[UnwindRange]:
    """Instructions that the linker moved out of their functions.

    A Cortex-A53 miscomputes some loads at the end of a page, and some multiplications. Linkers
    replace these by a jump to a veneer, which has the instruction and a jump back.
    """
    for region in regions:
        for start in (region.start + 4 * _veneers(words(region.data, 4))).tolist():
            yield UnwindRange(start, start + 8, True)


def _veneers(word: NDArray[np.int64]) -> NDArray[np.int64]:
    """Rows of veneers, also of those that nothing jumps to: where the linker found another way,
    the instruction is still in its place."""
    aim = _jump_aims(word)
    rows = np.flatnonzero(aim[1:] > 0)
    moved = word[rows]
    is_moved = np.logical_or.reduce([moved & mask == bits for mask, bits in MOVED])
    rows = rows[is_moved]
    source = aim[rows + 1] - 1
    is_used = aim[source] == rows
    # A group begins with a jump to the next page, around it.
    is_first = (rows >= 2) & (word[rows - 2] & 0xFE0003FF == 0x14000000) & (word[rows - 1] == NOP)
    is_copy = word[source] == word[rows]
    veneers: set[int] = set(rows[is_used | (is_copy & is_first)].tolist())
    for row in rows[is_copy].tolist():
        if row - 2 in veneers:
            veneers.add(row)
    return np.array(sorted(veneers), dtype=np.int64)


def _jump_aims(word: NDArray[np.int64]) -> NDArray[np.int64]:
    """The row that each ``b`` leads to; -1 of all else."""
    aim = np.arange(len(word)) + signed(word, 26)
    is_jump = (word & 0xFC000000 == 0x14000000) & (aim < len(word))
    return np.where(is_jump, aim, -1)


def _hide_veneers(
    word: NDArray[np.int64], kind: NDArray[np.uint8], target: NDArray[np.int64]
) -> None:
    """Makes code look as if nothing had been moved; a jump around the first is padding."""
    rows = _veneers(word)
    sources = _jump_aims(word)[rows + 1] - 1
    kind[sources] = PLAIN
    ahead = rows[rows >= 2] - 2
    ahead = ahead[(word[ahead + 1] == NOP) & (kind[ahead] == JUMP)]
    kind[ahead] = FILLER
    veneer = np.concatenate([rows, rows + 1])
    kind[veneer] = NOT_CODE
    target[np.concatenate([sources, ahead, veneer])] = NOWHERE
