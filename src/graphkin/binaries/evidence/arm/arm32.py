"""What instructions of 32-bit ARM say, in ARM and in Thumb state.

Addresses are a word between the code to which pc is added, which reads as 4 bytes further in Thumb
state and 8 in ARM state; the linker's table is read with its base and the offset in registers.
Conditions hang on mnemonics. r7 or r11 is the frame where it is set from sp.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable

from graphkin.binaries.evidence.arm.arm32_operations import (
    ACCESS,
    CODES,
    FLOATS,
    MULTIPLE,
    VECTOR_ACCESS,
    WITH_OPERANDS,
    vector_operation,
    without_suffixes,
)
from graphkin.binaries.evidence.arm.syntax import (
    FIELD,
    arithmetic,
    field_like,
    number,
    set_memory,
    set_real,
    split,
)
from graphkin.binaries.evidence.collect import Body
from graphkin.binaries.evidence.comparisons import FLIPPED
from graphkin.binaries.evidence.data import LOAD, STORE
from graphkin.binaries.evidence.instructions import Frames, Instructions
from graphkin.binaries.evidence.operations import MOST, pack
from graphkin.binaries.evidence.register_steps import FROM_PC, INSERT, Step
from graphkin.binaries.evidence.registers import follow
from graphkin.binaries.recovery.architecture import CALL, JUMP, STOP

_STACK = frozenset(["sp"])
_CLOBBERED = frozenset(["r0", "r1", "r2", "r3", "ip", "lr"])
_FLAGS = frozenset(["cmp", "cmn", "tst", "teq", "msr"])
_FRAME = re.compile(r"(r7|fp), sp(?:, #|$)")
_FRAME_REACH = 10
"""Instructions in which a function sets up its frame."""


_CALL, _RETURN = pack("call"), pack("return")


class _Conditions(dict[str, int | None]):
    """By mnemonic, what :func:`added_by_condition` asks for."""

    def __missing__(self, mnemonic: str) -> int | None:
        condition = without_suffixes(mnemonic)[1]
        added = self[mnemonic] = int(condition in FLIPPED) if condition else None
        return added


_CONDITIONS = _Conditions()


class ArmRules:
    """ARM and Thumb."""

    codes = CODES

    def __init__(self) -> None:
        self._frames = Frames(_frame, _FRAME_REACH)
        self._known: dict[str, Instructions[Step]] = {}
        """By the register that holds the frame."""
        self._shapes: dict[tuple[object, ...], Step] = {}

    def read(self, body: Body) -> None:
        """Finds what the instructions say, and completes their operations."""
        frame = self._frames.register(body)
        stack = _STACK | {frame} if frame else _STACK

        def take_apart(position: int, name: str, text: bytes) -> Step:
            return self._parse(name, text, stack)

        if frame not in self._known:
            self._known[frame] = Instructions()
        steps = self._known[frame].look_up(body, take_apart)
        follow(
            body,
            steps,
            clobbered=_CLOBBERED,
            conditions=_CONDITIONS,
            counter=_counter(body),
        )
        _transfers(body)

    def _parse(self, name: str, raw: bytes, stack: frozenset[str]) -> Step:
        """Most texts differ from a known one in registers and in one number."""
        match = FIELD.match(raw)
        if match is None or match[1] == b"pc" or match[3] == b"pc":
            return parse(name, raw.decode("ascii", "replace"), stack)
        is_stack = match[3].decode("ascii") in stack
        shape = (name, match[1][:1] in b"sd", match[2] is None, is_stack)
        known = self._shapes.get(shape)
        if known is None:
            known = self._shapes[shape] = parse(name, raw.decode("ascii", "replace"), stack)
        return field_like(known, match)


def _counter(body: Body) -> Callable[[int], int]:
    """What an instruction reads from pc."""
    listing = body.listing
    bases = [run.base for run in listing.runs]
    ahead = [4 if run.state == "t" else 8 for run in listing.runs]

    def counter(position: int) -> int:
        return listing.addresses[position] + ahead[bisect_right(bases, position) - 1]

    return counter


def _frame(text: str) -> str:
    """The register that an instruction makes the frame: it is set from sp."""
    match = _FRAME.match(text)
    return match[1] if match is not None else ""


def _transfers(body: Body) -> None:
    """Where calls and jumps go."""
    listing, codes = body.listing, body.codes
    for position, kind, operand, address in zip(
        listing.controls, listing.kinds, listing.operands, listing.targets, strict=True
    ):
        if kind in (CALL, JUMP):
            if address is not None:
                body.go(position, address)
                if kind == CALL:
                    codes[position] = _CALL
        elif kind == STOP and operand == b"lr" and listing.mnemonics[position][0] == "b":
            codes[position] = _RETURN


def parse(mnemonic: str, text: str, stack: frozenset[str]) -> Step:
    """Takes an instruction apart.

    Args:
        mnemonic: with width and condition.
        text: the operands.
        stack: registers that stack slots are counted from.
    """
    step = Step()
    name, condition = without_suffixes(mnemonic)
    parts = split(text) if "[" in text or "{" in text else text.split(", ")
    if not text:
        step.code = pack("other")
        return step
    if name not in _FLAGS:
        step.dst = parts[0]
    access = ACCESS.match(name)
    if access is not None:
        names = _access(step, parts, access, stack)
    elif name in ("push", "pop", "vpush", "vpop") or MULTIPLE.match(name):
        names = _multiple(step, name, text, parts, stack)
    elif name[0] == "v" and name not in WITH_OPERANDS:
        names = _vector(step, name, mnemonic, parts, stack)
    elif name == "movt":
        value = number(parts[1])
        if value is not None:
            step.action, step.value, step.real = INSERT, value << 16, 16
        names = ("none",)
    elif name == "adr":
        value = number(parts[-1])
        if value is not None:
            step.action, step.value, step.base = FROM_PC, value, "pc"
        names = ("address",)
    else:
        names = WITH_OPERANDS.get(name, ("other",))
        if len(parts) > 1:
            names = arithmetic(step, name.removesuffix("w"), parts, names, stack)
    if step.dst == "pc" and name not in ("push", "pop") and "return" not in names:
        names = (*names, "return") if parts[-1] == "lr" else (*names, "jump_indirect")
    elif condition and "return" not in names:
        names = (*names, "select")
    step.code = pack(*names)
    return step.settled()


def _access(
    step: Step, parts: list[str], access: re.Match[str], stack: frozenset[str]
) -> tuple[str, ...]:
    is_load, width = access[1] == "ldr", access[2] or ""
    kind = "load" if is_load else "store"
    is_pair = width == "d"
    if not is_load:
        step.dst = ""
    at = next((at for at, part in enumerate(parts) if part[0] == "["), -1)
    is_stack = at >= 0 and set_memory(step, parts, at, LOAD if is_load else STORE, stack)
    name = {"b": f"{kind}_byte", "h": f"{kind}_half"}.get(width[-1:], kind)
    if is_stack:
        name = f"stack_{kind}"
    if is_pair and is_load and len(parts) > 1:
        step.other = step.other or parts[1]
    names = (name, name) if is_pair else (name,)
    return (*names, "sign_extend") if width[:1] == "s" else names


def _multiple(
    step: Step, name: str, text: str, parts: list[str], stack: frozenset[str]
) -> tuple[str, ...]:
    """Several registers: as many loads or stores, up to what an instruction can have."""
    is_load = "pop" in name or "ldm" in name
    kind = "load" if is_load else "store"
    is_stack = "p" in name or parts[0].rstrip("!") in stack
    registers = text.partition("{")[2].count(",") + 1
    step.dst = parts[0].removesuffix("!") if parts[0].endswith("!") and not is_stack else ""
    returns = is_load and "pc}" in text
    access = (f"stack_{kind}" if is_stack else kind,) * min(registers, MOST - returns)
    return (*access, "return") if returns else access


def _vector(
    step: Step, name: str, mnemonic: str, parts: list[str], stack: frozenset[str]
) -> tuple[str, ...]:
    """Numbers of floating point, and vectors."""
    access = VECTOR_ACCESS.match(name)
    if access is not None:
        is_load = access[1] == "ld"
        kind = "load" if is_load else "store"
        is_single = access[2] == "r"
        if is_single and is_load:
            step.real = {"s": 4, "d": 8}.get(parts[0][0], 0)
        at = next((at for at, part in enumerate(parts) if part[0] == "["), -1)
        is_stack = at >= 0 and set_memory(step, parts, at, LOAD if is_load else STORE, stack)
        step.dst = ""
        if is_stack:
            return (f"stack_{kind}",)
        return (f"{kind}_float",) if is_single else (f"{kind}_vector",)
    is_vector = any(part[0] == "q" for part in parts) or (
        ".f" not in mnemonic and name not in ("vmov", "vcvt", "vcvtr") and "." in mnemonic
    )
    if not is_vector and name in FLOATS:
        if name == "vmov":
            set_real(step, parts)
            if parts[0][0] == "r":
                step.dst = parts[0]
        return FLOATS[name]
    return (vector_operation(name, mnemonic),)
