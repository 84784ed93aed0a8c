"""What one instruction does to registers, on processors with instructions of one size."""

from __future__ import annotations

from dataclasses import dataclass

from graphkin.binaries.function import Token

(
    FORGET, CONSTANT, PAGE, FROM_PC, INSERT, JOIN, ADD, SUM, COPY, MEMORY, INDEXED, POOL, REAL,
    UPPER, LOW, BELOW, REGISTER_CALL,
) = range(17)  # fmt: skip
"""What an instruction does to its first register: it becomes unknown, a constant, an address, an
address counted from pc; gets 16 bits more, or lower bits; a constant or a register is added; it is
a copy, comes from memory, from memory at the sum of two registers, from a pool of constants; or
the bits of a constant become a number of floating point. On MIPS it gets the upper half of a
constant or an address; the lower half is added; it tells whether a register is below another; or
the code goes where the register says."""


@dataclass(slots=True, eq=False)
class Step:
    """What the text of one instruction means."""

    code: int = 0
    tokens: tuple[Token, ...] = ()
    action: int = FORGET
    dst: str = ""
    other: str = ""
    """A second register that is overwritten."""
    base: str = ""
    """Register that an address, a sum or a copy comes from."""
    index: str = ""
    value: int = 0
    """Constant, or displacement."""
    role: str = ""
    real: int = 0
    """Bytes of the number of floating point that is loaded."""
    against: int | None = None
    """The constant of a comparison."""
    marks: int = 0
    """Bits for what a processor looks at once more."""
    is_plain: bool = False
    """Whether it does no more than overwrite ``dst``."""
    is_relative: bool = False
    """Whether its bytes do not tell what it means."""

    def settled(self) -> Step:
        """Itself, when all else is known."""
        self.is_plain = self.action == FORGET and not self.tokens and self.against is None
        return self
