"""Tokens: one form for what a function says, whatever processor, width and system it is for."""

from __future__ import annotations

import re
import struct
from functools import lru_cache

from graphkin.binaries.function import Token

MOST_LETTERS = 200
"""Of a string."""
WORD, LONG = 1 << 32, 1 << 64
SMALLEST = -(1 << 15)
"""Numbers from here up to -1 are written with a sign; others as the 32 or 64 bits they have."""
TRIVIAL = frozenset([0, 1, WORD - 1])
"""0, 1 and -1, which all functions have."""

_SOURCE = re.compile(r"[\w./+\\:-]*[/\\][\w.+-]+\.[a-zA-Z]{1,3}$")
"""What ``__FILE__`` leaves: its folder is the builder's."""
_LENGTH = re.compile(r"%([-+ #0-9.*]*)(?:ll|l|z|j|t|I64|I32)([diouxX])")
"""Lengths of printf's conversions, which follow the width of the processor."""
_LARGE_FILES = r"""open|openat|creat|seek|lseek|fseeko|ftello|tello|stat|fstat|lstat|fstatat|statfs
fstatfs|statvfs|fstatvfs|truncate|ftruncate|readdir|readdir_r|scandir|alphasort|pread|pwrite|preadv
pwritev|sendfile|mmap|lockf|getrlimit|setrlimit|tmpfile|mkstemp|mkostemp|fopen|freopen|fallocate
posix_fallocate|posix_fadvise|fgetpos|fsetpos|getdents|glob|globfree|nftw|ftw"""
_IMPORT = re.compile(
    r"(?:__isoc(?:99|23)_|_+)?(?P<large>" + re.sub(r"\s+", "|", _LARGE_FILES) + r")64(?:_time64)?$"
    r"|(?:__isoc(?:99|23)_|_+)?(?P<name>.+?)(?:_chk|(?<=..)_time64)?$"
)
_TIMES = re.compile(r"__(\w+?)64$")
"""glibc's names for functions that take 64-bit times on 32-bit processors."""
_RUNTIME = re.compile(
    r"_*(?:aeabi_|gnu_|(?:u?div|u?mod|mul|ash|lsh|fix|float|cmp|ucmp|bswap|clz|ctz|popcount|ffs|neg"
    r"|add|sub|extend|trunc|unord|eq|ne|lt|le|gt|ge|pow)\w*[dst][icf]\d|stack_chk|stack_smash|cxa_"
    r"|gmon_|ITM_|tls_get_addr|Unwind_|security_c|chkstk|alloca_probe|guard_|all(?:u?div|u?rem|mul"
    r"|shl|shr)$|gxx_personality|register_frame|deregister_frame)"
)
"""What compilers call by themselves: other builds of the same source do without."""


def canonical(value: int) -> int:
    """One number for a constant, however wide and of whichever sign it was written."""
    if value >= LONG >> 1:
        value -= LONG
    return value % WORD if -(WORD >> 1) <= value < WORD else value % LONG


def number_text(value: int) -> str:
    """A canonical number in decimal."""
    wide = WORD if value < WORD else LONG
    return str(value - wide if value - wide >= SMALLEST else value)


@lru_cache(maxsize=1 << 16)
def number(value: int) -> tuple[Token, ...]:
    """A constant; nothing for those that all functions have."""
    value = canonical(value)
    return () if value in TRIVIAL else (Token("num", number_text(value)),)


@lru_cache(maxsize=1 << 16)
def shift(amount: int) -> tuple[Token, ...]:
    """A number of bits to shift by."""
    return (Token("num", f"shift {amount & 63}"),)


@lru_cache(maxsize=1 << 16)
def offset(value: int) -> tuple[Token, ...]:
    """A field's offset, or what is added to a pointer: its distance from 0."""
    value = canonical(value)
    value = min(value, (WORD if value < WORD else LONG) - value)
    return (Token("off", str(value)),) if value else ()


def real(value: float) -> tuple[Token, ...]:
    """A constant of floating point; nothing for 0."""
    return (Token("flt", f"{value:.6g}"),) if value and value == value else ()


def real_of(raw: bytes, is_big: bool = False) -> tuple[Token, ...]:
    """The constant in 4 or 8 bytes."""
    order = ">" if is_big else "<"
    form = {4: "f", 8: "d"}.get(len(raw))
    return real(struct.unpack(order + form, raw)[0]) if form else ()


def text_of(letters: str) -> str:
    """A string in the form that all builds share."""
    text = _LENGTH.sub(r"%\1\2", " ".join(letters[:MOST_LETTERS].split()))
    return re.split(r"[/\\]", text)[-1] if _SOURCE.match(text) else text


def import_name(name: str) -> str:
    """A symbol of another file without versions and variants; "" for helpers of compilers."""
    bare = name.partition("@")[0]
    if _RUNTIME.match(bare):
        return ""
    match = _IMPORT.match(bare)
    plain = (match["large"] or match["name"] if match else "") or bare
    times = _TIMES.match(bare)
    return times[1] if times and plain.endswith("64") else plain
