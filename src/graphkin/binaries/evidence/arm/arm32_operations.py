"""What instructions of 32-bit ARM do, by their mnemonics, on which conditions hang."""

from __future__ import annotations

import re
from functools import lru_cache

from graphkin.binaries.evidence.operations import UNKNOWN, Codes, pack, parse_table

_WITHOUT_OPERANDS = parse_table("""
nop yield pld pldw pli: none
cbz: compare branch_eq
cbnz: compare branch_ne
b: jump
bx bxj tbb tbh: jump_indirect
bl: call
blx: call_indirect
dmb dsb isb clrex: fence
udf hlt bkpt trap: trap
svc: system
""")
WITH_OPERANDS = parse_table("""
mov movw: move
movt: none
adr: address
add addw: add
sub rsb subw: sub
neg: neg
adc sbc rsc: carry
mul umaal: mul
umull smull smmul smmulr: mul_high
smulbb smulbt smultb smultt smulwb smulwt: mul
mla smlabb smlabt smlatb smlatt smlawb smlawt smmla smlad: mul add
smlal umlal smlalbb: mul_high add
mls smmls: mul sub
udiv sdiv: div
and: and
bic: not and
orr: or
orn: not or
eor: xor
mvn: not
lsl: shl
lsr: shr
asr: sar
ror rrx: rotate
ubfx bfi bfc sbfx: bit_field
rev rev16 revsh: byte_swap
clz rbit: count_bits
sxtb sxth: sign_extend
uxtb uxth: zero_extend
sxtab sxtah: sign_extend add
uxtab uxtah: zero_extend add
cmp cmn teq: compare
tst: test
ldrex ldrexb ldrexh ldrexd strex strexb strexh strexd ldaex stlex lda stl swp: atomic
mrs msr mrc mcr mrrc: system
vmrs vmsr: none
qadd qsub qdadd ssat usat uadd8 usub8 sadd8 ssub8 uqadd8 uqsub8 sel uadd16 sadd16: saturate
""")
FLOATS = parse_table("""
vadd: fadd
vsub: fsub
vmul vnmul: fmul
vdiv: fdiv
vsqrt: fsqrt
vabs vneg: fabs
vcmp vcmpe: fcompare
vmla vfma vnmla vfnma: fmul fadd
vmls vfms vnmls vfnms: fmul fsub
vcvt vcvtr vcvtb vcvtt vcvtm vcvtp vcvta: fconvert
vmov: fmove
vsel vseleq vselgt vselge vselvs: select
vmaxnm vminnm: fminmax
vrintm vrintp vrintz vrinta vrintx vrintr: fround
""")
_VECTORS = (
    ("cvt", "vec_convert"), ("padd", "vec_reduce"), ("padal", "vec_reduce"), ("pmax", "vec_reduce"),
    ("pmin", "vec_reduce"), ("hadd", "vec_average"), ("hsub", "vec_average"), ("qadd", "saturate"),
    ("qsub", "saturate"), ("qmov", "saturate"), ("movn", "vec_convert"), ("movl", "vec_convert"),
    ("shll", "vec_convert"), ("recp", "vec_fdiv"), ("rsqrt", "vec_fdiv"), ("abs", "vec_abs"),
    ("aba", "vec_abs"), ("abd", "vec_abs"), ("neg", "vec_abs"), ("mul", "vec_mul"),
    ("ml", "vec_mul"),
    ("fma", "vec_fmul"), ("fms", "vec_fmul"), ("add", "vec_add"), ("sub", "vec_sub"),
    ("max", "vec_minmax"), ("min", "vec_minmax"), ("dup", "vec_shuffle"), ("zip", "vec_shuffle"),
    ("uzp", "vec_shuffle"), ("trn", "vec_shuffle"), ("ext", "vec_shuffle"), ("tbl", "vec_shuffle"),
    ("tbx", "vec_shuffle"), ("swp", "vec_shuffle"), ("rev", "vec_shuffle"), ("and", "vec_logic"),
    ("orr", "vec_logic"), ("orn", "vec_logic"), ("eor", "vec_logic"), ("bic", "vec_logic"),
    ("bsl", "vec_logic"), ("bit", "vec_logic"), ("bif", "vec_logic"), ("mvn", "vec_logic"),
    ("shl", "vec_shift"), ("shr", "vec_shift"), ("sra", "vec_shift"), ("sli", "vec_shift"),
    ("sri", "vec_shift"), ("tst", "vec_compare"), ("c", "vec_compare"), ("mov", "vec_move"),
)  # fmt: skip
_FLOAT_KINDS = {"vec_add": "vec_fadd", "vec_sub": "vec_fadd", "vec_mul": "vec_fmul"}
ACCESS = re.compile(r"(ldr|str)(sb|sh|b|h|d)?t?$")
MULTIPLE = re.compile(r"(ldm|stm)(?:ia|ib|da|db|fd|ea)?$")
VECTOR_ACCESS = re.compile(r"v(ld|st)([1-4rm])(?:ia|db)?$")
_BRANCHES = {
    "eq": "branch_eq", "ne": "branch_ne", "vs": "branch_other", "vc": "branch_other",
    **dict.fromkeys(("lt", "le", "gt", "ge", "mi", "pl"), "branch_signed"),
    **dict.fromkeys(("lo", "ls", "hi", "hs", "cs", "cc"), "branch_unsigned"),
}  # fmt: skip
_KNOWN = frozenset([*WITH_OPERANDS, *_WITHOUT_OPERANDS])
CONDITIONS = frozenset(_BRANCHES)


@lru_cache(maxsize=4096)
def without_suffixes(mnemonic: str) -> tuple[str, str]:
    """A mnemonic without width, condition, data types, and the mark that it sets flags; and the
    condition."""
    name = mnemonic.partition(".")[0]
    if _is_known(name):
        return name, ""
    if name[-2:] in CONDITIONS and _is_known(name[:-2]):
        return name[:-2], name[-2:]
    if name[-1:] == "s" and _is_known(name[:-1]):
        return name[:-1], ""
    if name[-3:-2] == "s" and name[-2:] in CONDITIONS and _is_known(name[:-3]):
        return name[:-3], name[-2:]
    if name[:1] == "v" and name[-2:] in CONDITIONS and len(name) > 5:
        return name[:-2], name[-2:]
    return name, ""


def _is_known(name: str) -> bool:
    return (
        name in _KNOWN
        or name in FLOATS
        or name in ("push", "pop", "vpush", "vpop")
        or ACCESS.match(name) is not None
        or MULTIPLE.match(name) is not None
        or VECTOR_ACCESS.match(name) is not None
    )


def _find(mnemonic: str) -> int:
    if mnemonic.startswith("it") and set(mnemonic[1:]) <= {"t", "e"}:
        return 0
    name, condition = without_suffixes(mnemonic)
    if name == "b" and condition:
        return pack(_BRANCHES[condition])
    names = _WITHOUT_OPERANDS.get(name)
    return UNKNOWN if names is None else pack(*names)


CODES = Codes(_find)


def vector_operation(name: str, mnemonic: str) -> str:
    """That of an instruction on vectors, with and without what hangs on its mnemonic."""
    kind = next((operation for word, operation in _VECTORS if word in name[1:]), "other")
    return _FLOAT_KINDS.get(kind, kind) if ".f" in mnemonic else kind
