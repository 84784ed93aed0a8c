"""The operations of an instruction, packed into a number.

An instruction that does two things counts as both, in the order in which it does them: x86's
addition from memory is a load and an addition, as it is on processors that need two instructions.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from graphkin.binaries.operations import OPERATION

MOST = 4
"""Operations of one instruction."""
UNKNOWN = -1
"""Stands for the operations of an instruction whose operands must be read to tell."""


@lru_cache(maxsize=4096)
def pack(*names: str) -> int:
    """Operations of one instruction as one number: a byte each, the first one lowest."""
    return int.from_bytes(bytes(OPERATION[name] for name in names[:MOST]), "little")


def parse_table(text: str) -> dict[str, tuple[str, ...]]:
    """Lines ``mnemonic mnemonic: operation operation``, as a mapping."""
    table: dict[str, tuple[str, ...]] = {}
    for line in text.strip().splitlines():
        mnemonics, _, names = line.partition(":")
        table.update(dict.fromkeys(mnemonics.split(), tuple(names.split())))
    return table


class Codes(dict[str, int]):
    """Packed operations by mnemonic, found out once for each.

    Args:
        find: gives the packed operations of a mnemonic, or ``UNKNOWN``.
    """

    def __init__(self, find: Callable[[str], int]) -> None:
        super().__init__()
        self._find = find

    def __missing__(self, mnemonic: str) -> int:
        # What is not an instruction begins with a dot.
        code = self[mnemonic] = 0 if mnemonic.startswith(".") else self._find(mnemonic)
        return code
