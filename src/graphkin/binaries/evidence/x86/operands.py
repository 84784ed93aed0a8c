"""Operands of x86 as capstone prints them."""

from __future__ import annotations

import re
from dataclasses import dataclass

from graphkin.binaries.evidence import tokens as said
from graphkin.binaries.evidence.data import LOAD, LOWEST_FIXED, STORE, TAKE
from graphkin.binaries.evidence.operations import pack
from graphkin.binaries.evidence.x86.operations import operation_names_of
from graphkin.binaries.function import Token

_SIZES = {"byte": 1, "word": 2, "dword": 4, "qword": 8, "tbyte": 10, "xword": 10}
_MEMORY = re.compile(r"(?:(\w+) ptr )?(?:([a-z]s):)?\[([^\]]*)\]")
_READ_ONLY = frozenset(["compare", "test", "fcompare", "div", "mul_high", "stack_store"])
"""What only reads a memory operand that comes first."""
_MOVES = frozenset(["move", "fmove", "vec_move"])
_SHIFTS = frozenset(["shl", "shr", "sar", "rotate", "bit_field"])
_EXTENSIONS = frozenset([0xFF, 0xFFFF, 0xFFFFFFFF])
HIGH_BYTES = frozenset(["ah", "bh", "ch", "dh"])
"""Second bytes of registers: compilers use them for constants of which only that byte is set."""
NEAR = 0x400
"""Displacements below it are fields, even where the base of the global offset table was lost."""


@dataclass(slots=True, eq=False)
class Parsed:
    """What the text of one instruction means."""

    code: int = 0
    tokens: tuple[Token, ...] = ()
    """Those that need no more than the text."""
    role: str = ""
    """What is done with the memory operand."""
    base: str = ""
    index: str = ""
    dst: str = ""
    source: str = ""
    offset: int = 0
    real: int = 0
    """Bytes of the number of floating point that is loaded."""
    against: int | None = None
    """The constant of a comparison."""
    value: int | None = None
    """A constant that may be an address, or the distance of the global offset table."""
    is_active: bool = False
    """Whether it says more than its operations."""
    is_relative: bool = False
    """Whether the memory operand is at a distance from the instruction."""
    has_offset: bool = False
    """Whether the memory operand has a displacement."""
    is_field: bool = False
    """Whether it is a field's offset."""
    number: str = ""
    """What the constant is: ``off``, ``shift``, ``num``, ``against``, or nothing to speak of."""
    fixed: tuple[Token, ...] = ()
    """Tokens that stand for neither displacement nor constant."""


def _sized(kind: str, size: int, is_float: bool) -> str:
    if is_float:
        return f"{kind}_float" if size <= 10 else f"{kind}_vector"
    return {1: f"{kind}_byte", 2: f"{kind}_half"}.get(size, kind)


def _number(operand: str) -> int | None:
    if not operand[:1].isdigit() and operand[:1] != "-":
        return None
    try:
        return int(operand, 0)
    except ValueError:
        return None


def parse(name: str, text: str, framed: bool, narrow: bool) -> Parsed:
    """Takes an instruction apart.

    Args:
        name: the mnemonic.
        text: the operands; ``[rip]`` stands for an address relative to the code.
        framed: whether rbp holds the frame.
        narrow: whether the code is 32-bit, where any displacement may count from the global
            offset table.
    """
    parsed = Parsed()
    names = operation_names_of(name, text)
    if names == ("none",):
        return parsed
    kind = names[0]
    operands = text.split(", ") if text else []
    is_float = "mm" in text or name[0] == "f"
    memory, size, is_stack, scale = -1, 0, False, 1
    if "[" in text:
        for at, operand in enumerate(operands):
            match = _MEMORY.match(operand) if "[" in operand else None
            if match is None:
                continue
            memory = at
            size = _SIZES.get(match[1] or "", 16)
            for term in match[3].replace(" - ", " + -").split(" + "):
                if (value := _number(term)) is not None:
                    parsed.offset = value
                    parsed.has_offset = True
                elif "*" in term:
                    parsed.index, _, factor = term.partition("*")
                    scale = int(factor)
                elif not parsed.base:
                    parsed.base = term
                else:
                    parsed.index = term
            is_stack = parsed.base in ("rsp", "esp") or (framed and parsed.base in ("rbp", "ebp"))
            if match[2] in ("fs", "gs"):
                is_stack = True
    load = "stack_load" if is_stack else _sized("load", size, is_float)
    store = "stack_store" if is_stack else _sized("store", size, is_float)
    said_tokens: list[Token] = []
    if kind == "address":
        names = _address(parsed, is_stack, scale, said_tokens)
        parsed.fixed = tuple(said_tokens)
    elif memory >= 0:
        parsed.role = LOAD
        is_x87_store = name.startswith(("fst", "fist"))
        if kind in _MOVES or kind in ("zero_extend", "sign_extend"):
            is_store = is_x87_store if name[0] == "f" else memory == 0
            parsed.role = STORE if is_store else LOAD
            names = (store,) if is_store else (load,)
            if kind == "sign_extend":
                names = (load, kind)
        elif is_x87_store or kind == "set":
            parsed.role, names = STORE, (*names, store)
        elif kind == "string":
            parsed.role = ""
        elif memory == 0 and kind not in _READ_ONLY and name[0] != "f" and not is_float:
            names = (load, *names, store)
        else:
            names = (load, *names)
        if is_float and size in (4, 8) and parsed.role == LOAD and kind != "fconvert":
            parsed.real = size if not name.startswith(("movq", "movd", "fi")) else 0
    elif kind == "test" and len(operands) == 2 and operands[0] == operands[1]:
        names = ("compare",)
    elif kind in ("xor", "vec_logic", "sub") and len(operands) > 1:
        if operands[-1] == operands[-2] and "xor" in name:
            names = ("const",)
    elif name == "imul" and len(operands) == 1:
        names = ("mul_high",)
    start = 0 if kind == "stack_store" else 1
    value = None
    for operand in operands[start:]:
        if (number := _number(operand)) is not None:
            value = number
    if name in ("inc", "dec"):
        value = 1
    is_dst_stack = bool(operands) and operands[0] in ("rsp", "esp")
    if value is not None and operands[0] in HIGH_BYTES:
        value <<= 8
    if value is not None and not is_float and not is_dst_stack:
        if kind == "move" and memory < 0:
            names = ("const",)
        if kind in ("add", "sub"):
            if narrow and memory < 0 and kind == "add" and abs(value) >= NEAR:
                parsed.value = value
            else:
                said_tokens += said.offset(value)
                parsed.number = "off"
        elif kind in _SHIFTS:
            said_tokens += said.shift(value)
            parsed.number = "shift"
        elif kind == "compare" and not LOWEST_FIXED <= value < said.WORD >> 1:
            parsed.against = value
            parsed.number = "against"
        elif kind == "and" and value in _EXTENSIONS and memory < 0:
            names = ("zero_extend",)
            parsed.number = "and"
        elif value >= LOWEST_FIXED:
            parsed.value = value
        else:
            said_tokens += said.number(value)
            parsed.number = "and" if kind == "and" else "num"
    parsed.code = pack(*names)
    if is_stack or kind == "string":
        parsed.role = ""
    if parsed.role and parsed.base != "rip":
        is_field = parsed.base and not narrow and parsed.offset < LOWEST_FIXED
        if is_field or not parsed.offset:
            said_tokens += said.offset(parsed.offset) if parsed.base else ()
            parsed.role = ""
            parsed.is_field = bool(parsed.base)
    if narrow:
        if operands and memory != 0 and kind not in ("compare", "test", "fcompare", "stack_store"):
            parsed.dst = operands[0]
        if kind == "move" and memory < 0 and len(operands) == 2 and value is None:
            parsed.source = operands[1]
    parsed.tokens = tuple(said_tokens)
    parsed.is_relative = parsed.base == "rip"
    parsed.is_active = bool(
        parsed.tokens
        or (parsed.role and not parsed.is_relative)
        or parsed.against is not None
        or parsed.value is not None
        or parsed.dst in ("ebx", "esi", "edi", "ebp", "eax", "ecx", "edx")
    )
    return parsed


def _address(
    parsed: Parsed, is_stack: bool, scale: int, said_tokens: list[Token]
) -> tuple[str, ...]:
    """Operations of ``lea``: arithmetic, unless it takes the address of something."""
    if is_stack:
        return ("address",)
    parsed.role = TAKE
    if parsed.base == "rip":
        return ("address",)
    if scale > 1:
        said_tokens += said.shift(scale.bit_length() - 1)
        return ("shl", "add") if parsed.base or parsed.offset else ("shl",)
    return ("add",)
