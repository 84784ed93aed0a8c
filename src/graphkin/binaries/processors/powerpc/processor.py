"""What PowerPC instructions do: to control flow, and to the registers that addresses go through.

Everything is read from the instruction words. Beside the general registers 0 to 31 there are the
link register, the count register that indirect jumps go through, and eight fields of flags, which
comparisons write and branches read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Any

import capstone
import numpy as np
from numpy.typing import NDArray

from graphkin.binaries.image import ByteOrder, Image
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
    SELECT,
    STOP,
    TableReader,
)
from graphkin.binaries.recovery.decode import Decoder, Records
from graphkin.binaries.recovery.hardening import NoHardening
from graphkin.binaries.recovery.listing import Listing

SP, TOC, ENTRY, PIC, FP = 1, 2, 12, 30, 31
"""The stack, the table of contents of 64-bit code, the address of a called function, the table
of 32-bit code, and the frame of code that is not optimized."""
LR, CTR, FLAGS = 32, 33, 34
"""The numbers of other registers; ``FLAGS`` is that of the first field of flags."""
SCRATCH = frozenset([0, *range(3, 13), LR, CTR, *(FLAGS + one for one in (0, 1, 5, 6, 7))])
PROLOGUE = 32
"""Instructions in which a function sets up its frame."""
ASKS_FOR_ADDRESS = (0x429F0005, 0x48000005)
"""``bcl 20, 31, .+4`` and ``bl .+4``, which leave the address behind them in the link register."""
BLRL = 0x4E800021
PIC_REACH = 24
"""Instructions in which 32-bit code computes the address of its table."""
MTCTR, BCTR = 0x7C0903A6, 0x4E800420
TOC_HIGH, TOC_LOW = (0x3C4C, 0x3C40), 0x3842
"""``addis r2, r12`` or ``lis r2``, and ``addi r2, r2``: the upper halves."""
MAX_LANGUAGE, HAS_LENGTH, HAS_NAME, KINDS, SAVED = 15, 0x20, 0x40, 0x26, 0x63
"""Of the table behind a function of 64-bit code; the last two are the flags that compilers set."""
_TARGET = re.compile(rb"(?:^|, )(0x[0-9a-f]+|\d+)$")
_FRAME = 0x7C3F0B78
"""``mr r31, r1``."""
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

    def called(self, image: Image, listing: Listing, position: int, operand: bytes) -> int | None:
        word = listing.word(position)
        registers = self._registers_of(image)
        if word >> 26 == 19:
            if not _is_always(word):
                return None
            register = LR if word >> 1 & 0x3FF == 16 else CTR
            return registers.values.called(listing, register, position)
        target = self.target(operand)
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

    def decode(self, code: bytes, address: int) -> Records:
        records = super().decode(code, address)
        table = records.table
        words = table[self._field]
        for mask, bits, name in _NAMES:
            table["mnemonic"][words & mask == bits] = name
        # The assembler ends a row of nops with one that does nothing to another register.
        is_nop = (words & 0xFC00FFFF == 0x60000000) & (words >> 21 & 31 == words >> 16 & 31)
        table["mnemonic"][is_nop] = b"nop"
        return records


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
        asked = [at for at, word in enumerate(words) if self._address_asked_for(listing, at, word)]
        values: dict[int, set[int | None]] = {}
        used: dict[int, set[int]] = {}
        for at in asked:
            reach = range(at + 1, min(len(words), at + PIC_REACH))
            register = next((words[one] >> 21 & 31 for one in reach if _is_mflr(words[one])), 0)
            if register < 14:
                continue
            writers = {one for one in reach if _is_setter(words[one], register)}
            used.setdefault(register, set()).update(writers)
            value = self.values.exact(listing, register, max(writers) + 1)
            values.setdefault(register, set()).add(value)
        for register, found in values.items():
            value = found.pop()
            others = (at for at, word in enumerate(words) if _is_setter(word, register))
            if value is not None and not found and used[register].issuperset(others):
                yield register, value

    def _address_asked_for(self, listing: Listing, position: int, word: int) -> int | None:
        """What a call leaves in the link register, if it does nothing else."""
        if word in ASKS_FOR_ADDRESS:
            return listing.addresses[position] + 4
        if word & 0xFC000003 != 0x48000001 or self._pointer == 8:
            return None
        # Older files have ``blrl`` ahead of their table, and call that.
        target = listing.addresses[position] + _signed(word & 0x03FFFFFC, 26)
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
        distance = _signed(words.pop(0), 16) << 16
    is_load = len(words) > 2 and words[0] >> 16 == (0x816B if distance else 0x817E)
    if not is_load or words[1:3] != [MTCTR | 11 << 21, BCTR]:
        return None
    return distance + _signed(words[0], 16)


def computed_contents(
    words: NDArray[np.int64], start: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Where functions of 64-bit code compute the address of the table of contents, and what it is.

    Args:
        words: instructions.
        start: address of the first.
    """
    high, low = words[:-1] >> 16, words[1:] >> 16
    rows = np.flatnonzero(np.isin(high, TOC_HIGH) & (low == TOC_LOW))
    halves = [((words[at] & 0xFFFF) ^ 0x8000) - 0x8000 for at in (rows, rows + 1)]
    origin = np.where(high[rows] == TOC_HIGH[0], start + 4 * rows, 0)
    return rows, origin + (halves[0] << 16) + halves[1]


def guessed_contents(words: NDArray[np.int64], start: int) -> int | None:
    """The address of the table of contents that most functions compute; None without any."""
    _, values = computed_contents(words, start)
    found, counts = np.unique(values, return_counts=True)
    return int(found[counts.argmax()]) if len(found) else None


def traceback_tables(words: NDArray[np.int64]) -> list[tuple[int, int]]:
    """Tables behind functions of 64-bit code, which tell debuggers of them, as (first word, word
    behind the last).

    Each begins with a zero, which is no instruction. Eight bytes follow, and where they say so, the
    length of the function and its name.
    """
    tables: list[tuple[int, int]] = []
    is_first = words == 0
    is_first[1:] &= words[:-1] >> 26 != 0
    for at in np.flatnonzero(is_first[:-2]).tolist():
        first, second = (int(word).to_bytes(4, "little") for word in words[at + 1 : at + 3])
        # Compilers write byte by byte, glibc one number.
        version, language, kind, saved = first if any(first) else second[::-1]
        if version or language > MAX_LANGUAGE or kind & ~KINDS or saved & ~SAVED:
            continue
        has_length, has_name = bool(kind & HAS_LENGTH), bool(saved & HAS_NAME)
        end = at + 3 + has_length
        if has_name:
            if not has_length or end >= len(words):
                continue
            end += (2 + (int(words[end]) & 0xFFFF) + 3) // 4
        tables.append((at, min(end, len(words))))
    return tables


def _signed(value: int, bits: int) -> int:
    sign = 1 << (bits - 1)
    return ((value & (2 * sign - 1)) ^ sign) - sign


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


@lru_cache(maxsize=1 << 16)
def effect_of(word: int) -> Effect:
    """What an instruction does, wherever it lies."""
    opcode, first, second = word >> 26, word >> 21 & 31, word >> 16 & 31
    base = second or NONE
    constant = _signed(word, 16)
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
