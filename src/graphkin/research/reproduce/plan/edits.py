"""Models of graph edit distance: Tables 1 and 3, the sweep over T, ablations.

The recipes are the constants at the top.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from graphkin.research.reproduce.experiment import Evaluation, Experiment, TaskSpec
from graphkin.research.reproduce.table_layout import (
    BASE,
    DOT,
    EDIT_STEPS,
    K12,
    K14,
    K23,
    MLP,
    NO_ALIGNMENT,
    NO_NORM,
    OWN,
    SLOW,
    TABLE1,
    TABLE3,
    TRAINED_K23,
    TRIPLETS,
    edit_row,
    sweep_row,
)
from graphkin.research.tasks.edits import STRONG_MODELS, STRONG_TRAINING

SEEDS = (0,)
TABLE1_STEPS = 10_000
GENERAL_STEPS = 10_000
"""Of models of the paper's architecture: of one distribution, and of n in 20..50."""
SWEEP_STEPS = 1_000
ABLATION_STEPS = 1_000
"""Of our models, which learn enough in these to compare."""

TRAINING: dict[str, Any] = {
    "loss": "margin",
    "margin": 0.1,
    "mode": "pairs",
    "batch_size": 50,
    "schedule": "onecycle",
    "learning_rate": 1e-3,
}
OURS, OURS_TRAINING = STRONG_MODELS, STRONG_TRAINING
OURS_STEPS = {"gnn": 16_000, "gmn": 10_000}
OURS_TABLE1 = {
    "gnn": {(20, 0.2): 30_000, (20, 0.5): 10_000, (50, 0.2): 10_000},
    "gmn": {(20, 0.2): 6_000, (20, 0.5): 6_000},
}
"""Where our model of all distributions leaves most to gain: models of one distribution, and their
steps. Those that match begin with its weights."""
TABLE1_TRAINING = {
    "gnn": {"learning_rate": 2e-3, "evaluate_every": 500},
    "gmn": {"learning_rate": 1e-3, "evaluate_every": 500},
}
SHARP: dict[str, Any] = {"alignment_sharpness": 10.0}
"""Our GMN is trained once more with a sharper alignment."""
SHARP_TRAINING: dict[str, Any] = {"learning_rate": 5e-4, "evaluate_every": 500, "steps": 3_000}
SECOND_TRAINING: dict[str, Any] = {"learning_rate": 5e-4, "evaluate_every": 500, "steps": 10_000}
"""Our GNN is trained once more, at a lower rate: at the same one it forgets."""
CONTINUED = {(20, 0.2)}
"""The one model of one distribution that is trained once more as well."""
SECOND_SEED = 1000
"""Added to the seed of a second training, for data that the first did not see."""

ABLATIONS: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    BASE: ("base", {}, {}),
    # A triplet is two pairs, and the paper's margin for triplets is 1.
    TRIPLETS: ("triplets", {}, {"mode": "triplets", "batch_size": 25, "margin": 1.0}),
    OWN: ("own-parameters", {"shared": False}, {}),
    MLP: ("mlp", {"node_update": "mlp"}, {}),
    DOT: ("dot-attention", {"attention_similarity": "dot"}, {}),
    SLOW: ("rate-1e-4", {}, {"learning_rate": 1e-4}),
    NO_NORM: ("no-norm", {"message_norm": "none"}, {}),
    NO_ALIGNMENT: ("no-alignment", {"similarity": "euclidean"}, {}),
}
"""Row of the table to a short name, and what it changes in our model and its training."""

SMALL: dict[str, Any] = {"nodes": (20, 20), "p": (0.2, 0.2)}
GENERAL: dict[str, Any] = {"nodes": (20, 50), "p": (0.2, 0.5)}
ATTENTION_GROUP = "general-gmn-ours"
"""Whose attention is drawn: shared parameters, T=5, trained on n in 20..50."""


def edit_experiments() -> Iterator[Experiment]:
    """In the order of preference: where two models fill a cell, the first counts."""
    yield _wl()
    for seed in SEEDS:
        yield from _table1(seed)
        yield from _table3(seed)
        yield from _sweep(seed)
        yield from _ablations(seed)


def _spec(nodes: int, p: float) -> TaskSpec:
    return TaskSpec("edits", {"nodes": (nodes, nodes), "p": (p, p)})


def _edits(positive: int, negative: int) -> TaskSpec:
    edits = {"positive_edits": positive, "negative_edits": negative}
    return TaskSpec("edits", {**GENERAL, **edits})


def _rows(table: str) -> tuple[Evaluation, ...]:
    distributions = {"table1": TABLE1, "table3": TABLE3}[table]
    return tuple(Evaluation(table, edit_row(n, p), _spec(n, p)) for n, p in distributions)


TRANSFER = (
    Evaluation("table3", K12, _edits(1, 2)),
    Evaluation("table3", K14, _edits(1, 4)),
    Evaluation("table3", K23, _edits(2, 3)),
)


def _experiment(
    group: str,
    model: str,
    task: TaskSpec,
    evaluations: tuple[Evaluation, ...],
    steps: int,
    seed: int,
    model_options: dict[str, Any] | None = None,
    training: dict[str, Any] | None = None,
) -> Experiment:
    """A model of the paper's architecture, but for what is said."""
    return Experiment(
        group=f"{group}-{model}-paper",
        model=model,
        variant="paper",
        task=task,
        evaluations=evaluations,
        model_options=model_options or {},
        training={**TRAINING, "steps": steps, **(training or {})},
        seed=seed,
    )


def _wl() -> Experiment:
    """The kernel on both tables; nothing is trained."""
    rows = (*_rows("table1"), *_rows("table3"))
    return Experiment("edits-wl", "wl", "paper", rows[0].task, rows)


def _table1(seed: int) -> Iterator[Experiment]:
    soft = _ours("gmn", "general-gmn-ours-soft", (), seed)
    for model, distributions in OURS_TABLE1.items():
        for (nodes, p), steps in distributions.items():
            experiment = replace(
                _ours(model, f"table1-n{nodes}-p{p}-{model}-ours", (), seed),
                task=_spec(nodes, p),
                evaluations=(Evaluation("table1", edit_row(nodes, p), _spec(nodes, p)),),
                training={**TRAINING, **TABLE1_TRAINING[model], "steps": steps},
            )
            if model == "gmn":
                yield _after(soft, experiment)
            elif (nodes, p) in CONTINUED:
                first = replace(experiment, group=f"{experiment.group}-first", evaluations=())
                yield _continued(first, experiment.evaluations)
            else:
                yield experiment
    for evaluation, (nodes, p) in zip(_rows("table1"), TABLE1, strict=True):
        for model in ("gnn", "gmn"):
            group = f"table1-n{nodes}-p{p}"
            rows = (evaluation,)
            yield _experiment(group, model, evaluation.task, rows, TABLE1_STEPS, seed)


def _table3(seed: int) -> Iterator[Experiment]:
    """Models of many sizes; ours fill Table 1 as well."""
    large = (*_rows("table3"), *TRANSFER)
    for model in ("gnn", "gmn"):
        yield _experiment("table3", model, _edits(1, 2), large, GENERAL_STEPS, seed)
        harder = (Evaluation("table3", TRAINED_K23, _edits(1, 2)),)
        yield _experiment("table3-k23", model, _edits(2, 3), harder, GENERAL_STEPS, seed)
    rows = (*_rows("table1"), *large)
    yield _continued(_ours("gnn", "general-gnn-ours-first", (), seed), rows)
    matcher = _sharpened(_ours("gmn", "general-gmn-ours-soft", (), seed), rows)
    yield matcher
    yield replace(
        matcher,
        group="table3-k23-gmn-ours",
        start=matcher,
        task=TaskSpec("edits", {**_edits(2, 3).options, "seed": matcher.training["seed"]}),
        evaluations=(Evaluation("table3", TRAINED_K23, _edits(1, 2)),),
    )


def _ours(model: str, group: str, rows: tuple[Evaluation, ...], seed: int) -> Experiment:
    return Experiment(
        group=group,
        model=model,
        variant="ours",
        task=_edits(1, 2),
        evaluations=rows,
        model_options=OURS[model],
        training={**TRAINING, **OURS_TRAINING, "steps": OURS_STEPS[model]},
        seed=seed,
    )


def _continued(first: Experiment, rows: tuple[Evaluation, ...]) -> Experiment:
    second = replace(
        first,
        group=first.group.removesuffix("-first"),
        evaluations=rows,
        training={**TRAINING, **SECOND_TRAINING},
    )
    return _after(first, second)


def _sharpened(soft: Experiment, rows: tuple[Evaluation, ...]) -> Experiment:
    sharp = replace(
        soft,
        group=soft.group.removesuffix("-soft"),
        evaluations=rows,
        model_options={**soft.model_options, **SHARP},
        training={**TRAINING, **SHARP_TRAINING},
    )
    return _after(soft, sharp)


def _after(start: Experiment, experiment: Experiment) -> Experiment:
    """The experiment with the weights of another to begin with, and data of its own."""
    seed = start.seed + SECOND_SEED
    return replace(
        experiment,
        start=start,
        task=TaskSpec("edits", {**experiment.task.options, "seed": seed}),
        training={**experiment.training, "seed": seed},
    )


def _sweep(seed: int) -> Iterator[Experiment]:
    for steps in EDIT_STEPS:
        for model in ("gnn", "gmn"):
            rows = (Evaluation("sweep", sweep_row("edits", steps), TaskSpec("edits", SMALL)),)
            group, options = f"sweep-edits-T{steps}", {"steps": steps}
            yield _short(group, model, rows, SWEEP_STEPS, seed, options, {})


def _ablations(seed: int) -> Iterator[Experiment]:
    for row, (name, options, training) in ABLATIONS.items():
        rows = (Evaluation("ablations", row, TaskSpec("edits", SMALL)),)
        group = f"ablations-{name}"
        yield _short(group, "gmn", rows, ABLATION_STEPS, seed, options, training)
    task, rows = (
        TaskSpec("edits", SMALL),
        (Evaluation("ablations", BASE, TaskSpec("edits", SMALL)),),
    )
    yield _experiment("ablations-base", "gmn", task, rows, ABLATION_STEPS, seed)


def _short(
    group: str,
    model: str,
    rows: tuple[Evaluation, ...],
    steps: int,
    seed: int,
    options: dict[str, Any],
    training: dict[str, Any],
) -> Experiment:
    """One of our models on the smallest graphs, for comparisons at an equal and short budget."""
    return replace(
        _ours(model, f"{group}-{model}-ours", rows, seed),
        task=TaskSpec("edits", SMALL),
        model_options={**OURS[model], **options},
        training={**TRAINING, "steps": steps, **training},
    )
