"""Lists of packages to build: a TOML file that says which, and what is special about each."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from graphkin._support.files import PathLike, read_file
from graphkin._support.settings import build, check_types
from graphkin.binaries.building.build_recipes import NAME
from graphkin.errors import ConfigError

SYSTEMS = ("", "autotools", "cmake", "meson", "make")


@dataclass(frozen=True)
class Package:
    """A package, and how its build differs from the usual. Most need a name only."""

    name: str
    """Debian's source package, and the name of the project's folder."""
    configurations: list[str] = field(default_factory=list)
    """Such as ``x86_64-gcc-O2``."""
    version: str = ""
    """Debian's version, if it must be this one and not the newest."""
    sha256: str = ""
    """Hash of the ``.dsc`` file, which has the hashes of all others."""
    source: str = ""
    """A folder, a tarball or a ``.dsc`` file, if the code is not Debian's."""
    system: str = ""
    """``autotools``, ``cmake``, ``meson`` or ``make``, if the source has several."""
    folder: str = "."
    """Where the build system is, inside the source."""
    options: list[str] = field(default_factory=list)
    """More arguments of the step that configures; of ``make``, where that is all there is."""
    targets: list[str] = field(default_factory=list)
    """What to make, if not everything."""
    only: list[str] = field(default_factory=list)
    """Patterns of source files; others are left out."""
    leave_out: list[str] = field(default_factory=list)
    """Patterns of source files that are left out."""

    def __post_init__(self) -> None:
        check_types(self)
        if not NAME.fullmatch(self.name):
            raise ConfigError(
                f"a package's name is letters, digits and + . _ - only, got {self.name!r}"
            )
        if self.system not in SYSTEMS:
            known = ", ".join(SYSTEMS[1:])
            raise ConfigError(f"system of {self.name} must be one of {known}; got {self.system!r}")
        if self.folder.startswith("/") or ".." in self.folder.split("/"):
            raise ConfigError(f"folder of {self.name} must lie in its source, got {self.folder!r}")
        for key in ("configurations", "options", "targets", "only", "leave_out"):
            for word in getattr(self, key):
                if not isinstance(word, str):
                    raise ConfigError(f"{key} of {self.name} must hold strings, got {word!r}")


@dataclass(frozen=True)
class PackageList:
    """Packages, and projects whose code must not be among theirs."""

    packages: list[Package]
    held_out: list[str] = field(default_factory=list)
    """Debian's source packages; a file that is a copy of one of theirs is left out."""
    held_out_names: dict[str, list[str]] = field(default_factory=dict)
    """Names of functions of projects that are held out, and whose source cannot be had."""


def read_package_list(path: PathLike) -> PackageList:
    """Reads a list.

    ``configurations`` of a package is a list, or the name of one in the table
    ``[configurations]``; its ``source`` is relative to the list.

    Raises:
        ConfigError: for an unknown key, a wrong type, or a package that is there twice.
    """
    try:
        values = tomllib.loads(read_file(path).decode("utf-8"))
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"{path} is not valid TOML: {error}") from error
    try:
        return _parse(values, Path(path).parent)
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from error


def _parse(values: dict[str, Any], folder: Path) -> PackageList:
    sets = values.pop("configurations", {})
    entries = values.pop("packages", [])
    held_out = values.pop("held_out", [])
    names = values.pop("held_out_names", {})
    if values:
        known = "configurations, packages, held_out, held_out_names"
        raise ConfigError(f"unknown key {next(iter(values))!r}; known: {known}")
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise ConfigError("packages must be tables: [[packages]]")
    if not isinstance(held_out, list) or not all(isinstance(name, str) for name in held_out):
        raise ConfigError(f"held_out must be a list of names, got {held_out!r}")
    if not isinstance(names, dict) or not all(isinstance(each, list) for each in names.values()):
        raise ConfigError(f"held_out_names must be a table of lists, got {names!r}")
    packages = [_package(entry, sets, folder) for entry in entries]
    built = [package.name for package in packages]
    for name in built:
        if built.count(name) > 1:
            raise ConfigError(f"{name} is there twice")
        if name in held_out or name in names:
            raise ConfigError(f"{name} is a package to build and held out at once")
    return PackageList(packages, held_out, names)


def _package(entry: dict[str, Any], sets: dict[str, list[str]], folder: Path) -> Package:
    name = entry.get("configurations", [])
    if isinstance(name, str):
        if name not in sets:
            raise ConfigError(f"there are no configurations {name!r}; known: {', '.join(sets)}")
        entry = entry | {"configurations": sets[name]}
    if "name" not in entry:
        raise ConfigError(f"a package needs 'name', got {entry!r}")
    package = build(Package, entry, "package")
    if not package.source:
        return package
    return replace(package, source=str(folder / package.source))
