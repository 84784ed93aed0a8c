"""Builds a package under many compilers and levels, each in a copy of its source."""

from __future__ import annotations

import json
import shlex
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO, Any, Literal

from graphkin._support.files import locked, read_file, storing, write_atomically
from graphkin.binaries.building.build_recipes import BuildRecipe
from graphkin.binaries.building.compilers import Compiler, check_level, check_works
from graphkin.binaries.building.outputs import BuiltFile, OutputError, collect, intact
from graphkin.binaries.building.source_code import Source
from graphkin.binaries.building.steps import StepError, environment, run_step, workspace
from graphkin.errors import BuildError, MissingDependencyError, StorageError

QUOTED_LINES = 12
"""Lines of a log that an error shows."""


@dataclass(frozen=True)
class Configuration:
    """One compiler at one level."""

    compiler: Compiler
    level: str

    @property
    def name(self) -> str:
        """The name of its folder: ``gcc-12-O2``."""
        return f"{self.compiler.spelling}-{self.level}"


@dataclass(frozen=True)
class Outcome:
    """What became of a configuration."""

    configuration: str
    status: Literal["built", "kept", "failed"]
    """``kept`` when it was there already, made from the same code in the same way."""
    seconds: float
    """Of building it, this time or earlier."""
    log: str
    files: list[BuiltFile] = field(default_factory=list)
    error: str | None = None


@dataclass(frozen=True)
class BuildReport:
    """What became of every configuration of a package."""

    package: str
    version: str
    folder: str
    configurations: list[Outcome]

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    def check(self) -> None:
        """Raises a :class:`BuildError` that names the failures, if there are any."""
        failed = [outcome for outcome in self.configurations if outcome.status == "failed"]
        if failed:
            names = ", ".join(outcome.configuration for outcome in failed)
            raise BuildError(
                f"{len(failed)} of {len(self.configurations)} configurations of {self.package} "
                f"failed: {names}; see {failed[0].log}"
            )


BuildProgress = Callable[[int, int, str, Outcome | None], None]
"""Told (number, total, configuration, outcome); before a build with no outcome yet."""


def build_package(
    recipe: BuildRecipe,
    source: Source,
    compilers: Sequence[Compiler],
    levels: Sequence[str],
    output: Path,
    *,
    jobs: int = 1,
    progress: BuildProgress = lambda number, total, name, outcome: None,
) -> BuildReport:
    """Builds every configuration that is not there yet.

    Results are in ``output/<package>-<version>/<compiler>-<level>/``, beside a log for each
    configuration, a stamp that says how it was made, and ``manifest.json`` about all of them.
    A configuration that fails does not stop the others.

    Args:
        recipe: How the package is built.
        source: Its code.
        compilers: What to build it with.
        levels: Optimisation levels, for example ``["O0", "O2"]``.
        output: Folder for all packages.
        jobs: Parallel jobs inside a configuration.
        progress: Called before each configuration that is built, and after every one.

    Raises:
        ConfigError: for a level that does not exist.
        MissingDependencyError: for a program that is not installed.
        StorageError: when results cannot be written.
    """
    for level in levels:
        check_level(level)
    configurations = [
        Configuration(compiler, level)
        for compiler in dict.fromkeys(compilers)
        for level in dict.fromkeys(levels)
    ]
    folder = output.absolute() / f"{recipe.name}-{source.version}"
    outcomes: list[Outcome] = []
    with storing(f"write to {folder}"):
        folder.mkdir(parents=True, exist_ok=True)
    busy = f"another process is building in {folder}; wait for it"
    with locked(folder / ".lock", busy), workspace() as work:
        run = _BuildRun(recipe, source, folder, work, jobs)
        kept = {each: run.finished(each) for each in configurations}
        run.check_tools([each for each, outcome in kept.items() if outcome is None])
        for number, (configuration, outcome) in enumerate(kept.items(), 1):
            if outcome is None:
                progress(number, len(kept), configuration.name, None)
                outcome = run.build(configuration)
                run.write_manifest()
            progress(number, len(kept), configuration.name, outcome)
            outcomes.append(outcome)
        run.write_manifest()
    return BuildReport(recipe.name, source.version, str(folder), outcomes)


@dataclass
class _BuildRun:
    """One call of :func:`build_package`."""

    recipe: BuildRecipe
    source: Source
    folder: Path
    work: Path
    """For the steps, and gone afterwards."""
    jobs: int
    _tree: Path | None = None
    """The unpacked source, once something needs it."""

    def finished(self, configuration: Configuration) -> Outcome | None:
        """What an earlier run built, if it is whole and would be built the same way again."""
        stamp = _read_stamp(self._stamp(configuration))
        if stamp is None or stamp["made"] != self._made(configuration):
            return None
        try:
            files = [BuiltFile(**entry) for entry in stamp["files"]]
        except TypeError:
            return None
        if not intact(self.folder / configuration.name, files):
            return None
        log = self.folder / f"{configuration.name}.log"
        return Outcome(configuration.name, "kept", stamp["seconds"], str(log), files)

    def check_tools(self, configurations: Sequence[Configuration]) -> None:
        """Refuses to begin what cannot end, before hours are spent on the rest."""
        if not configurations:
            return
        for program, package in self.recipe.needs.items():
            if shutil.which(program) is None:
                raise MissingDependencyError(
                    f"building {self.recipe.name} needs {program}, which is not here; "
                    f"install it with: apt-get install {package}"
                )
        for configuration in configurations:
            check_works(configuration.compiler, configuration.level)

    def build(self, configuration: Configuration) -> Outcome:
        """Builds one configuration from the beginning; its stamp is written last."""
        folder = self.work / configuration.name
        try:
            return self._build_in(folder, configuration)
        except StorageError:
            raise
        except OSError as error:
            raise StorageError(f"cannot build {configuration.name}: {error}") from error
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _build_in(self, folder: Path, configuration: Configuration) -> Outcome:
        target = self.folder / configuration.name
        log = self.folder / f"{configuration.name}.log"
        stamp = self._stamp(configuration)
        start = time.monotonic()
        stamp.unlink(missing_ok=True)
        shutil.rmtree(target, ignore_errors=True)
        with open(log, "wb") as file:
            try:
                tree = self._fresh_tree(folder)
                self._run_steps(configuration, tree, file)
                files = collect(self.recipe.outputs, tree, target)
            except (StepError, OutputError) as error:
                reason = f"{error}; the end of {log}:\n{_tail(log)}"
                file.write(f"\n{error}\n".encode())
                seconds = round(time.monotonic() - start, 3)
                return Outcome(configuration.name, "failed", seconds, str(log), error=reason)
        seconds = round(time.monotonic() - start, 3)
        document = {
            "configuration": configuration.name,
            "made": self._made(configuration),
            "seconds": seconds,
            "files": [asdict(file) for file in files],
        }
        write_atomically(stamp, _to_json(document))
        return Outcome(configuration.name, "built", seconds, str(log), files)

    def write_manifest(self) -> None:
        """Lists every configuration in the folder, whichever run built it."""
        stamps = [_read_stamp(path) for path in sorted(self.folder.glob("*.json"))]
        document = {
            "package": self.recipe.name,
            "version": self.source.version,
            "source": {"name": self.source.path.name, "sha256": self.source.digest},
            "configurations": [stamp for stamp in stamps if stamp is not None],
        }
        write_atomically(self.folder / "manifest.json", _to_json(document))

    def _made(self, configuration: Configuration) -> dict[str, Any]:
        """All that decides what comes out."""
        compiler = configuration.compiler
        return {
            "recipe": self.recipe.digest,
            "source": self.source.digest,
            "compiler": compiler.spelling,
            "compiler_version": compiler.version,
            "triplet": compiler.triplet,
            "flags": compiler.flags(configuration.level),
        }

    def _fresh_tree(self, folder: Path) -> Path:
        if self._tree is None:
            self._tree = self.source.unpack(self.work)
        tree = folder / self.recipe.name
        shutil.copytree(self._tree, tree, symlinks=True, ignore=shutil.ignore_patterns(".git"))
        return tree

    def _run_steps(self, configuration: Configuration, tree: Path, log: IO[bytes]) -> None:
        compiler = configuration.compiler
        tools = tree.parent / "tools"
        tools.mkdir()
        # Paths in the debug information, and with them the bytes of the result, do not depend on
        # where it was built.
        home = f"/usr/src/{self.recipe.name}-{self.source.version}"
        flags = [*compiler.flags(configuration.level), f"-ffile-prefix-map={tree}={home}"]
        compiler.wrap(tools, flags)
        values = {
            "cc": compiler.command,
            "level": configuration.level,
            "jobs": str(self.jobs),
            "triplet": compiler.triplet,
            "machine": compiler.machine,
            "prefix": compiler.prefix,
        }
        variables = environment(tools) | self.recipe.variables(values)
        log.write(f"{configuration.name}: {compiler.version}, {shlex.join(flags)}\n".encode())
        for command in self.recipe.commands(values, compiler.cross):
            log.write(f"\n$ {shlex.join(command)}\n".encode())
            log.flush()
            run_step(command, tree, variables, log)

    def _stamp(self, configuration: Configuration) -> Path:
        return self.folder / f"{configuration.name}.json"


def _tail(log: Path) -> str:
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    last = [line for line in lines if line.strip()][-QUOTED_LINES:]
    return "\n".join(f"    {line}" for line in last)


def _read_stamp(path: Path) -> dict[str, Any] | None:
    """A configuration's stamp; nothing if there is none, or what is there is none."""
    if path.name == "manifest.json" or not path.is_file():
        return None
    try:
        stamp = json.loads(read_file(path))
    except ValueError:
        return None
    keys = {"configuration", "made", "seconds", "files"}
    return stamp if isinstance(stamp, dict) and stamp.keys() == keys else None


def _to_json(document: dict[str, Any]) -> bytes:
    return (json.dumps(document, indent=2) + "\n").encode()
