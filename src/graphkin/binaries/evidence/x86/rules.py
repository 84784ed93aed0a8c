"""What instructions of x86 say, 64 and 32 bit.

64-bit code names addresses by their distance from itself (``[rip + N]``), 32-bit code by their
distance from the global offset table, whose base some register holds after ``call thunk; add R,
N``, or outright. rbp is a frame where it is set from rsp, and a register like others elsewhere.
"""

from __future__ import annotations

import re

from graphkin.binaries.evidence import tokens as said
from graphkin.binaries.evidence.collect import Body
from graphkin.binaries.evidence.comparisons import added_by_condition
from graphkin.binaries.evidence.data import LOAD, TAKE
from graphkin.binaries.evidence.instructions import KEPT, Frames, Instructions
from graphkin.binaries.evidence.operations import pack
from graphkin.binaries.evidence.x86.operands import NEAR, Parsed, parse
from graphkin.binaries.evidence.x86.operations import CODES
from graphkin.binaries.evidence.x86.templates import NarrowTemplates, WideTemplates
from graphkin.binaries.image import LOWEST_FIXED
from graphkin.binaries.recovery.architecture import CALL, JUMP

_RIP = re.compile(rb"\[rip(?: ([+-]) (0x[0-9a-f]+|\d+))?\]")
_FRAMES = {"rbp, rsp": "rbp", "ebp, esp": "ebp"}
"""Operands that set up a frame, and the register that then holds it."""
_FRAME_REACH = 12
"""Instructions in which a function sets up its frame."""
_GOT_REACH = 6
"""Instructions behind a call, in which it becomes the base of the global offset table."""
_JUMP_INDIRECT, _CALL_INDIRECT = pack("jump_indirect"), pack("call_indirect")
_ADD = pack("add")


class _Conditions(dict[str, int | None]):
    """By mnemonic, what :func:`added_by_condition` asks for."""

    def __missing__(self, mnemonic: str) -> int | None:
        added = None
        for prefix in ("cmov", "set", "j"):
            if mnemonic.startswith(prefix) and mnemonic != "jmp":
                added = int(mnemonic.removeprefix(prefix) in ("g", "le", "a", "be"))
                break
        self[mnemonic] = added
        return added


_CONDITIONS = _Conditions()


class X86Rules:
    """x86 of 64 or 32 bits."""

    codes = CODES

    def __init__(self, bits: int) -> None:
        self._bits = bits
        self._frames = Frames(lambda text: _FRAMES.get(text, ""), _FRAME_REACH)
        self._known: dict[bool, Instructions[Parsed]] = {
            False: Instructions(),
            True: Instructions(),
        }
        self._templates = WideTemplates() if bits == 64 else NarrowTemplates()
        self._relative: dict[tuple[str, bytes, bool], Parsed] = {}
        """By mnemonic, operands without the distance, and whether there is a frame."""

    def read(self, body: Body) -> None:
        """Finds what the instructions say, and completes their operations."""
        framed = bool(self._frames.register(body))

        def take_apart(position: int, name: str, text: bytes) -> Parsed:
            match = _RIP.search(text) if b"[rip" in text else None
            if match is None:
                return self._templates.parse(name, text, framed)
            return self._parse_relative(body, position, text, match, framed)

        instructions = self._known[framed].look_up(body, take_apart)
        if self._bits == 64:
            self._read_wide(body, instructions)
        else:
            self._read_narrow(body, instructions)
        self._transfers(body, framed)

    def _parse_relative(
        self, body: Body, position: int, text: bytes, match: re.Match[bytes], framed: bool
    ) -> Parsed:
        """An instruction with ``[rip + N]``, whose address is noted; what is left without N is
        kept."""
        listing = body.listing
        left = text[: match.start()] + b"[rip]" + text[match.end() :]
        key = (listing.mnemonics[position], left, framed)
        parsed = self._relative.get(key)
        if parsed is None:
            if len(self._relative) > KEPT:
                self._relative.clear()
            parsed = self._relative[key] = self._templates.parse(key[0], left, framed)
        if parsed.role:
            body.refer(position, _relative_address(body, position, match), parsed.role, parsed.real)
        return parsed

    def _read_wide(self, body: Body, instructions: list[Parsed]) -> None:
        """64 bit: what the addresses mean that are relative to the code was noted already."""
        said_tokens = body.said
        for position, parsed in zip(body.positions, instructions, strict=True):
            if parsed.is_active:
                if parsed.tokens:
                    before = said_tokens.get(position)
                    said_tokens[position] = before + parsed.tokens if before else parsed.tokens
                if parsed.against is not None or parsed.value is not None:
                    self._say_constant(body, position, parsed)
                if parsed.role:
                    self._refer(body, position, parsed)

    def _say_constant(self, body: Body, position: int, parsed: Parsed) -> None:
        """A constant that is compared with, or may be an address."""
        if parsed.against is not None:
            value = parsed.against + added_by_condition(body, position, _CONDITIONS)
            body.say(position, said.number(value))
        elif parsed.value is not None:
            places = body.places
            if places.is_fixed and places.is_mapped(parsed.value):
                body.refer(position, parsed.value, TAKE)
            else:
                body.say(position, said.number(parsed.value))

    def _refer(self, body: Body, position: int, parsed: Parsed) -> None:
        """A memory operand that is not relative to the code: a field, or an address outright."""
        address, base = parsed.offset, parsed.base
        if base or parsed.index:
            places = body.places
            if address >= LOWEST_FIXED and places.is_fixed and places.is_mapped(address):
                body.refer(position, address, TAKE)
            elif base:
                body.say(position, said.offset(address))
        else:
            body.refer(position, address, parsed.role, parsed.real)

    def _read_narrow(self, body: Body, instructions: list[Parsed]) -> None:
        """32 bit: the registers that hold the base of the global offset table are followed."""
        got, places = body.places.image.got, body.places
        holders: set[str] = set()
        has_base = False
        for position, parsed in zip(body.positions, instructions, strict=True):
            if not parsed.is_active:
                continue
            dst = parsed.dst
            if parsed.role:
                address = -1 if got is None else (got + parsed.offset) & places.mask
                if has_base and (
                    parsed.base in holders
                    or parsed.index in holders
                    or (abs(parsed.offset) >= NEAR and places.is_mapped(address))
                ):
                    role = TAKE if parsed.base and parsed.index else parsed.role
                    body.refer(position, address, role, parsed.real)
                elif parsed.offset:
                    self._refer(body, position, parsed)
            if parsed.source:
                # ``add R, N`` behind a call, or a copy of R.
                if parsed.source in holders:
                    holders.add(dst)
                    continue
            elif parsed.value is not None and dst and got is not None:
                if _base_of_call(body, position, parsed.value) == got:
                    holders.add(dst)
                    has_base = True
                    continue
                if parsed.code == _ADD:
                    body.say(position, said.offset(parsed.value))
                    holders.discard(dst)
                    continue
            if has_base:
                holders.discard(dst)
            body.say(position, parsed.tokens)
            if parsed.against is not None or parsed.value is not None:
                self._say_constant(body, position, parsed)

    def _transfers(self, body: Body, framed: bool) -> None:
        """Where calls and jumps go."""
        listing, codes = body.listing, body.codes
        for position, kind, operand, address in zip(
            listing.controls, listing.kinds, listing.operands, listing.targets, strict=True
        ):
            if kind != CALL and kind != JUMP:
                continue
            if address is not None:
                body.go(position, address)
                continue
            if operand[:2] == b"0x":  # far calls and jumps have two numbers
                continue
            name = listing.mnemonics[position]
            if name.endswith("jmp"):
                codes[position] = _JUMP_INDIRECT
            elif name.endswith("call"):
                codes[position] = _CALL_INDIRECT
            else:
                continue
            if b"[" in operand:
                self._through_memory(body, position, operand, framed)

    def _through_memory(self, body: Body, position: int, operand: bytes, framed: bool) -> None:
        """``call [slot]``, ``call [rax + 8]``."""
        got = body.places.image.got
        match = _RIP.search(operand)
        if match is not None:
            body.refer(position, _relative_address(body, position, match), LOAD)
            return
        parsed = parse("push", operand.decode("ascii", "replace"), framed, self._bits == 32)
        address = parsed.offset
        if (
            self._bits == 32
            and got is not None
            and parsed.base
            and body.places.is_slot(got + address)
        ):
            body.refer(position, got + address, LOAD)
        elif parsed.role and address:
            self._refer(body, position, parsed)
        else:
            body.say(position, parsed.tokens)


def _relative_address(body: Body, position: int, match: re.Match[bytes]) -> int:
    """What ``[rip + N]`` stands for."""
    listing = body.listing
    distance = int(match[2] or b"0", 16)
    following = listing.addresses[position] + listing.sizes[position]
    return following - distance if match[1] == b"-" else following + distance


def _base_of_call(body: Body, position: int, distance: int) -> int | None:
    """What ``add R, distance`` makes of the address that a call just before it pushed."""
    listing = body.listing
    for at in range(position - 1, max(-1, position - _GOT_REACH), -1):
        if listing.mnemonics[at] == "call":
            return (listing.addresses[at] + listing.sizes[at] + distance) & body.places.mask
    return None
