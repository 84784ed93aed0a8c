"""What instructions of AArch64 say.

Addresses are ``adrp`` and what is added to the page, often blocks apart. ``movz`` and ``movk`` are
one constant. Numbers of floating point also come through ``mov w; fmov s``.
"""

from __future__ import annotations

import re
from typing import cast

from graphkin.binaries.evidence import tokens as said
from graphkin.binaries.evidence.arm_syntax import (
    FIELD,
    FLIPPED,
    arithmetic,
    family,
    field_like,
    flip,
    number,
    set_memory,
    set_real,
    split,
)
from graphkin.binaries.evidence.collect import CACHE, Body
from graphkin.binaries.evidence.data import LOAD, STORE
from graphkin.binaries.evidence.operations import UNKNOWN, Codes, pack, parse_table
from graphkin.binaries.evidence.registers import FROM_PC, INSERT, PAGE, POOL, Step, follow
from graphkin.binaries.recovery.architecture import BRANCH, CALL, JUMP

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
_WITH_OPERANDS = parse_table("""
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
_CONVERSION = re.compile(r"(?:f|s|u)cvt")
_ATOMIC = re.compile(r"(?:ldx|ldax|stx|stlx|cas|swp|ldadd|ldset|ldclr|ldeor|stadd|ldar|stlr|ldapr)")
_ACCESS = re.compile(r"(ld|st)(?:u|t|n)?(p|r|ur|tr)(sw|sb|sh|b|h)?$")
_STRUCTURES = re.compile(r"(ld|st)[1-4]r?$")
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
_SIZES = {"b": 1, "h": 2, "s": 4, "d": 8, "q": 16, "v": 16}
_STACK = frozenset(["sp", "x29", "wsp"])
_CLOBBERED = frozenset(f"x{number}" for number in range(19))
_FLAGS = frozenset(["cmp", "cmn", "tst", "ccmp", "ccmn", "fcmp", "fcmpe", "fccmp", "fccmpe", "msr"])
"""What writes flags only."""


_RELATIVE = frozenset([PAGE, FROM_PC, POOL])
"""What depends on where the instruction is."""


def _find(mnemonic: str) -> int:
    names = _WITHOUT_OPERANDS.get(mnemonic)
    return UNKNOWN if names is None else pack(*names)


_CODES = Codes(_find)
_SIGN = pack("compare", "branch_signed")


class _Conditions(dict[str, int | None]):
    """By mnemonic, what :func:`flip` asks for."""

    def __missing__(self, mnemonic: str) -> int | None:
        added: int | None = None
        if mnemonic.startswith("b."):
            added = int(mnemonic[2:] in FLIPPED)
        elif mnemonic[:2] in ("cs", "ci", "cn", "cc"):
            added = -1
        self[mnemonic] = added
        return added


_CONDITIONS = _Conditions()


class AArch64Rules:
    """AArch64."""

    codes = _CODES

    def __init__(self) -> None:
        self._cache: dict[int, Step] = {}
        """By the word of the instruction."""
        self._moved: dict[tuple[str, bytes], Step] = {}
        """By name and operands, for what says an address in relation to its own."""
        self._shapes: dict[tuple[object, ...], Step] = {}

    def read(self, body: Body) -> None:
        """Finds what the instructions say, and completes their operations."""
        cache = self._cache
        if len(cache) > CACHE:
            cache.clear()
        known = list(map(cache.get, map(body.listing.words().__getitem__, body.positions)))
        steps = self._complete(body, known) if None in known else cast("list[Step]", known)
        codes = body.codes
        for position, step in zip(body.positions, steps, strict=True):
            codes[position] = step.code
        follow(
            body,
            zip(body.positions, steps, strict=True),
            clobbered=_CLOBBERED,
            compared=_compared,
            counter=body.listing.addresses.__getitem__,
        )
        _transfers(body)

    def _complete(self, body: Body, known: list[Step | None]) -> list[Step]:
        """Takes the instructions apart that were not met before."""
        listing, positions = body.listing, body.positions
        words, names = listing.words(), listing.mnemonics
        missing = [at for at, step in enumerate(known) if step is None]
        if len(self._moved) > CACHE:
            self._moved.clear()
        texts = body.texts([positions[at] for at in missing])
        for at, text in zip(missing, texts, strict=True):
            key = (names[positions[at]], text)
            step = self._moved.get(key)
            if step is None:
                step = self._parse(*key)
                if step.action in _RELATIVE:
                    self._moved[key] = step
                else:
                    self._cache[words[positions[at]]] = step
            known[at] = step
        return cast("list[Step]", known)

    def _parse(self, name: str, raw: bytes) -> Step:
        """Most texts differ from a known one in registers and in one number."""
        match = FIELD.match(raw)
        if match is None:
            return parse(name, raw.decode("ascii", "replace"))
        shape = (name, match[1][:1], match[2] is None, match[3] in (b"sp", b"x29"))
        known = self._shapes.get(shape)
        if known is None:
            known = self._shapes[shape] = parse(name, raw.decode("ascii", "replace"))
        return field_like(known, match)


def _compared(body: Body, position: int, value: int) -> int:
    return value + flip(body, position, _CONDITIONS)


def _transfers(body: Body) -> None:
    """Where calls and jumps go."""
    listing = body.listing
    for position, kind, operand in zip(
        listing.controls, listing.kinds, listing.operands, strict=True
    ):
        if kind in (CALL, JUMP):
            if operand.startswith(b"#"):
                body.go(position, int(operand[1:], 16))
        elif kind == BRANCH and operand.count(b"#") == 2:
            register, _, bit = operand.rpartition(b",")[0].partition(b", #")
            if int(bit, 0) == (31 if register.startswith(b"w") else 63):
                body.codes[position] = _SIGN  # x < 0
            else:
                body.say(position, said.number(1 << (int(bit, 0) & 63)))


def parse(name: str, text: str) -> Step:
    """Takes an instruction apart."""
    step = Step()
    parts = split(text) if "[" in text or "{" in text else text.split(", ")
    if not text:
        step.code = pack("other")
        return step
    if name not in _FLAGS:
        step.dst = family(parts[0])
    names = _other(step, name, parts) if "[" not in text else None
    if names is None:
        access = _ACCESS.match(name)
        structures = _STRUCTURES.match(name) if access is None else None
        if access is not None:
            names = _access(step, parts, access)
        elif structures is not None:
            names = _structures(step, parts, structures[1] == "ld")
        else:
            names = _other(step, name, parts) or ("other",)
    step.code = pack(*names)
    return step.settled()


def _access(step: Step, parts: list[str], access: re.Match[str]) -> tuple[str, ...]:
    """Loads and stores."""
    is_load = access[1] == "ld"
    kind, width = ("load" if is_load else "store"), access[3] or ""
    is_pair = access[2] == "p"
    register = parts[0][0]
    is_float = register in "bhsdq"
    name = kind
    if is_float:
        name = f"{kind}_vector" if register == "q" else f"{kind}_float"
        step.real = _SIZES[register] if is_load and register in "sd" and not is_pair else 0
    elif width in ("b", "sb"):
        name = f"{kind}_byte"
    elif width in ("h", "sh"):
        name = f"{kind}_half"
    if not is_load:
        step.dst = ""
    at = next((at for at, part in enumerate(parts) if part[0] == "["), -1)
    if at < 0:
        step.value = number(parts[-1]) or 0
        step.action = POOL
    else:
        is_stack = set_memory(step, parts, at, LOAD if is_load else STORE, _STACK)
        if is_stack:
            name = f"stack_{kind}"
    if is_pair and is_load:
        step.other = step.other or family(parts[1])
    names = (name, name) if is_pair else (name,)
    return (*names, "sign_extend") if width[:1] == "s" else names


def _structures(step: Step, parts: list[str], is_load: bool) -> tuple[str, ...]:
    step.dst = ""
    at = next((at for at, part in enumerate(parts) if part[0] == "["), -1)
    is_stack = at >= 0 and set_memory(step, parts, at, LOAD if is_load else STORE, _STACK)
    kind = "load" if is_load else "store"
    return (f"stack_{kind}",) if is_stack else (f"{kind}_vector",)


def _other(step: Step, name: str, parts: list[str]) -> tuple[str, ...] | None:
    """What does not touch memory; None for loads from a pool of constants."""
    if name.startswith("ldr"):
        return None
    if name in ("adrp", "adr"):
        value = number(parts[-1])
        if value is not None:
            # The address itself is shown, and ``adr`` has all of it.
            step.action, step.value = (PAGE, value) if name == "adrp" else (FROM_PC, value)
        return ("address",)
    if name == "movk":
        return _movk(step, parts)
    if parts[0][0] == "v" or (len(parts) > 1 and parts[1][0] == "v" and "." in parts[1]):
        operation = next((found for word, found in _VECTORS if word in name), "other")
        if operation == "vec_move" or name == "fmov":
            set_real(step, parts)
        return (operation,)
    names = _WITH_OPERANDS.get(name)
    if names is None:
        if _CONVERSION.match(name):
            return ("fconvert",)
        if _ATOMIC.match(name):
            return ("atomic",)
        return (next((found for word, found in _VECTORS if word in name), "other"),)
    if name == "fmov":
        set_real(step, parts)
    elif name in ("ccmp", "ccmn"):
        value = number(parts[1])
        if value is not None:
            step.tokens = said.number(value if name == "ccmp" else -value)
    elif parts[0][0] not in "sdq" or parts[0] == "sp":
        return arithmetic(step, name.removesuffix("s"), parts, names, _STACK)
    return names


def _movk(step: Step, parts: list[str]) -> tuple[str, ...]:
    """16 bits more of a constant."""
    value = number(parts[1])
    shift = int(parts[2].rpartition("#")[2], 0) if len(parts) > 2 else 0
    if value is not None:
        step.action, step.value, step.real = INSERT, value << shift, shift
    return ("none",)
