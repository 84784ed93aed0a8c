"""Function starts on x86: instructions by capstone, targets from their bytes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import capstone
import numpy as np
from capstone import x86_const
from numpy.typing import NDArray

from graphkin.binaries.image import Image, Region
from graphkin.binaries.processors.x86.processor import X86
from graphkin.binaries.recovery.architecture import BRANCH, CALL, JUMP, PLAIN, STOP
from graphkin.binaries.recovery.decode import Decoder
from graphkin.binaries.starts.sweep import FILLER, NOT_CODE, NOWHERE, Sweep, joined, nowhere, signed

CHUNK = 1 << 18
LONGEST = 15
CASE_REACH = 1 << 20
"""Bytes between a table in the code and its cases."""
FEWEST_CASES = 3
MAX_SELECTED = 32
"""Entries of a table up to which bytes behind it can be told from code."""
PREFIXES = (0xF2, 0xF3, 0x2E, 0x3E, 0x66)
SHORT = (0xEB, *range(0x70, 0x80), *range(0xE0, 0xE4))
FILLERS = ("nop", "int3", "fnop")
RELEASES = (x86_const.X86_INS_POP, x86_const.X86_INS_LEAVE)
EMPTY = (
    b"\x8d\x74\x26\x00",
    b"\x8d\xb6\x00\x00\x00\x00",
    b"\x8d\xb4\x26\x00\x00\x00\x00",
    b"\x8d\x76\x00",
    b"\x89\xf6",
    b"\x8d\xbc\x27\x00\x00\x00\x00",
    b"\x8d\xbf\x00\x00\x00\x00",
    b"\x8d\x7f\x00",
    b"\x66\x90",
    b"\x87\xdb",
)
"""``lea esi, [esi]`` and its kin, which fill space in 32-bit code."""
PROLOGUES = (
    b"\xf3\x0f\x1e\xfa",
    b"\xf3\x0f\x1e\xfb",
    b"\x55\x48\x89\xe5",
    b"\x55\x89\xe5",
    b"\x55\x8b\xec",
    b"\x8b\xff\x55\x8b\xec",
    b"\x41\x57",
    b"\x41\x56",
    b"\x41\x55",
    b"\x41\x54",
    b"\x48\x83\xec",
    b"\x48\x81\xec",
    b"\x55",
    b"\x53",
    b"\x57",
    b"\x56",
    b"\x83\xec",
    b"\x81\xec",
    b"\x4c\x8d\x54\x24\x08",
    b"\x8d\x4c\x24\x04",
)
"""First bytes: marks of indirect targets, frames, saved registers, room on the stack."""


class X86Facts:
    """x86 of 64 or 32 bits."""

    alignment = 16
    padded = 8

    def __init__(self, bits: int) -> None:
        self.architecture = X86(bits)
        self._bits = bits
        mode = capstone.CS_MODE_64 if bits == 64 else capstone.CS_MODE_32
        self._decoder = Decoder(capstone.CS_ARCH_X86, mode, resumes=True)
        self._is_filler = np.zeros(x86_const.X86_INS_ENDING + 1, dtype=bool)
        for name in FILLERS:
            self._is_filler[getattr(x86_const, f"X86_INS_{name.upper()}")] = True

    def sweep(self, image: Image, regions: Sequence[Region]) -> Sweep:
        return joined([self._region(image, region) for region in regions])

    def _region(self, image: Image, region: Region) -> Sweep:
        """Reads again around jump tables, which Mach-O and MSVC have between the functions."""
        sweep = self._straight(image, region)
        holes = sorted([*self._tables(image, region, sweep), *self._odd_zeros(region, sweep)])
        if not holes:
            return sweep
        parts = []
        at = region.start
        for start, end in [*holes, (region.end, region.end)]:
            if start > at:
                data = region.data[at - region.start : start - region.start]
                parts.append(self._straight(image, Region(at, data, True)))
            if end > start >= at:
                parts.append(_hole(start, end))
            at = max(at, end)
        return joined(parts)

    def _odd_zeros(self, region: Region, sweep: Sweep) -> Iterator[tuple[int, int]]:
        """Last bytes of zeros that fill space: with the first byte of a function they look like
        an instruction."""
        ends = np.isin(sweep.kind, (JUMP, STOP, NOT_CODE))
        rows = np.flatnonzero(ends[:-1] & (sweep.address[1:] % self.alignment == 15)) + 1
        for address in sweep.address[rows[sweep.size[rows] > 1]].tolist():
            if region.data[address - region.start] == 0:
                yield address, address + 1

    def _tables(self, image: Image, region: Region, sweep: Sweep) -> Iterator[tuple[int, int]]:
        """Sorted ranges of jump tables in the code.

        Their words are addresses in 32-bit code, and else count from the table or, of MSVC, from
        the image. Bytes that select an entry may stand behind them.
        """
        inside = (sweep.pointer >= region.start) & (sweep.pointer < region.end)
        pointed = np.unique(sweep.pointer[inside]).tolist()
        fewest = FEWEST_CASES if self._bits == 64 else FEWEST_CASES - 1
        last = 0
        for number, table in enumerate(pointed):
            limit = pointed[number + 1] if number + 1 < len(pointed) else region.end
            if table < last:
                continue
            origins = (table, _image_base(image)) if self._bits == 64 else (0,)
            count = max(self._cases(region, table, limit, origin) for origin in origins)
            if count >= fewest:
                last = table + 4 * count
                if image.format == "pe" and count < MAX_SELECTED:
                    while last < region.end and region.data[last - region.start] < count:
                        last += 1
                yield table, last

    def _cases(self, region: Region, table: int, limit: int, origin: int) -> int:
        """Entries of a table, up to the first that leads elsewhere."""
        count = 0
        for at in range(table, min(limit, region.end) - 3, 4):
            raw = bytes(region.data[at - region.start : at - region.start + 4])
            target = origin + int.from_bytes(raw, "little", signed=self._bits == 64)
            is_case = region.start <= target < region.end and abs(target - table) < CASE_REACH
            if not is_case or target == table:
                break
            count += 1
        return count

    def _straight(self, image: Image, region: Region) -> Sweep:
        parts = []
        at = 0
        while at < len(region.data):
            code = bytes(region.data[at : at + CHUNK + LONGEST])
            part = self._part(image, code, region.start + at)
            # An instruction at the cut is read again with all of its bytes.
            part = part.select(part.address < region.start + at + CHUNK)
            parts.append(part)
            at = int(part.end[-1]) - region.start
        return joined(parts)

    def _part(self, image: Image, code: bytes, start: int) -> Sweep:
        table = self._decoder.decode(code, start)
        ids = table["id"].astype(np.int64)
        address = table["address"].astype(np.int64)
        size = table["size"].astype(np.int64)
        kind = self.architecture.kinds(table).copy()
        raw = np.frombuffer(code + bytes(LONGEST + 1), dtype=np.uint8)
        at = address - start
        kind[self._is_filler[ids]] = FILLER
        kind[(ids == 0) | (at + size > len(code))] = NOT_CODE
        for filler in EMPTY if self._bits == 32 else EMPTY[-2:]:
            kind[_begins(raw, at, filler) & (size == len(filler))] = FILLER
        # Zeros between functions decode as additions to memory.
        kind[(raw[at] == 0) & (raw[at + 1] == 0) & (size == 2)] = NOT_CODE
        target = _targets(raw, at, address, size, kind)
        pointer = self._pointers(image, raw, at, address, size)
        prologue = np.zeros(len(at), dtype=bool)
        for first in PROLOGUES:
            prologue |= _begins(raw, at, first)
        frame = np.zeros(len(at), dtype=np.int8)
        stack = (raw[at] == 0x48).astype(np.int64) if self._bits == 64 else 0
        is_sum = np.isin(raw[at + stack], (0x81, 0x83))
        frame[(ids == x86_const.X86_INS_PUSH) | (is_sum & (raw[at + stack + 1] == 0xEC))] = 1
        frame[np.isin(ids, RELEASES) | (is_sum & (raw[at + stack + 1] == 0xC4))] = -1
        state = np.zeros(len(address), dtype=np.uint8)
        origin = nowhere(len(address))
        return Sweep(address, size, kind, target, pointer, prologue, frame, state, origin)

    def _pointers(
        self,
        image: Image,
        raw: NDArray[np.uint8],
        at: NDArray[np.int64],
        address: NDArray[np.int64],
        size: NDArray[np.int64],
    ) -> NDArray[np.int64]:
        """Addresses that ``lea`` computes, and 32-bit constants that ``mov`` and ``push`` hold."""
        pointer = np.full(len(at), NOWHERE, dtype=np.int64)
        first = raw[at]
        last = np.maximum(at + size - 4, 0)
        value = _word(raw, last)
        wide = (first & 0xF0 == 0x40) & (self._bits == 64)
        opcode_at = at + wide
        opcode, form = raw[opcode_at], raw[opcode_at + 1]
        length = size - wide
        if self._bits == 64:
            is_lea = (opcode == 0x8D) & (form & 0xC7 == 0x05) & (length == 6)
            pointer[is_lea] = (address + size + signed(value, 32))[is_lea]
            if image.format == "pe":
                is_load = (opcode == 0x8B) & (form & 0xC7 == 0x84) & (length == 7)
                pointer[is_load] = (_image_base(image) + value)[is_load]
        else:
            is_lea = (opcode == 0x8D) & (form & 0xC0 == 0x80) & (form & 7 != 4) & (length == 6)
            if image.got is not None:
                pointer[is_lea] = (image.got + signed(value, 32))[is_lea] & 0xFFFFFFFF
            is_jump = (opcode == 0xFF) & (form == 0x24) & (raw[at + 2] & 0xC7 == 0x85)
            pointer[is_jump & (length == 7)] = value[is_jump & (length == 7)]
        if not image.is_fixed and image.format != "raw":
            return pointer
        holds = ((opcode & 0xF8 == 0xB8) & (length == 5)) | ((opcode == 0x68) & (length == 5))
        holds |= (opcode == 0xC7) & (length >= 6)
        pointer[holds] = value[holds]
        return pointer


def _targets(
    raw: NDArray[np.uint8],
    at: NDArray[np.int64],
    address: NDArray[np.int64],
    size: NDArray[np.int64],
    kind: NDArray[np.uint8],
) -> NDArray[np.int64]:
    target = np.full(len(at), NOWHERE, dtype=np.int64)
    rows = np.flatnonzero((kind == BRANCH) | (kind == JUMP) | (kind == CALL))
    where, end = at[rows], (address + size)[rows]
    first = raw[where]
    shifted = np.isin(first, PREFIXES)
    opcode = np.where(shifted, raw[where + 1], first)
    second = np.where(shifted, raw[where + 2], raw[where + 1])
    length = size[rows]
    near = np.isin(opcode, (0xE8, 0xE9)) | ((opcode == 0x0F) & (second & 0xF0 == 0x80))
    near &= length >= 5
    short = np.isin(opcode, SHORT) & (length <= 3)
    behind = where + length
    target[rows[near]] = end[near] + signed(_word(raw, behind[near] - 4), 32)
    target[rows[short]] = end[short] + signed(raw[behind[short] - 1].astype(np.int64), 8)
    # The next instruction is where 32-bit code learns its own address from.
    is_next = (kind == CALL) & (target == address + size)
    kind[is_next], target[is_next] = PLAIN, NOWHERE
    return target


def _word(raw: NDArray[np.uint8], at: NDArray[np.int64]) -> NDArray[np.int64]:
    value = np.zeros(len(at), dtype=np.int64)
    for byte in range(4):
        value |= raw[at + byte].astype(np.int64) << (8 * byte)
    return value


def _begins(raw: NDArray[np.uint8], at: NDArray[np.int64], first: bytes) -> NDArray[np.bool_]:
    verdict = np.ones(len(at), dtype=bool)
    for offset, byte in enumerate(first):
        verdict &= raw[at + offset] == byte
    return verdict


def _image_base(image: Image) -> int:
    """Where a PE file is loaded: its first section is never far behind."""
    return image.regions[0].start & ~0xFFFF if image.regions else 0


def _hole(start: int, end: int) -> Sweep:
    """One row for a range of data."""
    return Sweep(
        np.array([start], dtype=np.int64),
        np.array([end - start], dtype=np.int64),
        np.full(1, NOT_CODE, dtype=np.uint8),
        nowhere(1),
        nowhere(1),
        np.zeros(1, dtype=bool),
        np.zeros(1, dtype=np.int8),
        np.zeros(1, dtype=np.uint8),
        nowhere(1),
    )
