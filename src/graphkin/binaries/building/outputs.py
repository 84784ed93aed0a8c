"""The results of a build: found, checked, copied and hashed."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from graphkin._support.files import hash_file
from graphkin.binaries.formats.elf.reader import read_elf
from graphkin.errors import FormatError


class OutputError(Exception):
    """A build that does not give what its recipe promises."""


@dataclass(frozen=True)
class BuiltFile:
    """One result."""

    name: str
    size: int
    """Bytes."""
    sha256: str


def collect(outputs: Mapping[str, str], tree: Path, target: Path) -> list[BuiltFile]:
    """Copies the results of a build from its tree to a folder.

    Args:
        outputs: Names, and patterns that find exactly one file each; links are followed.
        tree: Where the build ran.
        target: A folder that is made.

    Raises:
        OutputError: when a result is missing, ambiguous, or has lost its symbols.
    """
    paths = {name: _find(pattern, tree) for name, pattern in outputs.items()}
    for name, path in paths.items():
        _check(name, path)
    target.mkdir(parents=True)
    for name, path in paths.items():
        shutil.copyfile(path, target / name)
        (target / name).chmod(0o755)
    return [describe(target / name) for name in paths]


def intact(folder: Path, files: Sequence[BuiltFile]) -> bool:
    """Whether a folder has these files, unchanged."""
    paths = [folder / file.name for file in files]
    if not all(path.is_file() for path in paths):
        return False
    return [describe(path) for path in paths] == list(files)


def _find(pattern: str, tree: Path) -> Path:
    root = tree.resolve()
    matches = {path.resolve() for path in tree.glob(pattern)}
    inside = sorted(path for path in matches if path.is_relative_to(root) and path.is_file())
    if not inside:
        raise OutputError(f"the build made no file {pattern}")
    if len(inside) > 1:
        names = ", ".join(str(path.relative_to(root)) for path in inside)
        raise OutputError(f"the build made several files {pattern}: {names}")
    return inside[0]


def _check(name: str, path: Path) -> None:
    with open(path, "rb") as file:
        start = file.read(4)
    if not start:
        raise OutputError(f"the build made an empty file {name}")
    if start != b"\x7fELF":
        return
    try:
        has_symbols = bool(len(read_elf(path.read_bytes(), name).symbols))
    except FormatError as error:
        raise OutputError(str(error)) from error
    if not has_symbols:
        raise OutputError(f"{name} has no symbol table: the package strips what it builds")


def describe(path: Path) -> BuiltFile:
    """Size and hash of a file."""
    return BuiltFile(path.name, path.stat().st_size, hash_file(path))
