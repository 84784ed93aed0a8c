"""``build``: a package under many compilers and levels."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from graphkin.cli.options import Jobs, Json, checked_jobs
from graphkin.errors import ConfigError

if TYPE_CHECKING:
    from graphkin.binaries.building import BuildRecipe, Outcome


def register(app: typer.Typer) -> None:
    """Adds the verb to the application."""
    app.command("build")(build)


def build(
    package: Annotated[
        str | None, typer.Argument(help="Package to build; it must have a recipe.")
    ] = None,
    compilers: Annotated[
        str,
        typer.Option(help="Compilers, with commas: gcc-12,clang-14@aarch64-linux-gnu."),
    ] = "gcc-12,clang-14",
    levels: Annotated[str, typer.Option(help="Optimisation levels, with commas.")] = "O0,O1,O2,O3",
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Write the results to this folder.")
    ] = Path("builds"),
    source: Annotated[
        Path | None,
        typer.Option(help="Build this folder, tarball or .dsc file, not Debian's newest."),
    ] = None,
    recipe_file: Annotated[
        Path | None, typer.Option(help="Read the recipe of the package from this TOML file.")
    ] = None,
    cache: Annotated[
        Path | None,
        typer.Option(help="Keep downloads in this folder.", show_default="~/.cache/graphkin"),
    ] = None,
    jobs: Jobs = None,
    list_recipes: Annotated[
        bool, typer.Option("--list", help="List the recipes and exit.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Compile a package under many compilers and levels, from Debian's source."""
    from graphkin.binaries.building import build_package, find_compiler, known_recipes, open_source
    from graphkin.binaries.building.compilers import check_level
    from graphkin.binaries.building.debian import fetch

    if list_recipes:
        _print_recipes(list(known_recipes().values()), as_json)
        return
    chosen = _recipe(package, recipe_file)
    wanted_levels = _words(levels, "--levels")
    for level in wanted_levels:
        check_level(level)
    chosen_compilers = [find_compiler(name) for name in _words(compilers, "--compilers")]
    path = source or fetch(chosen.source_package, cache, _note)
    report = build_package(
        chosen,
        open_source(path),
        chosen_compilers,
        wanted_levels,
        output,
        jobs=checked_jobs(jobs),
        progress=_progress,
    )
    if as_json:
        typer.echo(json.dumps(report.to_dict()))
    else:
        width = max(len(outcome.configuration) for outcome in report.configurations)
        for outcome in report.configurations:
            typer.echo(f"{outcome.configuration:<{width}}  {outcome.status:<6}  {_files(outcome)}")
        typer.echo(report.folder)
    report.check()


def _recipe(package: str | None, file: Path | None) -> BuildRecipe:
    from graphkin.binaries.building import known_recipe, read_recipe

    if file is None:
        if package is None:
            raise ConfigError(
                "name a package, or a file with --recipe-file; --list lists the recipes"
            )
        return known_recipe(package)
    recipe = read_recipe(file)
    if package not in (None, recipe.name):
        raise ConfigError(f"{file} is a recipe for {recipe.name!r}, not for {package!r}")
    return recipe


def _words(text: str, option: str) -> list[str]:
    words = [word.strip() for word in text.split(",") if word.strip()]
    if not words:
        raise ConfigError(f"{option} takes names with commas between them, got {text!r}")
    return words


def _print_recipes(recipes: list[BuildRecipe], as_json: bool) -> None:
    if as_json:
        fields = ("name", "about", "source_package")
        typer.echo(json.dumps([{key: getattr(each, key) for key in fields} for each in recipes]))
        return
    for recipe in recipes:
        typer.echo(f"{recipe.name:<12}{recipe.about}")


def _note(text: str) -> None:
    typer.echo(text, err=True)


def _progress(number: int, total: int, name: str, outcome: Outcome | None) -> None:
    label = f"[{number}/{total}] {name}"
    if outcome is None:
        _note(f"{label} ...")
    elif outcome.status == "kept":
        _note(f"{label} is up to date")
    elif outcome.error is not None:
        _note(f"{label} failed after {outcome.seconds:.1f} s: {outcome.error}")
    else:
        _note(f"{label} built in {outcome.seconds:.1f} s: {_files(outcome)}")


def _files(outcome: Outcome) -> str:
    return ", ".join(f"{file.name} {file.size / 1e6:.2f} MB" for file in outcome.files)
