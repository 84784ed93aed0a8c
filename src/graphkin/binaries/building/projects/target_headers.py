"""Configure results that follow the target: sizes, byte order, and what only x86 has.

A project is configured once, for this machine. Where its headers then say that a pointer has 8
bytes, a compiler for another processor must read its own size; compilers predefine a macro for
each, so that one rewritten header serves them all.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Mapping
from pathlib import Path

HEADER_SUFFIXES = (".h", ".hh", ".hpp", ".hxx", ".inc")
SIZES = {
    "__SIZEOF_POINTER__": ("VOID_P", "VOIDP", "VOID_PTR", "VOIDPTR", "CHAR_P", "INT_P", "POINTER"),
    "__SIZEOF_LONG__": (
        "LONG",
        "LONG_INT",
        "UNSIGNED_LONG",
        "UNSIGNED_LONG_INT",
        "ULONG",
        "TIME_T",
        "OFF_T",
    ),
    "__SIZEOF_SIZE_T__": ("SIZE_T", "SSIZE_T"),
    "__SIZEOF_PTRDIFF_T__": ("PTRDIFF_T", "INTPTR_T", "UINTPTR_T"),
    "__SIZEOF_LONG_DOUBLE__": ("LONG_DOUBLE",),
}
MACRO_OF_TYPE = {name: macro for macro, names in SIZES.items() for name in names}
"""``time_t`` and ``off_t`` are as wide as ``long`` on all Linux targets of Debian 12."""
SIZE = re.compile(r"\w*SIZE_?OF_(\w+)")
DEFINE = re.compile(r"^([ \t]*#[ \t]*define[ \t]+)(\w+)[ \t]+(\S+)[ \t]*$", re.M)
BIG_ENDIAN = re.compile(
    r"^[ \t]*(?:/\*[ \t]*)?#[ \t]*undef[ \t]+(\w*WORDS_BIGENDIAN)\b.*$|"
    r"^[ \t]*#[ \t]*define[ \t]+(\w*WORDS_BIGENDIAN)[ \t]+1[ \t]*$",
    re.M,
)
ONLY_SOME = re.compile(
    r"^[ \t]*#[ \t]*define[ \t]+\w*(?:HAVE|USE|WITH|ENABLE)_\w*(?:(?P<wide>INT128)|"
    r"SSE|AVX|MMX|CPUID|X86|AMD64|MMINTRIN|RDRAND|RDTSC|PCLMUL|AESNI|BMI)\w*(?:[ \t]+\S+)?[ \t]*$",
    re.M,
)


def follow_target(definition: str) -> str:
    """An argument of ``-D`` with a size that follows the target: ``SIZEOF_LONG=8``."""
    name, separator, value = definition.partition("=")
    macro = _macro(name, value)
    return f"{name}={macro}" if separator and macro else definition


def rewrite_header(text: str) -> str:
    """A header with values that follow the target."""

    def size(match: re.Match[str]) -> str:
        macro = _macro(match[2], match[3])
        return f"{match[1]}{match[2]} {macro}" if macro else match[0]

    def order(match: re.Match[str]) -> str:
        name = match[1] or match[2]
        condition = "__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__"
        return f"#if {condition} && !defined {name}\n#define {name} 1\n#endif"

    def condition(match: re.Match[str]) -> str:
        macro = "__SIZEOF_INT128__" if match["wide"] else "__x86_64__"
        return f"#ifdef {macro}\n{match[0]}\n#endif"

    return ONLY_SOME.sub(condition, BIG_ENDIAN.sub(order, DEFINE.sub(size, text)))


def list_files(tree: Path) -> dict[Path, int]:
    """The files below a folder, each with the time of its last change."""
    paths = [Path(root, name) for root, _, names in os.walk(tree) for name in names]
    return {path: path.lstat().st_mtime_ns for path in paths}


def set_times(tree: Path) -> None:
    """Makes all files below a folder equally old.

    Debian's patches make sources younger than what was generated from them; make would want to
    generate that again, with tools of the year in which it was made.
    """
    now = time.time_ns()
    for path in list_files(tree):
        os.utime(path, ns=(now, now), follow_symlinks=False)


def rewrite_headers(tree: Path, before: Mapping[Path, int]) -> list[Path]:
    """Rewrites every header that was made or changed since ``before``; the paths of these."""
    rewritten = []
    for path, changed in sorted(list_files(tree).items()):
        if path.suffix not in HEADER_SUFFIXES or before.get(path) == changed or path.is_symlink():
            continue
        text = path.read_bytes().decode("utf-8", "surrogateescape")
        other = rewrite_header(text)
        if other != text:
            path.write_bytes(other.encode("utf-8", "surrogateescape"))
            rewritten.append(path)
    return rewritten


def _macro(name: str, value: str) -> str | None:
    """What a size is on every target, if ``name`` is one that differs between them."""
    match = SIZE.fullmatch(name)
    return MACRO_OF_TYPE.get(match[1].upper()) if match and value.isdigit() else None
