"""Relocations of ELF objects: how each kind writes an address into code or data."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple


class Site(NamedTuple):
    """A place to be written, and what goes there."""

    content: bytearray
    offset: int
    address: int
    """Where the place is in memory: P of the manuals."""
    symbol: int
    """S of the manuals. A symbol that is reached through a slot of the global offset table counts
    as that slot."""
    addend: int | None
    """A of the manuals; None where it is in the place itself."""
    got: int

    def word(self, width: int) -> int:
        return int.from_bytes(self.content[self.offset : self.offset + width], "little")

    def write(self, width: int, value: int) -> None:
        raw = (value % (1 << 8 * width)).to_bytes(width, "little")
        self.content[self.offset : self.offset + width] = raw

    def value(self, implicit: int) -> int:
        """S + A, with the addend of the place for objects that keep it there."""
        return self.symbol + (implicit if self.addend is None else self.addend)


class _Kind(NamedTuple):
    width: int
    apply: Callable[[Site], None]


def apply(kind: str, site: Site) -> None:
    """Writes what a relocation asks for; kinds that no control flow depends on do nothing."""
    relocation = KINDS.get(kind)
    if relocation is not None and site.offset + relocation.width <= len(site.content):
        relocation.apply(site)


def _signed(value: int, bits: int) -> int:
    sign = 1 << (bits - 1)
    return ((value & (2 * sign - 1)) ^ sign) - sign


def _word(width: int, origin: str = "") -> _Kind:
    """A plain word, counted from zero, from the ``place`` or from the ``got``."""

    def write(site: Site) -> None:
        value = site.value(_signed(site.word(width), 8 * width))
        if origin == "place":
            value -= site.address
        elif origin == "got":
            value -= site.got
        site.write(width, value)

    return _Kind(width, write)


def _got_from_place(site: Site) -> None:
    implicit = _signed(site.word(4), 32)
    addend = implicit if site.addend is None else site.addend
    site.write(4, site.got + addend - site.address)


def _field(low: int, bits: int, scale: int, origin: str) -> _Kind:
    """Bits of an AArch64 instruction: a distance from the ``place``, or an offset in a ``page``."""

    def write(site: Site) -> None:
        value = site.value(0)
        value = value - site.address if origin == "place" else value & 0xFFF
        mask = ((1 << bits) - 1) << low
        site.write(4, site.word(4) & ~mask | (value >> scale) << low & mask)

    return _Kind(4, write)


def _adr(pages: bool) -> _Kind:
    """The split field of ``adr`` and ``adrp``."""

    def write(site: Site) -> None:
        value = site.value(0)
        value = (value >> 12) - (site.address >> 12) if pages else value - site.address
        bits = (value & 3) << 29 | (value >> 2 & 0x7FFFF) << 5
        site.write(4, site.word(4) & 0x9F00001F | bits)

    return _Kind(4, write)


def _arm_branch(site: Site) -> None:
    implicit = _signed(site.word(4), 24) * 4
    distance = (site.value(implicit) & ~1) - site.address
    site.write(4, site.word(4) & 0xFF000000 | distance >> 2 & 0xFFFFFF)


def _thumb_branch(site: Site) -> None:
    """``bl``, ``blx`` and ``b.w``: 24 bits, two of them folded with the sign."""
    first, second = site.word(2), site.word(4) >> 16
    sign = first >> 10 & 1
    high, low = ~(second >> 13 ^ sign) & 1, ~(second >> 11 ^ sign) & 1
    bits = sign << 24 | high << 23 | low << 22 | (first & 0x3FF) << 12 | (second & 0x7FF) << 1
    value = (site.value(_signed(bits, 25)) & ~1) - site.address
    sign = value >> 24 & 1
    high, low = ~(value >> 23 ^ sign) & 1, ~(value >> 22 ^ sign) & 1
    first = first & 0xF800 | sign << 10 | value >> 12 & 0x3FF
    second = second & 0xD000 | high << 13 | low << 11 | value >> 1 & 0x7FF
    site.write(4, second << 16 | first)


def _thumb_conditional(site: Site) -> None:
    """``b<condition>.w``: 20 bits."""
    first, second = site.word(2), site.word(4) >> 16
    bits = (first >> 10 & 1) << 20 | (second >> 11 & 1) << 19 | (second >> 13 & 1) << 18
    bits |= (first & 0x3F) << 12 | (second & 0x7FF) << 1
    value = (site.value(_signed(bits, 21)) & ~1) - site.address
    first = first & 0xFBC0 | (value >> 20 & 1) << 10 | value >> 12 & 0x3F
    second = second & 0xD000 | (value >> 18 & 1) << 13 | (value >> 19 & 1) << 11
    site.write(4, (second | value >> 1 & 0x7FF) << 16 | first)


def _thumb_short(bits: int) -> _Kind:
    """16-bit branches."""

    def write(site: Site) -> None:
        mask = (1 << bits) - 1
        value = (site.value(_signed(site.word(2), bits) * 2) & ~1) - site.address
        site.write(2, site.word(2) & ~mask | value >> 1 & mask)

    return _Kind(2, write)


def _half(high: bool, thumb: bool, relative: bool) -> _Kind:
    """``movw`` and ``movt``: 16 bits of an address."""

    def write(site: Site) -> None:
        code = site.word(4)
        if thumb:
            implicit = (code & 0xF) << 12 | (code >> 10 & 1) << 11
            implicit |= (code >> 28 & 7) << 8 | code >> 16 & 0xFF
        else:
            implicit = (code >> 16 & 0xF) << 12 | code & 0xFFF
        value = site.value(_signed(implicit, 16)) - (site.address if relative else 0)
        value = value >> 16 if high else value
        if thumb:
            code &= 0x8F00FBF0
            code |= value >> 12 & 0xF | (value >> 11 & 1) << 10
            code |= (value >> 8 & 7) << 28 | (value & 0xFF) << 16
        else:
            code = code & 0xFFF0F000 | (value >> 12 & 0xF) << 16 | value & 0xFFF
        site.write(4, code)

    return _Kind(4, write)


def _prel31(site: Site) -> None:
    value = site.value(_signed(site.word(4), 31)) - site.address
    site.write(4, site.word(4) & 1 << 31 | value & 0x7FFFFFFF)


_GOT_PLACE = _Kind(4, _got_from_place)

X86_64 = {
    "X86_64_64": _word(8),
    "X86_64_32": _word(4),
    "X86_64_32S": _word(4),
    "X86_64_PC32": _word(4, "place"),
    "X86_64_PLT32": _word(4, "place"),
    "X86_64_PC64": _word(8, "place"),
    "X86_64_GOTPCREL": _word(4, "place"),
    "X86_64_GOTPCRELX": _word(4, "place"),
    "X86_64_REX_GOTPCRELX": _word(4, "place"),
}
X86 = {
    "X86_32": _word(4),
    "X86_PC32": _word(4, "place"),
    "X86_PLT32": _word(4, "place"),
    "X86_GOTOFF": _word(4, "got"),
    "X86_GOT32": _word(4, "got"),
    "X86_GOT32X": _word(4, "got"),
    "X86_GOTPC": _GOT_PLACE,
}
AARCH64 = {
    "AARCH64_ABS64": _word(8),
    "AARCH64_ABS32": _word(4),
    "AARCH64_ABS16": _word(2),
    "AARCH64_PREL64": _word(8, "place"),
    "AARCH64_PREL32": _word(4, "place"),
    "AARCH64_PREL16": _word(2, "place"),
    "AARCH64_CALL26": _field(0, 26, 2, "place"),
    "AARCH64_JUMP26": _field(0, 26, 2, "place"),
    "AARCH64_CONDBR19": _field(5, 19, 2, "place"),
    "AARCH64_TSTBR14": _field(5, 14, 2, "place"),
    "AARCH64_LD_PREL_LO19": _field(5, 19, 2, "place"),
    "AARCH64_GOT_LD_PREL19": _field(5, 19, 2, "place"),
    "AARCH64_ADR_PREL_LO21": _adr(pages=False),
    "AARCH64_ADR_PREL_PG_HI21": _adr(pages=True),
    "AARCH64_ADR_PREL_PG_HI21_NC": _adr(pages=True),
    "AARCH64_ADR_GOT_PAGE": _adr(pages=True),
    "AARCH64_ADD_ABS_LO12_NC": _field(10, 12, 0, "page"),
    "AARCH64_LDST8_ABS_LO12_NC": _field(10, 12, 0, "page"),
    "AARCH64_LDST16_ABS_LO12_NC": _field(10, 12, 1, "page"),
    "AARCH64_LDST32_ABS_LO12_NC": _field(10, 12, 2, "page"),
    "AARCH64_LDST64_ABS_LO12_NC": _field(10, 12, 3, "page"),
    "AARCH64_LDST128_ABS_LO12_NC": _field(10, 12, 4, "page"),
    "AARCH64_LD64_GOT_LO12_NC": _field(10, 12, 3, "page"),
}
ARM = {
    "ARM_ABS32": _word(4),
    "ARM_TARGET1": _word(4),
    "ARM_REL32": _word(4, "place"),
    "ARM_GOT_PREL": _word(4, "place"),
    "ARM_GOTOFF32": _word(4, "got"),
    "ARM_GOT_BREL": _word(4, "got"),
    "ARM_BASE_PREL": _GOT_PLACE,
    "ARM_PREL31": _Kind(4, _prel31),
    "ARM_PC24": _Kind(4, _arm_branch),
    "ARM_PLT32": _Kind(4, _arm_branch),
    "ARM_CALL": _Kind(4, _arm_branch),
    "ARM_JUMP24": _Kind(4, _arm_branch),
    "ARM_THM_CALL": _Kind(4, _thumb_branch),
    "ARM_THM_JUMP24": _Kind(4, _thumb_branch),
    "ARM_THM_JUMP19": _Kind(4, _thumb_conditional),
    "ARM_THM_JUMP11": _thumb_short(11),
    "ARM_THM_JUMP8": _thumb_short(8),
    "ARM_MOVW_ABS_NC": _half(high=False, thumb=False, relative=False),
    "ARM_MOVT_ABS": _half(high=True, thumb=False, relative=False),
    "ARM_MOVW_PREL_NC": _half(high=False, thumb=False, relative=True),
    "ARM_MOVT_PREL": _half(high=True, thumb=False, relative=True),
    "ARM_THM_MOVW_ABS_NC": _half(high=False, thumb=True, relative=False),
    "ARM_THM_MOVT_ABS": _half(high=True, thumb=True, relative=False),
    "ARM_THM_MOVW_PREL_NC": _half(high=False, thumb=True, relative=True),
    "ARM_THM_MOVT_PREL": _half(high=True, thumb=True, relative=True),
}
KINDS = X86_64 | X86 | AARCH64 | ARM
