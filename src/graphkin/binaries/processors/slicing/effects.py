"""What an instruction does to registers, as far as addresses and jump tables depend on it.

Each processor says this of its own instructions; what is computed from it is the same for all.
Registers are numbers, with NONE for one that is absent, or always zero.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, Protocol

from graphkin.binaries.recovery.listing import Listing

NONE = -1


class Sum(NamedTuple):
    """target = first + second + constant: also moves and constants."""

    target: int
    first: int
    second: int
    constant: int


class Shift(NamedTuple):
    """target = source << bits."""

    target: int
    source: int
    bits: int


class Mask(NamedTuple):
    """target has ``bits`` bits: the lowest ones of the source, unless ``moved``."""

    target: int
    source: int
    bits: int
    moved: bool = False


class Load(NamedTuple):
    """target = the word at base + selector + displacement."""

    target: int
    base: int
    selector: int
    displacement: int
    width: int
    signed: bool


class Store(NamedTuple):
    """The word at base + displacement = source."""

    source: int
    base: int
    displacement: int
    target: int = NONE


class Compare(NamedTuple):
    """target = how first compares with second + constant.

    ``relation`` is ``lt`` or ``gt``, where the instruction itself asks for one; a branch that
    compares has no target.
    """

    target: int
    first: int
    second: int
    constant: int
    relation: str = "lt"


class Branch(NamedTuple):
    """A conditional jump that depends on the result of a comparison."""

    condition: int
    relation: str = ""
    """``lt``, ``ge``, ``gt`` or ``le`` where the comparison did not ask for one."""
    target: int = NONE


class Other(NamedTuple):
    """An instruction that leaves something unknown in one register, or in none."""

    target: int = NONE


class Call(NamedTuple):
    """Leaves something unknown in every register that a callee need not keep."""

    target: int = NONE


Effect = Sum | Shift | Mask | Load | Store | Compare | Branch | Other | Call


class Semantics(Protocol):
    """One processor's effects."""

    def frames(self, listing: Listing) -> frozenset[int]:
        """Registers that stack slots of the function are counted from."""

    @property
    def scratch(self) -> frozenset[int]:
        """Registers that a call may change."""

    def usual(self, word: int) -> Effect:
        """What an instruction does, whatever function it is in: it may write to fewer registers
        than this says, but not to others."""

    def effect(self, listing: Listing, position: int) -> Effect:
        """What one instruction does."""

    def fixed(self, listing: Listing) -> Mapping[int, int]:
        """Registers that hold one value all through the function."""

    def at_entry(self, listing: Listing) -> Mapping[int, int]:
        """Registers whose value is known where the function begins."""
