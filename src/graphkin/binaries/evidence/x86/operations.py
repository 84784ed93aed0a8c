"""What instructions of x86 do, by their mnemonics."""

from __future__ import annotations

import re

from graphkin.binaries.evidence.operations import UNKNOWN, Codes, pack, parse_table

_WITHOUT_OPERANDS = parse_table("""
nop endbr64 endbr32 data16 fnop fwait emms vzeroupper cld std prefetcht0 prefetcht1 prefetcht2: none
prefetchnta prefetchw leave: none
je jrcxz jecxz jcxz: branch_eq
jne: branch_ne
jl jle jg jge js jns: branch_signed
jb jbe ja jae: branch_unsigned
jo jno jp jnp loop loope loopne xbegin: branch_other
jmp ljmp: jump
call lcall: call
ret retf retfq iret iretd iretq: return
pop: stack_load
bswap: byte_swap
cdqe cwde cdq cqo cbw cwd: sign_extend
mfence lfence sfence pause: fence
ud2 ud0 ud1 hlt int3 int1 int: trap
syscall sysenter cpuid rdtsc rdtscp xgetbv in out: system
""")
_WITH_OPERANDS = parse_table("""
mov movabs: move
lea: address
push: stack_store
add inc xadd: add
sub dec: sub
adc sbb adcx adox: carry
neg: neg
imul mulx: mul
mul: mul_high
div idiv: div
and: and
andn: not and
or: or
xor: xor
not: not
shl sal shlx shld: shl
shr shrx shrd: shr
sar sarx: sar
rol ror rorx rcl rcr: rotate
bt bts btr btc bextr blsr blsi blsmsk pext pdep bzhi: bit_field
movbe: byte_swap
bsr bsf lzcnt tzcnt popcnt: count_bits
movsx movsxd: sign_extend
movzx: zero_extend
cmp: compare
test: test
xchg cmpxchg cmpxchg8b cmpxchg16b: atomic
addss addsd fadd faddp fiadd: fadd
subss subsd fsub fsubp fsubr fsubrp fisub fisubr: fsub
mulss mulsd fmul fmulp fimul: fmul
divss divsd fdiv fdivp fdivr fdivrp fidiv fidivr: fdiv
sqrtss sqrtsd fsqrt: fsqrt
fabs fchs: fabs
maxss maxsd minss minsd: fminmax
roundss roundsd frndint: fround
comiss comisd ucomiss ucomisd fucomi fucompi fucomip fcomi fcompi fcomip fcom fcomp: fcompare
fucom fucomp fucompp fcompp ftst fxam cmpltsd cmpltss cmplesd cmpless: fcompare
fild fist fistp fisttp: fconvert
fld fst fstp fxch fld1 fldz fldpi fldl2e fldln2 fldlg2 movss movsd movd movq: fmove
crc32 pclmulqdq: crypto
""")
_PREFIXES = (
    ("fnst", "none"), ("fldc", "none"), ("fst", "none"), ("cmov", "select"), ("fcmov", "select"),
    ("set", "set"), ("rep", "string"), ("stos", "string"), ("scas", "string"), ("lods", "string"),
    ("cmps", "vec_compare"), ("lock", "atomic"), ("aes", "crypto"), ("sha", "crypto"),
    ("pclmul", "crypto"), ("cvt", "vec_convert"), ("pmovzx", "vec_convert"),
    ("pmovsx", "vec_convert"), ("vfmadd", "fmul fadd"), ("vfmsub", "fmul fsub"),
    ("vfnm", "fmul fsub"), ("fmadd", "fmul fadd"), ("fmsub", "fmul fsub"), ("fnm", "fmul fsub"),
    ("paddus", "saturate"), ("padds", "saturate"), ("psubus", "saturate"), ("psubs", "saturate"),
    ("padd", "vec_add"), ("psub", "vec_sub"), ("pavg", "vec_average"), ("pabs", "vec_abs"),
    ("phadd", "vec_reduce"), ("hadd", "vec_reduce"), ("psad", "vec_reduce"),
    ("addp", "vec_fadd"), ("subp", "vec_fadd"), ("addsub", "vec_fadd"), ("mulp", "vec_fmul"),
    ("divp", "vec_fdiv"), ("sqrtp", "vec_fdiv"), ("rcp", "vec_fdiv"), ("rsqrt", "vec_fdiv"),
    ("pmul", "vec_mul"), ("pmadd", "vec_mul"), ("pand", "vec_logic"), ("por", "vec_logic"),
    ("pxor", "vec_logic"), ("andp", "vec_logic"), ("andnp", "vec_logic"), ("orp", "vec_logic"),
    ("xorp", "vec_logic"), ("ptest", "vec_logic"), ("psll", "vec_shift"), ("psrl", "vec_shift"),
    ("psra", "vec_shift"), ("pcmp", "vec_compare"), ("cmpp", "vec_compare"), ("cmp", "vec_compare"),
    ("pmax", "vec_minmax"), ("pmin", "vec_minmax"), ("max", "vec_minmax"), ("min", "vec_minmax"),
    ("punpck", "vec_shuffle"), ("pshuf", "vec_shuffle"), ("shuf", "vec_shuffle"),
    ("unpck", "vec_shuffle"), ("pack", "vec_shuffle"), ("pinsr", "vec_shuffle"),
    ("pextr", "vec_shuffle"), ("palign", "vec_shuffle"), ("perm", "vec_shuffle"),
    ("insert", "vec_shuffle"), ("extract", "vec_shuffle"), ("broadcast", "vec_shuffle"),
    ("blend", "vec_logic"), ("pblend", "vec_logic"), ("pmovmsk", "vec_move"),
    ("movmsk", "vec_move"),
    ("mov", "vec_move"), ("f", "fmove"),
)  # fmt: skip
_SCALAR = re.compile(r"cvtt?(?:si2s[sd]|s[sd]2s[isd])$")
"""Conversions of single numbers."""


def _find(mnemonic: str) -> int:
    names = _WITHOUT_OPERANDS.get(mnemonic.removeprefix("notrack ").removeprefix("bnd "))
    return UNKNOWN if names is None else pack(*names)


CODES = Codes(_find)


def operation_names_of(mnemonic: str, text: str) -> tuple[str, ...]:
    """Operations by mnemonic, memory aside."""
    first = mnemonic.partition(" ")[0]
    if first[0] == "v" and first not in ("verr", "verw"):
        first = first[1:]
    if first in ("movsd", "movsb", "movsw", "movsq", "cmpsb", "cmpsd") and "xmm" not in text:
        return ("string",)
    names = _WITH_OPERANDS.get(first)
    if names is None and _SCALAR.match(first):
        return ("fconvert",)
    if names is None:
        for prefix, operations in _PREFIXES:
            if first.startswith(prefix):
                return tuple(operations.split())
    return names or ("other",)
