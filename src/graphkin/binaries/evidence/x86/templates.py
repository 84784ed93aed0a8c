"""Texts of x86 instructions that differ from known ones in little, and need not be read anew."""

from __future__ import annotations

import re

from graphkin.binaries.evidence import tokens as said
from graphkin.binaries.evidence.data import LOWEST_FIXED
from graphkin.binaries.evidence.instructions import KEPT
from graphkin.binaries.evidence.x86.operands import HIGH_BYTES, Parsed, parse

_FIELD = re.compile(
    rb"(?:(\w+), )?(\w+) ptr \[(\w+)(?: ([+-]) (0x[0-9a-f]+|\d+))?\](?:, [a-z]\w*)?$"
)
_CONSTANT = re.compile(rb"(\w+), (-?(?:0x[0-9a-f]+|\d+))$")
_DISPLACEMENT = re.compile(rb" ([+-]) (0x[0-9a-f]+|\d+)\]")
_HIGH_BYTES = frozenset(name.encode() for name in HIGH_BYTES)
_SAID = {"off": said.offset, "shift": said.shift, "num": said.number}


class WideTemplates:
    """Of 64 bits: which register it is matters for those of the stack only, so most texts
    differ from a known one in registers and in one number."""

    def __init__(self) -> None:
        self._known: dict[tuple[object, ...], Parsed] = {}

    def parse(self, name: str, raw: bytes, framed: bool) -> Parsed:
        """Takes an instruction apart."""
        shape: tuple[object, ...]
        match = _FIELD.match(raw)
        if match is not None and match[3] != b"rip":
            is_stack = match[3] == b"rsp" or (framed and match[3] == b"rbp")
            shape = (name, match[1] is None, match[2], is_stack, match[5] is None)
            number, sign = match[5], match[4]
        else:
            match = _CONSTANT.match(raw)
            if match is None or match[1] in _HIGH_BYTES:
                return parse(name, raw.decode("ascii", "replace"), framed, False)
            shape = (name, match[1] == b"rsp")
            number, sign = match[2], b""
        known = self._known.get(shape)
        if known is not None:
            parsed = _with_number(known, int(number or b"0", 0), sign)
            if parsed is not None:
                return parsed
        parsed = parse(name, raw.decode("ascii", "replace"), framed, False)
        self._known.setdefault(shape, parsed)
        return parsed


class NarrowTemplates:
    """Of 32 bits, where registers matter: texts that differ in a displacement."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, bytes, bytes, bool], Parsed] = {}

    def parse(self, name: str, raw: bytes, framed: bool) -> Parsed:
        """Takes an instruction apart."""
        match = _DISPLACEMENT.search(raw)
        offset = 0 if match is None else int(match[1] + match[2], 0)
        if match is None or not offset:
            return parse(name, raw.decode("ascii", "replace"), framed, True)
        if len(self._known) > KEPT:
            self._known.clear()
        shape = (name, raw[: match.start()], raw[match.end() :], framed)
        known = self._known.get(shape)
        if known is None:
            known = parse(name, raw.decode("ascii", "replace"), framed, True)
            self._known[shape] = known
            return known
        return _with_offset(known, offset)


def _with_offset(known: Parsed, offset: int) -> Parsed:
    """A known instruction with another displacement."""
    if not known.is_active or not known.role:
        return known
    return Parsed(
        code=known.code,
        tokens=known.tokens,
        role=known.role,
        base=known.base,
        index=known.index,
        dst=known.dst,
        source=known.source,
        offset=offset,
        real=known.real,
        against=known.against,
        value=known.value,
        is_active=True,
    )


def _with_number(known: Parsed, number: int, sign: bytes | None) -> Parsed | None:
    """A known instruction with another displacement or constant; None where more differs."""
    if number >= LOWEST_FIXED or known.role or known.value is not None or known.number == "and":
        return None
    if known.is_field:
        tokens = said.offset(-number if sign == b"-" else number)
    elif known.number and not known.has_offset:
        if known.number == "against":
            return Parsed(code=known.code, against=number, number="against", is_active=True)
        tokens = _SAID[known.number](number)
    else:
        return known
    if known.fixed:
        return None
    return Parsed(code=known.code, tokens=tokens, is_active=bool(tokens))
