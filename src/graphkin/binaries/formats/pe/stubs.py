"""Stubs of Windows binaries: code that does nothing but jump to an imported function."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from graphkin.binaries.image import Region

JUMP = re.compile(rb"\xff\x25(?=(.{4}))", re.DOTALL)
"""``jmp [slot]``."""
BRANCH = 0xD61F0000
"""``br x0``; the register is in bits 5 to 9."""


def import_stubs(
    regions: Sequence[Region], slots: Mapping[int, str], architecture: str
) -> dict[int, str]:
    """Address to name, for each stub that jumps through one of ``slots``.

    A function that ends in such a jump is listed at the jump: a call to there also ends where
    the imported function does.
    """
    find = {"x86": _x86, "x86-64": _x64, "aarch64": _arm64}.get(architecture)
    stubs: dict[int, str] = {}
    for region in regions:
        if region.executable and find is not None and slots:
            for stub, slot in find(region):
                if slot in slots:
                    stubs[stub] = slots[slot]
    return stubs


def _x86(region: Region) -> Iterator[tuple[int, int]]:
    for match in JUMP.finditer(region.data):
        yield region.start + match.start(), int.from_bytes(match[1], "little")


def _x64(region: Region) -> Iterator[tuple[int, int]]:
    for match in JUMP.finditer(region.data):
        stub = region.start + match.start()
        slot = stub + 6 + int.from_bytes(match[1], "little", signed=True)
        yield stub, slot
        # MSVC writes a prefix without meaning.
        if match.start() and region.data[match.start() - 1] == 0x48:
            yield stub - 1, slot


def _arm64(region: Region) -> Iterator[tuple[int, int]]:
    """``adrp X, page; ldr X, [X, offset]; br X``."""
    words = np.frombuffer(region.data[: len(region.data) & ~3], dtype="<u4")
    for at in (np.flatnonzero(words[2:] & 0xFFFFFC1F == BRANCH) + 2).tolist():
        page, load, jump = words[at - 2 : at + 1].tolist()
        register = jump >> 5 & 31
        if page & 0x9F00001F != 0x90000000 | register:
            continue
        if load & 0xFFC003FF != 0xF9400000 | register << 5 | register:
            continue
        pages = (page >> 5 & 0x7FFFF) << 2 | page >> 29 & 3
        pages -= (pages & 1 << 20) << 1
        stub = region.start + 4 * (at - 2)
        yield stub, (stub & ~0xFFF) + (pages << 12) + (load >> 10 & 0xFFF) * 8
