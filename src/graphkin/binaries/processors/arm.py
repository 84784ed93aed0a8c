"""What instructions of 32-bit ARM do to control flow, in ARM and in Thumb state."""

from __future__ import annotations

import re
from typing import Any

import capstone
import numpy as np
from capstone import arm_const
from numpy.typing import NDArray

from graphkin.binaries.image import Image
from graphkin.binaries.processors.relative_words import arm
from graphkin.binaries.processors.risc.hardening import RiscHardening
from graphkin.binaries.processors.risc.jump_tables import RiscTables
from graphkin.binaries.processors.risc.operands import CONDITIONS
from graphkin.binaries.processors.risc.values import Values
from graphkin.binaries.recovery.architecture import (
    BRANCH,
    CALL,
    JUMP,
    PLAIN,
    SELECT,
    STOP,
    TableReader,
    kind_table,
)
from graphkin.binaries.recovery.decode import Decoder, mnemonics, operands
from graphkin.binaries.recovery.listing import Listing
from graphkin.binaries.recovery.words import WordDecoder

_KINDS = {
    BRANCH: "cbz cbnz",
    JUMP: "b bx bxj tbb tbh",
    STOP: "udf hlt bkpt rfeda rfedb rfeia rfeib eret trap",
    CALL: "bl blx",
}
_FIRST = "ldr mov add sub movs adr orr bic and eor mvn lsl"
"""Instructions that jump when their first operand is pc."""
_LISTS = "pop ldm ldmda ldmdb ldmib"
"""Instructions that return when pc is in their list."""
_WRITER = 255
_TARGET = re.compile(rb"(?:r\d+, )?#(0x[0-9a-f]+|\d)$")
_PC = int.from_bytes(b"pc,", "little")
_RETURNS = re.compile(rb"lr$|pc, lr|pc, \[sp\]")
"""Operands that go back to the caller: ``bx lr``, ``mov pc, lr``, ``ldr pc, [sp], #4``."""


class Arm:
    """ARM and Thumb, little-endian."""

    padding = frozenset(["nop"])
    doubts_bounds = False

    def __init__(self) -> None:
        self.hardening = RiscHardening(4, {})
        family = capstone.CS_ARCH_ARM
        mode = capstone.CS_MODE_ARM | capstone.CS_MODE_V8
        self._arm = WordDecoder("arm", family, mode, "little", 32, arm)
        self._thumb = Decoder(family, capstone.CS_MODE_THUMB | capstone.CS_MODE_V8, resumes=True)
        ids = arm_const.ARM_INS_ENDING + 1
        self._kind_of = kind_table(
            ids, {**_KINDS, _WRITER: f"{_FIRST} {_LISTS}"}, arm_const, "ARM_INS_"
        )
        numbers = {name: getattr(arm_const, f"ARM_INS_{name.upper()}", 0) for name in _names()}
        self._name_of = {number: name for name, number in numbers.items()}
        self._takes_list = np.zeros(ids, dtype=bool)
        self._takes_list[[numbers[name] for name in _LISTS.split()]] = True
        self._known: dict[tuple[int, int, str], int] = {}
        """Kinds that neither the table of ids nor operands tell, by kind there, id and name."""

    def decoder(self, state: str) -> Decoder:
        return self._thumb if state == "t" else self._arm

    def kinds(self, table: NDArray[Any]) -> NDArray[np.uint8]:
        ids = table["id"]
        kinds: NDArray[np.uint8] = self._kind_of[ids]
        writers = kinds == _WRITER
        writes = (table["op_head"] & np.uint64(0xFFFFFF)) == np.uint64(_PC)
        kinds[writers & ~self._takes_list[ids] & ~writes] = PLAIN
        rows = np.flatnonzero(kinds)
        records = table[rows]
        keys = zip(kinds[rows].tolist(), records["id"].tolist(), mnemonics(records), strict=True)
        words, known = operands(records), self._known
        found: list[int] = []
        for key, operand in zip(keys, words, strict=True):
            kind = known.get(key)
            if kind is None:
                kind = self._kind(*key, operand)
                # The operands of branches and calls say nothing of their kind.
                if key[0] in (CALL, STOP, BRANCH) or self._name_of[key[1]] == "b":
                    known[key] = kind
            found.append(kind)
        kinds[rows] = found
        return kinds

    def _kind(self, kind: int, number: int, mnemonic: str, operand: bytes) -> int:
        """The kind of one record that may transfer control."""
        if kind in (CALL, STOP):
            return kind
        base = self._name_of[number]
        conditional = mnemonic.removeprefix(base).removesuffix(".w") in CONDITIONS
        if kind == BRANCH or (kind == JUMP and base == "b"):
            return BRANCH if conditional or kind == BRANCH else JUMP
        if self._takes_list[number]:
            if b"pc}" not in operand:
                return PLAIN
        elif not _RETURNS.match(operand):
            return SELECT if conditional else JUMP
        return BRANCH if conditional else STOP

    def delayed(self, table: NDArray[Any], kinds: NDArray[np.uint8]) -> None:
        return None

    def absolute(self, table: NDArray[Any]) -> None:
        return None

    def target(self, operand: bytes) -> int | None:
        """Of ``#0x1234`` and ``r0, #0x1234``."""
        match = _TARGET.match(operand)
        return int(match[1], 16) if match else None

    def called(self, image: Image, listing: Listing, control: int) -> int | None:
        position, target = listing.controls[control], listing.targets[control]
        if listing.mnemonics[position] not in ("bl", "blx"):
            return None
        if target is not None:
            return target
        register = listing.operands[control].decode("ascii", "replace")
        return Values(image, 4).slot(listing, register, position)

    def tables(self, image: Image) -> TableReader:
        return RiscTables(image, self, 4, 2)


def _names() -> list[str]:
    return " ".join([*_KINDS.values(), _FIRST, _LISTS]).split()
