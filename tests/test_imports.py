"""Importing graphkin costs nothing until something of it is used."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions, version

import pytest

import graphkin
from tests.paths import REPOSITORY

LATER_MODULES = ("compression",)
"""Of the standard library, from Python 3.14 on."""
HEAVY = ("torch", "numba", "numpy", "sklearn", "scipy", "matplotlib", "networkx", "safetensors")


@pytest.mark.parametrize("module", ["graphkin", "graphkin.cli.main", "graphkin.errors"])
def test_import_is_light(module: str) -> None:
    code = f"import {module}, sys; print(*sorted(set(sys.modules) & set({HEAVY!r})))"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.stderr == ""
    assert result.stdout.split() == []


@pytest.mark.parametrize("name", graphkin.__all__)
def test_public_names_resolve(name: str) -> None:
    actual = getattr(graphkin, name)
    assert actual.__name__ == name
    assert actual.__module__.startswith("graphkin.")


def test_public_names_are_listed() -> None:
    assert set(graphkin.__all__) <= set(dir(graphkin))
    assert "__version__" in dir(graphkin)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'graphkin' has no attribute 'Grahp'"):
        graphkin.Grahp  # noqa: B018


def test_version_is_that_of_the_package() -> None:
    assert graphkin.__version__ == version("graphkin")


def test_every_import_is_a_declared_dependency() -> None:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    named = [*project["dependencies"], *(item for extra in extras.values() for item in extra)]
    declared = {re.split(r"[\[<>=;]", item)[0].lower().replace("_", "-") for item in named}
    imported = set()
    for file in (REPOSITORY / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Import):
                imported |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                imported.add(node.module.partition(".")[0])
    foreign = imported - set(sys.stdlib_module_names) - {"graphkin", *LATER_MODULES}
    distributions = packages_distributions()
    undeclared = {
        module
        for module in foreign
        if declared.isdisjoint(
            name.lower().replace("_", "-") for name in distributions.get(module, [module])
        )
    }
    assert undeclared == set()
