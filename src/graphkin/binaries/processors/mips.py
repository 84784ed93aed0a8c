"""What MIPS instructions do: to control flow, and to the registers that addresses go through.

Everything is read from the instruction words, whose fields have the same places in all of them.
A branch and its delay slot end one block. The slot of a *branch likely* runs only when the branch
is taken; it stands in the block of the branch all the same.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Set
from functools import lru_cache
from itertools import chain
from typing import Any

import capstone
import numpy as np
from numpy.typing import NDArray

from graphkin.binaries.image import ByteOrder, Image
from graphkin.binaries.processors.relative_words import mips, mips_64
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
from graphkin.binaries.recovery.decode import Decoder
from graphkin.binaries.recovery.hardening import NoHardening
from graphkin.binaries.recovery.listing import Listing
from graphkin.binaries.recovery.words import WordDecoder

T9, GP, SP, FP, RA = 25, 28, 29, 30, 31
SCRATCH = frozenset([*range(1, 16), 24, T9, RA])
KEPT = frozenset(range(16, 24))
"""Registers that keep their value in calls; clang has ``$gp`` in one of them."""
PROLOGUE = 64
"""Instructions in which a function computes its ``$gp``."""
_TARGET = re.compile(rb"(?:^|, )(0x[0-9a-f]+|\d+)$")
_LOADS = {0x20: (1, True), 0x21: (2, True), 0x23: (4, True), 0x24: (1, False), 0x25: (2, False),
          0x27: (4, False), 0x37: (8, False)}  # fmt: skip
_STORES = frozenset([0x28, 0x29, 0x2B, 0x3F])
_RETURN = 0x03E00008
_FRAME = 0x03A0F025
"""``move $fp, $sp``."""
_LOOK = 255
"""In tables of kinds: more of the instruction must be looked at."""
_SUMS = (0x21, 0x2D)
"""``addu`` and ``daddu``."""
_SPECIAL, _REGIMM, _BIT_FIELDS = 0x00, 0x01, 0x1F


class Mips:
    """MIPS of 32 or 64 bits, up to release 5, without MIPS16 and microMIPS."""

    padding = frozenset(["nop"])
    hardening = NoHardening()
    doubts_bounds = False

    def __init__(self, bits: int, byte_order: ByteOrder) -> None:
        mode = capstone.CS_MODE_MIPS32 if bits == 32 else capstone.CS_MODE_MIPS64
        self._is_big = byte_order == "big"
        if self._is_big:
            mode |= capstone.CS_MODE_BIG_ENDIAN
        self._pointer = bits // 8
        name = f"mips{bits} {byte_order}"
        relative_to = mips if bits == 32 else mips_64
        self._decoder = WordDecoder(
            name, capstone.CS_ARCH_MIPS, mode, byte_order, bits, relative_to
        )
        self._registers: MipsRegisters | None = None

    def decoder(self, state: str) -> Decoder:
        return self._decoder

    def kinds(self, table: NDArray[Any]) -> NDArray[np.uint8]:
        words = self._words(table)
        opcodes = words >> 26
        kinds: NDArray[np.uint8] = _MAJOR[opcodes]
        special = np.flatnonzero(opcodes == _SPECIAL)
        kinds[special] = _FUNCTIONS[words[special] & 63]
        rows = np.flatnonzero(kinds == _LOOK)
        kinds[rows] = [_kind(word) for word in words[rows].tolist()]
        kinds[table["id"] == 0] = PLAIN
        return kinds

    def delayed(self, table: NDArray[Any], kinds: NDArray[np.uint8]) -> NDArray[np.bool_]:
        # All but traps and the return from an exception.
        return np.asarray((kinds != STOP) | (self._words(table) == _RETURN))

    def _words(self, table: NDArray[Any]) -> NDArray[np.uint32]:
        return np.asarray(table["big_word" if self._is_big else "word"], dtype=np.uint32)

    def absolute(self, table: NDArray[Any]) -> None:
        return None

    def target(self, operand: bytes) -> int | None:
        """Of ``0x1234`` and ``$v0, 0x1234``."""
        match = _TARGET.search(operand)
        return int(match[1], 0) if match else None

    def called(self, image: Image, listing: Listing, control: int) -> int | None:
        at = _transfer(listing, listing.controls[control])
        word = listing.word(at)
        if word >> 26 != _SPECIAL:
            # A linking branch on anything but $zero may not be taken.
            is_conditional = word >> 26 == _REGIMM and word & 0x03FF0000 != 0x00110000
            return None if is_conditional else listing.targets[control]
        registers = self._registers_of(image)
        if not registers.may_name(listing, image.noreturn):
            return None
        return registers.values.called(listing, word >> 21 & 31, at)

    def tables(self, image: Image) -> TableReader:
        return Switches(image, self, self._registers_of(image), _jump, self._pointer, 4)

    def _registers_of(self, image: Image) -> MipsRegisters:
        if self._registers is None or self._registers.image is not image:
            self._registers = MipsRegisters(image, self._pointer)
        return self._registers


class MipsRegisters:
    """What MIPS instructions do to registers.

    Args:
        image: the binary.
        pointer: width of an address in bytes.
    """

    scratch = SCRATCH

    def __init__(self, image: Image, pointer: int) -> None:
        self.image = image
        self._pointer = pointer
        self.usual: Callable[[int], Effect] = _effect
        self.values = Values(image, self, pointer)
        self._listing: Listing | None = None
        """The function that ``$gp`` is known of."""
        self._fixed: dict[int, int] = {}
        self._frames = frozenset([SP])
        self._gp_slot: int | None = None
        """Where on the stack the function keeps its ``$gp``, which calls change."""
        self._halves: dict[int, frozenset[int]] = {}
        """By the value of ``$gp``, the lower halves of what never returns."""
        self._asked: tuple[Listing | None, int, bool] = (None, 0, False)
        """What :meth:`may_name` was asked of last, how many instructions it had, and the answer."""

    def fixed(self, listing: Listing) -> Mapping[int, int]:
        """``$gp``, as the function computes it, or as the file has it."""
        if self._listing is not listing:
            self._listing, self._fixed, self._gp_slot = listing, {}, None
            start = listing.words()[:PROLOGUE]
            self._frames = frozenset([SP, FP] if _FRAME in start else [SP])
            value = self._global_pointer(listing)
            if value is not None:
                self._fixed[GP] = value
        return self._fixed

    def may_name(self, listing: Listing, addresses: Set[int]) -> bool:
        """Whether a function may put one of some addresses into a register.

        Most do not, and need not be asked where each of their calls goes. The last step to an
        address adds its lower half, or that of its distance from ``$gp``.

        Args:
            listing: the function's instructions.
            addresses: always the same ones of the image.
        """
        words = listing.words()
        if self._asked[0] is not listing or self._asked[1] != len(words):
            pointer = self.fixed(listing).get(GP, 0)
            halves = self._halves.get(pointer)
            if halves is None:
                near = (address - pointer for address in addresses)
                halves = frozenset(address & 0xFFFF for address in chain(addresses, near))
                self._halves[pointer] = halves
            may = bool(halves) and not halves.isdisjoint([word & 0xFFFF for word in words])
            self._asked = (listing, len(words), may)
        return self._asked[2]

    def frames(self, listing: Listing) -> frozenset[int]:
        self.fixed(listing)
        return self._frames

    def at_entry(self, listing: Listing) -> Mapping[int, int]:
        """Callers leave the address of a function in ``$t9``."""
        return {T9: listing.addresses[0]}

    def _global_pointer(self, listing: Listing) -> int | None:
        """A file with more than 16,384 entries in its table has several, each with its ``$gp``."""
        value, holder, is_computed = self.image.got, GP, False
        for at, word in enumerate(listing.words()[:PROLOGUE]):
            rs, rt, rd = word >> 21 & 31, word >> 16 & 31, word >> 11 & 31
            is_sum = word & 0xFC0007FF in _SUMS and T9 in (rs, rt) and rd != T9
            if is_sum and not is_computed:
                distance = self.values.exact(listing, rs + rt - T9, at)
                if distance is not None:
                    value = (distance + listing.addresses[0]) & ((1 << 8 * self._pointer) - 1)
                    holder, is_computed = rd, True
            elif word >> 26 == 0x2B and rt == holder and rs in self._frames:  # sw
                self._gp_slot = (word & 0x7FFF) - (word & 0x8000)
                break
            elif word >> 16 == 0x679C and value is not None and is_computed:
                # daddiu $gp, $gp, behind the sum, as n64 has it
                value += (word & 0x7FFF) - (word & 0x8000)
                break
        if value is not None and holder in KEPT and self._is_kept(listing, holder):
            self._fixed[holder] = value
        return value

    def _is_kept(self, listing: Listing, register: int) -> bool:
        """Whether a register is written once, and then only restored for the caller."""
        writers = [
            effect
            for at in range(len(listing.addresses))
            if (effect := _effect(listing.word(at))).target == register
        ]
        rest = [
            writer for writer in writers if not (isinstance(writer, Load) and writer.base == SP)
        ]
        return len(rest) == 1

    def effect(self, listing: Listing, position: int) -> Effect:
        effect = _effect(listing.word(position))
        if (
            type(effect) is Load
            and effect.base in (SP, FP)
            and effect.base in self.frames(listing)
            and effect.displacement == self._gp_slot
        ):
            return Sum(effect.target, GP, NONE, 0)
        return effect


@lru_cache(maxsize=1 << 16)
def _effect(word: int) -> Effect:
    opcode, rs, rt = word >> 26, word >> 21 & 31 or NONE, word >> 16 & 31 or NONE
    constant = (word & 0x7FFF) - (word & 0x8000)
    if opcode in (0x08, 0x09, 0x18, 0x19):  # addi, addiu, daddi, daddiu
        return Sum(rt, rs, NONE, constant)
    if opcode in _LOADS:
        width, signed = _LOADS[opcode]
        return Load(rt, rs, NONE, constant, width, signed)
    if opcode in _STORES:
        return Store(rt, rs, constant)
    if opcode == _SPECIAL:
        return _special(word, rs, rt)
    if opcode == 0x0F:  # lui
        return Sum(rt, NONE, NONE, constant << 16)
    if opcode in (0x0A, 0x0B):  # slti, sltiu
        return Compare(rt, rs, NONE, constant)
    if opcode == 0x0C:  # andi
        bits = (word & 0xFFFF).bit_length()
        return Mask(rt, rs, bits) if (word + 1) & word & 0xFFFF == 0 else Other(rt)
    if opcode == 0x0D and rs == NONE:  # ori
        return Sum(rt, NONE, NONE, word & 0xFFFF)
    if opcode in (4, 5, 0x14, 0x15):  # beq, bne
        return Branch(rs) if rt == NONE else Other()
    if opcode == 3 or (opcode == _REGIMM and word >> 20 & 1):
        return Call()
    if opcode == _BIT_FIELDS:
        return _bit_field(word, rs, rt)
    if opcode in (0x0D, 0x0E, *range(0x1A, 0x1C), 0x22, 0x26, 0x30, 0x34, 0x38, 0x3C):
        return Other(rt)
    if opcode == 0x1C:  # mul, clz
        return Other(word >> 11 & 31 or NONE)
    if 0x10 <= opcode <= 0x12 and rs in (NONE, 1, 2, 3):  # mfc0, mfc1, dmfc1, cfc1, mfhc1
        return Other(rt)
    return Other()


def _kind_tables() -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Kinds by major opcode, and by the function of SPECIAL."""
    major, special = (np.full(64, PLAIN, dtype=np.uint8) for _ in range(2))
    major[2], major[3], major[0x1D] = JUMP, CALL, CALL  # j, jal, jalx
    major[4:8] = major[0x14:0x18] = BRANCH  # beq, bne, blez, bgtz, and likely
    major[[4, 0x14, _REGIMM, 0x10, 0x11, 0x12, 0x1C]] = _LOOK
    special[9], special[0x0D] = CALL, STOP  # jalr, break
    special[[8, 0x34]] = _LOOK  # jr, teq
    return major, special


_MAJOR, _FUNCTIONS = _kind_tables()


def _kind(word: int) -> int:
    """The kind of an instruction that its opcode does not tell."""
    opcode, rs, rt = word >> 26, word >> 21 & 31, word >> 16 & 31
    if opcode == _SPECIAL:
        if word & 63 == 8:  # jr
            return STOP if rs == RA else JUMP
        return STOP if rs == rt else PLAIN  # teq
    if opcode == _REGIMM:
        if rt & 0x0C:  # teqi and its like
            return PLAIN
        return CALL if rt & 0x10 else JUMP if (rs, rt) == (0, 1) else BRANCH
    if opcode in (0x04, 0x14):  # beq
        return JUMP if rs == rt else BRANCH
    if opcode in (0x11, 0x12):  # branches on the flags of coprocessors
        return BRANCH if rs == 8 else PLAIN
    # eret, deret; sdbbp
    is_end = word & 0x3F in (0x18, 0x1F) and rs & 0x10 if opcode == 0x10 else word & 0x3F == 0x3F
    return STOP if is_end else PLAIN


def _special(word: int, rs: int, rt: int) -> Effect:
    rd, function, amount = word >> 11 & 31 or NONE, word & 63, word >> 6 & 31
    if function in (0x20, 0x21, 0x2C, 0x2D):  # add, addu, dadd, daddu
        return Sum(rd, max(rs, rt), min(rs, rt), 0)
    if function == 0x25 and NONE in (rs, rt):  # or with $zero
        return Sum(rd, max(rs, rt), NONE, 0)
    if function == 0x00:  # sll
        return Shift(rd, rt, amount)
    if function in (0x38, 0x3C):  # dsll, dsll32
        return Shift(rd, rt, amount + (32 if function == 0x3C else 0))
    if function == 0x02:  # srl
        return Mask(rd, rt, 32 - amount, moved=bool(amount))
    if function in (0x3A, 0x3E):  # dsrl, dsrl32
        return Mask(rd, rt, (64 if function == 0x3A else 32) - amount, moved=True)
    if function in (0x2A, 0x2B):  # slt, sltu
        return Compare(rd, rs, rt, 0)
    if function == 0x09:  # jalr
        return Call()
    if function in (0x08, 0x0C, 0x0D, 0x0F, 0x11, 0x13, *range(0x18, 0x20), *range(0x30, 0x37)):
        return Other()  # jumps, traps, and what writes hi and lo
    return Other(rd)


def _bit_field(word: int, rs: int, rt: int) -> Effect:
    function, amount, size = word & 63, word >> 6 & 31, word >> 11 & 31
    if function in (0x00, 0x03):  # ext, dext
        return Mask(rt, rs, size + 1, moved=bool(amount))
    if function == 0x20:  # seb, seh
        rd = word >> 11 & 31 or NONE
        return Sum(rd, rt, NONE, 0) if amount in (0x10, 0x18) else Other(rd)
    return Other(rt) if function in (0x04, 0x07, 0x3B) else Other(word >> 11 & 31 or NONE)


def _transfer(listing: Listing, position: int) -> int:
    """The position of the branch whose delay slot is at ``position``."""
    if position and _has_slot(listing.word(position - 1)):
        return position - 1
    return position


def _has_slot(word: int) -> bool:
    opcode = word >> 26
    if opcode == _SPECIAL:
        return word & 63 in (8, 9)
    if opcode == _REGIMM:
        return word >> 16 & 31 in (0, 1, 2, 3, 0x10, 0x11, 0x12, 0x13)
    return opcode in (2, 3, 4, 5, 6, 7, 0x14, 0x15, 0x16, 0x17, 0x1D)


def _jump(listing: Listing, position: int) -> tuple[int, int] | None:
    """The register of ``jr``."""
    at = _transfer(listing, position)
    return (listing.word(at) >> 21 & 31, at) if listing.word(at) >> 26 == _SPECIAL else None
