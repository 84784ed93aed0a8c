"""Importing graphkin costs nothing until something of it is used."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import version

import pytest

import graphkin

HEAVY = ("torch", "numba", "numpy", "sklearn", "scipy", "matplotlib", "networkx", "safetensors")


@pytest.mark.parametrize("module", ["graphkin", "graphkin.cli.main", "graphkin.errors"])
def test_import_is_light(module: str) -> None:
    code = f"import {module}, sys; print(*sorted(set(sys.modules) & set({HEAVY!r})))"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.stderr == ""
    assert result.stdout.split() == []


@pytest.mark.parametrize("name", graphkin.__all__)
def test_public_names_resolve(name: str) -> None:
    found = getattr(graphkin, name)
    assert found.__name__ == name
    assert found.__module__.startswith("graphkin.")


def test_public_names_are_listed() -> None:
    assert set(graphkin.__all__) <= set(dir(graphkin))
    assert "__version__" in dir(graphkin)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'graphkin' has no attribute 'Grahp'"):
        graphkin.Grahp  # noqa: B018


def test_version_is_that_of_the_package() -> None:
    assert graphkin.__version__ == version("graphkin")
