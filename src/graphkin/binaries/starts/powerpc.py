"""Function starts on PowerPC: every instruction is a word, read by masks.

A function of 64-bit code that computes the address of its table of contents starts there, though
most calls go behind that. 32-bit code computes the address of its table in r30.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from graphkin.binaries.image import ByteOrder, Image, Region
from graphkin.binaries.processors.powerpc.abi_tables import computed_contents, traceback_tables
from graphkin.binaries.processors.powerpc.effects import CTR, SP, effect_of
from graphkin.binaries.processors.powerpc.processor import PowerPc, pic_slot
from graphkin.binaries.processors.slicing.effects import NONE, Effect, Load, Sum
from graphkin.binaries.recovery.architecture import CALL, JUMP, STOP
from graphkin.binaries.starts.sweep import (
    FILLER,
    NOT_CODE,
    NOWHERE,
    Sweep,
    addresses,
    aligned_words,
    decoded_words,
    joined,
    nowhere,
    signed,
)

Column = NDArray[np.int64]
Kinds = NDArray[np.uint8]

ADDI, ADDIS, TOC = 14, 15, 2
BCL, MFLR_R30, PIC_HIGH, PIC_LOW = 0x429F0005, 0x7FC802A6, 0x3FDE, 0x3BDE
"""``bcl 20, 31, .+4; mflr r30; addis r30, r30; addi r30, r30``."""
MFLR, XNOP, RESTORE_TOC = 0x7C0802A6, 0x68000000, 0xE8410018
"""The last one is ``ld r2, 24(r1)``."""
RELEASES = (0x80210000, 0xE8210000, 0x7D615B78)
"""``lwz r1, 0(r1)``, ``ld r1, 0(r1)`` and ``mr r1, r11``."""
LOCAL = 8
"""Bytes ahead of the local entry."""
REACH = 8
"""Instructions between the two halves of an address."""
WRITER_REACH = 16
"""Instructions between the one that fills a register, and the jump through it."""
PIC_REACH = 24
ERASED = 0xFFFFFFFF


class PowerPcFacts:
    """PowerPC of 32 or 64 bits.

    Args:
        bits: of an address.
        byte_order: of data and of instructions.
    """

    alignment = 1
    padded = 4

    def __init__(self, bits: int, byte_order: ByteOrder) -> None:
        self.architecture = PowerPc(bits, byte_order)
        self._order = byte_order
        self._pointer = bits // 8

    def sweep(self, image: Image, regions: Sequence[Region]) -> Sweep:
        sweep = joined([self._region(image, region) for region in regions])
        if self._pointer == 8:
            _enter_globally(image, sweep)
        return sweep

    def _region(self, image: Image, region: Region) -> Sweep:
        address, word = aligned_words(region, self._order)
        kind = self.architecture.kinds(decoded_words(word))
        target = _targets(word, address)
        origin = self._origins(image, word, address)
        if self._pointer == 4:
            _pass_stubs(image, word, address, kind, target)
        for row in np.flatnonzero((kind == JUMP) & (target < 0)).tolist():
            if self._is_loaded(word[max(0, row - WRITER_REACH) : row].tolist()):
                kind[row] = STOP
        is_nop = (word & 0xFC00FFFF == 0x60000000) & (word >> 21 & 31 == word >> 16 & 31)
        # Behind a call that goes through a stub, r2 is restored, be it that none comes back.
        is_restore = word == RESTORE_TOC
        is_restore[1:] &= kind[:-1] == CALL
        kind[is_nop | is_restore | (word == XNOP)] = FILLER
        kind[(word >> 26 == 0) | (word == ERASED)] = NOT_CODE
        for first, end in traceback_tables(word) if self._pointer == 8 else ():
            kind[first:end], target[first:end] = NOT_CODE, NOWHERE
        frame = _frames(word)
        prologue = (frame > 0) | (word == MFLR) | (origin >= 0)
        size = np.full(len(word), 4, dtype=np.int64)
        state = np.zeros(len(word), dtype=np.uint8)
        pointer = self._pointers(image, word)
        return Sweep(address, size, kind, target, pointer, prologue, frame, state, origin)

    def _origins(self, image: Image, word: Column, address: Column) -> Column:
        """Where functions compute the address of the table of contents, which is known."""
        origin = nowhere(len(word))
        if self._pointer == 4 or image.got is None or len(word) < 2:
            return origin
        rows, values = computed_contents(word, int(address[0]))
        rows = rows[values == image.got]
        origin[rows] = address[rows]
        return origin

    def _pointers(self, image: Image, word: Column) -> Column:
        """Of ``addis`` with ``addi`` close behind: from zero in 32-bit code, else from r2."""
        pointer = nowhere(len(word))
        base = 0 if self._pointer == 4 else image.got
        source = 0 if self._pointer == 4 else TOC
        if base is None:
            return pointer
        highs = np.flatnonzero((word >> 26 == ADDIS) & (word >> 16 & 31 == source))
        register = word[highs] >> 21 & 31
        is_open = register != TOC
        for reach in range(1, REACH + 1):
            is_open &= highs + reach < len(word)
            rows = np.minimum(highs + reach, len(word) - 1)
            uses = is_open & (word[rows] >> 26 == ADDI) & (word[rows] >> 16 & 31 == register)
            value = base + (signed(word[highs], 16) << 16) + signed(word[rows], 16)
            value = value & 0xFFFFFFFF if self._pointer == 4 else value
            pointer[rows[uses]] = value[uses]
            # The next one with the same register begins another address.
            is_open &= ~((word[rows] >> 26 == ADDIS) & (word[rows] >> 21 & 31 == register))
        return pointer

    def _is_loaded(self, before: list[int]) -> bool:
        """Whether the register of a jump is a pointer from memory, and not from an array of them,
        which may be one of labels.

        Args:
            before: instructions ahead of the jump.
        """
        counter = _writer(before, CTR)
        if not isinstance(counter, Sum):
            return False
        load = _writer(before, counter.first)
        if not isinstance(load, Load) or load.width != self._pointer or load.selector != NONE:
            return False
        base = _writer(before, load.base)
        return not (isinstance(base, Sum) and NONE not in (base.first, base.second))


def _enter_globally(image: Image, sweep: Sweep) -> None:
    """Has what goes to the local entry of a function go to its start."""
    told = (entry for entry, start in image.forwards.items() if entry == start + LOCAL)
    known = np.union1d(addresses(told), sweep.origin[sweep.origin >= 0] + LOCAL)
    sweep.target[np.isin(sweep.target, known)] -= LOCAL


def _targets(word: Column, address: Column) -> Column:
    """Of direct branches, jumps and calls."""
    opcode = word >> 26
    near, far = signed(word & 0xFFFC, 16), signed(word & 0x3FFFFFC, 26)
    distance = np.where(opcode == 18, far, near)
    target = np.where(word & 2 != 0, distance, address + distance)
    # A call of what follows only asks for its address.
    is_direct = np.isin(opcode, (16, 18)) & ~((word & 1 == 1) & (distance == 4))
    return np.where(is_direct & (target >= 0), target, NOWHERE)


def _pass_stubs(image: Image, word: Column, address: Column, kind: Kinds, target: Column) -> None:
    """Has calls of stubs go to the slots that these read, by what r30 holds there."""
    rows = np.flatnonzero((kind == CALL) & (target >= 0))
    places, which = np.unique(target[rows], return_inverse=True)
    distances = [pic_slot(image, place) for place in places.tolist()]
    if not any(distance is not None for distance in distances):
        return
    bases = nowhere(len(word))
    for row in np.flatnonzero(word == BCL).tolist():
        near = word[row + 1 : row + PIC_REACH].tolist()
        upper = next((item for item in near if item >> 16 == PIC_HIGH), None)
        lower = next((item for item in near if item >> 16 == PIC_LOW), None)
        if MFLR_R30 in near and upper is not None and lower is not None:
            high, low = ((item & 0x7FFF) - (item & 0x8000) for item in (upper, lower))
            bases[row] = (int(address[row]) + 4 + (high << 16) + low) & 0xFFFFFFFF
    known = np.maximum.accumulate(np.where(bases >= 0, np.arange(len(word)), -1))
    for row, number in zip(rows.tolist(), which.tolist(), strict=True):
        distance = distances[number]
        if distance is not None and known[row] >= 0:
            target[row] = (int(bases[known[row]]) + distance) & 0xFFFFFFFF


def _writer(before: list[int], register: int) -> Effect | None:
    """What fills a register; it and what is behind it are taken off the list."""
    while before:
        effect = effect_of(before.pop())
        if effect.target == register:
            return effect
    return None


def _frames(word: Column) -> NDArray[np.int8]:
    """``stwu r1`` and ``stdu r1``; ``addi`` from r1 into itself, or into r11 for what restores."""
    reserves = (word >> 16 == 0x9421) | ((word >> 16 == 0xF821) & (word & 3 == 1))
    reserves |= (word & 0xFFFF07FF == 0x7C21016E) | (word & 0xFFFF07FF == 0x7C21016A)
    adds = (word >> 26 == ADDI) & (word >> 16 & 31 == SP) & (word & 0x8000 == 0)
    adds &= np.isin(word >> 21 & 31, (SP, 11))
    releases = np.isin(word, RELEASES) | adds
    return np.where(reserves, 1, np.where(releases, -1, 0)).astype(np.int8)
