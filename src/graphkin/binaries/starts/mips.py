"""Function starts on MIPS: every instruction is a word, and a transfer runs the word behind it.

As in :mod:`graphkin.binaries.recovery.listing`, a transfer stands at its delay slot, the last
instruction that runs before it. Position-independent code calls through ``$t9``, which it fills
from the global offset table: what ``$t9`` holds then is the start of a function.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from graphkin.binaries.image import ByteOrder, Image, Region, UnwindRange
from graphkin.binaries.processors.mips import GP, SCRATCH, SP, T9, Mips
from graphkin.binaries.recovery.architecture import BRANCH, CALL, JUMP, PLAIN, STOP
from graphkin.binaries.starts.sweep import (
    FILLER,
    NOT_CODE,
    NOWHERE,
    Sweep,
    aligned_words,
    decoded_words,
    joined,
    signed,
)

Column = NDArray[np.int64]
Kinds = NDArray[np.uint8]

ADDITIONS = (0x09, 0x19)
"""``addiu`` and ``daddiu``."""
LOADS = (0x23, 0x37)
"""``lw`` and ``ld``."""
STORES = (0x2B, 0x3F)
"""``sw`` and ``sd``."""
SPECIAL, REGIMM, JUMPS, LUI = 0x00, 0x01, (0x02, 0x03), 0x0F
CLOBBERS = (*range(0x08, 0x10), 0x18, 0x19, *range(0x20, 0x28), 0x37)
"""Opcodes that write the register of their second field: arithmetic on constants, and loads."""
SUMS = (0x21, 0x2D)
"""``addu`` and ``daddu``."""
GP_SUM = 0x679C
"""``daddiu $gp, $gp``."""
PAGE = 1 << 16
"""Entries of the table for local symbols are multiples of this; code adds the rest."""
REACH = 48
"""Instructions between those that compute an address, and its use."""
ERASED = 0xFFFFFFFF
LOADS_T9 = (0x8F99, 0xDF99)
"""Upper halves of ``lw`` and ``ld`` of ``$t9`` from the table."""
KEEPS_GP = 0x03800825
"""``move $at, $gp``."""
JUMP_T9 = 0x03200008


class MipsFacts:
    """MIPS of 32 or 64 bits.

    Args:
        bits: of an address.
        byte_order: of data and of instructions.
    """

    alignment = 1
    padded = 4

    def __init__(self, bits: int, byte_order: ByteOrder) -> None:
        self.architecture = Mips(bits, byte_order)
        self._order = byte_order
        self._pointer = bits // 8

    def sweep(self, image: Image, regions: Sequence[Region]) -> Sweep:
        return joined([self._region(image, region) for region in regions])

    def _region(self, image: Image, region: Region) -> Sweep:
        address, word = aligned_words(region, self._order)
        table = decoded_words(word)
        kind = self.architecture.kinds(table)
        is_delayed = (kind != PLAIN) & self.architecture.delayed(table, kind)
        is_delayed[-1:] = False
        fields = _Fields(word, kind)
        pointer = self._pointers(image, fields)
        origin = self._origins(image, fields, pointer, address)
        pointer[fields.rt == GP] = NOWHERE
        target = _targets(fields, address, kind)
        through = np.flatnonzero(np.isin(kind, (CALL, JUMP)) & (fields.opcode == SPECIAL))
        writers = fields.writers(through, fields.rs[through])
        target[through] = self._loaded(image, fields, pointer, writers)
        # Switches add to what they load; a pointer to a function is used as it is.
        is_last = (kind[through] == JUMP) & (fields.rs[through] == T9) & (target[through] < 0)
        is_last &= np.isin(fields.opcode[writers], LOADS) & (writers >= 0)
        kind[through[is_last]] = STOP
        frame = _frames(fields)
        rows = np.flatnonzero(is_delayed)
        kind[word == 0] = FILLER
        kind[word == ERASED] = NOT_CODE
        kind[rows + 1], target[rows + 1] = kind[rows], target[rows]
        kind[rows], target[rows] = PLAIN, NOWHERE
        # The frame is gone by then, if the slot gives it back.
        slots = rows[frame[rows + 1] != 0]
        frame[slots], frame[slots + 1] = frame[slots + 1], 0
        size = np.full(len(word), 4, dtype=np.int64)
        state = np.zeros(len(word), dtype=np.uint8)
        prologue = _prologues(fields)
        return Sweep(address, size, kind, target, pointer, prologue, frame, state, origin)

    def _pointers(self, image: Image, fields: _Fields) -> Column:
        """Of entries of the table, of sums with such an entry, and of ``lui`` with ``addiu``."""
        pointer = np.full(len(fields.word), NOWHERE, dtype=np.int64)
        loads = self._entries(fields, image)
        pointer[loads] = self._values(image, fields, loads)
        adds = np.flatnonzero(np.isin(fields.opcode, ADDITIONS) & ~np.isin(fields.rs, (0, SP)))
        writers = fields.writers(adds, fields.rs[adds])
        is_high = (fields.opcode[writers] == LUI) & (writers >= 0)
        base = np.where(is_high, fields.constant[writers] << 16, pointer[writers])
        known = (writers >= 0) & (base >= 0)
        pointer[adds[known]] = (base + fields.constant[adds])[known]
        return pointer

    def _entries(self, fields: _Fields, image: Image) -> Column:
        """Rows that load an entry of the table."""
        if image.got is None:
            return np.empty(0, dtype=np.int64)
        opcode = LOADS[self._pointer == 8]
        return np.flatnonzero((fields.opcode == opcode) & (fields.rs == GP))

    def _values(self, image: Image, fields: _Fields, loads: Column) -> Column:
        offsets, numbers = np.unique(fields.constant[loads], return_inverse=True)
        words = [image.word((image.got or 0) + item, self._pointer) for item in offsets.tolist()]
        limit = np.iinfo(np.int64).max
        values = [NOWHERE if item is None or item > limit else item for item in words]
        return np.array(values, dtype=np.int64)[numbers]

    def _origins(self, image: Image, fields: _Fields, pointer: Column, address: Column) -> Column:
        """Functions add the distance to the table to ``$t9``, their own address."""
        origin = np.full(len(address), NOWHERE, dtype=np.int64)
        is_sum = np.isin(fields.word & 0xFC0007FF, SUMS) & (fields.word >> 11 & 31 != T9)
        sums = np.flatnonzero(is_sum & ((fields.rs == T9) | (fields.rt == T9)))
        writers = fields.writers(sums, fields.rs[sums] + fields.rt[sums] - T9)
        sums, writers = sums[writers >= 0], writers[writers >= 0]
        if image.got is None or not len(sums):
            return origin
        # n64 adds the lower half behind the sum.
        behind = np.minimum(sums + 1, len(address) - 1)
        is_split = (fields.opcode[writers] == LUI) & (fields.word[behind] >> 16 == GP_SUM)
        split = (fields.constant[writers] << 16) + fields.constant[behind]
        distance = np.where(is_split, split, pointer[writers])
        start = image.got - distance
        is_near = (start <= address[sums]) & (start > address[sums] - 4 * REACH)
        is_near &= is_split | (pointer[writers] >= 0)
        origin[sums[is_near]] = start[is_near]
        return origin

    def _loaded(self, image: Image, fields: _Fields, pointer: Column, writers: Column) -> Column:
        """Where calls and jumps through a register lead to: an address, or the slot of a symbol
        of another file; ``NOWHERE`` if that is not known.

        Args:
            writers: the rows that fill the register.
        """
        target = np.where(writers >= 0, pointer[writers], NOWHERE)
        is_load = np.isin(fields.opcode[writers], LOADS) & (fields.rs[writers] == GP)
        target[is_load & (target % PAGE == 0)] = NOWHERE
        slot = (image.got or 0) + fields.constant[writers]
        is_import = is_load & np.isin(slot, np.fromiter(image.imports, dtype=np.int64))
        return np.where(is_import & (writers >= 0), slot, target)


class _Fields:
    """The fields of instruction words, as columns."""

    def __init__(self, word: Column, kind: Kinds) -> None:
        self.word = word
        self.opcode = word >> 26
        self.rs, self.rt = word >> 21 & 31, word >> 16 & 31
        self.constant = signed(word, 16)
        written = np.where(np.isin(self.opcode, CLOBBERS), self.rt, -1)
        is_special = self.opcode == SPECIAL
        self._written = np.where(is_special, word >> 11 & 31, written)
        self._is_end = np.isin(kind, (JUMP, STOP))
        self._is_call = kind == CALL

    def writers(self, rows: Column, registers: Column) -> Column:
        """The last row ahead of each that writes its register; -1 if it is far, or behind an
        instruction that does not go on, or that changes the register."""
        writers = np.full(len(rows), -1, dtype=np.int64)
        is_kept = ~np.isin(registers, tuple(SCRATCH))
        pending = np.arange(len(rows))
        for distance in range(1, REACH + 1):
            at = rows[pending] - distance
            # A transfer happens behind its slot.
            transfer = np.maximum(at - 1, 0)
            is_open = (at >= 0) & ~self._is_end[transfer]
            is_open &= is_kept[pending] | ~self._is_call[transfer]
            pending, at = pending[is_open], at[is_open]
            is_writer = self._written[at] == registers[pending]
            writers[pending[is_writer]] = at[is_writer]
            pending = pending[~is_writer]
        return writers


def is_error_exit(image: Image, item: UnwindRange) -> bool:
    """Whether a range is the end of a system call that failed, which glibc puts ahead of the
    function: it reads the table without asking where that is, or borrows a register of the
    assembler to ask, as no function does."""
    first, second, *_, sixth = (image.word(item.start + 4 * number, 4) or 0 for number in range(6))
    if first == KEEPS_GP:
        return sixth == JUMP_T9
    return first >> 16 in LOADS_T9 and second == JUMP_T9


def _targets(fields: _Fields, address: Column, kind: Kinds) -> Column:
    """Of branches, and of jumps and calls with an address."""
    word, opcode = fields.word, fields.opcode
    is_direct = np.isin(kind, (BRANCH, CALL, JUMP)) & (opcode != SPECIAL)
    near = address + 4 + 4 * fields.constant
    far = (address + 4) & ~0xFFFFFFF | (word & 0x3FFFFFF) << 2
    target = np.where(np.isin(opcode, JUMPS), far, near)
    # A call of what follows only asks for its address.
    is_direct &= ~((kind == CALL) & (target == address + 8))
    return np.where(is_direct, target, NOWHERE)


def _prologues(fields: _Fields) -> NDArray[np.bool_]:
    """``lui $gp``, room on the stack."""
    makes_room = np.isin(fields.opcode, ADDITIONS) & (fields.rs == SP) & (fields.rt == SP)
    makes_room &= fields.constant < 0
    return np.asarray(makes_room | (fields.word >> 16 == LUI << 10 | GP))


def _frames(fields: _Fields) -> NDArray[np.int8]:
    moves = np.isin(fields.opcode, ADDITIONS) & (fields.rs == SP) & (fields.rt == SP)
    return np.where(moves, -np.sign(fields.constant), 0).astype(np.int8)
