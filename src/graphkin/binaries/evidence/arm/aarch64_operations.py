"""What instructions of AArch64 do, by their mnemonics."""

from __future__ import annotations

import re

from graphkin.binaries.evidence.operations import UNKNOWN, Codes, pack, parse_table

_WITHOUT_OPERANDS = parse_table("""
nop bti hint paciasp autiasp pacibsp autibsp prfm prfum yield xpaclri csdb: none
b.eq: branch_eq
b.ne: branch_ne
cbz: compare branch_eq
cbnz: compare branch_ne
tbz: test branch_eq
tbnz: test branch_ne
b.lt b.le b.gt b.ge b.mi b.pl: branch_signed
b.lo b.ls b.hi b.hs b.cs b.cc: branch_unsigned
b.vs b.vc b.al b.nv: branch_other
b: jump
br braa braaz brab brabz: jump_indirect
bl: call
blr blraa blraaz blrab blrabz: call_indirect
ret retaa retab eret: return
dmb dsb isb: fence
udf brk hlt: trap
svc: system
""")
WITH_OPERANDS = parse_table("""
mov movz movn: move
movk: none
adr adrp: address
add adds: add
sub subs: sub
neg negs: neg
adc adcs sbc sbcs ngc ngcs: carry
mul umull smull: mul
mneg smnegl umnegl: mul neg
umulh smulh: mul_high
madd smaddl umaddl: mul add
msub smsubl umsubl: mul sub
udiv sdiv: div
and ands: and
bic bics: not and
orr: or
orn: not or
eor: xor
eon: not xor
mvn: not
lsl lslv: shl
lsr lsrv: shr
asr asrv: sar
ror rorv extr: rotate
ubfx ubfiz bfi bfxil bfc sbfx sbfiz ubfm sbfm bfm: bit_field
rev rev16 rev32 rev64: byte_swap
clz cls rbit cnt: count_bits
sxtb sxth sxtw: sign_extend
uxtb uxth uxtw: zero_extend
cmp cmn ccmp ccmn: compare
tst: test
cset csetm: set
csel csinc csinv csneg cinc cinv cneg fcsel: select
mrs msr sys sysl: system
fadd: fadd
fsub: fsub
fmul fnmul: fmul
fdiv: fdiv
fmadd fnmadd: fmul fadd
fmsub fnmsub: fmul fsub
fsqrt: fsqrt
fabs fneg fabd: fabs
fcmp fcmpe fccmp fccmpe: fcompare
fmax fmin fmaxnm fminnm: fminmax
frintm frintp frintz frinta frintx frinti frintn: fround
fmov: fmove
""")
CONVERSION = re.compile(r"(?:f|s|u)cvt")
ATOMIC = re.compile(r"(?:ldx|ldax|stx|stlx|cas|swp|ldadd|ldset|ldclr|ldeor|stadd|ldar|stlr|ldapr)")
ACCESS = re.compile(r"(ld|st)(?:u|t|n)?(p|r|ur|tr)(sw|sb|sh|b|h)?$")
STRUCTURES = re.compile(r"(ld|st)[1-4]r?$")
_VECTORS = (
    ("cvt", "vec_convert"), ("fadd", "vec_fadd"), ("fsub", "vec_fadd"), ("fabd", "vec_fadd"),
    ("fml", "vec_fmul"), ("fmul", "vec_fmul"), ("fdiv", "vec_fdiv"), ("sqrt", "vec_fdiv"),
    ("recp", "vec_fdiv"), ("addv", "vec_reduce"), ("maxv", "vec_reduce"), ("minv", "vec_reduce"),
    ("addp", "vec_reduce"), ("addlp", "vec_reduce"), ("adalp", "vec_reduce"),
    ("aes", "crypto"), ("sha", "crypto"), ("pmull", "crypto"), ("hadd", "vec_average"),
    ("hsub", "vec_average"), ("qadd", "saturate"), ("qsub", "saturate"), ("qxt", "saturate"),
    ("xtn", "vec_convert"), ("xtl", "vec_convert"), ("shll", "vec_convert"), ("abs", "vec_abs"),
    ("aba", "vec_abs"), ("abd", "vec_abs"), ("neg", "vec_abs"), ("mul", "vec_mul"),
    ("ml", "vec_mul"),
    ("dot", "vec_mul"), ("add", "vec_add"), ("sub", "vec_sub"), ("max", "vec_minmax"),
    ("min", "vec_minmax"), ("dup", "vec_shuffle"), ("zip", "vec_shuffle"), ("uzp", "vec_shuffle"),
    ("trn", "vec_shuffle"), ("ext", "vec_shuffle"), ("tbl", "vec_shuffle"), ("tbx", "vec_shuffle"),
    ("ins", "vec_shuffle"), ("rev", "vec_shuffle"), ("and", "vec_logic"), ("orr", "vec_logic"),
    ("orn", "vec_logic"), ("eor", "vec_logic"), ("bic", "vec_logic"), ("bsl", "vec_logic"),
    ("bit", "vec_logic"), ("bif", "vec_logic"), ("mvn", "vec_logic"), ("not", "vec_logic"),
    ("movi", "const"), ("mvni", "const"), ("shl", "vec_shift"), ("shr", "vec_shift"),
    ("sra", "vec_shift"), ("sli", "vec_shift"), ("sri", "vec_shift"), ("cm", "vec_compare"),
    ("mov", "vec_move"), ("cnt", "count_bits"),
)  # fmt: skip


def _find(mnemonic: str) -> int:
    names = _WITHOUT_OPERANDS.get(mnemonic)
    return UNKNOWN if names is None else pack(*names)


CODES = Codes(_find)


def vector_operation(mnemonic: str) -> str:
    """That of an instruction on vectors."""
    return next((operation for word, operation in _VECTORS if word in mnemonic), "other")
