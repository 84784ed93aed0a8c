"""Toolchains: a C and a C++ compiler for one processor at one level, by a configuration's name."""

from __future__ import annotations

import platform
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from graphkin.binaries.building.compilers import (
    LEVELS,
    Compiler,
    check_level,
    check_works,
    find_compiler,
)
from graphkin.errors import ConfigError

TRIPLETS = {
    "x86_64": "x86_64-linux-gnu",
    "i386": "i686-linux-gnu",
    "aarch64": "aarch64-linux-gnu",
    "arm": "arm-linux-gnueabihf",
    "mips": "mips-linux-gnu",
    "mipsel": "mipsel-linux-gnu",
    "ppc": "powerpc-linux-gnu",
    "ppc64le": "powerpc64le-linux-gnu",
}
"""The processors of configurations, and what Debian calls their compilers' target."""
NAME = re.compile(r"(\w+?)-(gcc|clang)(-\d+)?-(\w+)")
PLAIN_FLAGS = ("-fPIC", "-w", "-fno-stack-protector", "-U_FORTIFY_SOURCE")
"""Hardening would put the same code into many functions, and differs between compilers."""
INCLUDE = Path("/usr/include")


@dataclass(frozen=True)
class Toolchain:
    """What compiles a configuration such as ``mipsel-gcc-O2``."""

    configuration: str
    level: str
    c: Compiler
    cxx_spelling: str
    """The C++ compiler is looked for where a project has C++: not everybody has one."""

    def compiler(self, language: str) -> Compiler:
        """The compiler of ``c`` or ``c++``.

        Raises:
            MissingDependencyError: where it is not installed; the error names the apt package.
        """
        return self.c if language == "c" else _find_once(self.cxx_spelling)

    @property
    def flags(self) -> list[str]:
        """The flags of every file, behind those of the project."""
        x86 = ["-fcf-protection=none"] if self.c.family in ("x86", "x86_64") else []
        quiet = ["-Qunused-arguments"] if "clang" in self.c.version else []
        return [f"-{self.level}", *PLAIN_FLAGS, *x86, *quiet, *self._foreign_headers()]

    def command(self, language: str) -> list[str]:
        """How the compiler is called, before any argument."""
        compiler = self.compiler(language)
        target = [f"--target={compiler.target}"] if compiler.target else []
        return [compiler.program, *target]

    def _foreign_headers(self) -> list[str]:
        """This machine's headers, behind the target's own.

        A cross compiler has the headers of the C library only. Those of other libraries are the
        same on all processors but for few, and code that is never run may be compiled with them.
        """
        if not self.c.cross:
            return []
        folders = [INCLUDE, *sorted(INCLUDE.glob(f"{platform.machine()}-linux-gnu"))]
        return [word for folder in folders for word in ("-idirafter", str(folder))]


@cache
def _find_once(spelling: str) -> Compiler:
    """Every file asks, and the answer takes two calls of the compiler."""
    return find_compiler(spelling)


def find_toolchain(configuration: str) -> Toolchain:
    """The compilers of a configuration.

    Args:
        configuration: Processor, compiler and level: ``x86_64-gcc-O2``, ``arm-clang-14-Os``.

    Raises:
        ConfigError: for a name that is not of this form.
        MissingDependencyError: where the compiler is not installed.
    """
    match = NAME.fullmatch(configuration)
    if match is None or match[1] not in TRIPLETS:
        raise ConfigError(
            f"a configuration is a processor ({', '.join(TRIPLETS)}), gcc or clang, and a level "
            f"({', '.join(LEVELS)}), such as x86_64-gcc-O2; got {configuration!r}"
        )
    triplet, family, release, level = TRIPLETS[match[1]], match[2], match[3] or "", match[4]
    check_level(level)
    own = match[1] == platform.machine()
    if family == "clang":
        at = "" if own else f"@{triplet}"
        names = [f"clang{release}{at}", f"clang++{release}{at}"]
    else:
        prefix = "" if own else f"{triplet}-"
        names = [f"{prefix}gcc{release}", f"{prefix}g++{release}"]
    return Toolchain(configuration, level, find_compiler(names[0]), names[1])


def find_toolchains(configurations: Sequence[str]) -> list[Toolchain]:
    """All of them, each tried on a program of one line before hours are spent with others."""
    toolchains = [find_toolchain(name) for name in dict.fromkeys(configurations)]
    for compiler, level in {each.c: each.level for each in toolchains}.items():
        check_works(compiler, level)
    return toolchains
