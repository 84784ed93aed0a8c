"""Recipes: how a C package is built, as data. A recipe is a TOML file."""

from __future__ import annotations

import hashlib
import json
import re
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from importlib.resources import files
from pathlib import PurePosixPath

from graphkin._support.files import PathLike, read_file
from graphkin._support.settings import build, check_types
from graphkin.errors import ConfigError

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9+._-]*")
PLACEHOLDER = re.compile(r"\{(\w*)\}")
PLACEHOLDERS = ("cc", "level", "jobs", "triplet", "machine", "prefix")
CROSS = "{cross}"
"""The argument that stands for all of a recipe's ``cross`` arguments."""


@dataclass(frozen=True)
class BuildRecipe:
    """How to build one package, with any compiler and at any level.

    The compiler that ``{cc}`` names adds the level and ``-g1`` behind whatever the package asks
    for, so that a recipe need not fight with the package about its flags.
    """

    name: str
    about: str
    """One line for the list of recipes."""
    steps: list[list[str]]
    """Commands, each a list of arguments: no shell reads them. They run in a copy of the source.

    ``{cc}`` is the compiler's name, ``{level}`` the level (``O2``), ``{jobs}`` the number of
    parallel jobs, ``{triplet}`` what the code is compiled for (``aarch64-linux-gnu``),
    ``{machine}`` its first part, ``{prefix}`` is ``aarch64-linux-gnu-`` when compiling for another
    machine and empty otherwise. The argument ``{cross}`` stands for all arguments of ``cross``.
    """
    outputs: dict[str, str]
    """The name of each result, and the pattern that finds it in the source: exactly one file."""
    debian: str = ""
    """Debian's source package, where it is not called as the recipe."""
    cross: list[str] = field(default_factory=list)
    """Arguments for compiling for another machine only."""
    environment: dict[str, str] = field(default_factory=dict)
    """Variables for the steps, with the same placeholders."""
    needs: dict[str, str] = field(default_factory=dict)
    """Each program that the steps run, and the apt package that has it."""

    def __post_init__(self) -> None:
        check_types(self)
        _check_name("name", self.name)
        if self.debian:
            _check_name("debian", self.debian)
        if not self.steps or not self.outputs:
            missing = "outputs" if self.steps else "steps"
            raise ConfigError(f"recipe {self.name} has no {missing}; it needs at least one")
        for step in self.steps:
            if not isinstance(step, list) or not step:
                raise ConfigError(f"a step is a list of arguments, got {step!r}")
            _check_words("steps", step)
        _check_words("cross", self.cross)
        for key in ("environment", "needs", "outputs"):
            _check_words(key, list(getattr(self, key).values()))
        for name, pattern in self.outputs.items():
            _check_name("an output's name", name)
            path = PurePosixPath(pattern)
            if not pattern or path.is_absolute() or ".." in path.parts:
                raise ConfigError(f"output {name} must lie in the source, got {pattern!r}")

    @property
    def source_package(self) -> str:
        """The name of Debian's source package."""
        return self.debian or self.name

    @property
    def digest(self) -> str:
        """SHA-256 of what the recipe says; comments in its file do not count."""
        return hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()

    def commands(self, values: Mapping[str, str], cross: bool) -> list[list[str]]:
        """The steps with their placeholders filled in."""
        extra = self.cross if cross else []
        plain = [
            [word for argument in step for word in (extra if argument == CROSS else [argument])]
            for step in self.steps
        ]
        return [[_fill(word, values) for word in step] for step in plain]

    def variables(self, values: Mapping[str, str]) -> dict[str, str]:
        """The environment with its placeholders filled in."""
        return {key: _fill(value, values) for key, value in self.environment.items()}


def read_recipe(path: PathLike) -> BuildRecipe:
    """A recipe from a file.

    Raises:
        ConfigError: for an unknown key, a wrong type or a placeholder that does not exist.
    """
    return _parse(read_file(path), str(path))


def known_recipes() -> dict[str, BuildRecipe]:
    """The recipes that come with graphkin, by name."""
    folder = files("graphkin.binaries.building") / "recipes"
    entries = [entry for entry in folder.iterdir() if entry.name.endswith(".toml")]
    recipes = [_parse(entry.read_bytes(), entry.name) for entry in entries]
    return {recipe.name: recipe for recipe in sorted(recipes, key=lambda recipe: recipe.name)}


def known_recipe(name: str) -> BuildRecipe:
    """The recipe of a package."""
    known = known_recipes()
    if name not in known:
        names = ", ".join(known)
        raise ConfigError(
            f"there is no recipe for {name!r}, only for {names}; "
            f"write one and name its file with --recipe-file"
        )
    return known[name]


def _parse(content: bytes, label: str) -> BuildRecipe:
    try:
        values = tomllib.loads(content.decode("utf-8"))
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"{label} is not valid TOML: {error}") from error
    for key in ("name", "about", "steps", "outputs"):
        if key not in values:
            raise ConfigError(f"{label}: a recipe needs {key!r}")
    try:
        return build(BuildRecipe, values, "recipe")
    except ConfigError as error:
        raise ConfigError(f"{label}: {error}") from error


def _check_name(what: str, name: str) -> None:
    # Names become folders and files, and arguments of programs.
    if not NAME.fullmatch(name):
        raise ConfigError(f"{what} must be letters, digits and + . _ - only, got {name!r}")


def _check_words(what: str, words: list[str]) -> None:
    for word in words:
        if not isinstance(word, str):
            raise ConfigError(f"{what} must hold strings, got {word!r}")
        if "\0" in word:
            raise ConfigError(f"{what} holds a zero byte: {word!r}")
        for name in () if word == CROSS and what == "steps" else PLACEHOLDER.findall(word):
            if name not in PLACEHOLDERS:
                known = ", ".join(PLACEHOLDERS)
                raise ConfigError(f"unknown placeholder {{{name}}} in {word!r}; known: {known}")


def _fill(word: str, values: Mapping[str, str]) -> str:
    return PLACEHOLDER.sub(lambda match: values[match[1]], word)
