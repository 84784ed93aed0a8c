"""What PowerPC instructions do to the registers that addresses go through.

Beside the general registers 0 to 31 there are the link register, the count register that indirect
jumps go through, and eight fields of flags, which comparisons write and branches read.
"""

from __future__ import annotations

from functools import lru_cache

from graphkin.binaries.processors.slicing.effects import (
    NONE,
    Branch,
    Call,
    Compare,
    Effect,
    Load,
    Mask,
    Other,
    Shift,
    Store,
    Sum,
)

SP, TOC, ENTRY, PIC, FP = 1, 2, 12, 30, 31
"""The stack, the table of contents of 64-bit code, the address of a called function, the table
of 32-bit code, and the frame of code that is not optimized."""
LR, CTR, FLAGS = 32, 33, 34
"""The numbers of other registers; ``FLAGS`` is that of the first field of flags."""
SCRATCH = frozenset([0, *range(3, 13), LR, CTR, *(FLAGS + field for field in (0, 1, 5, 6, 7))])
_LOADS = {32: (4, False), 33: (4, False), 34: (1, False), 35: (1, False), 40: (2, False),
          41: (2, False), 42: (2, True), 43: (2, True)}  # fmt: skip
_INDEXED_LOADS = {23: (4, False), 55: (4, False), 87: (1, False), 119: (1, False), 279: (2, False),
                  311: (2, False), 343: (2, True), 375: (2, True), 21: (8, False), 53: (8, False),
                  341: (4, True), 373: (4, True)}  # fmt: skip
_WIDE_LOADS = {0: (8, False), 1: (8, False), 2: (4, True)}
_STORES = (36, 37, 38, 39, 44, 45)
_ARITHMETIC = (8, 9, 10, 11, 15)
"""The lowest five bits of the functions that write the register of the first field."""
_FIRST = frozenset([19, 20, 52, 83, 84, 116, 339, 371, 532, 534, 790])
"""Other functions that do: flags, special registers, and loads that reserve or swap."""
_SECOND = frozenset([24, 26, 27, 28, 51, 58, 60, 115, 122, 124, 284, 307, 316, 378, 412, 444, 476,
                     506, 508, 536, 538, 539, 570, 792, 794, 824, 826, 827, 922, 954,
                     986])  # fmt: skip
"""Functions that write the register of the second field: logic, shifts, and moves of vectors."""


@lru_cache(maxsize=1 << 16)
def effect_of(word: int) -> Effect:
    """What an instruction does, wherever it lies."""
    opcode, first, second = word >> 26, word >> 21 & 31, word >> 16 & 31
    base = second or NONE
    constant = signed(word, 16)
    if opcode in (14, 15):  # addi, addis
        return Sum(first, base, NONE, constant << 16 * (opcode - 14))
    if opcode in _LOADS:
        return Load(first, base, NONE, constant, *_LOADS[opcode])
    if opcode in _STORES:
        return Store(first, base, constant)
    if opcode in (24, 25):  # ori, oris: behind lis, what they add is not there yet
        return Sum(second, first, NONE, (word & 0xFFFF) << 16 * (opcode - 24))
    if opcode in (10, 11):  # cmplwi, cmpwi
        limit = word & 0xFFFF if opcode == 10 else constant
        return Compare(FLAGS + (first >> 2), second, NONE, limit)
    if opcode in (16, 18, 19):
        return _transfer(word)
    if opcode == 31:
        return _extended(word, first, second, base)
    if opcode == 58 and word & 3 in _WIDE_LOADS:
        return Load(first, base, NONE, constant & ~3, *_WIDE_LOADS[word & 3])
    if opcode == 62:
        return Store(first, base, constant & ~3) if word & 3 < 2 else Other()
    if opcode in (12, 13):  # addic
        return Sum(first, second, NONE, constant)
    if opcode == 28:  # andi.
        mask = word & 0xFFFF
        return Mask(second, first, mask.bit_length()) if mask & (mask + 1) == 0 else Other(second)
    if opcode == 21:  # rlwinm
        return _rotated(first, second, word >> 11 & 31, word >> 6 & 31, word >> 1 & 31)
    if opcode == 30:
        return _rotated_wide(word, first, second)
    if opcode in (7, 8):  # mulli, subfic
        return Other(first)
    return Other(second) if opcode in (20, 23, 26, 27, 29) else Other()


def _transfer(word: int) -> Effect:
    if word & 1:
        return Call()
    if word >> 26 == 18 or word >> 21 & 0x10:
        return Other() if word >> 26 == 18 or word >> 21 & 4 else Other(CTR)
    flag = word >> 16 & 31
    relations = ("lt", "gt") if word >> 21 & 8 else ("ge", "le")
    if word >> 26 == 19 and word >> 1 & 0x3FF not in (16, 528, 560):
        return Other(FLAGS + (word >> 23 & 7))  # arithmetic of flags
    return Branch(FLAGS + (flag >> 2), relations[flag & 3]) if flag & 3 < 2 else Other()


def _extended(word: int, first: int, second: int, base: int) -> Effect:
    function, third = word >> 1 & 0x3FF, word >> 11 & 31
    if function & 0x1FF == 266:  # add
        return Sum(first, second, third, 0)
    if function == 444 and first == third:  # mr
        return Sum(second, first, NONE, 0)
    if function in (922, 954, 986):  # extsh, extsb, extsw
        return Sum(second, first, NONE, 0)
    if function in (0, 32):  # cmpw, cmplw
        return Compare(FLAGS + (first >> 2), second, third, 0)
    if function in _INDEXED_LOADS:
        width, is_signed = _INDEXED_LOADS[function]
        if base == NONE:
            return Load(first, third, NONE, 0, width, is_signed)
        return Load(first, base, third, 0, width, is_signed)
    if function in (339, 467):
        special = {8: LR, 9: CTR}.get(second | third << 5)
        if special is None:
            return Other(first) if function == 339 else Other()
        return Sum(first, special, NONE, 0) if function == 339 else Sum(special, first, NONE, 0)
    if function & 31 in _ARITHMETIC or function in _FIRST:
        return Other(first)
    return Other(second) if function in _SECOND else Other()


def _rotated(source: int, target: int, by: int, start: int, end: int) -> Effect:
    """``slwi``, ``clrlwi``, ``srwi``, ``clrlslwi`` and ``extrwi``."""
    if end == 31:
        return Mask(target, source, 32 - start, moved=bool(by))
    if end == 31 - by and start <= end:
        # The lowest bits, scaled: of an index, it only matters how many there are.
        bits = end - start + 1
        return Shift(target, source, by) if not start else Mask(target, source, bits)
    return Other(target)


def _rotated_wide(word: int, source: int, target: int) -> Effect:
    """``sldi``, ``clrldi``, ``srdi`` and ``clrlsldi``."""
    function, by = word >> 2 & 7, word >> 11 & 31 | (word & 2) << 4
    edge = word >> 6 & 31 | word & 32
    if function == 0:
        return Mask(target, source, 64 - edge, moved=bool(by))
    if function == 1 and by and edge == 63 - by:
        return Shift(target, source, by)
    if function == 2:
        bits = 64 - edge - by
        return Shift(target, source, by) if bits >= 32 else Mask(target, source, bits)
    return Other(target)


def signed(value: int, bits: int) -> int:
    sign = 1 << (bits - 1)
    return ((value & (2 * sign - 1)) ^ sign) - sign
