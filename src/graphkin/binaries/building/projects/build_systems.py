"""Build systems: found by their files, configured without assembler, tests and tools."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Literal

from graphkin.binaries.building.steps import StepError, run_step
from graphkin.errors import BuildError

SystemName = Literal["autotools", "cmake", "meson", "make"]
BUILD_FOLDER = "graphkin-build"
"""Inside the source, for build systems that want a folder of their own."""
STEP_SECONDS = 3600
"""Time for one step: one that asks a question at a terminal would never end."""
UNWANTED = re.compile(
    r"(.*[_-])?(asm|assembly|assembler|assembler-code|simd|mmx\w*|sse\w*|avx\w*|neon|altivec|vsx|msa|"
    r"intrinsics|rtcd|tests?|unit[_-]?tests?|testing|testsuite|test[_-]programs|install[_-]tests|"
    r"examples?|samples?|demos?|docs?|documentation|doxygen|doxygen[_-]\w+|gtk[_-]doc\w*|man|manpages?|"
    r"html|nls|werror|fuzz\w*|bench|benchmarks?|valgrind|introspection|vala|vapi|installed[_-]tests)",
    re.I,
)
"""Options that are switched off: what is not C, is the same everywhere, or is not the project."""
LEAVE_ON = re.compile(r"(.*[_-])?(no|disable|without|skip)[_-].*", re.I)
"""Switched off, these would mean the opposite."""
PLAIN = ("shared", "dependency-tracking", "silent-rules", "maintainer-mode")
"""A static library is compiled once, a shared one twice; the rest saves time."""


@dataclass(frozen=True)
class StepRunner:
    """Runs the steps of a build in a folder, with a log."""

    folder: Path
    variables: dict[str, str]
    log: IO[bytes]
    jobs: int = 1

    def run(self, *command: str, more: dict[str, str] | None = None) -> None:
        """Runs a command, or raises a :class:`StepError`."""
        self._announce(command)
        run_step(list(command), self.folder, self.variables | (more or {}), self.log, STEP_SECONDS)

    def ask(self, *command: str) -> str:
        """What a command prints; nothing where it fails."""
        self._announce(command)
        answer = self.folder / ".graphkin-answer"
        try:
            with open(answer, "w+b") as file:
                run_step(list(command), self.folder, self.variables, file, STEP_SECONDS)
                file.seek(0)
                return file.read().decode("utf-8", "replace")
        except StepError:
            return ""
        finally:
            answer.unlink(missing_ok=True)

    def _announce(self, command: Sequence[str]) -> None:
        self.log.write(f"\n$ {shlex.join(command)}\n".encode("utf-8", "replace"))
        self.log.flush()


def detect(folder: Path) -> SystemName:
    """The build system of a folder with source code.

    Raises:
        BuildError: where there is none that is known.
    """
    files: dict[str, SystemName] = {
        "configure": "autotools",
        "CMakeLists.txt": "cmake",
        "meson.build": "meson",
        # Without the script, which must then be made, the others are easier.
        "configure.ac": "autotools",
        "configure.in": "autotools",
        "Makefile": "make",
        "makefile": "make",
        "GNUmakefile": "make",
    }
    for name, system in files.items():
        if (folder / name).is_file():
            return system
    raise BuildError(f"there is none of {', '.join(files)} in the source; name its folder")


def configure(system: SystemName, runner: StepRunner, options: Sequence[str]) -> list[str]:
    """Configures the source; the command that builds it.

    Args:
        system: Its build system.
        runner: For the steps, in the folder of the source.
        options: More arguments; behind ours, so that they win.

    Raises:
        StepError: where a step fails.
    """
    systems: dict[SystemName, Callable[[StepRunner, Sequence[str]], list[str]]] = {
        "autotools": _autotools,
        "cmake": _cmake,
        "meson": _meson,
        "make": lambda runner, options: ["make", "-k", f"-j{runner.jobs}", *options],
    }
    return systems[system](runner, options)


def unwanted(names: Sequence[str]) -> list[str]:
    """Those of a build system's options that are switched off."""
    return [name for name in names if UNWANTED.fullmatch(name) and not LEAVE_ON.fullmatch(name)]


def _autotools(runner: StepRunner, options: Sequence[str]) -> list[str]:
    script = runner.folder / "configure"
    if not script.is_file():
        for name in ("AUTHORS", "ChangeLog", "NEWS", "README"):
            (runner.folder / name).touch()  # automake insists on them
        runner.run("autoreconf", "--force", "--install")
    # Archives of old tools lose the permission.
    script.chmod(script.stat().st_mode | 0o755)
    text = runner.ask("./configure", "--help")
    features = re.findall(r"--(?:enable|disable)-([A-Za-z0-9][\w-]*)", text)
    switches = [*unwanted(features), *(name for name in PLAIN if name in features)]
    off = [f"--disable-{name}" for name in dict.fromkeys(switches)]
    runner.run("./configure", *off, *options)
    return ["make", "-k", f"-j{runner.jobs}"]


def _cmake(runner: StepRunner, options: Sequence[str]) -> list[str]:
    call = ["cmake", "-S", ".", "-B", BUILD_FOLDER, "-DCMAKE_BUILD_TYPE=None"]
    runner.run(*call, "-DBUILD_TESTING=OFF", *options)
    cache = (runner.folder / BUILD_FOLDER / "CMakeCache.txt").read_text("utf-8", "replace")
    switches = re.findall(r"^([\w-]+):BOOL=(?:ON|TRUE|1|YES)$", cache, re.M | re.I)
    off = [f"-D{name}=OFF" for name in unwanted(switches)]
    if off:
        runner.run(*call, *off, *options)
    return ["make", "-k", "-C", BUILD_FOLDER, f"-j{runner.jobs}"]


def _meson(runner: StepRunner, options: Sequence[str]) -> list[str]:
    answer = runner.ask("meson", "introspect", "--buildoptions", "meson.build")
    try:
        entries = json.loads(answer[answer.index("[") :])
    except ValueError:
        entries = []
    kinds = {entry["name"]: entry["type"] for entry in entries if entry["section"] == "user"}
    values = {"boolean": "false", "combo": "disabled"}  # a feature is a combo, too
    choices = {entry["name"]: entry.get("choices") or [] for entry in entries}
    off = [
        f"-D{name}={values[kinds[name]]}"
        for name in unwanted(list(kinds))
        if kinds[name] == "boolean" or "disabled" in choices[name]
    ]
    plain = ["--buildtype=plain", "--wrap-mode=nodownload", "--default-library=static"]
    runner.run("meson", "setup", BUILD_FOLDER, *plain, *off, *options)
    return ["ninja", "-k", "0", "-C", BUILD_FOLDER, f"-j{runner.jobs}"]
