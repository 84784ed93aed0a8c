"""The pictures of a target: tables, the sweep over T, attention."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from graphkin.errors import ConfigError
from graphkin.research.reproduce.attention_figure import draw_cases
from graphkin.research.reproduce.cells import Cell, Filled
from graphkin.research.reproduce.render.text_tables import (
    NOT_MEASURED,
    QUICK,
    measures_text,
    table_of,
)
from graphkin.research.reproduce.results import Result
from graphkin.research.reproduce.table_layout import (
    EDIT_STEPS,
    FEATURES,
    FUNCTION_STEPS,
    METRIC_NAMES,
    MODEL_LABELS,
    PAIRS,
    TABLES,
    sweep_row,
)
from graphkin.results.drawing.pictures import PICTURES, headless_pyplot, save_picture

LINE = 0.27
"""Height of a line of text, in inches."""
CHARACTER = 0.082
"""Width of a character, in inches."""
TITLE_CHARACTER = 0.105
COLORS = {"gnn": "#c0504d", "gmn": "#1f4e79"}
STYLES = {"edits": "-", "structure": "--", "mnemonics": "-"}


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
        sections = [section for section in filled if section.section.table == table]
        (draw_sweep if table == "sweep" else draw_tables)(sections, files[-1], quick)
    return files


def _attention(results: Sequence[Result], folder: Path, warning: str) -> list[Path]:
    measured = next((result for result in results if result.cases), None)
    if measured is None:
        print("no picture of attention: it is not measured", file=sys.stderr)
        return []
    return draw_cases(measured, folder, warning)


def draw_tables(filled: Sequence[Filled], path: Path, quick: bool = False) -> None:
    """Draws sections below each other."""
    pyplot = headless_pyplot()
    parts = [(item.section.title, table_of(item), measures_text(item)) for item in filled]
    titles = max(TITLE_CHARACTER * len(title) for title, _, _ in parts)
    starts, width = _columns([lines for _, lines, _ in parts])
    width = max(titles, width) + 0.6
    height = sum(LINE * (len(lines) + 3) for _, lines, _ in parts) + 0.3 + LINE * quick
    figure = pyplot.figure(figsize=(width, height))
    axis = figure.add_axes((0, 0, 1, 1))
    axis.set_xlim(0, width)
    axis.set_ylim(height, 0)
    axis.axis("off")
    y = 0.35
    if quick:
        axis.text(0.3, y, QUICK, va="center", color="#c0504d", size=9)
        y += LINE
    for title, lines, measures in parts:
        y = _draw_section(axis, y, title, measures, lines, starts, width)
    save_picture(figure, path)


def _draw_section(
    axis: Any,
    y: float,
    title: str,
    measures: str,
    lines: list[list[str]],
    starts: Sequence[float],
    width: float,
) -> float:
    axis.text(0.3, y, title, va="center", size=11, weight="bold")
    axis.text(0.3, y + LINE, measures, va="center", size=9, color="0.4")
    y += 2.1 * LINE
    for number, line in enumerate(lines):
        if number == 0 or line[0]:
            axis.plot([0.3, width - 0.3], [y - LINE / 2] * 2, color="0.8", linewidth=0.7)
        for column, (start, text) in enumerate(zip(starts, line, strict=False)):
            faint = number == 0 or text in (NOT_MEASURED, "-")
            weight = "bold" if column == 0 else "normal"
            color = "0.55" if faint else "black"
            axis.text(start, y, text, va="center", size=9.5, color=color, weight=weight)
        y += LINE
    axis.plot([0.3, width - 0.3], [y - LINE / 2] * 2, color="0.8", linewidth=0.7)
    return y + 0.9 * LINE


def draw_sweep(filled: Sequence[Filled], path: Path, quick: bool = False) -> None:
    """Draws both measures against T: edit distance above, functions below."""
    pyplot = headless_pyplot()
    cells = {(c.row, c.model, c.metric): c for item in filled for c in item.cells}
    figure, axes = pyplot.subplots(2, 2, figsize=(9.5, 7), layout="constrained")
    kinds: tuple[tuple[str, Sequence[str], Sequence[int]], ...] = (
        ("graph edit distance, n=20 p=0.2", ("edits",), EDIT_STEPS),
        ("functions", FEATURES, FUNCTION_STEPS),
    )
    for row, (name, kinds_of_data, steps) in zip(axes, kinds, strict=True):
        for axis, metric in zip(row, PAIRS, strict=True):
            drawn = [
                _curve(axis, cells, data, model, metric, steps)
                for data in kinds_of_data
                for model in ("gnn", "gmn")
            ]
            axis.set_title(f"{name}: {METRIC_NAMES[metric]}", size=10.5)
            axis.set_xlabel("propagation steps T")
            axis.set_ylabel("per cent")
            axis.set_xlim(-0.3, 5.3)
            axis.grid(color="0.92")
            axis.set_axisbelow(True)
            axis.spines[["top", "right"]].set_visible(False)
            if any(drawn):
                axis.legend(frameon=False, fontsize=9)
            else:
                axis.set_yticks([])
                axis.text(2.5, 0.5, NOT_MEASURED, ha="center", color="0.55")
    if quick:
        figure.suptitle(QUICK, color="#c0504d", size=10)
    save_picture(figure, path)


def _curve(
    axis: Any,
    cells: dict[tuple[str, str, str], Cell],
    data: str,
    model: str,
    metric: str,
    steps: Sequence[int],
) -> bool:
    """Draws what was measured of one curve; whether there was anything."""
    points = [(t, cells[sweep_row(data, t), model, metric].ours) for t in steps]
    measured = [(t, value) for t, value in points if value is not None]
    if measured:
        label = MODEL_LABELS[model] + ("" if data == "edits" else f", {data}")
        axis.plot(
            *zip(*measured, strict=True),
            marker="o",
            markersize=4,
            color=COLORS[model],
            linestyle=STYLES[data],
            label=label,
        )
    return bool(measured)


def _columns(tables: Sequence[Sequence[Sequence[str]]]) -> tuple[list[float], float]:
    """Where each column begins, the same for tables below each other; and where the last ends."""
    columns = max(len(lines[0]) for lines in tables)
    edges = [0.3]
    for column in range(columns):
        texts = (line[column] for lines in tables for line in lines if column < len(line))
        edges.append(edges[-1] + CHARACTER * max(len(text) for text in texts) + 0.3)
    return edges[:-1], edges[-1] - 0.3
