"""What RISC-V instructions do: to control flow, and to the registers that addresses go through.

Everything is read from the bits of the instructions; compressed ones are 16 bits long.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

import capstone
import numpy as np
from numpy.typing import NDArray

from graphkin.binaries.image import Image
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
from graphkin.binaries.processors.slicing.switches import Switches
from graphkin.binaries.processors.slicing.values import Values
from graphkin.binaries.recovery.architecture import (
    BRANCH,
    CALL,
    JUMP,
    PLAIN,
    STOP,
    TableReader,
)
from graphkin.binaries.recovery.decode import Decoder, operands
from graphkin.binaries.recovery.hardening import NoHardening
from graphkin.binaries.recovery.listing import Listing

POINTER = 8
PROLOGUE = 32
"""Instructions in which a function sets up its frame."""
RA, SP, GP, T0, FP = 1, 2, 3, 5, 8
SCRATCH = frozenset([RA, *range(5, 8), *range(10, 18), *range(28, 32)])
_TARGET = re.compile(rb"(?:^|, )(0x[0-9a-f]+)$")
_NUMBER = re.compile(rb"-?(?:0x[0-9a-f]+|\d+)$")
_LOADS = {0: (1, True), 1: (2, True), 2: (4, True), 3: (8, True), 4: (1, False), 5: (2, False),
          6: (4, False)}  # fmt: skip


class RiscV64:
    """RISC-V of 64 bits, with compressed instructions."""

    padding = frozenset(["nop", "c.nop"])
    hardening = NoHardening()
    doubts_bounds = False

    def __init__(self) -> None:
        mode = capstone.CS_MODE_RISCV64 | capstone.CS_MODE_RISCVC
        self._decoder = Decoder(capstone.CS_ARCH_RISCV, mode, resumes=True)
        self._registers: RiscVRegisters | None = None

    def decoder(self, state: str) -> Decoder:
        return self._decoder

    def kinds(self, table: NDArray[Any]) -> NDArray[np.uint8]:
        words = np.asarray(table["word"], dtype=np.uint32)
        opcodes = words & 0x7F
        halves = words & 0xE003
        is_candidate = np.isin(opcodes, (0x63, 0x67, 0x6F, 0x73)) | np.isin(
            halves, (0xA001, 0xC001, 0xE001, 0x8002, 0x0000)
        )
        kinds = np.full(len(words), PLAIN, dtype=np.uint8)
        rows = np.flatnonzero(is_candidate)
        kinds[rows] = [_kind(word) for word in words[rows].tolist()]
        kinds[(table["id"] == 0) & (words & 0xFFFF != 0)] = PLAIN
        return kinds

    def delayed(self, table: NDArray[Any], kinds: NDArray[np.uint8]) -> None:
        return None

    def absolute(self, table: NDArray[Any]) -> list[bytes]:
        """The operands with addresses, where capstone prints distances."""
        rows = zip(operands(table), table["word"].tolist(), table["address"].tolist(), strict=True)
        texts = []
        for text, word, address in rows:
            reach = distance(word)
            if reach is not None:
                target = f"{(address + reach) & 0xFFFFFFFFFFFFFFFF:#x}".encode()
                text = _NUMBER.sub(target, text)
            texts.append(text)
        return texts

    def target(self, operand: bytes) -> int | None:
        """Of ``0x1234`` and ``a0, a1, 0x1234``."""
        match = _TARGET.search(operand)
        return int(match[1], 16) if match else None

    def called(self, image: Image, listing: Listing, control: int) -> int | None:
        position = listing.controls[control]
        word = listing.word(position)
        if word & 0x7F == 0x6F:
            return listing.targets[control]
        values = self._registers_of(image).values
        register, offset = _register(word)
        if offset:
            base = values.exact(listing, register, position)
            return None if base is None else base + offset
        return values.called(listing, register, position)

    def tables(self, image: Image) -> TableReader:
        return Switches(image, self, self._registers_of(image), _jump, POINTER, 2)

    def _registers_of(self, image: Image) -> RiscVRegisters:
        if self._registers is None or self._registers.image is not image:
            self._registers = RiscVRegisters(image)
        return self._registers


class RiscVRegisters:
    """What RISC-V instructions do to registers.

    Args:
        image: the binary.
    """

    scratch = SCRATCH

    def __init__(self, image: Image) -> None:
        self.image = image
        self.usual: Callable[[int], Effect] = effect_of
        self.values = Values(image, self, POINTER)
        self._fixed = {} if image.got is None else {GP: image.got}
        self._listing: Listing | None = None
        """The function whose frames are known."""
        self._frames = frozenset([SP])

    def frames(self, listing: Listing) -> frozenset[int]:
        if self._listing is not listing:
            self._listing = listing
            start = range(min(PROLOGUE, len(listing.addresses)))
            effects = (self.effect(listing, at) for at in start)
            has_frame = any(
                isinstance(effect, Sum) and effect[:2] == (FP, SP) for effect in effects
            )
            self._frames = frozenset([SP, FP] if has_frame else [SP])
        return self._frames

    def fixed(self, listing: Listing) -> Mapping[int, int]:
        """``gp``, which linkers count short distances from."""
        return self._fixed

    def at_entry(self, listing: Listing) -> Mapping[int, int]:
        return {}

    def effect(self, listing: Listing, position: int) -> Effect:
        word = listing.word(position)
        if word & 0x7F == 0x17:  # auipc
            value = listing.addresses[position] + _signed(word >> 12, 20) * 0x1000
            return Sum(word >> 7 & 31 or NONE, NONE, NONE, value)
        return effect_of(word)


def effect_of(word: int) -> Effect:
    """What an instruction does, wherever it lies."""
    return _effect(word) if word & 3 == 3 else _compressed(word & 0xFFFF)


def _signed(value: int, bits: int) -> int:
    sign = 1 << (bits - 1)
    return ((value & (2 * sign - 1)) ^ sign) - sign


def _bits(word: int, *fields: tuple[int, int, int]) -> int:
    """A number put together from (lowest bit, how many, where they go)."""
    return sum((word >> low & (1 << count) - 1) << to for low, count, to in fields)


def _kind(word: int) -> int:
    if word & 3 != 3:
        return _compressed_kind(word & 0xFFFF)
    opcode, rd, rs1 = word & 0x7F, word >> 7 & 31, word >> 15 & 31
    if opcode == 0x63:
        return BRANCH
    if opcode == 0x6F:  # jal
        return CALL if rd else JUMP
    if opcode == 0x67:  # jalr
        if rd:
            return CALL
        return STOP if rs1 in (RA, T0) else JUMP
    # ebreak, sret, mret
    return STOP if word in (0x00100073, 0x10200073, 0x30200073) else PLAIN


def _compressed_kind(half: int) -> int:
    if half & 3 == 1:
        return {0xA000: JUMP, 0xC000: BRANCH, 0xE000: BRANCH}[half & 0xE000]
    if half & 3 == 0:
        return PLAIN if half else STOP  # all zeros is no instruction, on purpose
    if half & 0x7C:
        return PLAIN  # c.mv, c.add
    register = half >> 7 & 31
    if half & 0x1000:
        return CALL if register else STOP  # c.jalr, c.ebreak
    return STOP if register in (RA, T0) else JUMP


def distance(word: int) -> int | None:
    """How far a direct transfer goes."""
    if word & 0x7F == 0x63:
        fields = ((8, 4, 1), (25, 6, 5), (7, 1, 11), (31, 1, 12))
        return _signed(_bits(word, *fields), 13)
    if word & 0x7F == 0x6F:
        fields = ((21, 10, 1), (20, 1, 11), (12, 8, 12), (31, 1, 20))
        return _signed(_bits(word, *fields), 21)
    if word & 0xE003 in (0xC001, 0xE001):
        fields_5 = ((3, 2, 1), (10, 2, 3), (2, 1, 5), (5, 2, 6), (12, 1, 8))
        return _signed(_bits(word, *fields_5), 9)
    if word & 0xE003 == 0xA001:
        fields_8 = ((3, 3, 1), (11, 1, 4), (2, 1, 5), (7, 1, 6), (6, 1, 7), (9, 2, 8), (8, 1, 10),
                    (12, 1, 11))  # fmt: skip
        return _signed(_bits(word, *fields_8), 12)
    return None


def _register(word: int) -> tuple[int, int]:
    """(register, constant) whose sum ``jalr`` and its like go to."""
    if word & 3 == 3:
        return word >> 15 & 31, _signed(word >> 20, 12)
    return word >> 7 & 31, 0


def _jump(listing: Listing, position: int) -> tuple[int, int] | None:
    register, offset = _register(listing.word(position))
    return None if offset else (register, position)


@lru_cache(maxsize=1 << 16)
def _effect(word: int) -> Effect:
    opcode, rd, function = word & 0x7F, word >> 7 & 31 or NONE, word >> 12 & 7
    rs1, rs2 = word >> 15 & 31 or NONE, word >> 20 & 31 or NONE
    constant = _signed(word >> 20, 12)
    if opcode in (0x13, 0x1B):
        bits = 64 if opcode == 0x13 else 32
        return _immediate(rd, rs1, function, constant, bits)
    if opcode in (0x33, 0x3B):
        if word >> 25 == 0 and function == 0:  # add, addw
            return Sum(rd, max(rs1, rs2), min(rs1, rs2), 0)
        return Compare(rd, rs1, rs2, 0) if word >> 25 == 0 and function in (2, 3) else Other(rd)
    if opcode == 0x03 and function in _LOADS:
        width, signed = _LOADS[function]
        return Load(rd, rs1, NONE, constant, width, signed)
    if opcode == 0x23:
        return Store(rs2, rs1, _signed(_bits(word, (7, 5, 0), (25, 7, 5)), 12))
    if opcode == 0x37:  # lui
        return Sum(rd, NONE, NONE, _signed(word >> 12, 20) * 0x1000)
    if opcode == 0x63:
        if function >= 4:
            return Compare(NONE, rs1, rs2, 0)
        return Branch(rs1) if rs2 == NONE else Other()
    if opcode in (0x6F, 0x67):
        return Call() if rd != NONE else Other()
    # Comparisons and conversions of floats, atomic operations, control registers.
    if opcode == 0x53:
        return Other(rd) if word >> 27 in (0x14, 0x18, 0x1C) else Other()
    # What auipc leaves depends on where it lies.
    return Other(rd) if opcode in (0x17, 0x2F, 0x73) else Other()


def _immediate(rd: int, rs1: int, function: int, constant: int, bits: int) -> Effect:
    amount = constant & (bits - 1)
    if function == 0:  # addi
        return Sum(rd, rs1, NONE, constant)
    if function == 1:  # slli
        return Shift(rd, rs1, amount)
    if function == 5 and not constant & 0x400:  # srli
        return Mask(rd, rs1, bits - amount, moved=True)
    if function == 7 and constant >= 0 and constant & (constant + 1) == 0:  # andi
        return Mask(rd, rs1, constant.bit_length())
    return Compare(rd, rs1, NONE, constant) if function in (2, 3) else Other(rd)


@lru_cache(maxsize=1 << 16)
def _compressed(half: int) -> Effect:
    function, quadrant = half >> 13, half & 3
    rd, rs2 = half >> 7 & 31 or NONE, half >> 2 & 31 or NONE
    short_1, short_2 = 8 + (half >> 7 & 7), 8 + (half >> 2 & 7)
    constant = _signed(_bits(half, (2, 5, 0), (12, 1, 5)), 6)
    if quadrant == 0:
        word_at = _bits(half, (6, 1, 2), (10, 3, 3), (5, 1, 6))
        long_at = _bits(half, (10, 3, 3), (5, 2, 6))
        if function == 0:  # c.addi4spn
            fields = ((6, 1, 2), (5, 1, 3), (11, 2, 4), (7, 4, 6))
            return Sum(short_2, SP, NONE, _bits(half, *fields))
        if function in (2, 3):  # c.lw, c.ld
            field, width = (word_at, 4) if function == 2 else (long_at, 8)
            return Load(short_2, short_1, NONE, field, width, True)
        if function in (6, 7):  # c.sw, c.sd
            return Store(short_2, short_1, word_at if function == 6 else long_at)
        return Other()
    if quadrant == 2:
        if function == 0:  # c.slli
            return Shift(rd, rd, constant & 63)
        if function in (2, 3):  # c.lwsp, c.ldsp
            word_at = _bits(half, (4, 3, 2), (12, 1, 5), (2, 2, 6))
            long_at = _bits(half, (5, 2, 3), (12, 1, 5), (2, 3, 6))
            field, width = (word_at, 4) if function == 2 else (long_at, 8)
            return Load(rd, SP, NONE, field, width, True)
        if function in (6, 7):  # c.swsp, c.sdsp
            word_at = _bits(half, (9, 4, 2), (7, 2, 6))
            long_at = _bits(half, (10, 3, 3), (7, 3, 6))
            return Store(rs2, SP, word_at if function == 6 else long_at)
        if function == 4 and rs2 != NONE:  # c.mv, c.add
            return Sum(rd, rs2, NONE, 0) if not half & 0x1000 else Sum(rd, rd, rs2, 0)
        return Call() if function == 4 and half & 0x1000 else Other()
    return _compressed_arithmetic(half, function, rd, short_1, constant)


def _compressed_arithmetic(half: int, function: int, rd: int, short: int, constant: int) -> Effect:
    if function in (0, 1):  # c.addi, c.addiw
        return Sum(rd, rd, NONE, constant)
    if function == 2:  # c.li
        return Sum(rd, NONE, NONE, constant)
    if function == 3:
        if rd == SP:  # c.addi16sp
            fields = ((6, 1, 4), (2, 1, 5), (5, 1, 6), (3, 2, 7), (12, 1, 9))
            return Sum(SP, SP, NONE, _signed(_bits(half, *fields), 10))
        return Sum(rd, NONE, NONE, constant * 0x1000)  # c.lui
    if function in (6, 7):  # c.beqz, c.bnez
        return Branch(short)
    if function == 5:
        return Other()
    kind = half >> 10 & 3
    if kind == 0:  # c.srli
        return Mask(short, short, 64 - (constant & 63), moved=True)
    if kind == 2 and constant >= 0 and constant & (constant + 1) == 0:  # c.andi
        return Mask(short, short, constant.bit_length())
    if kind == 3 and half & 0x1060 == 0x1020:  # c.addw
        return Sum(short, short, 8 + (half >> 2 & 7), 0)
    return Other(short)
