"""Models of COIL-DEL: Table 2 on the right.

The recipes are the constants at the top, over those of :func:`graphkin.tasks.meshes.recipe`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from graphkin.reproduce.experiment import Evaluation, Experiment, TaskSpec
from graphkin.reproduce.layout import LEARNED, MESH_SPLITS, mesh_row

SEEDS = (0,)
STEPS = 10_000
TRAINING: dict[str, Any] = {}
"""What all models change in the recipe."""


def mesh_experiments() -> Iterator[Experiment]:
    """In the order of preference: where two models fill a cell, the first counts."""
    for seed in SEEDS:
        for split in MESH_SPLITS:
            for model in LEARNED:
                task = TaskSpec("meshes", {"split": split})
                row = mesh_row(split)
                yield Experiment(
                    group=f"table2-coil-del-{split}-{model}-paper",
                    model=model,
                    variant="paper",
                    task=task,
                    evaluations=(
                        Evaluation("table2", row, task),
                        Evaluation("table2", row, task, "neighbours", costly=model == "gmn"),
                    ),
                    training={**TRAINING, "steps": STEPS},
                    seed=seed,
                )
