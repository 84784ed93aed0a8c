"""Tables as text for a terminal, and as Markdown."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from itertools import groupby

from graphkin.research.reproduce.cells import Cell, Filled, counts
from graphkin.research.reproduce.results import Result
from graphkin.research.reproduce.table_layout import METRIC_NAMES, MODEL_LABELS, Variant

NOT_MEASURED = "not measured"
QUICK = "quick run: proves the pipeline, the numbers mean nothing"
COLUMNS: dict[Variant, str] = {"paper": "paper's architecture", "ours": "ours"}
WIDTH = 100


def to_text(filled: Sequence[Filled], quick: bool = False) -> str:
    """All sections for a terminal, and for each table how its values were made."""
    parts = [QUICK] if quick else []
    for _, group in groupby(filled, key=lambda item: item.section.table):
        sections = list(group)
        for item in sections:
            parts.append(f"{item.section.title}\n{measures_text(item)}")
            parts.append(_aligned(table_of(item)))
            if item.section.note:
                parts.append(textwrap.fill(item.section.note, WIDTH))
        made = facts(sections)
        if made:
            parts.append("\n".join(["Measured by", *(f"  {fact}" for fact in made)]))
    return "\n\n".join([*parts, *_ending(filled, quick)])


def to_markdown(filled: Sequence[Filled], quick: bool = False) -> str:
    """The same in Markdown."""
    parts = [f"**{QUICK}**"] if quick else []
    for _, group in groupby(filled, key=lambda item: item.section.table):
        sections = list(group)
        for item in sections:
            header, *rows = table_of(item)
            lines = [header, ["---"] * len(header), *rows]
            table = (f"| {' | '.join(cell or ' ' for cell in line)} |" for line in lines)
            measures = measures_text(item)
            parts.append(f"## {item.section.title}")
            parts.append(f"{measures[0].upper()}{measures[1:]}. {item.section.note}".rstrip())
            parts.append("\n".join(table))
        made = facts(sections, code="`")
        if made:
            parts.append("\n".join(["Measured by", "", *(f"- {fact}" for fact in made)]))
    return "\n\n".join([*parts, *_ending(filled, quick)])


def table_of(filled: Filled) -> list[list[str]]:
    """A header, and one line for each row and model."""
    variants = filled.variants
    lines = [["", "", "paper", *(COLUMNS[variant] for variant in variants)]]
    for row, group in groupby(filled.rows, key=lambda pair: pair[0].row):
        label = row
        for line, cells in group:
            some = next(iter(cells.values()))
            line_of = [label, MODEL_LABELS[line.model], paper_text(some, filled.section.digits)]
            for variant in variants:
                digits = filled.section.digits
                line_of.append(our_text(cells[variant], digits) if variant in cells else "")
            lines.append(line_of)
            label = ""
    return lines


def paper_text(cells: Sequence[Cell], digits: int) -> str:
    """The paper's values of a line."""
    if all(cell.paper is None for cell in cells):
        return "-"
    return " / ".join("-" if c.paper is None else f"{c.paper:.{digits}f}" for c in cells)


def our_text(cells: Sequence[Cell], digits: int) -> str:
    """Our values of a line, and over how many seeds; or that there are none."""
    if all(cell.ours is None for cell in cells):
        return NOT_MEASURED
    return f"{' / '.join(value_text(cell, digits) for cell in cells)} ({seeds_text(cells)})"


def value_text(cell: Cell, digits: int) -> str:
    """One of our values, with its deviation where there are several seeds."""
    if cell.ours is None:
        return "-"
    spread = "" if cell.spread is None else f" ±{cell.spread:.{digits}f}"
    return f"{cell.ours:.{digits}f}{spread}"


def seeds_text(cells: Iterable[Cell]) -> str:
    """Over how many seeds the values of a line are means."""
    measured = [cell for cell in cells if cell.ours is not None]
    if not any(cell.seeded for cell in measured):
        return "no seed"
    seeds = min(cell.seeds for cell in measured)
    return "1 seed" if seeds == 1 else f"{seeds} seeds"


def facts(filled: Iterable[Filled], code: str = "") -> list[str]:
    """How values came about: seeds, steps, time and command, for each group of runs."""
    results = {result.name: result for item in filled for result in item.results}
    lines = []
    for group, members in groupby(sorted(results.values(), key=_group), _group):
        runs = list(members)
        parts = []
        seeds = sorted(run.seed for run in runs if run.seed is not None)
        if seeds:
            word = "seed" if len(seeds) == 1 else "seeds"
            parts.append(f"{word} {', '.join(map(str, seeds))}")
        if runs[0].steps is not None:
            start = runs[0].config.get("start")
            after = f" from the weights of {start['from']}" if start else ""
            parts.append(f"{runs[0].steps:,} steps{after}")
        if runs[0].seconds is not None:
            parts.append(f"{sum(run.seconds or 0 for run in runs) / len(runs):,.0f} s each")
        about = f" ({', '.join(parts)})" if parts else ""
        # A group runs by its own name.
        name = runs[0].name if len(runs) == 1 else group
        lines.append(f"{group}{about}: {code}{runs[0].command.replace(runs[0].name, name)}{code}")
    return lines


def _group(result: Result) -> str:
    return result.group


def summary(filled: Sequence[Filled]) -> str:
    """How many cells of the paper are measured, and how many reach it."""
    cells = [cell for item in filled for cell in item.cells]
    printed, same, same_reached = counts(cells, "paper")
    _, changed, changed_reached = counts(cells, "ours")
    if not printed:
        return "The paper prints no numbers of learned models for this."
    return (
        f"Of {printed} values that the paper prints for learned models, {changed} are measured "
        f"with our models, and {changed_reached} of these reach it; {same} with the paper's "
        f"architecture, of which {same_reached} do."
    )


def _ending(filled: Sequence[Filled], quick: bool) -> list[str]:
    return [] if quick else [summary(filled)]


def measures_text(filled: Filled) -> str:
    """The measures of a section, in the order of its values."""
    names = " / ".join(METRIC_NAMES[metric] for metric in filled.section.metrics)
    return f"{names}, in per cent"


def _aligned(lines: Sequence[Sequence[str]]) -> str:
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )
