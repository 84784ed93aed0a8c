"""Texts of x86 instructions that differ from known ones in little, and need not be read anew."""

from __future__ import annotations

import re

from graphkin.binaries.evidence import tokens as said
from graphkin.binaries.evidence.instructions import KEPT
from graphkin.binaries.evidence.x86.operands import HIGH_BYTES, Parsed, parse
from graphkin.binaries.image import LOWEST_FIXED

_NUMBER = rb"0x[0-9a-f]+|\d+"
_MEMORY = re.compile(
    rb"(?:([a-z]\w*), )?(?:(\w+) ptr )?"
    rb"\[(?:([a-z]\w*\b)(?!\*))?(?:(?: \+ )?([a-z]\w*)(\*\d)?)?(?: ?([+-]) )?(%b)?\]"
    rb"(?:, (?:[a-z]\w*|(-?(?:%b))))?$" % (_NUMBER, _NUMBER)
)
"""A register if there is one, size, base, index, scale, sign, displacement, constant."""
_PLAIN = re.compile(rb"([a-z]\w*)(?:, (?:([a-z]\w*)|(-?(?:%b))))?$" % _NUMBER)
"""A register, another one, a constant."""
_DISPLACEMENT = re.compile(rb" ([+-]) (0x[0-9a-f]+|\d+)\]")
_STACK, _FRAME = (b"rsp", b"esp"), (b"rbp", b"ebp")
_HIGH_BYTES = frozenset(name.encode() for name in HIGH_BYTES)
_SAID = {"off": said.offset, "shift": said.shift, "num": said.number}


class WideTemplates:
    """Of 64 bits: which register it is matters for those of the stack only, so most texts
    differ from a known one in registers and in one number."""

    def __init__(self) -> None:
        self._known: dict[tuple[object, ...], Parsed] = {}
        """By all that matters but one number."""
        self._exact: dict[tuple[object, ...], Parsed] = {}
        """By all that matters."""

    def parse(self, name: str, raw: bytes, framed: bool) -> Parsed:
        """Takes an instruction apart."""
        shape: tuple[object, ...] | None = None
        exact: tuple[object, ...]
        match = _MEMORY.match(raw)
        if match is not None:
            register, size, base, index, scale, sign, number, constant = match.groups()
            if base == b"rip":
                return parse(name, raw.decode("ascii", "replace"), framed, False)
            is_stack = base in _STACK or (framed and base in _FRAME)
            own = register is None if constant is None else register
            kind = (name, own, size, is_stack, base is None, b"mm" in raw)
            exact = (*kind, index is None, scale, sign, number, constant)
            if size is not None and base is not None and index is None and constant is None:
                shape = (*kind, number is None)
        else:
            match = _PLAIN.match(raw)
            if match is None:
                return parse(name, raw.decode("ascii", "replace"), framed, False)
            register, other, number = match.groups()
            sign = None
            if number is None:
                exact = (name, register == other, other is None, b"mm" in raw, b"xmm" in raw)
            elif register in _HIGH_BYTES:
                return parse(name, raw.decode("ascii", "replace"), framed, False)
            else:
                shape = (name, register in _STACK, b"mm" in raw)
                exact = (*shape, number)
        parsed = self._exact.get(exact)
        if parsed is None:
            parsed = self._find(name, raw, framed, shape, sign, number)
            if len(self._exact) > KEPT:
                self._exact.clear()
            self._exact[exact] = parsed
        return parsed

    def _find(
        self,
        name: str,
        raw: bytes,
        framed: bool,
        shape: tuple[object, ...] | None,
        sign: bytes | None,
        number: bytes | None,
    ) -> Parsed:
        known = None if shape is None else self._known.get(shape)
        if known is not None:
            parsed = _with_number(known, int(number or b"0", 0), sign)
            if parsed is not None:
                return parsed
        parsed = parse(name, raw.decode("ascii", "replace"), framed, False)
        if shape is not None:
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
