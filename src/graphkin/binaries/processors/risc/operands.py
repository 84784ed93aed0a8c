"""Operands of ARM and AArch64 as capstone prints them, taken apart."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

_CONDITIONS = "eq ne hs cs lo cc mi pl vs vc hi ls ge lt gt le al"
CONDITIONS = frozenset(_CONDITIONS.split())
FRAMES = frozenset(["sp", "x29", "fp", "r7", "r11"])
"""Registers that stack slots are counted from."""
_NAMES = {"adds": "add", "addw": "add", "subs": "sub", "subw": "sub", "movs": "mov", "ands": "and",
          "lsls": "lsl", "movz": "mov", "movw": "mov", "ldur": "ldr", "stur": "str"}  # fmt: skip
_OUTER_COMMA = re.compile(r", (?![^\[{]*[\]}])")


class Memory(NamedTuple):
    """``[base, selector, lsl #shift]`` or ``[base, #displacement]``; "" where absent."""

    text: str
    base: str
    selector: str
    shift: int
    displacement: int

    @property
    def is_stack(self) -> bool:
        return self.base in FRAMES and not self.selector


def split(text: str) -> list[str]:
    """Operands; brackets and braces stay whole."""
    return _OUTER_COMMA.split(text)


@lru_cache(maxsize=4096)
def plain_name(mnemonic: str) -> str:
    """A mnemonic without its width, and one name for variants that compute the same value."""
    name = mnemonic.removesuffix(".w")
    return _NAMES.get(name, name)


@lru_cache(maxsize=4096)
def family(register: str) -> str:
    """``x0`` for w0 and x0; other registers have one name."""
    return "x" + register[1:] if register[:1] == "w" else register


def number(text: str) -> int | None:
    """The value of ``#0x10`` or ``#-4``; None for something else."""
    if not text.startswith("#"):
        return None
    try:
        return int(text[1:], 0)
    except ValueError:
        return None


def shift_of(text: str) -> int:
    """Bits of ``lsl #2``, ``sxtw #2`` or ``uxtw``."""
    return number(text.partition(" ")[2]) or 0


def parse_memory(text: str) -> Memory:
    """Takes ``[x1, w0, uxtw #2]`` apart; junk gives an operand without parts."""
    inside = text.partition("[")[2].partition("]")[0]
    base, *rest = inside.split(", ")
    selector, shift, displacement = "", 0, 0
    for part in rest:
        value = number(part)
        if value is not None:
            displacement = value
        elif " " in part or part in ("uxtw", "sxtw", "sxtx"):
            shift = shift_of(part)
        else:
            selector = family(part)
    return Memory(inside, family(base), selector, shift, displacement)
