"""Builds a project: configured once, then compiled for every configuration from the same files."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from fnmatch import fnmatch
from pathlib import Path
from typing import IO, Any, Literal, cast

from graphkin._support.files import locked, read_file, storing, write_atomically
from graphkin.binaries.building.outputs import BuiltFile, describe, intact
from graphkin.binaries.building.projects.build_systems import (
    StepRunner,
    SystemName,
    configure,
    detect,
)
from graphkin.binaries.building.projects.cross_compiling import CrossCompiler, function_names
from graphkin.binaries.building.projects.fingerprints import (
    Fingerprint,
    find_copy,
    fingerprint_files,
)
from graphkin.binaries.building.projects.package_list import Package
from graphkin.binaries.building.projects.recording import VARIABLE, read_calls, write_wrappers
from graphkin.binaries.building.projects.target_headers import (
    list_files,
    rewrite_headers,
    set_times,
)
from graphkin.binaries.building.projects.toolchains import Toolchain
from graphkin.binaries.building.projects.units import Unit, find_units
from graphkin.binaries.building.source_code import Source
from graphkin.binaries.building.steps import StepError, environment, workspace
from graphkin.errors import BuildError

MANIFEST = "manifest.json"
FINGERPRINT = "fingerprint.npz"
LOG = "build.log"
NOT_THE_PROJECT = re.compile(
    r"(unit)?-?tests?|testing|testsuite|t|check|examples?|samples?|demos?|bench(marks?)?|fuzz(ing|ers?)?|"
    r"docs?|(test|bench|fuzz|example)[-_].*|.*[-_](tests?|bench(mark)?|fuzz(er)?|example)|CMakeFiles|"
    r"meson-private",
    re.I,
)
"""Folders, and files without their ending, whose code nobody ships."""
MAX_FAILED = 0.5
"""Share of files that a configuration may fail to compile before it is given up itself."""

Note = Callable[[str], None]


@dataclass(frozen=True)
class BuiltConfiguration:
    """One result."""

    configuration: str
    file: BuiltFile
    functions: int
    """Functions in its symbol table."""


@dataclass(frozen=True)
class ProjectReport:
    """What became of a project."""

    project: str
    version: str
    """Debian's, or that of the name of a tarball or folder."""
    sha256: str
    """Of the source: the ``.dsc`` file, the tarball or all files of the folder."""
    status: Literal["built", "kept", "failed"]
    """``kept`` when it was there already, made from the same code in the same way."""
    seconds: float
    system: str = ""
    files: int = 0
    """Source files in every result."""
    functions: int = 0
    """Names of functions that every result has."""
    configurations: list[BuiltConfiguration] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)
    """Source files, and why each is not in the results."""
    given_up: dict[str, str] = field(default_factory=dict)
    """Configurations, and why each was not built."""
    error: str | None = None

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def build_project(
    package: Package,
    source: Source,
    toolchains: Sequence[Toolchain],
    output: Path,
    *,
    known: Mapping[str, Fingerprint] | None = None,
    held_out: Sequence[str] = (),
    jobs: int = 1,
    note: Note = lambda text: None,
) -> ProjectReport:
    """Builds ``output/<project>/<configuration>.so`` for every toolchain.

    A source file is in all results or in none: one that a single toolchain cannot compile is left
    out of all, so that what differs between results is the compiler alone. A toolchain that fails
    on most files is given up instead.

    Args:
        package: What is special about its build.
        source: Its code.
        toolchains: What to build it with.
        output: Folder for all projects.
        known: Fingerprints of projects whose code is left out.
        held_out: Names of those that are known whatever was built before.
        jobs: Calls of a compiler side by side.
        note: Is told what takes time.

    Raises:
        BuildError: when nothing can be built; the log says why.
        StorageError: when results cannot be written.
    """
    folder = output.absolute() / package.name
    with storing(f"write to {folder}"):
        folder.mkdir(parents=True, exist_ok=True)
    run = _ProjectRun(package, source, toolchains, folder, known or {}, jobs, note)
    made = _digest(package, source, toolchains, held_out)
    busy = f"another process is building in {folder}; wait for it"
    with locked(folder / ".lock", busy):
        kept = _finished(folder, made)
        if kept is not None:
            return kept
        for path in (folder / MANIFEST, folder / FINGERPRINT, *folder.glob("*.so")):
            path.unlink(missing_ok=True)
        with open(folder / LOG, "wb") as log, workspace() as work:
            report = run.build(work, log)
        document = {"made": made} | report.to_dict()
        write_atomically(folder / MANIFEST, (json.dumps(document, indent=1) + "\n").encode())
    return report


@dataclass(frozen=True)
class _ProjectRun:
    """One call of :func:`build_project`."""

    package: Package
    source: Source
    toolchains: Sequence[Toolchain]
    folder: Path
    known: Mapping[str, Fingerprint]
    jobs: int
    note: Note

    def build(self, work: Path, log: IO[bytes]) -> ProjectReport:
        start = time.monotonic()
        tree = work / self.package.name
        shutil.copytree(self.source.unpack(work), tree, symlinks=True)
        set_times(tree)
        tools = work / "tools"
        tools.mkdir()
        write_wrappers(tools)
        system, units = self._configure(tree, tools, work / "calls", log)
        units, left_out = self._choose(units, tree)
        if not units:
            raise BuildError(f"{self.package.name} has no source files left; see {log.name}")
        self.note(f"{len(units)} files, {len(left_out)} left out")
        compiled = self._compile(units, tree, tools, work)
        given_up, failed = self._judge(compiled, len(units))
        for path, reason in failed.items():
            left_out[self._name(path, tree)] = reason
            log.write(f"\nleft out {path}: {reason}\n".encode("utf-8", "replace"))
        sources = [unit.source for unit in units if unit.source not in failed]
        compilers = [compiler for compiler, _ in compiled]
        built = self._link(compilers, units, frozenset(failed), given_up)
        if not built:
            name, reason = next(iter(given_up.items()))
            raise BuildError(f"no configuration of {self.package.name} was built; {name}: {reason}")
        fingerprint_files(sources).save(self.folder / FINGERPRINT)
        names = [set(function_names(self.folder / each.file.name)) for each in built]
        return ProjectReport(
            self.package.name,
            self.source.full_version,
            self.source.digest,
            "built",
            round(time.monotonic() - start, 1),
            system,
            len(sources),
            len(set.intersection(*names)),
            built,
            left_out,
            given_up,
        )

    def _configure(
        self, tree: Path, tools: Path, calls: Path, log: IO[bytes]
    ) -> tuple[str, list[Unit]]:
        """Configures and builds the project for this machine, and watches how."""
        root = tree / self.package.folder
        if not root.is_dir():
            raise BuildError(f"the source of {self.package.name} has no folder {root.name}")
        before = list_files(tree)
        system = cast(SystemName, self.package.system) or detect(root)
        # Some makefiles put include paths into CFLAGS, unless these are set.
        plain = {} if system == "make" else {"CFLAGS": "-O0", "CXXFLAGS": "-O0"}
        variables = environment(tools) | plain | {"CC": "gcc", "CXX": "g++"}
        runner = StepRunner(root, variables, log, self.jobs)
        self.note(f"configuring ({system})")
        calls.mkdir()
        try:
            command = configure(system, runner, self.package.options)
        except StepError as error:
            raise BuildError(
                f"cannot configure {self.package.name}: {error}; see {log.name}"
            ) from error
        try:
            runner.run(*command, *self.package.targets, more={VARIABLE: str(calls)})
        except StepError as error:
            # Documentation or a program that does not link takes nothing from what was compiled.
            log.write(f"\n{error}; going on with what was compiled\n".encode())
        units = find_units(read_calls(calls), tree)
        rewritten = rewrite_headers(tree, before)
        log.write(f"\n{len(units)} source files; rewritten: {rewritten}\n".encode())
        return system, units

    def _choose(self, units: Sequence[Unit], tree: Path) -> tuple[list[Unit], dict[str, str]]:
        """The units that are the project's own, and why the others are left out."""
        chosen, left_out = [], {}
        for unit in units:
            name = self._name(unit.source, tree)
            reason = self._reason(unit, name)
            if reason:
                left_out[name] = reason
            else:
                chosen.append(unit)
        return chosen, left_out

    def _reason(self, unit: Unit, name: str) -> str:
        package = self.package
        if package.only and not any(fnmatch(name, pattern) for pattern in package.only):
            return "not among the files to build"
        if any(fnmatch(name, pattern) for pattern in package.leave_out):
            return "left out by the list"
        path = Path(name)
        if any(NOT_THE_PROJECT.fullmatch(part) for part in (*path.parts[:-1], path.stem)):
            return "a test, an example or documentation"
        copy = find_copy(unit.source, self.known)
        if copy is not None:
            shares = f"{copy.runs:.0%} of its code, {copy.names:.0%} of its names"
            return f"a copy of {copy.project}: {shares}"
        return ""

    def _compile(
        self, units: Sequence[Unit], tree: Path, tools: Path, work: Path
    ) -> list[tuple[CrossCompiler, dict[Path, str]]]:
        home = f"/usr/src/{self.package.name}-{self.source.version}"
        errors = []
        for toolchain in self.toolchains:
            self.note(f"compiling {toolchain.configuration}")
            # A compiler for another processor finds its own assembler without our wrappers.
            variables = {**environment(tools)}
            variables["PATH"] = variables["PATH"].partition(":")[2]
            objects = work / "objects" / toolchain.configuration
            prefix_map = f"{tree.resolve()}={home}"
            compiler = CrossCompiler(toolchain, objects, variables, prefix_map, self.jobs)
            errors.append((compiler, compiler.compile(units)))
        return errors

    def _judge(
        self, errors: Sequence[tuple[CrossCompiler, dict[Path, str]]], count: int
    ) -> tuple[dict[str, str], dict[Path, str]]:
        """Configurations that are given up, and files that the others cannot compile."""
        given_up: dict[str, str] = {}
        failed: dict[Path, str] = {}
        for compiler, complaints in errors:
            name = compiler.toolchain.configuration
            if len(complaints) > MAX_FAILED * count:
                first = next(iter(complaints.values()))
                given_up[name] = f"{len(complaints)} of {count} files failed: {first}"
                continue
            for path, complaint in complaints.items():
                failed.setdefault(path, f"{name}: {complaint}")
        return given_up, failed

    def _link(
        self,
        compilers: Sequence[CrossCompiler],
        units: Sequence[Unit],
        failed: frozenset[Path],
        given_up: dict[str, str],
    ) -> list[BuiltConfiguration]:
        built = []
        for compiler in compilers:
            name = compiler.toolchain.configuration
            if name in given_up:
                continue
            path = self.folder / f"{name}.so"
            complaint = compiler.link(units, failed, path)
            if complaint:
                given_up[name] = f"cannot be linked: {complaint}"
                path.unlink(missing_ok=True)
                continue
            built.append(BuiltConfiguration(name, describe(path), len(function_names(path))))
        return built

    def _name(self, path: Path, tree: Path) -> str:
        return str(path.relative_to(tree.resolve()))


def _digest(
    package: Package, source: Source, toolchains: Sequence[Toolchain], held_out: Sequence[str]
) -> str:
    """A hash of all that decides what comes out, but for what was built before."""
    pins = ("version", "sha256", "source")
    described = {key: value for key, value in asdict(package).items() if key not in pins}
    described["configurations"] = {
        each.configuration: [each.c.version, *each.flags] for each in toolchains
    }
    values = [described, source.digest, sorted(held_out)]
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()


def _finished(folder: Path, made: str) -> ProjectReport | None:
    """What an earlier run built, if it is whole and would be built the same way again."""
    try:
        document = json.loads(read_file(folder / MANIFEST))
        if document.pop("made") != made:
            return None
        entries = document.pop("configurations")
        built = [
            BuiltConfiguration(
                entry["configuration"], BuiltFile(**entry["file"]), entry["functions"]
            )
            for entry in entries
        ]
        report = ProjectReport(**document | {"status": "kept"}, configurations=built)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    return report if intact(folder, [each.file for each in built]) else None
