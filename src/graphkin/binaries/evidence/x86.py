"""What instructions of x86 say, 64 and 32 bit.

64-bit code names addresses by their distance from itself (``[rip + N]``), 32-bit code by their
distance from the global offset table, whose base some register holds after ``call thunk; add R,
N``, or outright. rbp is a frame where it is set from rsp, and a register like others elsewhere.
"""

from __future__ import annotations

import re

from graphkin.binaries.evidence import tokens as said
from graphkin.binaries.evidence.collect import CACHE, Body
from graphkin.binaries.evidence.data import LOAD, LOWEST_FIXED, STORE, TAKE
from graphkin.binaries.evidence.operations import UNKNOWN, Codes, pack, parse_table
from graphkin.binaries.function import Token
from graphkin.binaries.recovery.architecture import CALL, JUMP

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
_SIZES = {"byte": 1, "word": 2, "dword": 4, "qword": 8, "tbyte": 10, "xword": 10}
_MEMORY = re.compile(r"(?:(\w+) ptr )?(?:([a-z]s):)?\[([^\]]*)\]")
_FIELD = re.compile(
    rb"(?:(\w+), )?(\w+) ptr \[(\w+)(?: ([+-]) (0x[0-9a-f]+|\d+))?\](?:, [a-z]\w*)?$"
)
_CONSTANT = re.compile(rb"(\w+), (-?(?:0x[0-9a-f]+|\d+))$")
_RIP = re.compile(rb"\[rip(?: ([+-]) (0x[0-9a-f]+|\d+))?\]")
_READ_ONLY = frozenset(["compare", "test", "fcompare", "div", "mul_high", "stack_store"])
"""What only reads a memory operand that comes first."""
_MOVES = frozenset(["move", "fmove", "vec_move"])
_SHIFTS = frozenset(["shl", "shr", "sar", "rotate", "bit_field"])
_EXTENSIONS = frozenset([0xFF, 0xFFFF, 0xFFFFFFFF])
_HIGH = frozenset([b"ah", b"bh", b"ch", b"dh"])
"""Second bytes of registers: compilers use them for constants of which only that byte is set."""
_FRAME_REACH = 12
"""Instructions in which a function sets up its frame."""
_COMPARE_REACH = 4
"""Instructions behind a comparison, in which its condition is."""
_GOT_REACH = 6
_NEAR = 0x400
"""Displacements below it are fields, even where the base of the global offset table was lost."""


def _find(mnemonic: str) -> int:
    names = _WITHOUT_OPERANDS.get(mnemonic.removeprefix("notrack ").removeprefix("bnd "))
    return UNKNOWN if names is None else pack(*names)


_CODES = Codes(_find)
_JUMP_INDIRECT, _CALL_INDIRECT = pack("jump_indirect"), pack("call_indirect")


class _Flips(dict[str, int | None]):
    """What to add to N of ``cmp x, N`` for a condition, so that ``> 7`` and ``>= 8`` are one."""

    def __missing__(self, mnemonic: str) -> int | None:
        flip = None
        for prefix in ("cmov", "set", "j"):
            if mnemonic.startswith(prefix) and mnemonic != "jmp":
                flip = int(mnemonic.removeprefix(prefix) in ("g", "le", "a", "be"))
                break
        self[mnemonic] = flip
        return flip


_FLIPS = _Flips()


class Parsed:
    """What the text of one instruction means."""

    code = 0
    tokens: tuple[Token, ...] = ()
    """Those that need no more than the text."""
    role = ""
    """What is done with the memory operand."""
    base = ""
    index = ""
    dst = ""
    source = ""
    offset = 0
    real = 0
    """Bytes of the number of floating point that is loaded."""
    against: int | None = None
    """The constant of a comparison."""
    value: int | None = None
    """A constant that may be an address, or the distance of the global offset table."""
    is_active = False
    """Whether it says more than its operations."""
    has_offset = False
    """Whether the memory operand has a displacement."""
    is_field = False
    """Whether it is a field's offset."""
    number = ""
    """What the constant is: ``off``, ``shift``, ``num``, ``against``, or nothing to speak of."""
    fixed: tuple[Token, ...] = ()
    """Tokens that stand for neither displacement nor constant."""


class X86Rules:
    """x86 of 64 or 32 bits."""

    codes = _CODES

    def __init__(self, bits: int) -> None:
        self._bits = bits
        self._caches: dict[bool, dict[tuple[str, bytes], Parsed]] = {False: {}, True: {}}
        self._shapes: dict[tuple[object, ...], Parsed] = {}

    def read(self, body: Body) -> None:
        """Finds what the instructions say, and completes their operations."""
        texts = body.texts(body.positions)
        framed = _sets_frame(body, texts)
        cache = self._caches[framed]
        if len(cache) > CACHE:
            cache.clear()
        codes, names, get = body.codes, body.listing.mnemonics, cache.get
        active: list[tuple[int, Parsed]] = []
        for position, text in zip(body.positions, texts, strict=True):
            key = (names[position], text)
            parsed = get(key)
            if parsed is None:
                match = _RIP.search(text) if b"[rip" in text else None
                if match is not None:
                    parsed = self._relative(body, position, text, match, cache, framed)
                else:
                    parsed = cache[key] = self._parse(*key, framed)
            codes[position] = parsed.code
            if parsed.is_active:
                active.append((position, parsed))
        if self._bits == 64:
            for position, parsed in active:
                self._say(body, position, parsed)
                if parsed.role:
                    self._refer(body, position, parsed)
        else:
            self._read_narrow(body, active)
        self._transfers(body, framed)

    def _relative(
        self,
        body: Body,
        position: int,
        text: bytes,
        match: re.Match[bytes],
        cache: dict[tuple[str, bytes], Parsed],
        framed: bool,
    ) -> Parsed:
        """An instruction with ``[rip + N]``; what is left without N is kept."""
        listing = body.listing
        key = (listing.mnemonics[position], text[: match.start()] + b"[rip]" + text[match.end() :])
        parsed = cache.get(key)
        if parsed is None:
            parsed = cache[key] = self._parse(*key, framed)
        distance = int(match[2], 16) if match[2] else 0
        following = listing.addresses[position] + listing.sizes[position]
        address = following - distance if match[1] == b"-" else following + distance
        if parsed.role:
            body.refer(position, address, parsed.role, parsed.real)
        return parsed

    def _parse(self, name: str, raw: bytes, framed: bool) -> Parsed:
        if self._bits == 32:
            return parse(name, raw.decode("ascii", "replace"), framed, True)
        # Which register it is matters for those of the stack only: most texts differ from
        # a known one in registers and in one number.
        match = _FIELD.match(raw)
        if match is not None and match[3] != b"rip":
            is_stack = match[3] == b"rsp" or (framed and match[3] == b"rbp")
            shape: tuple[object, ...]
            shape = (name, match[1] is None, match[2], is_stack, match[5] is None)
            number = match[5]
        else:
            match = _CONSTANT.match(raw)
            if match is None or match[1] in _HIGH:
                return parse(name, raw.decode("ascii", "replace"), framed, False)
            shape = (name, match[1] == b"rsp")
            number = match[2]
        known = self._shapes.get(shape)
        if known is not None:
            parsed = _like(known, int(number or b"0", 0), match[4] if match.re is _FIELD else b"")
            if parsed is not None:
                return parsed
        parsed = parse(name, raw.decode("ascii", "replace"), framed, False)
        self._shapes.setdefault(shape, parsed)
        return parsed

    def _say(self, body: Body, position: int, parsed: Parsed) -> None:
        """Constants of an instruction."""
        for token in parsed.tokens:
            body.said.append(token)
            body.where.append(position)
        if parsed.against is not None:
            names, value = body.listing.mnemonics, parsed.against
            for at in range(position + 1, min(position + 1 + _COMPARE_REACH, len(names))):
                flip = _FLIPS[names[at]]
                if flip is not None:
                    value += flip
                    break
            body.say(position, said.number(value))
        elif parsed.value is not None:
            places = body.places
            if places.is_fixed and places.is_mapped(parsed.value):
                body.refer(position, parsed.value, TAKE)
            else:
                body.say(position, said.number(parsed.value))

    def _refer(self, body: Body, position: int, parsed: Parsed) -> None:
        """A memory operand that is not relative to the code: a field, or an address outright."""
        address, base = parsed.offset, parsed.base
        if base or parsed.index:
            places = body.places
            if address >= LOWEST_FIXED and places.is_fixed and places.is_mapped(address):
                body.refer(position, address, TAKE)
            elif base:
                body.say(position, said.offset(address))
        else:
            body.refer(position, address, parsed.role, parsed.real)

    def _read_narrow(self, body: Body, active: list[tuple[int, Parsed]]) -> None:
        """32 bit: the registers that hold the base of the global offset table are followed."""
        got, places, listing = body.places.image.got, body.places, body.listing
        holders: set[str] = set()
        has_base = False
        for position, parsed in active:
            base, dst = parsed.base, parsed.dst
            if parsed.role:
                address = -1 if got is None else (got + parsed.offset) & places.mask
                if has_base and (
                    base in holders
                    or parsed.index in holders
                    or (abs(parsed.offset) >= _NEAR and places.is_mapped(address))
                ):
                    role = TAKE if parsed.base and parsed.index else parsed.role
                    body.refer(position, address, role, parsed.real)
                elif parsed.offset:
                    self._refer(body, position, parsed)
            if parsed.source:
                # ``add R, N`` behind a call, or a copy of R.
                if parsed.source in holders:
                    holders.add(dst)
                    continue
            elif parsed.value is not None and dst and got is not None:
                if _base_of_call(listing.mnemonics, position, parsed.value, body) == got:
                    holders.add(dst)
                    has_base = True
                    continue
                if parsed.code == _ADD:
                    body.say(position, said.offset(parsed.value))
                    holders.discard(dst)
                    continue
            holders.discard(dst)
            self._say(body, position, parsed)

    def _transfers(self, body: Body, framed: bool) -> None:
        """Where calls and jumps go."""
        listing, codes = body.listing, body.codes
        for position, kind, operand in zip(
            listing.controls, listing.kinds, listing.operands, strict=True
        ):
            if kind not in (CALL, JUMP):
                continue
            if operand.startswith(b"0x"):
                if operand.isalnum():  # far calls and jumps have two numbers
                    body.go(position, int(operand, 16))
                continue
            name = listing.mnemonics[position]
            if name.endswith("jmp"):
                codes[position] = _JUMP_INDIRECT
            elif name.endswith("call"):
                codes[position] = _CALL_INDIRECT
            else:
                continue
            if b"[" in operand:
                self._through_memory(body, position, operand, framed)

    def _through_memory(self, body: Body, position: int, operand: bytes, framed: bool) -> None:
        """``call [slot]``, ``call [rax + 8]``."""
        listing, got = body.listing, body.places.image.got
        match = _RIP.search(operand)
        if match is not None:
            distance = int(match[2] or b"0", 16)
            following = listing.addresses[position] + listing.sizes[position]
            body.refer(position, following + (-distance if match[1] == b"-" else distance), LOAD)
            return
        parsed = parse("push", operand.decode("ascii", "replace"), framed, self._bits == 32)
        address = parsed.offset
        if (
            self._bits == 32
            and got is not None
            and parsed.base
            and body.places.is_slot(got + address)
        ):
            body.refer(position, got + address, LOAD)
        elif parsed.role and address:
            self._refer(body, position, parsed)
        else:
            body.say(position, parsed.tokens)


_ADD = pack("add")


def _like(known: Parsed, number: int, sign: bytes | None) -> Parsed | None:
    """A known instruction with another displacement or constant; None where more differs."""
    if number >= LOWEST_FIXED or known.role or known.value is not None or known.number == "and":
        return None
    if known.is_field:
        tokens = said.offset(-number if sign == b"-" else number)
    elif known.number and not known.has_offset:
        if known.number == "against":
            parsed = Parsed()
            parsed.code, parsed.against = known.code, number
            parsed.number, parsed.is_active = "against", True
            return parsed
        tokens = _SAID[known.number](number)
    else:
        return known
    if known.fixed:
        return None
    parsed = Parsed()
    parsed.code, parsed.tokens, parsed.is_active = known.code, tokens, bool(tokens)
    return parsed


_SAID = {"off": said.offset, "shift": said.shift, "num": said.number}


def _sets_frame(body: Body, texts: list[bytes]) -> bool:
    """Whether rbp holds the frame: it is set from rsp near the start."""
    for position, text in zip(body.positions, texts, strict=True):
        if position >= _FRAME_REACH:
            break
        if text in (b"rbp, rsp", b"ebp, esp"):
            return True
    return False


def _base_of_call(names: list[str], position: int, distance: int, body: Body) -> int | None:
    """What ``add R, distance`` makes of the address that a call just before it pushed."""
    for at in range(position - 1, max(-1, position - _GOT_REACH), -1):
        if names[at] == "call":
            listing = body.listing
            return (listing.addresses[at] + listing.sizes[at] + distance) & body.places.mask
    return None


def _names_of(mnemonic: str, text: str) -> tuple[str, ...]:
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
        for prefix, found in _PREFIXES:
            if first.startswith(prefix):
                return tuple(found.split())
    return names or ("other",)


def _sized(kind: str, size: int, is_float: bool) -> str:
    if is_float:
        return f"{kind}_float" if size <= 10 else f"{kind}_vector"
    return {1: f"{kind}_byte", 2: f"{kind}_half"}.get(size, kind)


def _number(operand: str) -> int | None:
    if not operand[:1].isdigit() and operand[:1] != "-":
        return None
    try:
        return int(operand, 0)
    except ValueError:
        return None


def parse(name: str, text: str, framed: bool, narrow: bool) -> Parsed:
    """Takes an instruction apart.

    Args:
        name: the mnemonic.
        text: the operands; ``[rip]`` stands for an address relative to the code.
        framed: whether rbp holds the frame.
        narrow: whether the code is 32-bit, where any displacement may count from the global
            offset table.
    """
    parsed = Parsed()
    names = _names_of(name, text)
    if names == ("none",):
        return parsed
    kind = names[0]
    operands = text.split(", ") if text else []
    is_float = "mm" in text or name[0] == "f"
    memory, size, is_stack, scale = -1, 0, False, 1
    if "[" in text:
        for at, operand in enumerate(operands):
            match = _MEMORY.match(operand) if "[" in operand else None
            if match is None:
                continue
            memory = at
            size = _SIZES.get(match[1] or "", 16)
            for term in match[3].replace(" - ", " + -").split(" + "):
                if (value := _number(term)) is not None:
                    parsed.offset = value
                    parsed.has_offset = True
                elif "*" in term:
                    parsed.index, _, factor = term.partition("*")
                    scale = int(factor)
                elif not parsed.base:
                    parsed.base = term
                else:
                    parsed.index = term
            is_stack = parsed.base in ("rsp", "esp") or (framed and parsed.base in ("rbp", "ebp"))
            if match[2] in ("fs", "gs"):
                is_stack = True
    load = "stack_load" if is_stack else _sized("load", size, is_float)
    store = "stack_store" if is_stack else _sized("store", size, is_float)
    said_tokens: list[Token] = []
    if kind == "address":
        names = _address(parsed, is_stack, scale, said_tokens)
        parsed.fixed = tuple(said_tokens)
    elif memory >= 0:
        parsed.role = LOAD
        is_x87_store = name.startswith(("fst", "fist"))
        if kind in _MOVES or kind in ("zero_extend", "sign_extend"):
            is_store = is_x87_store if name[0] == "f" else memory == 0
            parsed.role = STORE if is_store else LOAD
            names = (store,) if is_store else (load,)
            if kind == "sign_extend":
                names = (load, kind)
        elif is_x87_store or kind == "set":
            parsed.role, names = STORE, (*names, store)
        elif kind == "string":
            parsed.role = ""
        elif memory == 0 and kind not in _READ_ONLY and name[0] != "f" and not is_float:
            names = (load, *names, store)
        else:
            names = (load, *names)
        if is_float and size in (4, 8) and parsed.role == LOAD and kind != "fconvert":
            parsed.real = size if not name.startswith(("movq", "movd", "fi")) else 0
    elif kind == "test" and len(operands) == 2 and operands[0] == operands[1]:
        names = ("compare",)
    elif kind in ("xor", "vec_logic", "sub") and len(operands) > 1:
        if operands[-1] == operands[-2] and "xor" in name:
            names = ("const",)
    elif name == "imul" and len(operands) == 1:
        names = ("mul_high",)
    start = 0 if kind == "stack_store" else 1
    value = None
    for operand in operands[start:]:
        if (found := _number(operand)) is not None:
            value = found
    if name in ("inc", "dec"):
        value = 1
    is_dst_stack = bool(operands) and operands[0] in ("rsp", "esp")
    if value is not None and operands[0].encode("ascii", "replace") in _HIGH:
        value <<= 8
    if value is not None and not is_float and not is_dst_stack:
        if kind == "move" and memory < 0:
            names = ("const",)
        if kind in ("add", "sub"):
            if narrow and memory < 0 and kind == "add" and abs(value) >= _NEAR:
                parsed.value = value
            else:
                said_tokens += said.offset(value)
                parsed.number = "off"
        elif kind in _SHIFTS:
            said_tokens += said.shift(value)
            parsed.number = "shift"
        elif kind == "compare" and not LOWEST_FIXED <= value < said.WORD >> 1:
            parsed.against = value
            parsed.number = "against"
        elif kind == "and" and value in _EXTENSIONS and memory < 0:
            names = ("zero_extend",)
            parsed.number = "and"
        elif value >= LOWEST_FIXED:
            parsed.value = value
        else:
            said_tokens += said.number(value)
            parsed.number = "and" if kind == "and" else "num"
    parsed.code = pack(*names)
    if is_stack or kind == "string":
        parsed.role = ""
    if parsed.role and parsed.base != "rip":
        is_field = parsed.base and not narrow and parsed.offset < LOWEST_FIXED
        if is_field or not parsed.offset:
            said_tokens += said.offset(parsed.offset) if parsed.base else ()
            parsed.role = ""
            parsed.is_field = bool(parsed.base)
    if narrow:
        if operands and memory != 0 and kind not in ("compare", "test", "fcompare", "stack_store"):
            parsed.dst = operands[0]
        if kind == "move" and memory < 0 and len(operands) == 2 and value is None:
            parsed.source = operands[1]
    parsed.tokens = tuple(said_tokens)
    parsed.is_active = bool(
        parsed.tokens
        or (parsed.role and parsed.base != "rip")
        or parsed.against is not None
        or parsed.value is not None
        or parsed.dst in ("ebx", "esi", "edi", "ebp", "eax", "ecx", "edx")
    )
    return parsed


def _address(
    parsed: Parsed, is_stack: bool, scale: int, said_tokens: list[Token]
) -> tuple[str, ...]:
    """Operations of ``lea``: arithmetic, unless it takes the address of something."""
    if is_stack:
        return ("address",)
    parsed.role = TAKE
    if parsed.base == "rip":
        return ("address",)
    if scale > 1:
        said_tokens += said.shift(scale.bit_length() - 1)
        return ("shl", "add") if parsed.base or parsed.offset else ("shl",)
    return ("add",)
