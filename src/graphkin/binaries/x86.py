"""What x86 instructions do to control flow, 64 and 32 bit."""

from __future__ import annotations

import capstone
import numpy as np
from capstone import x86_const as x86
from numpy.typing import NDArray

from graphkin.binaries.listing import BRANCH, CALL, JUMP, PLAIN, STOP, Listing

MODES = {
    "x86-64": (capstone.CS_ARCH_X86, capstone.CS_MODE_64),
    "x86": (capstone.CS_ARCH_X86, capstone.CS_MODE_32),
}

_KINDS = {
    BRANCH: """jae ja jbe jb jcxz jecxz je jge jg jle jl jne jno jnp jns jo jp jrcxz js
               loop loope loopne xbegin""",
    JUMP: "jmp ljmp",
    STOP: "ret retf retfq iret iretd iretq sysret sysexit hlt ud2 ud2b ud0 ud1 int3 int1",
    CALL: "call lcall",
}

PADDING = frozenset(["nop", "endbr64", "endbr32", "data16 nop"])
"""Mnemonics that fill space before an aligned target, or mark one."""


def kinds() -> NDArray[np.uint8]:
    """(ids,) the kind of every instruction id of capstone."""
    table = np.full(x86.X86_INS_ENDING + 1, PLAIN, dtype=np.uint8)
    for kind, names in _KINDS.items():
        for name in names.split():
            number = getattr(x86, f"X86_INS_{name.upper()}", None)
            if number is not None:
                table[number] = kind
    return table


def called(listing: Listing, position: int, operand: bytes) -> int | None:
    """The address that a call goes to, or the slot that it reads; None when neither is fixed."""
    if operand.startswith(b"0x"):
        return int(operand, 16)
    if b"[rip" in operand:
        following = listing.addresses[position] + listing.sizes[position]
        return following + _displacement(operand)
    return None


def _displacement(operand: bytes) -> int:
    inside = operand.partition(b"[")[2].partition(b"]")[0].replace(b" ", b"")
    number = inside.removeprefix(b"rip")
    try:
        return int(number, 16) if number else 0
    except ValueError:
        return 0
