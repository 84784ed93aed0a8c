"""Operands of x86 as capstone prints them, taken apart."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

TERM = re.compile(r"([+-]?)\s*(?:([a-z]\w*?)(?:\*(\d))?|(0x[0-9a-f]+|\d+))\s*(?=[+-]|$)")
_NUMBERED = re.compile(r"(r\d+)[dwb]?$")
_LETTER = re.compile(r"[re]?([abcd])[xlh]$")
_POINTER = re.compile(r"[re]?(si|di|bp|sp)l?$")


class Memory(NamedTuple):
    """``[base + index*scale + displacement]``; registers by family, "" where absent."""

    text: str
    """What stood between the brackets."""
    base: str
    other: str
    """The second register of ``[A + B]``, which has no scale to tell base from index."""
    scaled: str
    scale: int
    displacement: int

    @property
    def is_rip(self) -> bool:
        return self.base == "rip"

    @property
    def is_stack(self) -> bool:
        return self.base in ("sp", "bp") and not self.scaled and not self.other


@lru_cache(maxsize=1024)
def family(register: str) -> str:
    """One name for a register of any width: ``ax`` for rax, eax, ax, al and ah."""
    match = _NUMBERED.match(register)
    if match:
        return match[1]
    match = _LETTER.match(register)
    if match:
        return match[1] + "x"
    match = _POINTER.match(register)
    return match[1] if match else register


def parse_memory(text: str) -> Memory:
    """Takes ``dword ptr [rdx + rdi*4 - 8]`` apart; junk gives an operand without parts."""
    inside = text.partition("[")[2].partition("]")[0]
    registers: list[str] = []
    index, scale, displacement = "", 1, 0
    for sign, register, factor, number in TERM.findall(inside):
        if number:
            displacement += -int(number, 0) if sign == "-" else int(number, 0)
        elif factor and int(factor) > 1:
            index, scale = family(register), int(factor)
        else:
            registers.append(family(register))
    if index:
        base = registers[0] if registers else ""
        return Memory(inside, base, "", index, scale, displacement)
    base, other, *_ = [*registers, "", ""]
    return Memory(inside, base, other, "", 1, displacement)


def place_of(operand: str) -> str:
    """Where a value is: a register's family, or a memory operand without its width."""
    return parse_memory(operand).text if "[" in operand else family(operand)
