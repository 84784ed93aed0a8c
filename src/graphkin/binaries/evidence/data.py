"""What an address means: a string, a table, a constant, an import, or another function."""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import NamedTuple

from graphkin.binaries.evidence.tokens import import_name, real_of, text_of
from graphkin.binaries.function import Callee, Token, pointer_bytes
from graphkin.binaries.image import Image, Region

LOAD, STORE, TAKE = "load", "store", "take"
"""What code does with an address: reads there, writes there, or keeps the address itself."""
NEAR = 1 << 15
TABLE_BYTES = 8
"""Bytes of a table that are kept: behind more of them may lie padding."""
_LETTERS = rb"[\t\n\r\x1b\x20-\x7e]"
_STRING = re.compile(rb"(%b{4,200})(?:\0|(?<=%b{200}))" % (_LETTERS, _LETTERS))
_WIDE = re.compile(rb"((?:%b\0){4,200})(?:\0\0|(?<=(?:%b\0){200}))" % (_LETTERS, _LETTERS))
_SHORT = re.compile(rb"([\t\n\x20-\x7e]{1,3})\0")
_THUNK = re.compile(rb"\x8b[\x04\x0c\x14\x1c\x2c\x34\x3c]\x24\xc3")
"""``mov R, [esp]; ret``: how 32-bit x86 learns where it is."""


class Meaning(NamedTuple):
    """What code says by naming an address."""

    tokens: tuple[Token, ...] = ()
    callee: Callee | None = None
    value: int | None = None
    """What the loader leaves in a slot that is read."""


NOTHING = Meaning()


class Places:
    """The addresses of one file. Answers are kept, for code names the same ones again."""

    def __init__(self, image: Image) -> None:
        self.image = image
        self.width = pointer_bytes(image.architecture)
        self.mask = (1 << 8 * self.width) - 1
        self.is_big = image.byte_order == "big"
        self.is_fixed = image.is_fixed
        """Whether numbers in the code can be addresses."""
        self._aligned = ~1 if image.architecture == "arm" else ~0
        self._extents = [extent.start for extent in image.extents]
        self._starts = set(self._extents)
        self.entries = self._starts | image.imports.keys() | image.forwards.keys()
        """Addresses that a transfer to another function can go to."""
        self._meanings: dict[tuple[int, str, int], Meaning] = {}
        self._transfers: dict[int, Meaning] = {}

    def transfer(self, address: int) -> Meaning:
        """What code says by going to an address: nothing inside of functions."""
        meaning = self._transfers.get(address)
        if meaning is None:
            callee = self._find_callee(address)
            tokens = (Token("imp", callee),) if isinstance(callee, str) else ()
            meaning = NOTHING if callee is None else Meaning(tokens, callee)
            self._transfers[address] = meaning
        return meaning

    def is_mapped(self, address: int) -> bool:
        """Whether the file has bytes there."""
        return self.image.region(address) is not None

    def is_near(self, address: int) -> bool:
        """Whether the file has bytes that a signed number of 16 bits reaches from there."""
        low, high = address - NEAR, address + NEAR
        return any(region.start < high and region.end > low for region in self.image.regions)

    def is_slot(self, address: int) -> bool:
        """Whether the loader fills a word in."""
        image = self.image
        return address in image.imports or address in image.pointers or address in image.forwards

    def meaning(self, address: int, role: str, real_bytes: int = 0) -> Meaning:
        """What code says by naming an address.

        Args:
            address: of data, a slot of the linker, or code.
            role: what the code does with it.
            real_bytes: size of the number of floating point that is loaded.
        """
        key = (address, role, real_bytes)
        meaning = self._meanings.get(key)
        if meaning is None:
            meaning = self._meanings[key] = self._find(address & self.mask, role, real_bytes)
        return meaning

    def string(self, address: int) -> str | None:
        """The text at an address of constant data."""
        region = self.image.region(address)
        if region is None or region.writable or self._is_code(region, address):
            return None
        return _read_string(region, address)

    def _find_callee(self, address: int) -> Callee | None:
        name = self.image.imports.get(address)
        if name is not None:
            return import_name(name) or None
        address = self.image.forwards.get(address, address) & self._aligned
        if address not in self._starts:
            return None
        if self.width == 4 and _THUNK.match(self.image.read(address, 4)):
            return None
        return address

    def _find(self, address: int, role: str, real_bytes: int) -> Meaning:
        image = self.image
        if role != TAKE:
            name = image.imports.get(address)
            if name is not None:
                name = import_name(name)
                return Meaning((Token("imp", name),), name) if name else NOTHING
            value = image.forwards.get(address, image.pointers.get(address))
            if value is not None and role == LOAD:
                return self._find(value, TAKE, 0)._replace(value=value)
        region = image.region(address)
        if role == TAKE and (region is None or region.executable):
            transfer = self.transfer(address)
            if transfer is not NOTHING:
                return transfer
        if region is None:
            return NOTHING
        if region.writable:
            return self._in_variables(address, role)
        if role == LOAD and real_bytes and not region.executable:
            return Meaning(real_of(image.read(address, real_bytes), self.is_big))
        if role != TAKE or self._is_code(region, address):
            return NOTHING
        return Meaning(self._constant(region, address))

    def _in_variables(self, address: int, role: str) -> Meaning:
        """A variable that points to a string speaks for it."""
        value = self.image.word(address, self.width) if role != STORE else None
        if not value:
            return NOTHING
        text = self.string(value)
        if role == TAKE:
            return Meaning((Token("str", f"*{text}"),)) if text else NOTHING
        return Meaning((Token("str", text),) if text else (), None, value)

    def _constant(self, region: Region, address: int) -> tuple[Token, ...]:
        text = _read_string(region, address)
        if text:
            return (Token("str", text),)
        raw = bytes(region.data[address - region.start :][:TABLE_BYTES])
        # A number, which begins like an empty string where its highest byte comes first.
        is_number = self.is_big and not address & 3 and raw[:2] == b"\0\0" and any(raw[2:4])
        short = _SHORT.match(raw[3::-1] if is_number else raw)
        if short:
            return (Token("str", short[1].decode("ascii")),)
        if len(raw) < TABLE_BYTES or region.executable:
            return ()
        # One zero byte ahead of others is more often an empty string than a table.
        if not any(raw) or (not raw[0] and any(raw[1:4]) and not is_number):
            return ()
        return (Token("dat", raw.hex()),)

    def _is_code(self, region: Region, address: int) -> bool:
        """Whether an address lies in a function; files without sections have text beside code."""
        if not region.executable:
            return False
        number = bisect_right(self._extents, address) - 1
        return number >= 0 and address < self.image.extents[number].end


def _read_string(region: Region, address: int) -> str | None:
    at = address - region.start
    match = _STRING.match(region.data, at)
    if match is not None:
        return text_of(match[1].decode("ascii")) or None
    match = _WIDE.match(region.data, at)
    return text_of(match[1].decode("utf-16-le")) or None if match is not None else None
