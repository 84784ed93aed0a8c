"""Classes of operations: the same names for every processor.

Mnemonics do not travel between processors; what an instruction does, does. An instruction that
does two things counts as both, in the order in which it does them: x86's addition from memory is
a load and an addition, as it is on processors that need two instructions.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

_NAMES = """
move const address
load load_byte load_half load_float load_vector
store store_byte store_half store_float store_vector stack_load stack_store
add sub neg mul mul_high div carry saturate
and or xor not shl shr sar rotate bit_field byte_swap count_bits sign_extend zero_extend
compare test set select
branch_eq branch_ne branch_signed branch_unsigned branch_other
jump jump_indirect call call_indirect return
fadd fsub fmul fdiv fsqrt fabs fcompare fconvert fmove fround fminmax
vec_add vec_sub vec_mul vec_fadd vec_fmul vec_fdiv vec_logic vec_shift vec_shuffle vec_compare
vec_move vec_minmax vec_abs vec_average vec_convert vec_reduce
string atomic fence trap system crypto other
"""
OPERATIONS = ("none", *_NAMES.split())
"""Names by number. ``none`` is what does nothing, such as padding; no block holds it."""
OPERATION = {name: number for number, name in enumerate(OPERATIONS)}
MOST = 4
"""Operations of one instruction."""
UNKNOWN = -1
"""Stands for the operations of an instruction whose operands must be read to tell."""


@lru_cache(maxsize=4096)
def pack(*names: str) -> int:
    """Operations of one instruction as one number: a byte each, the first one lowest."""
    return int.from_bytes(bytes(OPERATION[name] for name in names[:MOST]), "little")


def operation_names(operations: bytes) -> tuple[str, ...]:
    """What :attr:`Block.operations` stands for."""
    return tuple(OPERATIONS[number] for number in operations)


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
