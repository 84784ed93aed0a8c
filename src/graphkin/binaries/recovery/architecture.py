"""What flow recovery must know of a processor. Each one is a file of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from graphkin.binaries.image import Image
from graphkin.binaries.recovery.decode import Decoder
from graphkin.binaries.recovery.hardening import Hardening

if TYPE_CHECKING:
    from graphkin.binaries.recovery.listing import Listing

PLAIN, BRANCH, JUMP, STOP, CALL, CUT, SELECT = range(7)
"""What an instruction does to control flow: nothing, goes on or jumps, jumps, ends the path,
calls, is the last before something that was not decoded, or goes on or jumps through a table.
A branch that has no target goes on or leaves the function, as a conditional return does."""

TableReader = Callable[["Listing", int, bool], "list[int] | None"]
"""(listing, position of an indirect jump, whether to guess an unknown length) to addresses."""


class Architecture(Protocol):
    """One processor."""

    @property
    def padding(self) -> frozenset[str]:
        """Mnemonics that fill space before an aligned target, or mark one."""

    @property
    def hardening(self) -> Hardening:
        """What compilers add to harden code."""

    @property
    def doubts_bounds(self) -> bool:
        """Whether code that nothing reaches tells of a table longer than it seemed.

        Not where constants lie between the instructions, and look like code that is not reached.
        """

    def decoder(self, state: str) -> Decoder:
        """Decodes what :attr:`Image.marks` calls ``state``."""

    def kinds(self, table: NDArray[Any]) -> NDArray[np.uint8]:
        """(K,) what each decoded record does to control flow."""

    def delayed(self, table: NDArray[Any], kinds: NDArray[np.uint8]) -> NDArray[np.bool_] | None:
        """(K,) whether each of these transfers of control happens behind the next instruction,
        its delay slot; None on a processor without delay slots."""

    def absolute(self, table: NDArray[Any]) -> list[bytes] | None:
        """The operands of transfers with addresses as targets; None where capstone prints them so
        already."""

    def target(self, operand: bytes) -> int | None:
        """The address of a direct transfer; None for one through a register or memory."""

    def called(self, image: Image, listing: Listing, control: int) -> int | None:
        """The address that a call goes to, or the slot that it reads; None when neither is
        fixed, when the call is conditional, or when it surely is none of ``image.noreturn``.

        Args:
            image: the binary.
            listing: the function's instructions.
            control: the call's number in ``listing.controls``.
        """

    def tables(self, image: Image) -> TableReader:
        """A reader of the jump tables of one function."""


def kind_table(size: int, names: dict[int, str], constants: object, prefix: str) -> NDArray[Any]:
    """(ids,) the kind of every instruction id of capstone, from lists of mnemonics."""
    table = np.full(size, PLAIN, dtype=np.uint8)
    for kind, listed in names.items():
        for name in listed.split():
            number = getattr(constants, f"{prefix}{name.upper()}", None)
            if number is not None:
                table[number] = kind
    return table
