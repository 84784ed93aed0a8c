"""Compiling the units of a project with one toolchain, and linking what comes out."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from graphkin.binaries.building.projects.toolchains import Toolchain
from graphkin.binaries.building.projects.units import Unit
from graphkin.binaries.formats.elf.constants import UNDEFINED, SymbolKind
from graphkin.binaries.formats.elf.reader import read_elf
from graphkin.errors import FormatError

SECONDS = 900
"""Time for one call of a compiler."""
QUOTED = 3
"""Lines of a compiler's complaint that are kept."""
COMPLAINT = re.compile(r":\d+: (fatal )?error: ")
"""A line of a compiler that says what is wrong; linkers just say it."""
VERSION = re.compile(rb"\0[A-Za-z_]\w*@{1,3}([A-Za-z_][\w.]*)(?=\0)")
"""A symbol with a version, ``memcpy@@GLIBC_2.14``, in an object's table of names."""
LINK_FLAGS = (
    "-shared",
    # Two programs of a project have a main each; the first one counts, the same everywhere.
    "-Wl,-z,muldefs",
    "-Wl,--unresolved-symbols=ignore-all",
    "-Wl,--hash-style=gnu",
    "-Wl,--build-id=none",
)


@dataclass(frozen=True)
class CrossCompiler:
    """One toolchain at work on a project."""

    toolchain: Toolchain
    objects: Path
    """Folder for its objects."""
    variables: dict[str, str]
    """The environment of the compiler."""
    prefix_map: str
    """Where the code is, and what it is called instead: asserts put paths into strings."""
    jobs: int = 1

    def compile(self, units: Sequence[Unit]) -> dict[Path, str]:
        """Compiles all units; the complaints about those that failed, by source file."""
        self.objects.mkdir(parents=True)
        numbers = range(len(units))
        with ThreadPoolExecutor(self.jobs) as pool:
            errors = list(pool.map(self._compile, numbers, units))
        return {unit.source: error for unit, error in zip(units, errors, strict=True) if error}

    def link(self, units: Sequence[Unit], failed: frozenset[Path], output: Path) -> str:
        """Links the objects of all units but the failed; the linker's complaint, if it failed."""
        paths = [
            self._object(number) for number, unit in enumerate(units) if unit.source not in failed
        ]
        languages = {unit.language for unit in units if unit.source not in failed}
        command = self.toolchain.command("c++" if "c++" in languages else "c")
        names = self.objects / "objects.txt"
        names.write_text("\n".join(map(str, paths)) + "\n", encoding="utf-8")
        versions = self._write_versions(paths)
        call = [*command, *LINK_FLAGS, *versions, f"@{names}", "-o", str(output)]
        return self._run(call, self.objects)

    def _write_versions(self, objects: Sequence[Path]) -> list[str]:
        """Declares the symbol versions that objects name; the linker's option for that."""
        versions = {version for path in objects for version in VERSION.findall(path.read_bytes())}
        if not versions:
            return []
        script = self.objects / "versions.map"
        script.write_bytes(b"".join(version + b" { };\n" for version in sorted(versions)))
        return [f"-Wl,--version-script={script}"]

    def _compile(self, number: int, unit: Unit) -> str:
        toolchain = self.toolchain
        command = [
            *toolchain.command(unit.language),
            *(("-x", unit.language) if unit.language == "c++" else ()),
            *unit.arguments,
            *toolchain.flags,
            f"-ffile-prefix-map={self.prefix_map}",
            "-c",
            str(unit.source),
            "-o",
            str(self._object(number)),
        ]
        return self._run(command, unit.folder)

    def _object(self, number: int) -> Path:
        return self.objects / f"{number}.o"

    def _run(self, command: list[str], folder: Path) -> str:
        """Nothing, or why it failed."""
        try:
            done = subprocess.run(
                command,
                cwd=folder,
                env=self.variables,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                timeout=SECONDS,
            )
        except subprocess.TimeoutExpired:
            return f"not compiled in {SECONDS} s"
        except OSError as error:
            return f"{command[0]} cannot be run: {error.strerror}"
        if done.returncode == 0:
            return ""
        lines = done.stdout.decode("utf-8", "replace").splitlines()
        said = [line for line in lines if COMPLAINT.search(line)] or lines
        return "\n".join(said[:QUOTED]) or f"exit code {done.returncode}"


def function_names(path: Path) -> list[str]:
    """The functions that a file's symbol table names, those of libgcc and the like among them."""
    try:
        symbols = read_elf(path.read_bytes(), str(path)).symbols
    except FormatError:
        return []
    return sorted(
        symbol.name
        for symbol in symbols.of_kinds(SymbolKind.FUNCTION)
        if symbol.size > 0 and symbol.section != UNDEFINED
    )
