"""Wrappers around the machine's compilers that write down how a build calls them."""

from __future__ import annotations

import shlex
import shutil
from dataclasses import dataclass
from pathlib import Path

from graphkin.errors import MissingDependencyError

C_NAMES = ("cc", "gcc", "c89", "c99", "clang")
CXX_NAMES = ("c++", "g++", "clang++")
VARIABLE = "GRAPHKIN_CALLS"
"""Names the folder for the calls; without it a wrapper only calls the compiler."""
FAST = ("-O0", "-w")
"""Behind the arguments of recorded calls: nobody uses what they compile, but for generators."""


@dataclass(frozen=True)
class CompilerCall:
    """One call of a compiler."""

    program: str
    """The name it was called by."""
    folder: Path
    """Where."""
    arguments: list[str]


def write_wrappers(folder: Path) -> None:
    """Fills a folder that comes first in ``PATH`` with a wrapper for each name of a compiler.

    All of them are gcc: one native compiler configures a project, whatever compiles it later.

    Raises:
        MissingDependencyError: without gcc.
    """
    for names, program in ((C_NAMES, "gcc"), (CXX_NAMES, "g++")):
        path = shutil.which(program)
        if path is None:
            if program == "g++":
                continue  # a project in C does not call it
            raise MissingDependencyError(
                "gcc configures a project before others compile it, and is not here; "
                "install it with: apt-get install gcc"
            )
        for name in names:
            wrapper = folder / name
            wrapper.write_text(_script(name, path), encoding="utf-8")
            wrapper.chmod(0o755)


def _script(name: str, path: str) -> str:
    call = shlex.quote(path)
    # A file for each process, because calls run side by side; the count comes first, because
    # process numbers come back, and then a file holds several calls.
    return f"""#!/bin/sh
if [ -z "${VARIABLE}" ]; then exec {call} "$@"; fi
printf '%s\\0' "$#" {shlex.quote(name)} "$PWD" "$@" >> "${VARIABLE}/$$"
exec {call} "$@" {shlex.join(FAST)}
"""


def read_calls(folder: Path) -> list[CompilerCall]:
    """The calls that wrappers wrote down, in the order of their first files' times."""
    calls = []
    for path in sorted(folder.iterdir(), key=lambda path: (path.stat().st_mtime_ns, path.name)):
        words = path.read_bytes().decode("utf-8", "surrogateescape").split("\0")[:-1]
        while words:
            count = int(words[0])
            name, where, *arguments = words[1 : 3 + count]
            calls.append(CompilerCall(name, Path(where), arguments))
            words = words[3 + count :]
    return calls
