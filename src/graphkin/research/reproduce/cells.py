"""Cells: the paper's value beside ours."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import mean, stdev
from typing import Any

from graphkin.research.reproduce.experiment import MEASURES
from graphkin.research.reproduce.paper import PAPER
from graphkin.research.reproduce.plan.experiments import all_experiments, group_order
from graphkin.research.reproduce.results import Result
from graphkin.research.reproduce.table_layout import (
    LEARNED,
    OURS_ALONE,
    Section,
    TableLine,
    Variant,
    sections_of,
)

BOTH: tuple[Variant, ...] = ("paper", "ours")
CellKey = tuple[str, str, str, str, Variant]
"""Table, row, model, metric, variant."""


@dataclass(frozen=True)
class Cell:
    """One measure of one model in one row."""

    table: str
    row: str
    model: str
    metric: str
    variant: Variant
    paper: float | None
    """In per cent; None where the paper gives none."""
    ours: float | None
    """In per cent, the mean over seeds; None where not measured."""
    seeds: int
    """Runs behind ``ours``."""
    seeded: bool
    """False for what draws nothing, and needs no second run."""
    spread: float | None
    """Standard deviation over seeds, where there are several."""
    sources: tuple[str, ...]
    """The results that the value comes from."""
    protocol: str | None

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        named = ("table", "row", "model", "metric", "paper", "ours", "seeds", "variant")
        document: dict[str, Any] = {name: getattr(self, name) for name in named}
        optional = {"protocol": self.protocol, "spread": self.spread}
        document |= {name: value for name, value in optional.items() if value is not None}
        return {**document, "sources": list(self.sources)}


@dataclass(frozen=True)
class Filled:
    """A section with its cells."""

    section: Section
    rows: tuple[tuple[TableLine, dict[Variant, tuple[Cell, ...]]], ...]
    """For each line its cells in the order of the metrics, by variant."""
    results: tuple[Result, ...]
    """What the values come from."""

    @property
    def cells(self) -> list[Cell]:
        return [cell for _, variants in self.rows for cells in variants.values() for cell in cells]

    @property
    def variants(self) -> tuple[Variant, ...]:
        """Those that a line has."""
        return tuple(name for name in BOTH if any(name in variants for _, variants in self.rows))


def fill(target: str, results: Sequence[Result]) -> list[Filled]:
    """The sections of a table, or of all, with what was measured."""
    measured = _chosen(results)
    planned = _planned()
    return [_filled(section, measured, planned) for section in sections_of(target)]


def _filled(
    section: Section, measured: dict[CellKey, list[Result]], planned: set[CellKey]
) -> Filled:
    rows = []
    used: dict[str, Result] = {}
    for line in _lines(section, measured):
        keys = {
            variant: [_key(section, line, metric, variant) for metric in section.metrics]
            for variant in BOTH
        }
        known = {
            variant: any(key in measured or key in planned for key in keys[variant])
            or (variant == "paper" and any(key[:4] in PAPER for key in keys[variant]))
            for variant in BOTH
        }
        usual: Variant = "ours" if line.model in OURS_ALONE else "paper"
        chosen = [variant for variant in BOTH if known[variant]] or [usual]
        rows.append(
            (
                line,
                {
                    variant: tuple(
                        _cell(section, key, measured.get(key, [])) for key in keys[variant]
                    )
                    for variant in chosen
                },
            )
        )
        used |= {
            result.name: result
            for every in keys.values()
            for key in every
            for result in measured.get(key, [])
        }
    return Filled(section, tuple(rows), tuple(used.values()))


def _lines(section: Section, measured: Iterable[CellKey]) -> list[TableLine]:
    lines = list(section.lines)
    if section.prefix is not None:
        for table, row, model, metric, _ in measured:
            fits = table == section.table and row.startswith(section.prefix)
            if fits and metric in section.metrics and TableLine(row, model) not in lines:
                lines.append(TableLine(row, model))
        rows = dict.fromkeys(line.row for line in lines)
        order = {row: position for position, row in enumerate(rows)}
        lines.sort(key=lambda line: order[line.row])
    return lines


def _key(section: Section, line: TableLine, metric: str, variant: Variant) -> CellKey:
    return section.table, line.row, line.model, metric, variant


def _cell(section: Section, key: CellKey, results: list[Result]) -> Cell:
    table, row, model, metric, variant = key
    values = [100 * _value(result, key) for result in results]
    return Cell(
        table,
        row,
        model,
        metric,
        variant,
        paper=PAPER.get((table, row, model, metric)),
        ours=round(mean(values), 4) if values else None,
        seeds=sum(result.seed is not None for result in results),
        seeded=any(result.seed is not None for result in results),
        spread=round(stdev(values), 4) if len(values) > 1 else None,
        sources=tuple(result.name for result in results),
        protocol=section.protocol,
    )


def _value(result: Result, key: CellKey) -> float:
    return next(
        cell.value
        for cell in result.cells
        if (cell.table, cell.row, cell.model, cell.metric) == key[:4]
    )


def _chosen(results: Iterable[Result]) -> dict[CellKey, list[Result]]:
    """The results behind each cell: runs of one group, and of several groups the preferred one.

    The order is the plan's, and never that of the values: a choice by test scores would flatter.
    """
    groups: dict[CellKey, dict[str, list[Result]]] = defaultdict(lambda: defaultdict(list))
    for result in results:
        for cell in result.cells:
            key: CellKey = (cell.table, cell.row, cell.model, cell.metric, result.variant)
            groups[key][result.group].append(result)
    order = group_order()
    chosen = {}
    for key, by_group in groups.items():
        group = min(by_group, key=lambda name: (order.get(name, len(order)), name))
        chosen[key] = sorted(by_group[group], key=lambda result: result.seed or 0)
    return chosen


def _planned() -> set[CellKey]:
    """The cells that experiments of the plan fill."""
    return {
        (row.table, row.row, experiment.model, metric, experiment.variant)
        for experiment in all_experiments()
        for row in experiment.evaluations
        for metric in MEASURES[row.measure]
    }


def counts(cells: Sequence[Cell], variant: Variant) -> tuple[int, int, int]:
    """Values that the paper has for learned models; those measured by ours; those that reach it.

    Ours are of the paper's architecture, or of the one that we changed.
    """
    printed = {_place(cell): cell for cell in cells if cell.paper is not None}
    learned = {key for key in printed if key[2] in LEARNED}
    measured = {
        _place(cell): cell.ours
        for cell in cells
        if cell.variant == variant and cell.ours is not None and _place(cell) in learned
    }
    reached = sum(round(value, 2) >= PAPER[key] for key, value in measured.items())
    return len(learned), len(measured), reached


def _place(cell: Cell) -> tuple[str, str, str, str]:
    return cell.table, cell.row, cell.model, cell.metric
