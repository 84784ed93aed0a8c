"""The names of what instructions do, the same for every processor.

Mnemonics do not travel between processors; what an instruction does, does.
"""

from __future__ import annotations

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


def operation_names(operations: bytes) -> tuple[str, ...]:
    """What :attr:`Block.operations` stands for."""
    return tuple(OPERATIONS[number] for number in operations)
