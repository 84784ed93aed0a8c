"""Operands of x86 as capstone prints them, and the comparison that bounds the index of a table."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from graphkin.binaries.recovery.listing import Listing

TERM = re.compile(r"([+-]?)\s*(?:([a-z]\w*?)(?:\*(\d))?|(0x[0-9a-f]+|\d+))\s*(?=[+-]|$)")
_NUMBERED = re.compile(r"(r\d+)[dwb]?$")
_LETTER = re.compile(r"[re]?([abcd])[xlh]$")
_POINTER = re.compile(r"[re]?(si|di|bp|sp)l?$")
REACH = 200
"""Instructions to look back for the comparison."""
COMPARES = ("cmp", "sub")
MOVES = ("mov", "movzx", "movsx", "movsxd", "movabs")
IGNORED = frozenset(["push", "call", "nop", "cdqe", "cdq", "endbr64"])
EXTRA = {"ja": 1, "jbe": 1, "jae": 0, "jb": 0, "jg": 1, "jle": 1, "jge": 0, "jl": 0}
"""What to add to N of ``cmp index, N`` for the number of indices that reach the table."""


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
    if match := _NUMBERED.match(register):
        return match[1]
    if match := _LETTER.match(register):
        return match[1] + "x"
    match = _POINTER.match(register)
    return match[1] if match else register


def parse_memory(text: str) -> Memory:
    """Takes ``dword ptr [rdx + rdi*4 - 8]`` apart; junk gives an operand without parts."""
    inside = _inside(text)
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


def location_of(operand: str) -> str:
    """Where a value is: a register's family, or a memory operand without its width."""
    return _inside(operand) if "[" in operand else family(operand)


def _inside(operand: str) -> str:
    """What a memory operand has in its brackets."""
    return operand.partition("[")[2].partition("]")[0]


def table_entries(listing: Listing, load: int, memory: Memory) -> int | None:
    """Entries that the code can reach, or None where no comparison with the index is found.

    Walks back from the load of an entry with the locations (registers, stack slots) that hold the
    index. The first comparison of one of them that feeds a conditional jump counts; failing
    that, the comparison right ahead of the block, for -O0 code compares a copy.
    """
    tracked = {memory.scaled} if memory.scaled else {memory.base, memory.other}
    jump = ""
    guard: int | None = None
    guarded = ""
    may_guard = True
    for at in range(load - 1, max(-1, load - REACH), -1):
        name = listing.mnemonics[at]
        if name in EXTRA:
            may_guard = may_guard and not jump and name in ("ja", "jae")
            jump = name
            continue
        if name[0] == "j":
            may_guard = False
            continue
        if name in ("ret", "test"):
            jump = ""
            continue
        if name in IGNORED:
            continue
        target, _, source = listing.text(at).partition(", ")
        location = location_of(target)
        if name in COMPARES:
            limit = _number(source)
            if jump and limit is not None and limit <= 0xFFFF:
                if location in tracked:
                    return limit + EXTRA[jump]
                if may_guard:
                    guard, guarded, may_guard = limit + EXTRA[jump], location, False
            jump = ""
        if location not in tracked or name == "cmp":
            continue
        if name == "and":
            limit = _number(source)
            if limit is not None and limit <= 0xFFFF:
                return limit + 1
        if name in MOVES and not source.startswith("0x"):
            if location_of(source) == guarded:
                return guard
            tracked.discard(location)
            tracked.add(location_of(source))
        elif name == "lea":
            tracked.discard(location)
            inner = parse_memory(source)
            if inner.scaled and not inner.base:
                tracked.add(inner.scaled)
        elif name != "shl":  # only scales the index
            tracked.discard(location)
        if not tracked:
            break
    return guard


def _number(operand: str) -> int | None:
    try:
        return int(operand, 0)
    except ValueError:
        return None
