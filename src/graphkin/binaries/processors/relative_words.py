"""Instruction words that say an address by its distance: where the distance is, and the address.

All else of such an instruction is the same wherever it leads, so that one of them stands for all.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.int64]
Addresses = NDArray[np.uint64]
_NEAR, _FAR, _BIT, _ADDRESS = 0x00FFFFE0, 0x03FFFFFF, 0x0007FFE0, 0x60FFFFE0
"""Fields of AArch64: of branches and loads, of jumps and calls, of tests of a bit, and of ``adr``
and ``adrp``."""
_SHORT, _LONG = 0xFFFF, 0x03FFFFFF
"""Fields of MIPS: of branches, and of jumps and calls within 256 MB."""


def _table(size: int, fields: dict[int, list[int]]) -> Words:
    """(size,) the field of words by their highest bits."""
    table = np.zeros(size, dtype=np.int64)
    for field, starts in fields.items():
        table[starts] = field
    return table


_AARCH64 = _table(
    256,
    {
        _FAR: [0x14, 0x15, 0x16, 0x17, 0x94, 0x95, 0x96, 0x97],
        _NEAR: [0x54, 0x34, 0x35, 0xB4, 0xB5, 0x18, 0x1C, 0x58, 0x5C, 0x98, 0x9C, 0xD8],
        _BIT: [0x36, 0x37, 0xB6, 0xB7],
        _ADDRESS: [0x10, 0x30, 0x50, 0x70, 0x90, 0xB0, 0xD0, 0xF0],
    },
)
_COPROCESSORS = [0x10, 0x11, 0x12, 0x13]
_MIPS = _table(
    64, {_SHORT: [1, 4, 5, 6, 7, *_COPROCESSORS, 0x14, 0x15, 0x16, 0x17], _LONG: [2, 3, 0x1D]}
)
_MIPS_64 = _MIPS | _table(64, {_SHORT: [0x32, 0x36, 0x3A, 0x3E]})
"""With branches on a bit, where processors of 32 bits have loads and stores."""
_NO_FIELD = 1 << 32
"""Stands for a distance that cannot be told from the rest of a word."""
_VECTOR_BRANCHES = (0x0B, 0x0F, *range(0x18, 0x20))


def _signed(values: Words, bits: int) -> Words:
    return np.asarray((values & (1 << bits) - 1 ^ 1 << bits - 1) - (1 << bits - 1))


def aarch64(words: Words, addresses: Addresses) -> tuple[Words, Addresses]:
    """(K,) the bits of each word that are a distance, and (K,) the address that it leads to."""
    fields = _AARCH64[words >> 24]
    targets = np.zeros(len(words), dtype=np.uint64)
    for field, low, bits in ((_NEAR, 5, 19), (_FAR, 0, 26), (_BIT, 5, 14)):
        rows = np.flatnonzero(fields == field)
        distance = 4 * _signed(words[rows] >> low, bits)
        targets[rows] = addresses[rows] + distance.view(np.uint64)
    rows = np.flatnonzero(fields == _ADDRESS)
    own, origins = words[rows], addresses[rows]
    distance = _signed((own >> 5 & 0x7FFFF) << 2 | own >> 29 & 3, 21)
    is_page = own >> 31 != 0
    origins = np.where(is_page, origins & ~np.uint64(0xFFF), origins)
    targets[rows] = origins + np.where(is_page, distance << 12, distance).view(np.uint64)
    return fields, targets


def arm(words: Words, addresses: Addresses) -> tuple[Words, Addresses]:
    """The same for ARM state, where pc is 8 bytes ahead."""
    is_branch = words & 0x0E000000 == 0x0A000000
    distance = 8 + 4 * _signed(words, 24)
    # What always switches to Thumb state has one more bit, for half of an instruction.
    distance += np.where(words >> 28 == 15, words >> 23 & 2, 0)
    return np.where(is_branch, 0x00FFFFFF, 0), addresses + distance.view(np.uint64)


def mips(words: Words, addresses: Addresses) -> tuple[Words, Addresses]:
    """The same for MIPS of 32 bits, which counts from the delay slot."""
    return _mips(_MIPS, words, addresses)


def mips_64(words: Words, addresses: Addresses) -> tuple[Words, Addresses]:
    """The same for MIPS of 64 bits."""
    return _mips(_MIPS_64, words, addresses)


def _mips(table: Words, words: Words, addresses: Addresses) -> tuple[Words, Addresses]:
    opcodes, rs = words >> 26, words >> 21 & 31
    fields = table[opcodes]
    # Traps and arithmetic have constants and registers there.
    fields[(opcodes == 1) & (words & 0x00080000 != 0) & (words >> 16 & 31 != 0x1C)] = 0
    is_vector = (opcodes == 0x11) & np.isin(rs, _VECTOR_BRANCHES)
    fields[(opcodes >> 2 == 4) & (rs != 8) & ~is_vector] = 0
    slots = addresses + np.uint64(4)
    near = slots + (4 * _signed(words, 16)).view(np.uint64)
    far = (slots & ~np.uint64(0x0FFFFFFF)) | ((words & _LONG) << 2).view(np.uint64)
    targets = np.where(fields == _LONG, far, near)
    # A branch or arithmetic, which the field itself decides.
    is_both = (opcodes == 0x13) & (rs == 8)
    fields[is_both], targets[is_both] = _NO_FIELD, 0
    return fields, targets
