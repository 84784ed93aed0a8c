"""Compilers: found by the names that people type, asked for their version, and wrapped."""

from __future__ import annotations

import platform
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from graphkin.errors import ConfigError, MissingDependencyError

LEVELS = ("O0", "O1", "O2", "O3", "Os", "Oz", "Og", "Ofast")
SPELLING = re.compile(r"([A-Za-z0-9][\w.+-]*)(?:@([A-Za-z0-9][\w.-]*))?", re.ASCII)
CROSS_GCC = re.compile(r"(\w+(?:-\w+){1,3})-(gcc|g\+\+)(-\d+)?")
PROBE = '#include <stdio.h>\nint main(void) { return puts(""); }\n'
SECONDS = 60
"""Time for a compiler to answer, or to compile the probe."""


@dataclass(frozen=True)
class Compiler:
    """A C compiler of this machine."""

    spelling: str
    """As it was typed: ``gcc-12``, ``aarch64-linux-gnu-gcc-12``, ``clang-14@aarch64-linux-gnu``."""
    program: str
    """Where it is."""
    version: str
    """The first line of ``--version``."""
    triplet: str
    """What its code is for: ``x86_64-linux-gnu``."""
    target: str | None = None
    """What follows the ``@``."""

    @property
    def command(self) -> str:
        """The name that the steps of a recipe call."""
        name = Path(self.program).name
        return f"{self.target}-{name}" if self.target else name

    @property
    def machine(self) -> str:
        return self.triplet.partition("-")[0]

    @property
    def family(self) -> str:
        """One name for machines that run the same code: ``x86`` for ``i686``."""
        return _family(self.machine)

    @property
    def cross(self) -> bool:
        """Whether its code is for another machine than this one."""
        return self.family != _family(platform.machine())

    @property
    def prefix(self) -> str:
        """What the names of the binary utilities begin with: ``aarch64-linux-gnu-``, or nothing."""
        return f"{self.triplet}-" if self.cross else ""

    def flags(self, level: str) -> list[str]:
        """The flags of a configuration, which come behind those of the package."""
        # A linker call has no use for them, about which clang would warn.
        quiet = ["-Qunused-arguments"] if "clang" in self.version else []
        return [f"-{level}", "-g1", *quiet]

    def wrap(self, folder: Path, flags: Sequence[str]) -> Path:
        """Writes a program that is this compiler with ``flags`` behind the arguments it gets.

        Packages put levels of their own into their makefiles, some for single files; of several
        levels the last one counts.
        """
        wrapper = folder / self.command
        target = [f"--target={self.target}"] if self.target else []
        call = f'exec {shlex.join([self.program, *target])} "$@" {shlex.join(flags)}'
        wrapper.write_text(f"#!/bin/sh\n{call}\n", encoding="utf-8")
        wrapper.chmod(0o755)
        return wrapper


def find_compiler(spelling: str) -> Compiler:
    """The compiler of a name such as ``gcc-12`` or ``clang-14@aarch64-linux-gnu``.

    Raises:
        ConfigError: for what cannot be a compiler's name.
        MissingDependencyError: when it is not installed; the error names the apt package.
    """
    match = SPELLING.fullmatch(spelling)
    if match is None:
        raise ConfigError(
            f"a compiler is named as gcc-12, aarch64-linux-gnu-gcc-12 or "
            f"clang-14@aarch64-linux-gnu, got {spelling!r}"
        )
    name, target = match[1], match[2]
    if target and not name.startswith("clang"):
        raise ConfigError(
            f"only clang takes a target behind @, got {spelling!r}; "
            f"with gcc it is a compiler of its own: {target}-{name}"
        )
    program = shutil.which(name)
    if program is None:
        package = apt_package(name)
        raise MissingDependencyError(
            f"there is no compiler {name!r} here; install it with: apt-get install {package}"
        )
    version = _ask(program, "--version").partition("\n")[0]
    triplet = target or _ask(program, "-dumpmachine").strip()
    return Compiler(spelling, program, version, triplet, target)


def check_level(level: str) -> None:
    """Refuses what is not an optimisation level."""
    if level not in LEVELS:
        raise ConfigError(f"a level is one of {', '.join(LEVELS)}; got {level!r}")


def check_works(compiler: Compiler, level: str) -> None:
    """Compiles and links a program of one line, which shows whether all parts are installed."""
    with tempfile.TemporaryDirectory(prefix="graphkin-probe-") as name:
        folder = Path(name)
        (folder / "probe.c").write_text(PROBE)
        wrapper = compiler.wrap(folder, compiler.flags(level))
        output = _run([str(wrapper), "probe.c", "-o", "probe"], folder)
        if (folder / "probe").exists():
            return
    package = f"gcc-{_dashed(compiler.triplet)}" if compiler.cross else "libc6-dev"
    said = next((line for line in output.splitlines() if "error" in line), output.strip()[-200:])
    raise MissingDependencyError(
        f"{compiler.spelling} -{level} cannot compile a program of one line ({said}); if headers "
        f"or libraries are missing, install them with: apt-get install {package}"
    )


def apt_package(name: str) -> str:
    """The Debian package that has a compiler: ``gcc-12-aarch64-linux-gnu``."""
    match = CROSS_GCC.fullmatch(name)
    if match is None:
        return {"cc": "gcc", "musl-gcc": "musl-tools"}.get(name, name)
    triplet, kind, release = match[1], match[2], match[3] or ""
    windows = re.fullmatch(r"(\w+)-w64-mingw32", triplet)
    if windows:
        return f"{kind}-mingw-w64-{_dashed(windows[1])}"
    if triplet == f"{platform.machine()}-linux-gnu":
        return f"{kind}{release}"
    return f"{kind}{release}-{_dashed(triplet)}"


def _dashed(triplet: str) -> str:
    return triplet.replace("_", "-")


def _family(machine: str) -> str:
    """One name for machines that run the same code: ``arm`` for ``armv7l``."""
    if machine == "arm64":
        return "aarch64"
    if machine.startswith("arm"):
        return "arm"
    return (
        "x86" if re.fullmatch(r"i[3-6]86", machine) else machine.lower().replace("amd64", "x86_64")
    )


def _ask(program: str, question: str) -> str:
    answer = _run([program, question], Path("/"))
    if not answer.strip():
        raise MissingDependencyError(f"{program} {question} says nothing; is it a compiler?")
    return answer


def _run(command: list[str], folder: Path) -> str:
    """What a command printed, whether it succeeded or not."""
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=SECONDS,
        )
    except subprocess.TimeoutExpired:
        raise MissingDependencyError(f"{command[0]} did not answer in {SECONDS} s") from None
    except OSError as error:
        raise MissingDependencyError(f"{command[0]} cannot be run: {error.strerror}") from error
    return done.stdout.decode("utf-8", "replace")
