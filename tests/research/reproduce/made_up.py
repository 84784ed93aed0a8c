"""Results with values made up, and an experiment that takes a second."""

from __future__ import annotations

from pathlib import Path

from graphkin.research.reproduce.experiment import Evaluation, Experiment, TaskSpec
from graphkin.research.reproduce.results import Measurement, Result, write_result
from graphkin.research.reproduce.table_layout import PAIRS, Variant, edit_row

DATA = "ab" * 32
TINY = TaskSpec(
    "edits",
    {
        "nodes": (6, 9),
        "p": (0.4, 0.5),
        "positive_edits": 1,
        "negative_edits": 3,
        "evaluation_size": 10,
    },
)
SIZES = {"node_dim": 8, "message_dim": 8, "graph_dim": 8, "steps": 2}


def result(
    group: str,
    seed: int | None,
    values: tuple[float, float],
    *,
    row: str = edit_row(20, 0.2),
    model: str = "gmn",
    table: str = "table1",
    variant: Variant = "paper",
    metrics: tuple[str, ...] = PAIRS,
) -> Result:
    """The result of a run with one line of a table."""
    cells = (
        Measurement(table, row, model, metric, value, DATA)
        for metric, value in zip(metrics, values, strict=True)
    )
    return Result(
        name=f"{group}-seed{seed}",
        group=group,
        variant=variant,
        seed=seed,
        command=f"graphkin reproduce {table} --rerun --only {group}",
        cells=tuple(cells),
        steps=40_000,
        seconds=1800.0,
    )


def folder_of(path: Path, *results: Result) -> Path:
    """A folder of these results."""
    path.mkdir(parents=True, exist_ok=True)
    for item in results:
        write_result(item, path)
    return path


def tiny_experiment(model: str = "gmn", seed: int = 3, steps: int = 12) -> Experiment:
    return Experiment(
        group=f"tiny-{model}",
        model=model,
        variant="paper",
        task=TINY,
        evaluations=(Evaluation("table1", edit_row(20, 0.2), TINY),),
        model_options=SIZES,
        training={"steps": steps, "batch_size": 4, "evaluate_every": 6, "report_every": 3},
        seed=seed,
    )
