"""Translation units: the source files of a project, each with its macros and include paths."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from graphkin.binaries.building.projects.recording import CXX_NAMES, CompilerCall
from graphkin.binaries.building.projects.target_headers import follow_target

Language = Literal["c", "c++"]
C_SUFFIXES = frozenset({".c"})
CXX_SUFFIXES = frozenset({".cc", ".cpp", ".cxx", ".c++", ".C", ".CPP"})
KEPT_WITH_VALUE = ("-D", "-U", "-I", "-isystem", "-iquote", "-idirafter", "-include", "-imacros")
"""Arguments that say what the code is; their value follows, with or without a space."""
KEPT = re.compile(
    r"-std=.*|-ansi|-pthread|-f(no-)?(strict-aliasing|wrapv|signed-char|unsigned-char|short-enums|"
    r"ms-extensions|gnu89-inline|common|permissive|rtti|exceptions|strict-overflow|"
    r"delete-null-pointer-checks|char8_t)"
)
"""Arguments without a value that say what the code is. All others are the packager's taste."""
DROPPED_WITH_VALUE = re.compile(
    r"-[oxLluzTB]|-M[FTQ]|-X(linker|assembler|clang|preprocessor)|--param|-aux-info|-arch|-isysroot"
)
NOT_COMPILING = frozenset({"-E", "-M", "-MM", "-fsyntax-only", "-###", "--version", "-S"})
OWN_INCLUDES = re.compile(r"/usr(/local)?/include(/[\w]+-linux-gnu\w*)?/?")
"""Folders that this machine's compiler searches anyway, and others' must not search first."""


@dataclass(frozen=True)
class Unit:
    """A source file, and what a compiler must know of its project."""

    source: Path
    folder: Path
    """Where the compiler is called: include paths may be relative."""
    language: Language
    arguments: tuple[str, ...]


def find_units(calls: Iterable[CompilerCall], tree: Path) -> list[Unit]:
    """The units of a build, one for each source file below ``tree`` that is still there.

    A file that is compiled twice, for a library and a program or for a static and a shared
    library, counts as its first call did: a name must not have two meanings in one result.
    """
    root = tree.resolve()
    units: dict[Path, Unit] = {}
    for call in calls:
        for unit in _units_of_call(call):
            if unit.source.is_file() and unit.source.is_relative_to(root):
                units.setdefault(unit.source, unit)
    return sorted(units.values(), key=lambda unit: unit.source)


def _units_of_call(call: CompilerCall) -> list[Unit]:
    words = _expand_files(call.arguments, call.folder)
    if NOT_COMPILING.intersection(words):
        return []
    kept: list[str] = []
    sources: list[tuple[str, str]] = []
    language = ""
    position = 0
    while position < len(words):
        word = words[position]
        position += 1
        option = next((each for each in KEPT_WITH_VALUE if word.startswith(each)), None)
        if option is not None:
            joined = word.removeprefix(option)
            if not joined and position < len(words):
                joined = words[position]
                position += 1
            if not (option in ("-I", "-isystem", "-idirafter") and OWN_INCLUDES.fullmatch(joined)):
                value = follow_target(joined) if option == "-D" else joined
                kept += [option, value]
        elif DROPPED_WITH_VALUE.fullmatch(word):
            if word == "-x" and position < len(words):
                language = words[position]
            position += 1
        elif KEPT.fullmatch(word):
            kept.append(word)
        elif not word.startswith("-"):
            sources.append((word, language))
    units = [
        _unit(call, source, explicit, kept)
        for source, explicit in sources
        if Path(source).suffix in C_SUFFIXES | CXX_SUFFIXES
    ]
    return [unit for unit in units if unit is not None]


def _unit(call: CompilerCall, source: str, explicit: str, arguments: list[str]) -> Unit | None:
    suffix = Path(source).suffix
    language: Language = "c"
    if explicit in ("c", "c++"):
        language = "c++" if explicit == "c++" else "c"
    elif explicit not in ("", "none"):
        return None
    elif suffix in CXX_SUFFIXES or call.program in CXX_NAMES:
        language = "c++"
    path = (call.folder / source).resolve()
    return Unit(path, call.folder, language, tuple(arguments))


def _expand_files(words: list[str], folder: Path) -> list[str]:
    """The arguments with those of ``@file`` in its place."""
    expanded: list[str] = []
    for word in words:
        path = folder / word[1:]
        if word.startswith("@") and path.is_file():
            expanded += shlex.split(path.read_text(encoding="utf-8", errors="replace"))
        else:
            expanded.append(word)
    return expanded
