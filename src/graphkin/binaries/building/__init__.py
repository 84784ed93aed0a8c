"""Corpora from source: packages compiled under many compilers and optimisation levels."""

from graphkin.binaries.building.build import BuildReport, Outcome, build_package
from graphkin.binaries.building.build_recipes import (
    BuildRecipe,
    known_recipe,
    known_recipes,
    read_recipe,
)
from graphkin.binaries.building.compilers import Compiler, find_compiler
from graphkin.binaries.building.source_code import Source, open_source

__all__ = [
    "BuildRecipe",
    "BuildReport",
    "Compiler",
    "Outcome",
    "Source",
    "build_package",
    "find_compiler",
    "known_recipe",
    "known_recipes",
    "open_source",
    "read_recipe",
]
