"""Builds many projects, one after the other; one that fails does not stop the next."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from graphkin._support.files import write_atomically
from graphkin.binaries.building.debian import default_cache, fetch
from graphkin.binaries.building.projects.fingerprints import Fingerprint, fingerprint_tree
from graphkin.binaries.building.projects.one_project import (
    FINGERPRINT,
    ProjectReport,
    build_project,
)
from graphkin.binaries.building.projects.package_list import Package, PackageList
from graphkin.binaries.building.projects.toolchains import Toolchain, find_toolchains
from graphkin.binaries.building.source_code import Source, open_source
from graphkin.binaries.building.steps import workspace
from graphkin.errors import BuildError, GraphkinError, StorageError

TABLE = "projects.tsv"
COLUMNS = (
    "project",
    "version",
    "sha256",
    "system",
    "files",
    "left_out",
    "functions",
    "bytes",
    "configurations",
)

ProjectProgress = Callable[[int, int, str, str | ProjectReport], None]
"""Told (number, total, project, what it is at); last of all its report."""


def build_projects(
    packages: PackageList,
    output: Path,
    *,
    cache: Path | None = None,
    jobs: int = 1,
    progress: ProjectProgress = lambda number, total, name, state: None,
) -> list[ProjectReport]:
    """Builds every package of a list that is not there yet.

    Results are ``output/<project>/<configuration>.so``, and a table of all projects is in
    ``output/projects.tsv``. A file that is a copy of one in a project that is held out, or in an
    earlier one of the list, is left out.

    Args:
        packages: What to build.
        output: Folder for all projects.
        cache: Folder for downloads and fingerprints.
        jobs: Calls of a compiler side by side.
        progress: Called before each step of a package, and with its report.

    Raises:
        ConfigError: for a configuration that does not exist.
        MissingDependencyError: for a compiler that is not installed.
        StorageError: when results cannot be written.
    """
    names = [name for package in packages.packages for name in package.configurations]
    toolchains = {each.configuration: each for each in find_toolchains(names)}
    cache = cache or default_cache()
    total = len(packages.packages)
    nothing = np.empty(0, dtype=np.uint64)
    known = {
        name: Fingerprint(nothing, frozenset(functions))
        for name, functions in packages.held_out_names.items()
    }
    for name in packages.held_out:
        known[name] = held_out_fingerprint(name, cache, partial(progress, 0, total, name))
    held_out = sorted(known)
    reports = []
    for number, package in enumerate(packages.packages, 1):
        chosen = [toolchains[name] for name in dict.fromkeys(package.configurations)]
        note = partial(progress, number, total, package.name)
        report = _try(package, chosen, output, known, held_out, cache, jobs, note)
        progress(number, total, package.name, report)
        reports.append(report)
        if report.status != "failed":
            known[package.name] = Fingerprint.load(output / package.name / FINGERPRINT)
        write_table([each for each in reports if each.status != "failed"], output / TABLE)
    return reports


def held_out_fingerprint(
    name: str, cache: Path, note: Callable[[str], None] = lambda text: None
) -> Fingerprint:
    """The fingerprint of Debian's newest source of a package, kept in the cache."""
    control = fetch(name, cache, note)
    path = cache / "fingerprints" / f"{control.stem}.npz"
    if path.exists():
        return Fingerprint.load(path)
    note("reading its source")
    with workspace() as work:
        result = fingerprint_tree(open_source(control).unpack(work))
    result.save(path)
    return result


def write_table(reports: Sequence[ProjectReport], path: Path) -> None:
    """Writes a row for each project: versions, hashes and counts."""
    rows = ["\t".join(COLUMNS)]
    for report in reports:
        values = {
            **report.to_dict(),
            "left_out": len(report.left_out),
            "bytes": sum(each.file.size for each in report.configurations),
            "configurations": ",".join(each.configuration for each in report.configurations),
        }
        rows.append("\t".join(str(values[column]) for column in COLUMNS))
    write_atomically(path, ("\n".join(rows) + "\n").encode())


def check(reports: Sequence[ProjectReport]) -> None:
    """Raises a :class:`BuildError` that names the projects that failed, if there are any."""
    failed = [report.project for report in reports if report.status == "failed"]
    if failed:
        raise BuildError(f"{len(failed)} of {len(reports)} projects failed: {', '.join(failed)}")


def _try(
    package: Package,
    toolchains: Sequence[Toolchain],
    output: Path,
    known: dict[str, Fingerprint],
    held_out: Sequence[str],
    cache: Path,
    jobs: int,
    note: Callable[[str], None],
) -> ProjectReport:
    """Builds a package; what stops it is in its report."""
    code: Source | None = None
    try:
        code = open_source(package.source or fetch(package.name, cache, note, package.version))
        if package.sha256 not in ("", code.digest):
            raise BuildError(
                f"the source of {package.name} has the SHA-256 {code.digest}, "
                f"not {package.sha256} as the list says"
            )
        others = {name: value for name, value in known.items() if name != package.name}
        return build_project(
            package,
            code,
            toolchains,
            output,
            known=others,
            held_out=held_out,
            jobs=jobs,
            note=note,
        )
    except StorageError:
        raise
    except GraphkinError as error:
        report = ProjectReport(package.name, package.version, package.sha256, "failed", 0.0)
        if code is not None:
            report = replace(report, version=code.full_version, sha256=code.digest)
        return replace(report, error=str(error))
