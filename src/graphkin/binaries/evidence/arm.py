"""What instructions of 32-bit ARM say, in ARM and in Thumb state.

Addresses are a word between the code to which pc is added, which reads as 4 bytes further in Thumb
state and 8 in ARM state; the linker's table is read with its base and the offset in registers.
Conditions hang on mnemonics. r7 or r11 is the frame where it is set from sp.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable
from functools import lru_cache

from graphkin.binaries.evidence.arm_syntax import (
    CONDITIONS,
    FIELD,
    FLIPPED,
    arithmetic,
    field_like,
    flip,
    number,
    set_memory,
    set_real,
    split,
)
from graphkin.binaries.evidence.collect import CACHE, Body
from graphkin.binaries.evidence.data import LOAD, STORE
from graphkin.binaries.evidence.operations import MOST, UNKNOWN, Codes, pack, parse_table
from graphkin.binaries.evidence.registers import FROM_PC, INSERT, Step, follow
from graphkin.binaries.recovery.architecture import CALL, JUMP, STOP

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
_WITH_OPERANDS = parse_table("""
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
_FLOATS = parse_table("""
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
_ACCESS = re.compile(r"(ldr|str)(sb|sh|b|h|d)?t?$")
_MULTIPLE = re.compile(r"(ldm|stm)(?:ia|ib|da|db|fd|ea)?$")
_VECTOR_ACCESS = re.compile(r"v(ld|st)([1-4rm])(?:ia|db)?$")
_BRANCHES = {
    "eq": "branch_eq", "ne": "branch_ne", "vs": "branch_other", "vc": "branch_other",
    **dict.fromkeys(("lt", "le", "gt", "ge", "mi", "pl"), "branch_signed"),
    **dict.fromkeys(("lo", "ls", "hi", "hs", "cs", "cc"), "branch_unsigned"),
}  # fmt: skip
_STACK = frozenset(["sp"])
_CLOBBERED = frozenset(["r0", "r1", "r2", "r3", "ip", "lr"])
_FLAGS = frozenset(["cmp", "cmn", "tst", "teq", "msr"])
_KNOWN = frozenset([*_WITH_OPERANDS, *_WITHOUT_OPERANDS])
_FRAME = re.compile(rb"(r7|fp), sp(?:, #|$)")
_FRAME_REACH = 10
"""Instructions in which a function sets up its frame."""


@lru_cache(maxsize=4096)
def _parted(mnemonic: str) -> tuple[str, str]:
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
        or name in _FLOATS
        or name in ("push", "pop", "vpush", "vpop")
        or _ACCESS.match(name) is not None
        or _MULTIPLE.match(name) is not None
        or _VECTOR_ACCESS.match(name) is not None
    )


def _find(mnemonic: str) -> int:
    if mnemonic.startswith("it") and set(mnemonic[1:]) <= {"t", "e"}:
        return 0
    name, condition = _parted(mnemonic)
    if name == "b" and condition:
        return pack(_BRANCHES[condition])
    names = _WITHOUT_OPERANDS.get(name)
    return UNKNOWN if names is None else pack(*names)


_CODES = Codes(_find)
_CALL, _RETURN = pack("call"), pack("return")


class _Conditions(dict[str, int | None]):
    """By mnemonic, what :func:`flip` asks for."""

    def __missing__(self, mnemonic: str) -> int | None:
        condition = _parted(mnemonic)[1]
        added = self[mnemonic] = int(condition in FLIPPED) if condition else None
        return added


_CONDITIONS = _Conditions()


class ArmRules:
    """ARM and Thumb."""

    codes = _CODES

    def __init__(self) -> None:
        self._caches: dict[str, dict[tuple[str, bytes], Step]] = {}
        self._shapes: dict[tuple[object, ...], Step] = {}

    def read(self, body: Body) -> None:
        """Finds what the instructions say, and completes their operations."""
        texts = body.texts(body.positions)
        frame = _frame(body, texts)
        cache = self._caches.setdefault(frame, {})
        if len(cache) > CACHE:
            cache.clear()
        stack = _STACK | {frame} if frame else _STACK
        codes, names, get = body.codes, body.listing.mnemonics, cache.get
        steps: list[Step] = []
        for position, text in zip(body.positions, texts, strict=True):
            key = (names[position], text)
            step = get(key)
            if step is None:
                step = cache[key] = self._parse(*key, stack)
            codes[position] = step.code
            steps.append(step)
        follow(
            body,
            zip(body.positions, steps, strict=True),
            clobbered=_CLOBBERED,
            compared=_compared,
            counter=_counter(body),
        )
        _transfers(body)

    def _parse(self, name: str, raw: bytes, stack: frozenset[str]) -> Step:
        """Most texts differ from a known one in registers and in one number."""
        match = FIELD.match(raw)
        if match is None or match[1] == b"pc" or match[3] == b"pc":
            return parse(name, raw.decode("ascii", "replace"), stack)
        is_stack = match[3].decode("ascii") in stack
        shape = (name, match[1][:1] in b"sd", match[2] is None, is_stack)
        known = self._shapes.get(shape)
        if known is None:
            known = self._shapes[shape] = parse(name, raw.decode("ascii", "replace"), stack)
        return field_like(known, match)


def _compared(body: Body, position: int, value: int) -> int:
    return value + flip(body, position, _CONDITIONS)


def _counter(body: Body) -> Callable[[int], int]:
    """What an instruction reads from pc."""
    listing = body.listing
    bases = [run.base for run in listing.runs]
    ahead = [4 if run.state == "t" else 8 for run in listing.runs]

    def counter(position: int) -> int:
        return listing.addresses[position] + ahead[bisect_right(bases, position) - 1]

    return counter


def _frame(body: Body, texts: list[bytes]) -> str:
    """The register that holds the frame: it is set from sp near the start."""
    for position, text in zip(body.positions, texts, strict=True):
        if position >= _FRAME_REACH:
            break
        match = _FRAME.match(text)
        if match is not None:
            return match[1].decode("ascii")
    return ""


def _transfers(body: Body) -> None:
    """Where calls and jumps go."""
    listing, codes = body.listing, body.codes
    for position, kind, operand in zip(
        listing.controls, listing.kinds, listing.operands, strict=True
    ):
        if kind in (CALL, JUMP):
            if operand.startswith(b"#"):
                body.go(position, int(operand[1:], 16))
                if kind == CALL:
                    codes[position] = _CALL
        elif kind == STOP and operand == b"lr" and listing.mnemonics[position][0] == "b":
            codes[position] = _RETURN


def parse(mnemonic: str, text: str, stack: frozenset[str]) -> Step:
    """Takes an instruction apart.

    Args:
        mnemonic: with width and condition.
        text: the operands.
        stack: registers that stack slots are counted from.
    """
    step = Step()
    name, condition = _parted(mnemonic)
    parts = split(text) if "[" in text or "{" in text else text.split(", ")
    if not text:
        step.code = pack("other")
        return step
    if name not in _FLAGS:
        step.dst = parts[0]
    access = _ACCESS.match(name)
    if access is not None:
        names = _access(step, parts, access, stack)
    elif name in ("push", "pop", "vpush", "vpop") or _MULTIPLE.match(name):
        names = _multiple(step, name, text, parts, stack)
    elif name[0] == "v" and name not in _WITH_OPERANDS:
        names = _vector(step, name, mnemonic, parts, stack)
    elif name == "movt":
        value = number(parts[1])
        if value is not None:
            step.action, step.value, step.real = INSERT, value << 16, 16
        names = ("none",)
    elif name == "adr":
        value = number(parts[-1])
        if value is not None:
            step.action, step.value, step.base = FROM_PC, value, "pc"
        names = ("address",)
    else:
        names = _WITH_OPERANDS.get(name, ("other",))
        if len(parts) > 1:
            names = arithmetic(step, name.removesuffix("w"), parts, names, stack)
    if step.dst == "pc" and name not in ("push", "pop") and "return" not in names:
        names = (*names, "return") if parts[-1] == "lr" else (*names, "jump_indirect")
    elif condition and "return" not in names:
        names = (*names, "select")
    step.code = pack(*names)
    return step.settled()


def _access(
    step: Step, parts: list[str], access: re.Match[str], stack: frozenset[str]
) -> tuple[str, ...]:
    is_load, width = access[1] == "ldr", access[2] or ""
    kind = "load" if is_load else "store"
    is_pair = width == "d"
    if not is_load:
        step.dst = ""
    at = next((at for at, part in enumerate(parts) if part[0] == "["), -1)
    is_stack = at >= 0 and set_memory(step, parts, at, LOAD if is_load else STORE, stack)
    name = {"b": f"{kind}_byte", "h": f"{kind}_half"}.get(width[-1:], kind)
    if is_stack:
        name = f"stack_{kind}"
    if is_pair and is_load and len(parts) > 1:
        step.other = step.other or parts[1]
    names = (name, name) if is_pair else (name,)
    return (*names, "sign_extend") if width[:1] == "s" else names


def _multiple(
    step: Step, name: str, text: str, parts: list[str], stack: frozenset[str]
) -> tuple[str, ...]:
    """Several registers: as many loads or stores, up to what an instruction can have."""
    is_load = "pop" in name or "ldm" in name
    kind = "load" if is_load else "store"
    is_stack = "p" in name or parts[0].rstrip("!") in stack
    registers = text.partition("{")[2].count(",") + 1
    step.dst = parts[0].removesuffix("!") if parts[0].endswith("!") and not is_stack else ""
    returns = is_load and "pc}" in text
    access = (f"stack_{kind}" if is_stack else kind,) * min(registers, MOST - returns)
    return (*access, "return") if returns else access


def _vector(
    step: Step, name: str, mnemonic: str, parts: list[str], stack: frozenset[str]
) -> tuple[str, ...]:
    """Numbers of floating point, and vectors."""
    access = _VECTOR_ACCESS.match(name)
    if access is not None:
        is_load = access[1] == "ld"
        kind = "load" if is_load else "store"
        is_single = access[2] == "r"
        if is_single and is_load:
            step.real = {"s": 4, "d": 8}.get(parts[0][0], 0)
        at = next((at for at, part in enumerate(parts) if part[0] == "["), -1)
        is_stack = at >= 0 and set_memory(step, parts, at, LOAD if is_load else STORE, stack)
        step.dst = ""
        if is_stack:
            return (f"stack_{kind}",)
        return (f"{kind}_float",) if is_single else (f"{kind}_vector",)
    is_vector = any(part[0] == "q" for part in parts) or (
        ".f" not in mnemonic and name not in ("vmov", "vcvt", "vcvtr") and "." in mnemonic
    )
    if not is_vector and name in _FLOATS:
        if name == "vmov":
            set_real(step, parts)
            if parts[0][0] == "r":
                step.dst = parts[0]
        return _FLOATS[name]
    found = next((found for word, found in _VECTORS if word in name[1:]), "other")
    return (_FLOAT_KINDS.get(found, found) if ".f" in mnemonic else found,)
