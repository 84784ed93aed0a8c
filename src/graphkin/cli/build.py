"""``build``: packages under many compilers and levels, for many processors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from graphkin.cli.options import Jobs, Json, OutputFolder, checked_jobs
from graphkin.errors import ConfigError

if TYPE_CHECKING:
    from graphkin.binaries.building import BuildRecipe, Outcome
    from graphkin.binaries.building.projects import PackageList, ProjectReport


def register(app: typer.Typer) -> None:
    """Adds the verb to the application."""
    app.command("build")(build)


def build(
    packages: Annotated[
        list[str] | None,
        typer.Argument(
            help="Debian's source packages; without --configuration, one that has a recipe.",
        ),
    ] = None,
    configuration: Annotated[
        list[str] | None,
        typer.Option(
            help="Build for this processor, compiler and level, without a recipe: "
            "x86_64-gcc-O2, mipsel-gcc-O0, ...; repeatable."
        ),
    ] = None,
    package_list: Annotated[
        Path | None,
        typer.Option("--list", help="Build all packages of this TOML file, without recipes."),
    ] = None,
    held_out: Annotated[
        list[str] | None,
        typer.Option(
            help="With --configuration: leave out files that are copies of this package's; "
            "repeatable."
        ),
    ] = None,
    compilers: Annotated[
        str,
        typer.Option(help="Compilers, with commas: gcc-12,clang-14@aarch64-linux-gnu."),
    ] = "gcc-12,clang-14",
    levels: Annotated[str, typer.Option(help="Optimisation levels, with commas.")] = "O0,O1,O2,O3",
    output: OutputFolder = Path("builds"),
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
    recipes: Annotated[bool, typer.Option("--recipes", help="List the recipes and exit.")] = False,
    as_json: Json = False,
) -> None:
    """Compile packages under many compilers and levels, from Debian's sources."""
    from graphkin.binaries.building import build_package, find_compiler, known_recipes, open_source
    from graphkin.binaries.building.compilers import check_level
    from graphkin.binaries.building.debian import fetch

    if recipes:
        _print_recipes(list(known_recipes().values()), as_json)
        return
    names = packages or []
    if configuration or package_list is not None:
        packages_to_build = _package_list(
            names, configuration or [], package_list, held_out or [], source
        )
        _build_projects(packages_to_build, output, cache, checked_jobs(jobs), as_json)
        return
    if len(names) > 1:
        raise ConfigError(
            f"recipes build one package at a time, got {' '.join(names)}; with --configuration, "
            f"packages are built without recipes"
        )
    chosen = _recipe(names[0] if names else None, recipe_file)
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
                "name a package, or a file with --recipe-file; --recipes lists the recipes"
            )
        return known_recipe(package)
    recipe = read_recipe(file)
    if package not in (None, recipe.name):
        raise ConfigError(f"{file} is a recipe for {recipe.name!r}, not for {package!r}")
    return recipe


def _package_list(
    names: list[str], config: list[str], file: Path | None, held_out: list[str], source: Path | None
) -> PackageList:
    from graphkin.binaries.building.projects import Package, PackageList, read_package_list

    if file is not None:
        if names or config or held_out or source:
            raise ConfigError(
                f"{file} says which packages are built and how; give either --list, or packages, "
                f"--configuration, --held-out and --source"
            )
        return read_package_list(file)
    if not names:
        raise ConfigError("name the packages to build, or a file with --list")
    if source is not None and len(names) > 1:
        raise ConfigError(f"--source is the code of one package, got {' '.join(names)}")
    code = str(source) if source is not None else ""
    return PackageList([Package(name, config, source=code) for name in names], held_out)


def _build_projects(
    packages: PackageList, output: Path, cache: Path | None, jobs: int, as_json: bool
) -> None:
    from graphkin.binaries.building.projects import build_projects
    from graphkin.binaries.building.projects.all_projects import check

    reports = build_projects(packages, output, cache=cache, jobs=jobs, progress=_project_progress)
    if as_json:
        typer.echo(json.dumps([report.to_dict() for report in reports]))
    else:
        width = max(len(report.project) for report in reports)
        for report in reports:
            typer.echo(f"{report.project:<{width}}  {report.status:<6}  {_summary(report)}")
        typer.echo(output)
    check(reports)


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


def _project_progress(number: int, total: int, name: str, state: str | ProjectReport) -> None:
    label = f"[{number}/{total}] {name}"
    if isinstance(state, str):
        _note(f"{label}: {state}")
        return
    verb = {"built": f"built in {state.seconds:.0f} s", "kept": "is up to date"}
    _note(f"{label} {verb.get(state.status, 'failed')}: {_summary(state)}")
    for configuration, reason in state.given_up.items():
        _note(f"{label} {configuration} was given up: {reason}")


def _summary(report: ProjectReport) -> str:
    if report.error is not None:
        return report.error
    size = sum(each.file.size for each in report.configurations) / 1e6
    return (
        f"{len(report.configurations)} configurations of {report.files} files, "
        f"{report.functions} functions in all, {size:.1f} MB"
    )


def _files(outcome: Outcome) -> str:
    return ", ".join(f"{file.name} {file.size / 1e6:.2f} MB" for file in outcome.files)
