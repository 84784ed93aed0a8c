"""A model that is trained for a table, and what it is measured on. No torch: plans are data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from graphkin.research.reproduce.table_layout import BASELINES, NEIGHBOUR, PAIRS, RETRIEVAL, Variant

TaskKind = Literal["edits", "functions", "meshes"]
Budget = Literal["short", "paper"]
Measure = Literal["pairs", "retrieval", "neighbours"]

MEASURES: dict[Measure, tuple[str, ...]] = {
    "pairs": PAIRS,
    "retrieval": RETRIEVAL,
    "neighbours": NEIGHBOUR,
}
"""The metrics of each measure."""
QUICK_STEPS = 12
QUICK_BATCH = 6
QUICK_SIZE = 20
"""Pairs, and triplets, of an evaluation set of a quick run."""


@dataclass(frozen=True)
class TaskSpec:
    """A task by name and options. Where its data lies is said when it is made."""

    kind: TaskKind
    options: Mapping[str, Any] = field(default_factory=dict)

    def quick(self) -> TaskSpec:
        """The same with a small evaluation set."""
        return replace(self, options={**self.options, "evaluation_size": QUICK_SIZE})


@dataclass(frozen=True)
class Evaluation:
    """One row of a table that a model fills."""

    table: str
    row: str
    task: TaskSpec
    measure: Measure = "pairs"
    """Pairs and triplets; searches in pools; or the nearest graph."""
    negatives: str = "random negatives"
    """Which of a function task's sets, for pairs."""
    builds: tuple[str, str] | None = None
    """Endings of the names of two builds: search from the one in the other."""
    costly: bool = False
    """Too slow for a quick run."""


@dataclass(frozen=True)
class Experiment:
    """A model, how it is trained, and what it is measured on."""

    group: str
    """Its name without the seed: runs of one group are averaged."""
    model: str
    """gnn, gmn, ...; or one of ``BASELINES``."""
    variant: Variant
    task: TaskSpec
    evaluations: tuple[Evaluation, ...]
    model_options: Mapping[str, Any] = field(default_factory=dict)
    """Options of ModelConfig that differ from those of the model's name and recipe."""
    training: Mapping[str, Any] = field(default_factory=dict)
    """Options of TrainConfig that differ from defaults and recipe; SimHash has ``steps`` too."""
    recipe: str = "paper"
    """Which recipe of the task gives further settings, where it has several."""
    start: Experiment | None = None
    """An experiment whose weights it begins with."""
    join: Experiment | None = None
    """An experiment whose embedder is joined to it, with a weight from validation pairs."""
    seed: int = 0
    """Of weights and data, unless ``training`` or the task have their own."""
    budget: Budget = "short"
    """Minutes, or the hours that the paper's authors spent."""

    @property
    def name(self) -> str:
        """Of its result file, and of the folder of its run."""
        return f"{self.group}-seed{self.seed}"

    @property
    def trained(self) -> bool:
        return self.model not in BASELINES

    @property
    def tables(self) -> frozenset[str]:
        """The tables that it fills cells of."""
        return frozenset(row.table for row in self.evaluations)

    @property
    def data(self) -> TaskKind:
        """What kind of data it needs."""
        return self.task.kind

    def quick(self) -> Experiment:
        """The same pipeline in seconds; the numbers mean nothing."""
        short = {"steps": QUICK_STEPS, "evaluate_every": QUICK_STEPS, "batch_size": QUICK_BATCH}
        cheap = (row for row in self.evaluations if not row.costly)
        return replace(
            self,
            task=self.task.quick(),
            evaluations=tuple(replace(row, task=row.task.quick()) for row in cheap),
            training={**self.training, **short} if self.trained else {"steps": QUICK_STEPS},
            start=None if self.start is None else self.start.quick(),
            join=None if self.join is None else self.join.quick(),
        )
