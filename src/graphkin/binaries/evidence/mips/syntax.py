"""Operands of MIPS as capstone prints them."""

from __future__ import annotations

import re

from graphkin.binaries.evidence import tokens as said
from graphkin.binaries.evidence.data import LOAD, STORE
from graphkin.binaries.evidence.operations import pack, parse_table
from graphkin.binaries.evidence.register_steps import (
    BELOW,
    CONSTANT,
    COPY,
    JOIN,
    LOW,
    MEMORY,
    REAL,
    REGISTER_CALL,
    SUM,
    UPPER,
    Step,
)

_WITH_OPERANDS = parse_table("""
move: move
lui: const
add addi addu addiu: add
sub subu: sub
neg negu: neg
mul: mul
mult multu: mul
madd maddu: mul add
msub msubu: mul sub
div divu: div
and andi: and
or ori: or
xor xori: xor
nor: or not
not: not
sll sllv: shl
srl srlv: shr
sra srav: sar
rotr rotrv: rotate
ext ins: bit_field
wsbh sbh shd: byte_swap
clz clo: count_bits
seb seh: sign_extend
slt slti sltu sltiu: compare set
movn movz movf movt: select
ll sc lld scd: atomic
mfc1 mtc1 mfhc1: fmove
mflo mfhi cfc1: none
rdhwr mfc0: system
""")
_FLOATS = parse_table("""
add: fadd
sub: fsub
mul: fmul
div recip: fdiv
sqrt rsqrt: fsqrt
abs neg: fabs
c: fcompare
cvt trunc floor ceil round: fconvert
mov: fmove
movn movz movf movt: select
madd nmadd: fmul fadd
msub nmsub: fmul fsub
""")
_ACCESS = {
    "lw": "load", "lwu": "load", "ld": "load", "lb": "load_byte", "lbu": "load_byte",
    "lh": "load_half", "lhu": "load_half", "lwc1": "load_float", "ldc1": "load_float",
    "lwl": "load", "lwr": "load", "ldl": "load", "ldr": "load",
    "sw": "store", "sd": "store", "sb": "store_byte", "sh": "store_half",
    "swc1": "store_float", "sdc1": "store_float",
    "swl": "store", "swr": "store", "sdl": "store", "sdr": "store",
    "lwx": "load", "lhx": "load_half", "lbux": "load_byte", "lwxc1": "load_float",
    "ldxc1": "load_float", "swxc1": "store_float", "sdxc1": "store_float",
}  # fmt: skip
_SIGNED = frozenset(["lb", "lh", "lhx"])
_REALS = {"lwc1": 4, "ldc1": 8}
_UNALIGNED = frozenset(["lwl", "lwr", "ldl", "ldr", "swl", "swr", "sdl", "sdr"])
"""Two of them access one word, at its first byte and at its last one."""
_OPERAND = re.compile(r"(\S*)\((\w+)\)$")
_EXTENSIONS = frozenset([0xFF, 0xFFFF])
SCALES, SETS_GP, COMPARES = 1, 2, 4
"""Marks of what shifts an index by the size of an entry, of what writes ``$gp``, and of what
leaves the result of a comparison in a register."""
_SCALES = frozenset(said.shift(amount) for amount in (1, 2, 3))


_BRANCHES = {
    name: Step(code=pack("compare", "branch_eq" if name[1] == "e" else "branch_ne")).settled()
    for name in ("beqz", "bnez", "beqzl", "bnezl")
}
"""What no operand tells more of: their targets would only make them differ."""


def _narrow(mnemonic: str) -> str:
    """The name of an operation of 64 bits is that of 32 bits behind a d."""
    name = mnemonic[1:]
    if (
        mnemonic[0] == "d"
        and mnemonic not in _WITH_OPERANDS
        and name.removesuffix("32") in _WITH_OPERANDS
    ):
        return name.removesuffix("32")
    return mnemonic


def parse(mnemonic: str, raw: bytes, stack: frozenset[str], first_half: str) -> Step:
    """Takes an instruction apart.

    Args:
        mnemonic: its name.
        raw: the operands.
        stack: registers that stack slots are counted from.
        first_half: last letter of the unaligned accesses that name a word's first byte.
    """
    if mnemonic in _BRANCHES:
        return _BRANCHES[mnemonic]
    step = Step()
    parts = raw.decode("ascii", "replace").replace("$", "").split(", ")
    name = _narrow(mnemonic)
    if name in _ACCESS:
        names = _access(step, name, parts, stack, first_half)
    elif name in ("jr", "jr.hb"):
        names = ("return",) if parts[0] == "ra" else ("jump_indirect",)
        step.base, step.action = parts[0], REGISTER_CALL if parts[0] != "ra" else 0
    elif name in ("jalr", "jalr.hb"):
        names = ("call_indirect",)
        step.base, step.action = parts[-1], REGISTER_CALL
    elif "." in name and name.partition(".")[0] in _FLOATS:
        names = _FLOATS[name.partition(".")[0]]
    else:
        step.dst = parts[0]
        names = _arithmetic(step, name, parts, mnemonic.endswith("32"), stack)
    if parts[0] == "gp" and step.role == STORE:
        step, names = Step(), ("none",)
    elif step.dst == "zero":
        step.dst = ""
    step.code = pack(*names)
    step.marks = (
        SCALES * (mnemonic in ("sll", "dsll") and step.tokens in _SCALES)
        + SETS_GP * (step.dst == "gp")
        + COMPARES * (mnemonic in ("slt", "slti", "sltu", "sltiu"))
    )
    return step.settled()


def _access(
    step: Step, name: str, parts: list[str], stack: frozenset[str], first_half: str
) -> tuple[str, ...]:
    operation = _ACCESS[name]
    is_load = operation[0] == "l"
    step.role = LOAD if is_load else STORE
    step.real = _REALS.get(name, 0)
    if is_load and parts[0][0] != "f":
        step.dst = parts[0]
    elif is_load and parts[0] == "fp":
        step.dst = "fp"
    match = _OPERAND.match(parts[-1])
    if match is None:
        return (operation,)
    step.base = match[2]
    is_second = name in _UNALIGNED and name[-1] != first_half
    if step.base in stack:
        operation = f"stack_{'load' if is_load else 'store'}"
    elif not is_second:
        try:
            step.value = int(match[1] or "0", 0)
            step.action = MEMORY
        except ValueError:  # the index is a register
            step.action = 0
    if is_second:
        return ("none",)
    return (operation, "sign_extend") if name in _SIGNED else (operation,)


def _number(text: str) -> int | None:
    try:
        return int(text, 0)
    except ValueError:
        return None


def _arithmetic(
    step: Step, name: str, parts: list[str], is_high: bool, stack: frozenset[str]
) -> tuple[str, ...]:
    """Fills in what does not touch memory; gives its operations."""
    names = _WITH_OPERANDS.get(name)
    if names is None:
        return ("other",)
    value = _number(parts[-1])
    if name == "move":
        if parts[1] == "zero":
            return ("const",)
        step.action, step.base = COPY, parts[1]
        return ("address",) if parts[1] in stack else names
    if name == "lui":
        if value is not None:
            step.action = UPPER
            step.value = (value & 0xFFFF) << 16
            if value & 0x8000:
                step.value -= 1 << 32
        return names
    if name in ("mult", "multu", "madd", "maddu", "msub", "msubu"):
        step.dst = ""
    elif name in ("mtc1", "mfc1", "mfhc1"):
        if name == "mtc1":
            step.action, step.base, step.dst = REAL, parts[0], ""
            step.real = 4
    elif name in ("ext", "ins"):
        return _bit_field(step, name, parts)
    elif name in ("addu", "add") and len(parts) == 3 and "zero" not in parts[1:]:
        step.action, step.base, step.index = SUM, parts[1], parts[2]
    elif name in ("slt", "sltu"):
        step.action, step.base = BELOW, parts[1]
    elif name == "nor" and "zero" in parts[1:]:
        return ("not",)
    elif value is not None:
        return _immediate(step, name, parts, value + 32 * is_high, names, stack)
    return names


def _immediate(
    step: Step,
    name: str,
    parts: list[str],
    value: int,
    names: tuple[str, ...],
    stack: frozenset[str],
) -> tuple[str, ...]:
    kind, source = names[0], parts[-2]
    if source == "zero" and kind in ("add", "or"):
        step.action, step.value = CONSTANT, value
        return ("const",)
    if kind == "add":
        if source in stack:
            return ("address",) if step.dst not in stack else names
        step.action, step.base, step.value = LOW, source, value
        return names if value >= 0 else ("sub",)
    if kind == "or":
        step.action, step.base, step.value = JOIN, source, value
    elif kind == "and" and value in _EXTENSIONS:
        return ("zero_extend",)
    elif kind in ("shl", "shr", "sar", "rotate"):
        if not value:
            return ("sign_extend",)
        step.tokens = said.shift(value)
    elif kind in ("and", "xor", "compare"):
        step.tokens = said.number(value)
    return names


def _bit_field(step: Step, name: str, parts: list[str]) -> tuple[str, ...]:
    """``ext d, s, low, width`` is a shift and a mask, as other processors have them."""
    low, width = _number(parts[-2]) or 0, _number(parts[-1]) or 0
    mask = (1 << (width & 63)) - 1
    if name == "ins":
        if parts[1] == "zero":
            step.tokens = said.number(~(mask << (low & 63)))
            return ("and",)
        step.tokens = said.shift(low) if low else ()
        return ("bit_field",)
    step.tokens = said.shift(low) if low else ()
    masked = "zero_extend" if mask in _EXTENSIONS else "and"
    if masked == "and":
        step.tokens += said.number(mask)
    return ("shr", masked) if low else (masked,)
