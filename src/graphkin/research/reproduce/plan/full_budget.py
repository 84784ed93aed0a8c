"""The paper's architecture at the paper's budget: long runs, in the order of their queue.

An author named 500,000 steps of 50 pairs for edit distance. Short runs showed that the end of the
schedule, where the rate falls, is worth far more than further steps at a constant rate
(``experiments/README.md``), so each run is one cycle over fewer steps. At n=20 200,000 of them end
above the paper; graphs of up to 50 nodes, whose steps take twice as long, get half as many.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from graphkin.research.reproduce.experiment import Experiment, TaskKind

STEPS: dict[TaskKind, int] = {"edits": 200_000, "functions": 50_000, "meshes": 20_000}
LARGE_GRAPH_STEPS = 100_000
SMALL_GRAPHS = "n20-"
"""Part of the names of runs on graphs of 20 nodes."""
EVALUATE_EVERY: dict[TaskKind, int] = {"edits": 2_500, "functions": 1_000, "meshes": 500}
TABLES = ("table1", "table2", "table3")
FIRST = ("n20-p0.2", "n20-p0.5", "n50-p0.5", "n50-p0.2", "table3", "table2-functions")
"""Parts of the names of runs, in the order in which they are trained; others come last."""
SUFFIX = "-full"


def full_budget_experiments(short: Iterable[Experiment]) -> Iterator[Experiment]:
    """The paper's models of the tables, each trained anew for long.

    Args:
        short: the experiments of the same models at a short budget.
    """
    chosen = [
        experiment
        for experiment in short
        if experiment.variant == "paper"
        and experiment.trained
        and experiment.tables.intersection(TABLES)
    ]
    for experiment in sorted(chosen, key=_turn):
        kind = experiment.task.kind
        is_large = kind == "edits" and SMALL_GRAPHS not in experiment.group
        steps = LARGE_GRAPH_STEPS if is_large else STEPS[kind]
        course = {"steps": steps, "evaluate_every": EVALUATE_EVERY[kind]}
        yield replace(
            experiment,
            group=experiment.group + SUFFIX,
            budget="paper",
            training={**experiment.training, **course},
        )


def _turn(experiment: Experiment) -> int:
    return next((turn for turn, part in enumerate(FIRST) if part in experiment.group), len(FIRST))
