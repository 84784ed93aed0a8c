"""What AArch64 instructions do to control flow."""

from __future__ import annotations

from typing import Any

import capstone
import numpy as np
from capstone import arm64_const
from numpy.typing import NDArray

from graphkin.binaries.image import Image
from graphkin.binaries.processors.relative_words import aarch64
from graphkin.binaries.processors.risc.hardening import ARM64_WORDS, RiscHardening
from graphkin.binaries.processors.risc.jump_tables import RiscTables
from graphkin.binaries.processors.risc.operands import family
from graphkin.binaries.processors.risc.values import Values
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
from graphkin.binaries.recovery.words import WordDecoder

_KINDS = {
    BRANCH: "cbz cbnz tbz tbnz",
    JUMP: "b br braa braaz brab brabz",
    STOP: "ret retaa retab eret eretaa eretab drps brk hlt udf",
    CALL: "bl blr blraa blraaz blrab blrabz",
}


class AArch64:
    """AArch64, little-endian."""

    padding = frozenset(["nop", "bti", "paciasp", "pacibsp"])
    doubts_bounds = False

    def __init__(self) -> None:
        self.hardening = RiscHardening(8, ARM64_WORDS)
        mode = capstone.CS_MODE_LITTLE_ENDIAN
        self._decoder = WordDecoder("aarch64", capstone.CS_ARCH_ARM64, mode, "little", 64, aarch64)
        ids = arm64_const.ARM64_INS_ENDING + 1
        self._kind_of = kind_table(ids, _KINDS, arm64_const, "ARM64_INS_")

    def decoder(self, state: str) -> Decoder:
        return self._decoder

    def kinds(self, table: NDArray[Any]) -> NDArray[np.uint8]:
        kinds: NDArray[np.uint8] = self._kind_of[table["id"]]
        has_condition = (table["head"] >> np.uint64(8)) & np.uint64(0xFF) != 0
        kinds[(table["id"] == arm64_const.ARM64_INS_B) & has_condition] = BRANCH
        return kinds

    def delayed(self, table: NDArray[Any], kinds: NDArray[np.uint8]) -> None:
        return None

    def absolute(self, table: NDArray[Any]) -> None:
        return None

    def target(self, operand: bytes) -> int | None:
        """Of ``#0x1234``, ``w0, #0x1234`` and ``w0, #3, #0x1234``."""
        _, mark, last = operand.rpartition(b"#")
        return int(last, 16) if mark else None

    def called(self, image: Image, listing: Listing, control: int) -> int | None:
        target, operand = listing.targets[control], listing.operands[control]
        if target is not None:
            return target
        register = family(operand.decode("ascii", "replace").partition(",")[0])
        return Values(image, 8).slot(listing, register, listing.controls[control])

    def tables(self, image: Image) -> TableReader:
        return RiscTables(image, self, 8, 4)
