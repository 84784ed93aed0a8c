"""The pictures of a target: tables, the sweep's curves, attention."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from graphkin.errors import ConfigError
from graphkin.research.reproduce.attention import draw_cases
from graphkin.research.reproduce.cells import Filled
from graphkin.research.reproduce.render.png import draw_sweep, draw_tables
from graphkin.research.reproduce.render.text import QUICK
from graphkin.research.reproduce.results import Result
from graphkin.research.reproduce.sections import TABLES
from graphkin.results.drawing.files import PICTURES


def check_destination(target: str, path: Path) -> None:
    """Refuses one file for a target of several pictures, and a file of an unknown kind."""
    if path.suffix and path.suffix.lower() not in PICTURES and not path.is_dir():
        known = ", ".join(sorted(PICTURES))
        raise ConfigError(f"{path} has the ending {path.suffix}; pictures end in {known}")
    if path.suffix.lower() in PICTURES and target in ("attention", "all"):
        raise ConfigError(f"{target} has several pictures; name a folder instead of {path}")


def draw(
    target: str,
    filled: Sequence[Filled],
    results: Sequence[Result],
    path: Path,
    quick: bool = False,
) -> list[Path]:
    """Draws a target into a file, or into a folder where the name has no picture's ending.

    Returns:
        The files.
    """
    check_destination(target, path)
    one_file = path.suffix.lower() in PICTURES
    folder = path.parent if one_file else path
    folder.mkdir(parents=True, exist_ok=True)
    files: list[Path] = []
    for table in TABLES if target == "all" else (target,):
        if table == "attention":
            files += _attention(results, folder, QUICK if quick else "")
            continue
        files.append(path if one_file else folder / f"{table}.png")
        sections = [one for one in filled if one.section.table == table]
        (draw_sweep if table == "sweep" else draw_tables)(sections, files[-1], quick)
    return files


def _attention(results: Sequence[Result], folder: Path, warning: str) -> list[Path]:
    measured = next((result for result in results if result.cases), None)
    if measured is None:
        print("no picture of attention: it is not measured", file=sys.stderr)
        return []
    return draw_cases(measured, folder, warning)
