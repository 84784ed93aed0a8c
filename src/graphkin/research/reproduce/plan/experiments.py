"""Every experiment of the plan, and those that fill a table."""

from __future__ import annotations

from functools import cache

from graphkin.errors import ConfigError
from graphkin.research.reproduce.experiment import Budget, Experiment
from graphkin.research.reproduce.plan.edits import ATTENTION_GROUP, edit_experiments
from graphkin.research.reproduce.plan.full_budget import full_budget_experiments
from graphkin.research.reproduce.plan.functions import function_experiments
from graphkin.research.reproduce.plan.meshes import mesh_experiments
from graphkin.research.reproduce.table_layout import TARGETS

ATTENTION_MODEL = f"{ATTENTION_GROUP}-seed0"
"""The experiment whose attention is drawn."""


@cache
def all_experiments() -> tuple[Experiment, ...]:
    """Every experiment, in the order of preference."""
    short = (*edit_experiments(), *function_experiments(), *mesh_experiments())
    return (*full_budget_experiments(short), *short)


def experiments_for(
    target: str, quick: bool = False, only: str = "", budget: Budget = "short"
) -> list[Experiment]:
    """The experiments that fill cells of a table, or of all.

    Args:
        target: one of ``TARGETS``.
        quick: as quick runs do them, in seconds each.
        only: a part that their names must have.
        budget: those that take minutes, or those of the paper's budget.
    """
    if target not in TARGETS:
        raise ConfigError(f"there is no {target!r} to reproduce; choose {', '.join(TARGETS)}")
    of_target = [
        experiment
        for experiment in all_experiments()
        if experiment.budget == budget and _fills(experiment, target)
    ]
    chosen = [experiment for experiment in of_target if only in experiment.name]
    if not chosen:
        names = ", ".join(experiment.name for experiment in of_target)
        raise ConfigError(f"no experiment of {target} has {only!r} in its name; there are {names}")
    return [experiment.quick() for experiment in chosen] if quick else chosen


def group_order() -> dict[str, int]:
    """The place of each group in the order of preference."""
    groups = dict.fromkeys(experiment.group for experiment in all_experiments())
    return {group: position for position, group in enumerate(groups)}


def _fills(experiment: Experiment, target: str) -> bool:
    if target == "attention":
        return experiment.name == ATTENTION_MODEL
    return target == "all" or target in experiment.tables
