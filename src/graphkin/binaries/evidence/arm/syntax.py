"""Operands of ARM and AArch64 as capstone prints them, and what both processors share."""

from __future__ import annotations

import re

from graphkin.binaries.evidence import tokens as said
from graphkin.binaries.evidence.data import LOAD
from graphkin.binaries.evidence.register_steps import (
    ADD,
    CONSTANT,
    COPY,
    INDEXED,
    MEMORY,
    POOL,
    REAL,
    SUM,
    Step,
)
from graphkin.binaries.function import Token

FIELD = re.compile(rb"(\w+), (?:(\w+), )?\[(\w+)(?:, #(-?\w+))?\]$")
"""Operands of most loads and stores."""
_PARTS = re.compile(r"\[[^\]]*\]!?|\{[^}]*\}|[^,\s][^,]*")
_MODIFIER = re.compile(r"(lsl|lsr|asr|ror|[us]xt[bhwx])(?: #(\w+))?$")
_SHIFT = {"lsl": "shl", "lsr": "shr", "asr": "sar", "ror": "rotate"}
SHIFTS = frozenset(["shl", "shr", "sar", "rotate", "bit_field"])
EXTENSIONS = frozenset([0xFF, 0xFFFF, 0xFFFFFFFF])


class _Families(dict[bytes, str]):
    """Of registers, by their names in operands."""

    def __missing__(self, register: bytes) -> str:
        name = self[register] = family(register.decode("ascii"))
        return name


_FAMILIES = _Families()


def field_like(known: Step, match: re.Match[bytes]) -> Step:
    """A load or store like a known one, with other registers and another displacement."""
    register, second, base, displacement = match.groups()
    return Step(
        code=known.code,
        role=known.role,
        real=known.real,
        action=known.action,
        dst=_FAMILIES[register] if known.dst else "",
        other=_FAMILIES[second] if known.other else "",
        base=_FAMILIES[base],
        value=0 if displacement is None else int(displacement, 0),
    ).settled()


def split(text: str) -> list[str]:
    """Operands; brackets and braces stay whole."""
    return [part.rstrip() for part in _PARTS.findall(text)]


def number(text: str) -> int | None:
    """The value of ``#0x10`` or ``#-4``; None for something else."""
    if text[:1] != "#":
        return None
    try:
        return int(text[1:], 0)
    except ValueError:
        return None


def family(register: str) -> str:
    """``x0`` for w0: one name for what is one register."""
    return "x" + register[1:] if register[:1] == "w" and register[1:].isdigit() else register


def set_memory(step: Step, parts: list[str], at: int, role: str, stack: frozenset[str]) -> bool:
    """Fills in a memory operand; whether it lies on the stack.

    Args:
        step: what to fill in.
        parts: the operands.
        at: which of them is in brackets.
        role: whether memory is read or written.
        stack: registers that stack slots are counted from.
    """
    operand = parts[at]
    inside = operand.strip("[]!").split(", ")
    base = family(inside[0])
    step.base, step.role, step.action = base, role, MEMORY
    is_shifted = False
    for part in inside[1:]:
        value = number(part)
        if value is not None:
            step.value = value
        elif _MODIFIER.match(part):
            is_shifted = True
        else:
            step.index = family(part.lstrip("-"))
    if base in stack:
        step.action = 0
        return True
    if operand.endswith("!"):
        step.tokens = said.offset(step.value)
        step.value, step.other = 0, base
    elif at + 1 < len(parts) and (value := number(parts[at + 1])) is not None:
        step.tokens = said.offset(value)
        step.other = base
    if base == "pc":
        step.action = POOL if not step.index else 0
    elif step.index:
        step.action = INDEXED if role == LOAD and not is_shifted and not step.real else 0
    return False


def arithmetic(
    step: Step, name: str, parts: list[str], names: tuple[str, ...], stack: frozenset[str]
) -> tuple[str, ...]:
    """Fills in what does not touch memory; gives its operations.

    Args:
        step: what to fill in, with its first register.
        name: the mnemonic without width, condition, and the mark that it sets flags.
        parts: the operands.
        names: operations that the mnemonic alone tells.
        stack: registers that stack slots are counted from.
    """
    kind, last = names[0], parts[-1]
    said_tokens: list[Token] = []
    modifier = _MODIFIER.match(last) if len(parts) > 2 else None
    amount = int(modifier[2] or "0", 0) if modifier is not None else 0
    operands = parts if modifier is None else parts[:-1]
    value = number(operands[-1]) if len(operands) > 1 else None
    if modifier is not None and value is None:
        if amount:
            said_tokens += said.shift(amount)
        extra = _SHIFT.get(modifier[1])
        if extra is not None:
            names = (extra, *names)
        elif modifier[1] in ("sxtw", "sxth", "sxtb"):
            names = ("sign_extend", *names)
    elif value is not None:
        value <<= amount
    if value is not None:
        names = _immediate(step, name, operands, names, value, stack, said_tokens)
    elif kind == "move" and len(operands) == 2:
        step.action, step.base = COPY, family(operands[1])
        if operands[1] == "sp":
            names = ("address",)
    elif kind == "add" and len(names) == 1 and modifier is None:
        step.action = SUM
        step.base, step.index = family(operands[-2]), family(operands[-1])
    step.tokens += tuple(said_tokens)
    return names


def _immediate(
    step: Step,
    name: str,
    operands: list[str],
    names: tuple[str, ...],
    value: int,
    stack: frozenset[str],
    said_tokens: list[Token],
) -> tuple[str, ...]:
    kind = names[0]
    if kind == "move":
        step.action, step.value = CONSTANT, value
        return ("const",)
    if name in ("mvn", "movn"):
        step.action, step.value = CONSTANT, ~value
        return ("const",)
    if kind in ("add", "sub") and name != "rsb":
        source = family(operands[-2]) if len(operands) > 2 else step.dst
        if source in stack:
            return ("address",) if step.dst not in stack else names
        step.action, step.base = ADD, source
        step.value = value if kind == "add" else -value
        return names
    if name == "bic":
        said_tokens += said.number(~value)
        return ("and",)
    if name in ("cmp", "cmn"):
        step.against = value if name == "cmp" else -value
    elif kind == "and" and value in EXTENSIONS:
        return ("zero_extend",)
    elif kind == "bit_field":
        return _bit_field(name, operands, value, said_tokens)
    elif kind in SHIFTS:
        said_tokens += said.shift(value)
    elif kind in ("and", "or", "xor", "compare", "test", "not", "sub", "neg"):
        said_tokens += said.number(value)
    return names


def _bit_field(
    name: str, operands: list[str], width: int, said_tokens: list[Token]
) -> tuple[str, ...]:
    """``ubfx d, n, #low, #width`` is a shift and a mask, as other processors have them."""
    low = number(operands[-2]) or 0
    if low:
        said_tokens += said.shift(low)
    if name not in ("ubfx", "ubfiz"):
        return ("bit_field",)
    mask = (1 << (width & 63)) - 1
    masked = "zero_extend" if mask in EXTENSIONS else "and"
    if masked == "and":
        said_tokens += said.number(mask)
    if not low:
        return (masked,)
    return ("shr", masked) if name == "ubfx" else (masked, "shl")


def set_real(step: Step, parts: list[str]) -> None:
    """``fmov s0, w1`` and ``fmov s0, #1.0``: constants of floating point."""
    source = parts[-1]
    if source.startswith("#"):
        try:
            step.tokens = said.real(float(source[1:]))
        except ValueError:
            return
    elif len(parts) == 2 and source[0] in "wxr" and parts[0][0] in "sdv":
        step.action, step.base, step.dst = REAL, family(source), ""
        step.real = 8 if source[0] == "x" else 4
