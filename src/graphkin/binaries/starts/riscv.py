"""Function starts on RISC-V: instructions of two or four bytes, as their lowest bits say."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from graphkin.binaries.image import Image, Region
from graphkin.binaries.processors.riscv import POINTER, SP, RiscV64, distance, effect_of
from graphkin.binaries.processors.slicing.effects import NONE, Effect, Load, Sum
from graphkin.binaries.recovery.architecture import BRANCH, CALL, JUMP, STOP
from graphkin.binaries.starts.sweep import (
    FILLER,
    NOT_CODE,
    NOWHERE,
    Sweep,
    joined,
    nowhere,
    signed,
    words,
)

Column = NDArray[np.int64]
Kinds = NDArray[np.uint8]

NOPS = (0x0001, 0x00000013)
AUIPC, LUI, ADDI, LD, JALR = 0x17, 0x37, 0x13, 0x3003, 0x67
"""The opcode, and for all but the first two with the bits of the function."""
REACH = 8
"""Instructions between the two halves of an address."""
WRITER_REACH = 16
"""Instructions between the one that fills a register, and the jump through it."""
TABLE = np.dtype([("word", "<u4"), ("id", "<u4")])


class RiscVFacts:
    """RISC-V of 64 bits, with compressed instructions."""

    alignment = 1
    padded = 2

    def __init__(self) -> None:
        self.architecture = RiscV64()

    def sweep(self, image: Image, regions: Sequence[Region]) -> Sweep:
        return joined([self._region(image, region) for region in regions])

    def _region(self, image: Image, region: Region) -> Sweep:
        half = words(region.data, 2)
        at, is_long = _instructions(half)
        following = np.append(half[1:], 0)
        word = np.where(is_long, half[at] | following[at] << 16, half[at])
        address = region.start + 2 * at
        table = np.ones(len(word), dtype=TABLE)
        table["word"] = word
        kind = self.architecture.kinds(table)
        target = nowhere(len(word))
        for row in np.flatnonzero(np.isin(kind, (BRANCH, CALL, JUMP))).tolist():
            reach = distance(int(word[row]))
            if reach is not None:
                target[row] = address[row] + reach
        pointer = _pointers(image, word, address, target)
        # Entries of jump tables have four bytes; a pointer to a function has eight.
        for row in np.flatnonzero((kind == JUMP) & (target < 0)).tolist():
            if _is_loaded(word[max(0, row - WRITER_REACH) : row + 1].tolist()):
                kind[row] = STOP
        kind[np.isin(word, NOPS)] = FILLER
        kind[word == 0] = NOT_CODE
        frame = _frames(word)
        size = np.where(is_long, 4, 2).astype(np.int64)
        state = np.zeros(len(word), dtype=np.uint8)
        origin = nowhere(len(word))
        return Sweep(address, size, kind, target, pointer, frame > 0, frame, state, origin)


def _instructions(half: Column) -> tuple[Column, NDArray[np.bool_]]:
    """Where instructions begin, in halves of words, and which have two of them."""
    rows: list[int] = []
    skips = False
    for number, is_long in enumerate((half & 3 == 3).tolist()):
        if skips:
            skips = False
            continue
        rows.append(number)
        skips = is_long
    at = np.array(rows, dtype=np.int64)
    is_long = half[at] & 3 == 3
    return at, np.asarray(is_long & (at + 1 < len(half)))


def _pointers(image: Image, word: Column, address: Column, target: Column) -> Column:
    """Of ``auipc`` or ``lui`` with an ``addi`` or a load close behind; with ``jalr`` it is the
    target, which is filled in."""
    pointer = nowhere(len(word))
    highs = np.flatnonzero(np.isin(word & 0x7F, (AUIPC, LUI)))
    register = word[highs] >> 7 & 31
    is_near = word[highs] & 0x7F == AUIPC
    base = signed(word[highs] >> 12, 20) * 0x1000 + np.where(is_near, address[highs], 0)
    is_open = np.ones(len(highs), dtype=bool)
    for reach in range(1, REACH + 1):
        is_open &= highs + reach < len(word)
        rows = np.minimum(highs + reach, len(word) - 1)
        uses = is_open & (word[rows] >> 15 & 31 == register) & (word[rows] & 3 == 3)
        value = base + signed(word[rows] >> 20, 12)
        form = word[rows] & 0x707F
        adds, loads, jumps = (uses & (form == name) for name in (ADDI, LD, JALR))
        pointer[rows[adds]] = value[adds]
        target[rows[jumps]] = value[jumps]
        for row, slot in zip(rows[loads].tolist(), value[loads].tolist(), strict=True):
            entry = image.word(slot, POINTER)
            pointer[row] = entry if entry is not None and entry < 1 << 62 else NOWHERE
        # The next one with the same register begins another address.
        is_open &= ~(np.isin(word[rows] & 0x7F, (AUIPC, LUI)) & (word[rows] >> 7 & 31 == register))
    return pointer


def _is_loaded(before: list[int]) -> bool:
    """Whether the register of a jump is a pointer from memory, and not from an array of them,
    which may be one of labels.

    Args:
        before: instructions up to the jump.
    """
    jump = before.pop()
    load = _writer(before, jump >> 15 & 31 if jump & 3 == 3 else jump >> 7 & 31)
    if not isinstance(load, Load) or load.width != POINTER:
        return False
    base = _writer(before, load.base)
    return not (isinstance(base, Sum) and NONE not in (base.first, base.second))


def _writer(before: list[int], register: int) -> Effect | None:
    """What fills a register; it and what is behind it are taken off the list."""
    while before:
        effect = effect_of(before.pop())
        if effect.target == register:
            return effect
    return None


def _frames(word: Column) -> NDArray[np.int8]:
    """``addi sp, sp``, ``c.addi sp`` and ``c.addi16sp``."""
    is_short = ((word & 0xEF83 == 0x0101) | (word & 0xEF83 == 0x6101)) & (word & 3 != 3)
    is_short &= word >> 7 & 31 == SP
    is_long = word & 0xFFFFF == SP << 15 | SP << 7 | ADDI
    is_down = np.where(is_long, word >> 31, word >> 12) & 1
    return np.where(is_short | is_long, 2 * is_down - 1, 0).astype(np.int8)
