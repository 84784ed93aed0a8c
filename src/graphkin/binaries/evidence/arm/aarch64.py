"""What instructions of AArch64 say.

Addresses are ``adrp`` and what is added to the page, often blocks apart. ``movz`` and ``movk`` are
one constant. Numbers of floating point also come through ``mov w; fmov s``.
"""

from __future__ import annotations

import re

from graphkin.binaries.evidence import tokens as said
from graphkin.binaries.evidence.arm.aarch64_operations import (
    ACCESS,
    ATOMIC,
    CODES,
    CONVERSION,
    STRUCTURES,
    WITH_OPERANDS,
    vector_operation,
)
from graphkin.binaries.evidence.arm.syntax import (
    FIELD,
    arithmetic,
    family,
    field_like,
    number,
    set_memory,
    set_real,
    split,
)
from graphkin.binaries.evidence.collect import Body
from graphkin.binaries.evidence.comparisons import FLIPPED, IN_OPERANDS
from graphkin.binaries.evidence.data import LOAD, STORE
from graphkin.binaries.evidence.instructions import KEPT, Instructions
from graphkin.binaries.evidence.operations import pack
from graphkin.binaries.evidence.register_steps import FROM_PC, INSERT, PAGE, POOL, Step
from graphkin.binaries.evidence.registers import follow
from graphkin.binaries.recovery.architecture import BRANCH, CALL, JUMP

_SIZES = {"b": 1, "h": 2, "s": 4, "d": 8, "q": 16, "v": 16}
_STACK = frozenset(["sp", "x29", "wsp"])
_CLOBBERED = frozenset(f"x{number}" for number in range(19))
_FLAGS = frozenset(["cmp", "cmn", "tst", "ccmp", "ccmn", "fcmp", "fcmpe", "fccmp", "fccmpe", "msr"])
"""What writes flags only."""


_RELATIVE = frozenset([PAGE, FROM_PC, POOL])
"""What depends on where the instruction is."""


_SIGN = pack("compare", "branch_signed")


class _Conditions(dict[str, int | None]):
    """By mnemonic, what :func:`added_by_condition` asks for."""

    def __missing__(self, mnemonic: str) -> int | None:
        added: int | None = None
        if mnemonic.startswith("b."):
            added = int(mnemonic[2:] in FLIPPED)
        elif mnemonic[:2] in ("cs", "ci", "cn", "cc"):
            added = IN_OPERANDS
        self[mnemonic] = added
        return added


_CONDITIONS = _Conditions()


class AArch64Rules:
    """AArch64."""

    codes = CODES

    def __init__(self) -> None:
        self._known: Instructions[Step] = Instructions()
        self._relative: dict[tuple[str, bytes], Step] = {}
        """By name and operands, for what says an address in relation to its own."""
        self._shapes: dict[tuple[object, ...], Step] = {}

    def read(self, body: Body) -> None:
        """Finds what the instructions say, and completes their operations."""
        steps = self._known.look_up(body, self._take_apart)
        follow(
            body,
            steps,
            clobbered=_CLOBBERED,
            conditions=_CONDITIONS,
            counter=body.listing.addresses.__getitem__,
        )
        _transfers(body)

    def _take_apart(self, position: int, name: str, text: bytes) -> Step:
        step = self._relative.get((name, text))
        if step is None:
            step = self._parse(name, text)
            step.is_relative = step.action in _RELATIVE
            if step.is_relative:
                if len(self._relative) > KEPT:
                    self._relative.clear()
                self._relative[name, text] = step
        return step

    def _parse(self, name: str, raw: bytes) -> Step:
        """Most texts differ from a known one in registers and in one number."""
        match = FIELD.match(raw)
        if match is None:
            return parse(name, raw.decode("ascii", "replace"))
        shape = (name, match[1][:1], match[2] is None, match[3] in (b"sp", b"x29"))
        known = self._shapes.get(shape)
        if known is None:
            known = self._shapes[shape] = parse(name, raw.decode("ascii", "replace"))
        return field_like(known, match)


def _transfers(body: Body) -> None:
    """Where calls and jumps go."""
    listing = body.listing
    for position, kind, operand, address in zip(
        listing.controls, listing.kinds, listing.operands, listing.targets, strict=True
    ):
        if kind in (CALL, JUMP):
            if address is not None:
                body.go(position, address)
        elif kind == BRANCH and operand.count(b"#") == 2:
            register, _, bit = operand.rpartition(b",")[0].partition(b", #")
            if int(bit, 0) == (31 if register.startswith(b"w") else 63):
                body.codes[position] = _SIGN  # x < 0
            else:
                body.say(position, said.number(1 << (int(bit, 0) & 63)))


def parse(name: str, text: str) -> Step:
    """Takes an instruction apart."""
    step = Step()
    parts = split(text) if "[" in text or "{" in text else text.split(", ")
    if not text:
        step.code = pack("other")
        return step
    if name not in _FLAGS:
        step.dst = family(parts[0])
    names = _other(step, name, parts) if "[" not in text else None
    if names is None:
        access = ACCESS.match(name)
        structures = STRUCTURES.match(name) if access is None else None
        if access is not None:
            names = _access(step, parts, access)
        elif structures is not None:
            names = _structures(step, parts, structures[1] == "ld")
        else:
            names = _other(step, name, parts) or ("other",)
    step.code = pack(*names)
    return step.settled()


def _access(step: Step, parts: list[str], access: re.Match[str]) -> tuple[str, ...]:
    """Loads and stores."""
    is_load = access[1] == "ld"
    kind, width = ("load" if is_load else "store"), access[3] or ""
    is_pair = access[2] == "p"
    register = parts[0][0]
    is_float = register in "bhsdq"
    name = kind
    if is_float:
        name = f"{kind}_vector" if register == "q" else f"{kind}_float"
        step.real = _SIZES[register] if is_load and register in "sd" and not is_pair else 0
    elif width in ("b", "sb"):
        name = f"{kind}_byte"
    elif width in ("h", "sh"):
        name = f"{kind}_half"
    if not is_load:
        step.dst = ""
    at = next((at for at, part in enumerate(parts) if part[0] == "["), -1)
    if at < 0:
        step.value = number(parts[-1]) or 0
        step.action = POOL
    else:
        is_stack = set_memory(step, parts, at, LOAD if is_load else STORE, _STACK)
        if is_stack:
            name = f"stack_{kind}"
    if is_pair and is_load:
        step.other = step.other or family(parts[1])
    names = (name, name) if is_pair else (name,)
    return (*names, "sign_extend") if width[:1] == "s" else names


def _structures(step: Step, parts: list[str], is_load: bool) -> tuple[str, ...]:
    step.dst = ""
    at = next((at for at, part in enumerate(parts) if part[0] == "["), -1)
    is_stack = at >= 0 and set_memory(step, parts, at, LOAD if is_load else STORE, _STACK)
    kind = "load" if is_load else "store"
    return (f"stack_{kind}",) if is_stack else (f"{kind}_vector",)


def _other(step: Step, name: str, parts: list[str]) -> tuple[str, ...] | None:
    """What does not touch memory; None for loads from a pool of constants."""
    if name.startswith("ldr"):
        return None
    if name in ("adrp", "adr"):
        value = number(parts[-1])
        if value is not None:
            # The address itself is shown, and ``adr`` has all of it.
            step.action, step.value = (PAGE, value) if name == "adrp" else (FROM_PC, value)
        return ("address",)
    if name == "movk":
        return _movk(step, parts)
    if parts[0][0] == "v" or (len(parts) > 1 and parts[1][0] == "v" and "." in parts[1]):
        operation = vector_operation(name)
        if operation == "vec_move" or name == "fmov":
            set_real(step, parts)
        return (operation,)
    names = WITH_OPERANDS.get(name)
    if names is None:
        if CONVERSION.match(name):
            return ("fconvert",)
        if ATOMIC.match(name):
            return ("atomic",)
        return (vector_operation(name),)
    if name == "fmov":
        set_real(step, parts)
    elif name in ("ccmp", "ccmn"):
        value = number(parts[1])
        if value is not None:
            step.tokens = said.number(value if name == "ccmp" else -value)
    elif parts[0][0] not in "sdq" or parts[0] == "sp":
        return arithmetic(step, name.removesuffix("s"), parts, names, _STACK)
    return names


def _movk(step: Step, parts: list[str]) -> tuple[str, ...]:
    """16 bits more of a constant."""
    value = number(parts[1])
    shift = int(parts[2].rpartition("#")[2], 0) if len(parts) > 2 else 0
    if value is not None:
        step.action, step.value, step.real = INSERT, value << shift, shift
    return ("none",)
