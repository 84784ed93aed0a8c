"""Function starts on AArch64: every instruction is a word, read by masks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from graphkin.binaries.image import Image, Region
from graphkin.binaries.processors.aarch64 import AArch64
from graphkin.binaries.recovery.architecture import BRANCH, CALL, JUMP, PLAIN, STOP
from graphkin.binaries.starts.sweep import (
    FILLER,
    NOT_CODE,
    NOWHERE,
    Sweep,
    frame_changes,
    joined,
    nowhere,
    signed,
    words,
)

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
    (0xFFFFFFFF, 0xD503201F, FILLER, 0, 0),
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
        size = np.full(len(word), 4, dtype=np.int64)
        state = np.zeros(len(address), dtype=np.uint8)
        pointer, origin = _pointers(word, address), nowhere(len(address))
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
