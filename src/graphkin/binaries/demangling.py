"""Names as the source has them. C++ and Rust compilers fold scopes and types into one word.

The name in the file stays what a function is known by; how the source spells it is for people,
and worked out when it is shown. Names are whatever a file's author chose, so that what one may
cost is bounded: a name that would cost more is shown as it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from demangle import Limits

PREFIXES = ("_Z", "__Z", "_R", "__R", "?")
"""Of the Itanium C++ ABI, of Rust, and of MSVC; Apple's compilers put an underscore in front."""
SCHEMES = ("itanium", "rust", "msvc")
STYLES = ("llvm", "gnu")
"""Ways to spell one name; the first is the one that is shown."""
MAX_NAME = 1 << 12
"""Letters of a name; templates of C++ make names of some thousand."""
MAX_SPELLING = 1 << 13
MAX_DEPTH = 128
MAX_SUBSTITUTIONS = 1024
WORD = re.compile(r"[^\W\d]\w{2,}")
IGNORED = re.compile(r"\s+|\[abi:\w+\]")
"""Of a spelling that somebody types: spaces, and tags of C++ that tell variants of a library."""
_IMPLIED = """
    int char bool void short long unsigned signed float double auto const volatile noexcept
    operator new delete std allocator basic_string string char_traits istream ostream iostream
    anonymous namespace unnamed type lambda closure abi cxx11 vtable thunk virtual non guard
    variable for shim impl dyn mut str usize isize unsafe extern static private protected public
    __cdecl __thiscall __stdcall __fastcall __vectorcall __int64 __ptr64 class struct enum union
"""
IMPLIED = frozenset(_IMPLIED.split())
"""Words of a spelling that a compiler abbreviates, or writes in another way."""


def demangled(name: str) -> str | None:
    """How the source spells a name; None where that is the name itself, or cannot be told."""
    if not name.startswith(PREFIXES):
        return None
    # Loading it takes a tenth of a second, and most binaries have no such names.
    from demangle import demangle

    spelling = demangle(name, language=SCHEMES, style=STYLES[0], limits=_limits())
    return None if spelling == name else spelling


def shown_name(name: str) -> str:
    """What people read: the spelling of the source, or else the name."""
    return demangled(name) or name


def spelled_import(word: str) -> str | None:
    """How the source spells an import that a block names in its evidence, where the underscore in
    front is left out; None where that is the word itself."""
    return demangled(f"_{word}") if word.startswith(("Z", "R")) else None


def spelled_imports(words: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Those imports among the words of a function that the source spells in another way."""
    texts = dict.fromkeys(text for kind, text in words if kind == "imp")
    spellings = ((text, spelled_import(text)) for text in texts)
    return {text: spelling for text, spelling in spellings if spelling is not None}


@cache
def _limits() -> Limits:
    from demangle import Limits

    return Limits(
        max_depth=MAX_DEPTH,
        max_output=MAX_SPELLING,
        max_substitutions=MAX_SUBSTITUTIONS,
        max_input=MAX_NAME,
    )


def spelled(text: str, names: Iterable[str]) -> set[str]:
    """Those of some names that the source spells like ``text``, with or without parameters.

    Spaces do not count, nor do tags such as ``[abi:cxx11]``. Names with the parameters of ``text``
    are preferred. LLVM's tools and those of GNU differ in spelling, and both are taken.
    """
    spelling = IGNORED.sub("", text)
    exact, bare = set(), set()
    for name in containing(text, names):
        whole, qualified = _spellings(name)
        if spelling in whole:
            exact.add(name)
        elif spelling in qualified:
            bare.add(name)
    return exact or bare


def containing(text: str, names: Iterable[str]) -> Iterator[str]:
    """Mangled names that hold the longest word of ``text``: they have every word of the source.

    It spares the spelling of all others, of which a large program has a hundred thousand.
    """
    words = [word for word in WORD.findall(text) if word not in IMPLIED]
    longest = max(words, key=len, default="")
    return (name for name in names if name.startswith(PREFIXES) and longest in name)


def _spellings(name: str) -> tuple[set[str], set[str]]:
    """Of a whole name, and of the name without its parameters; without spaces."""
    from demangle import DemanglingError, signature

    whole, qualified = set(), set()
    for style in STYLES:
        try:
            parts = signature(name, language=SCHEMES, style=style, limits=_limits())
        except DemanglingError:
            break
        whole.add(IGNORED.sub("", parts.demangled))
        if parts.qualified_name:
            qualified.add(IGNORED.sub("", parts.qualified_name))
    return whole, qualified
