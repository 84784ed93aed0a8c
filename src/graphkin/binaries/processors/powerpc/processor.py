"""What PowerPC instructions do to control flow, and where functions keep their tables.

Everything is read from the instruction words.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType
from typing import Any

import capstone
import numpy as np
from numpy.typing import NDArray

from graphkin.binaries.image import ByteOrder, Image
from graphkin.binaries.processors.powerpc.effects import (
    CTR,
    ENTRY,
    FP,
    LR,
    PIC,
    SCRATCH,
    SP,
    TOC,
    effect_of,
    signed,
)
from graphkin.binaries.processors.slicing.effects import NONE, Call, Effect, Load, Sum
from graphkin.binaries.processors.slicing.switches import Switches
from graphkin.binaries.processors.slicing.values import Values
from graphkin.binaries.recovery.architecture import (
    BRANCH,
    CALL,
    JUMP,
    PLAIN,
    SELECT,
    STOP,
    TableReader,
)
from graphkin.binaries.recovery.decode import Decoder
from graphkin.binaries.recovery.hardening import NoHardening
from graphkin.binaries.recovery.listing import Listing

PROLOGUE = 32
"""Instructions in which a function sets up its frame."""
ASKS_FOR_ADDRESS = (0x429F0005, 0x48000005)
"""``bcl 20, 31, .+4`` and ``bl .+4``, which leave the address behind them in the link register."""
BLRL = 0x4E800021
PIC_REACH = 24
"""Instructions in which 32-bit code computes the address of its table."""
MTCTR, BCTR = 0x7C0903A6, 0x4E800420
_TARGET = re.compile(rb"(?:^|, )(0x[0-9a-f]+|\d+)$")
_FRAME = 0x7C3F0B78
"""``mr r31, r1``."""
_RETURNS_FROM_INTERRUPT = frozenset([18, 38, 39, 50, 51, 82, 274])


class PowerPcHardening(NoHardening):
    """Hashes of return addresses, as the Power ISA has them from 3.1 on."""

    words: Mapping[str, str] = MappingProxyType({"hashst": "", "hashchk": ""})
    marks = frozenset(words)


class PowerPc:
    """PowerPC of 32 or 64 bits, without the instructions of eight bytes that came with ISA 3.1."""

    padding = frozenset(["nop", "xnop"])
    hardening = PowerPcHardening()
    doubts_bounds = False

    def __init__(self, bits: int, byte_order: ByteOrder) -> None:
        self._is_big = byte_order == "big"
        self._pointer = bits // 8
        self._decoder = PowerPcDecoder(bits, byte_order)
        self._registers: PowerPcRegisters | None = None

    def decoder(self, state: str) -> Decoder:
        return self._decoder

    def kinds(self, table: NDArray[Any]) -> NDArray[np.uint8]:
        words = np.asarray(table["big_word" if self._is_big else "word"], dtype=np.uint32)
        kinds = np.full(len(words), PLAIN, dtype=np.uint8)
        rows = np.flatnonzero(_MAY_TRANSFER[words >> 26])
        kinds[rows] = [_kind(word) for word in words[rows].tolist()]
        kinds[table["id"] == 0] = PLAIN
        return kinds

    def delayed(self, table: NDArray[Any], kinds: NDArray[np.uint8]) -> None:
        return None

    def absolute(self, table: NDArray[Any]) -> None:
        return None

    def target(self, operand: bytes) -> int | None:
        """Of ``0x1234`` and ``cr7, 0x1234``."""
        match = _TARGET.search(operand)
        return int(match[1], 0) if match else None

    def called(self, image: Image, listing: Listing, control: int) -> int | None:
        position = listing.controls[control]
        word = listing.word(position)
        registers = self._registers_of(image)
        if word >> 26 == 19:
            if not _is_always(word):
                return None
            register = LR if word >> 1 & 0x3FF == 16 else CTR
            return registers.values.called(listing, register, position)
        target = listing.targets[control]
        if target is None or (word >> 26 == 16 and not _is_always(word)):
            return None
        distance = pic_slot(image, target) if self._pointer == 4 else None
        base = None if distance is None else registers.fixed(listing).get(PIC)
        # One stub serves all functions whose table is the same; its slot depends on them.
        return target if distance is None or base is None else (base + distance) & 0xFFFFFFFF

    def tables(self, image: Image) -> TableReader:
        return Switches(image, self, self._registers_of(image), _jump, self._pointer, 4)

    def _registers_of(self, image: Image) -> PowerPcRegisters:
        if self._registers is None or self._registers.image is not image:
            self._registers = PowerPcRegisters(image, self._pointer)
        return self._registers


class PowerPcDecoder(Decoder):
    """Decodes with names for what capstone 5 does not know, or calls by a wrong name."""

    def __init__(self, bits: int, byte_order: ByteOrder) -> None:
        mode = capstone.CS_MODE_32 if bits == 32 else capstone.CS_MODE_64
        if byte_order == "big":
            mode |= capstone.CS_MODE_BIG_ENDIAN
        super().__init__(capstone.CS_ARCH_PPC, mode, resumes=True)
        self._field = "big_word" if byte_order == "big" else "word"

    def decode_all(self, ranges: Sequence[tuple[bytes, int]]) -> tuple[NDArray[Any], list[int]]:
        table, counts = super().decode_all(ranges)
        words = table[self._field]
        for mask, bits, name in _NAMES:
            table["mnemonic"][words & mask == bits] = name
        # The assembler ends a row of nops with one that does nothing to another register.
        is_nop = (words & 0xFC00FFFF == 0x60000000) & (words >> 21 & 31 == words >> 16 & 31)
        table["mnemonic"][is_nop] = b"nop"
        return table, counts


_NAMES = (
    (0xFFFFFFFF, 0x429F0005, b"bcl"),
    (0xFC000003, 0x44000001, b"scv"),
    (0xFC0007FE, 0x7C0005A4, b"hashst"),
    (0xFC0007FE, 0x7C0005E4, b"hashchk"),
)
"""(mask, bits, mnemonic)."""


class PowerPcRegisters:
    """What PowerPC instructions do to registers.

    Args:
        image: the binary.
        pointer: width of an address in bytes.
    """

    scratch = SCRATCH

    def __init__(self, image: Image, pointer: int) -> None:
        self.image = image
        self._pointer = pointer
        self.usual: Callable[[int], Effect] = effect_of
        self.values = Values(image, self, pointer)
        self._listing: Listing | None = None
        """The function that is known."""
        self._fixed: dict[int, int] = {}
        self._frames = frozenset([SP])

    def fixed(self, listing: Listing) -> Mapping[int, int]:
        """The table of 64-bit code, as the file has it; that of 32-bit code, which each function
        computes in a register of its own."""
        if self._listing is not listing:
            self._listing = listing
            start = listing.words()[:PROLOGUE]
            self._frames = frozenset([SP, FP] if _FRAME in start else [SP])
            self._fixed = {}
            if self._pointer == 4:
                self._fixed = dict(self._computed_tables(listing))
            elif self.image.got is not None:
                self._fixed = {TOC: self.image.got}
        return self._fixed

    def frames(self, listing: Listing) -> frozenset[int]:
        self.fixed(listing)
        return self._frames

    def at_entry(self, listing: Listing) -> Mapping[int, int]:
        """Callers leave the address of a function in r12, where it needs it."""
        return {ENTRY: listing.addresses[0]} if self._pointer == 8 else {}

    def _computed_tables(self, listing: Listing) -> Iterator[tuple[int, int]]:
        """Registers that hold an address which was counted from that of an instruction."""
        words = listing.words()
        calls = [at for at, word in enumerate(words) if self._address_asked_for(listing, at, word)]
        values: dict[int, set[int | None]] = {}
        used: dict[int, set[int]] = {}
        for call in calls:
            reach = range(call + 1, min(len(words), call + PIC_REACH))
            register = next((words[at] >> 21 & 31 for at in reach if _is_mflr(words[at])), 0)
            if register < 14:
                continue
            writers = {at for at in reach if _is_setter(words[at], register)}
            used.setdefault(register, set()).update(writers)
            value = self.values.exact(listing, register, max(writers) + 1)
            values.setdefault(register, set()).add(value)
        for register, computed in values.items():
            value = computed.pop()
            others = (at for at, word in enumerate(words) if _is_setter(word, register))
            if value is not None and not computed and used[register].issuperset(others):
                yield register, value

    def _address_asked_for(self, listing: Listing, position: int, word: int) -> int | None:
        """What a call leaves in the link register, if it does nothing else."""
        if word in ASKS_FOR_ADDRESS:
            return listing.addresses[position] + 4
        if word & 0xFC000003 != 0x48000001 or self._pointer == 8:
            return None
        # Older files have ``blrl`` ahead of their table, and call that.
        target = listing.addresses[position] + signed(word & 0x03FFFFFC, 26)
        is_table = self.image.got is not None and -0x8000 < target - self.image.got < 0x10000
        return target + 4 if is_table and self.image.word(target, 4) == BLRL else None

    def effect(self, listing: Listing, position: int) -> Effect:
        word = listing.word(position)
        if word & 3 == 1 and word >> 26 in (16, 18):
            value = self._address_asked_for(listing, position, word)
            return Call() if value is None else Sum(LR, NONE, NONE, value)
        return effect_of(word)


def pic_slot(image: Image, address: int) -> int | None:
    """How far from a caller's r30 the slot is that a stub jumps through; None for other code.

    The stubs are ``lwz r11, N(r30)``, or ``addis r11, r30, N; lwz r11, N(r11)``, and then
    ``mtctr r11; bctr``.
    """
    code = image.read(address, 16)
    words = [int.from_bytes(code[at : at + 4], "big") for at in range(0, len(code) & ~3, 4)]
    distance = 0
    if words and words[0] >> 16 == 0x3D7E:
        distance = signed(words.pop(0), 16) << 16
    is_load = len(words) > 2 and words[0] >> 16 == (0x816B if distance else 0x817E)
    if not is_load or words[1:3] != [MTCTR | 11 << 21, BCTR]:
        return None
    return distance + signed(words[0], 16)


def _is_mflr(word: int) -> bool:
    return word & 0xFC1FFFFF == 0x7C0802A6


def _is_setter(word: int, register: int) -> bool:
    """Whether an instruction writes a register, and does not restore what the caller had in it."""
    effect = effect_of(word)
    is_restored = isinstance(effect, Load) and effect.base in (SP, 11, FP)
    return effect.target == register and not is_restored


def _jump(listing: Listing, position: int) -> tuple[int, int] | None:
    word = listing.word(position)
    return (CTR, position) if word >> 26 == 19 and word >> 1 & 0x3FF != 16 else None


def _is_always(word: int) -> bool:
    """Whether a branch asks for neither a flag nor the count."""
    return word >> 21 & 0x14 == 0x14


_MAY_TRANSFER = np.zeros(64, dtype=bool)
_MAY_TRANSFER[[2, 3, 16, 18, 19, 31]] = True


@lru_cache(maxsize=1 << 16)
def _kind(word: int) -> int:
    opcode, function = word >> 26, word >> 1 & 0x3FF
    if word in ASKS_FOR_ADDRESS:
        return PLAIN
    if opcode == 18:
        return CALL if word & 1 else JUMP
    if opcode == 16:
        return CALL if word & 1 else JUMP if _is_always(word) else BRANCH
    if opcode in (2, 3) or (opcode == 31 and function in (4, 68)):
        return STOP if word >> 21 & 31 == 31 else PLAIN  # traps that ask for nothing
    if opcode == 31 or function not in (16, 528, 560, *_RETURNS_FROM_INTERRUPT):
        return PLAIN
    if function in _RETURNS_FROM_INTERRUPT:
        return STOP
    if word & 1:
        return CALL
    if function == 16:
        return STOP if _is_always(word) else BRANCH
    return JUMP if _is_always(word) else SELECT
