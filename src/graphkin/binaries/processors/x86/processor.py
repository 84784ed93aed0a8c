"""What x86 instructions do to control flow, 64 and 32 bit."""

from __future__ import annotations

from typing import Any

import capstone
import numpy as np
from capstone import x86_const
from numpy.typing import NDArray

from graphkin.binaries.image import Image
from graphkin.binaries.processors.x86.hardening import X86Hardening
from graphkin.binaries.processors.x86.jump_tables import X86Tables, table_base
from graphkin.binaries.recovery.architecture import (
    BRANCH,
    CALL,
    JUMP,
    STOP,
    TableReader,
    kind_table,
)
from graphkin.binaries.recovery.decode import Decoder
from graphkin.binaries.recovery.listing import Listing

_KINDS = {
    BRANCH: """jae ja jbe jb jcxz jecxz je jge jg jle jl jne jno jnp jns jo jp jrcxz js
               loop loope loopne xbegin""",
    JUMP: "jmp ljmp",
    STOP: "ret retf retfq iret iretd iretq sysret sysexit hlt ud2 ud2b ud0 ud1 int3 int1",
    CALL: "call lcall",
}

NEAR = 4
"""Instructions to look back for the load of a register that is called."""


class X86:
    """x86 of 64 or 32 bits."""

    padding = frozenset(["nop", "endbr64", "endbr32", "data16 nop"])
    doubts_bounds = True

    def __init__(self, bits: int) -> None:
        mode = capstone.CS_MODE_64 if bits == 64 else capstone.CS_MODE_32
        self._pointer = bits // 8
        self.hardening = X86Hardening(self._pointer)
        self._decoder = Decoder(capstone.CS_ARCH_X86, mode)
        self._kind_of = kind_table(x86_const.X86_INS_ENDING + 1, _KINDS, x86_const, "X86_INS_")

    def decoder(self, state: str) -> Decoder:
        return self._decoder

    def kinds(self, table: NDArray[Any]) -> NDArray[np.uint8]:
        kinds: NDArray[np.uint8] = self._kind_of[table["id"]]
        return kinds

    def delayed(self, table: NDArray[Any], kinds: NDArray[np.uint8]) -> None:
        return None

    def absolute(self, table: NDArray[Any]) -> None:
        return None

    def target(self, operand: bytes) -> int | None:
        # A far call has two numbers, and no target that a program of today would mean.
        return int(operand, 16) if operand[:1].isdigit() and operand.isalnum() else None

    def called(self, image: Image, listing: Listing, control: int) -> int | None:
        target = listing.targets[control]
        if target is not None:
            return target
        return self._through(image, listing, listing.controls[control], listing.operands[control])

    def _through(self, image: Image, listing: Listing, position: int, operand: bytes) -> int | None:
        """The slot of a call through memory or a register."""
        if b"[rip" in operand:
            following = listing.addresses[position] + listing.sizes[position]
            return following + _displacement(operand)
        if self._pointer == 4 and operand.startswith(b"dword ptr ["):
            return _slot(image, listing, position, operand)
        if operand.isalnum():
            return self._loaded(image, listing, position, operand.decode("ascii"))
        return None

    def _loaded(self, image: Image, listing: Listing, position: int, register: str) -> int | None:
        """The slot that a register was loaded from just ahead: ``mov eax, [0x1234]; call eax``."""
        for at in range(position - 1, max(-1, position - NEAR), -1):
            if listing.mnemonics[at] == "mov":
                target, _, source = listing.text(at).partition(", ")
                if target == register and "[" in source:
                    return self._through(image, listing, at, source.encode("ascii"))
        return None

    def tables(self, image: Image) -> TableReader:
        return X86Tables(image, self._pointer)


def _slot(image: Image, listing: Listing, position: int, operand: bytes) -> int | None:
    """The slot of ``call [0x1234]`` and of ``call [ebx - 8]``, where ebx is the base of the
    global offset table."""
    inside = operand.partition(b"[")[2].partition(b"]")[0]
    if inside.startswith(b"0x"):
        return int(inside, 16) if b" " not in inside else None
    base = table_base(image, listing, inside[:3].decode("ascii", "replace"), position)
    return None if base is None else base + _displacement(operand)


def _displacement(operand: bytes) -> int:
    """The number of ``[rip + 8]`` or ``[ebx - 8]``."""
    inside = operand.partition(b"[")[2].partition(b"]")[0].replace(b" ", b"")
    try:
        return int(inside[3:], 16) if inside[3:] else 0
    except ValueError:
        return 0
