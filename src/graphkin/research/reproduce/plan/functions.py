"""Models of functions: Table 2 on the left, retrieval, the sweep over T.

The recipes are the constants at the top, over those of the task.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from graphkin.research.reproduce.experiment import Evaluation, Experiment, TaskSpec
from graphkin.research.reproduce.table_layout import (
    FEATURES,
    FUNCTION_STEPS,
    HARDEST,
    HARDEST_POOLS,
    LEARNED,
    RETRIEVAL_POOLS,
    SIZE_MATCHED,
    function_row,
    retrieval_row,
    sweep_row,
)

SEEDS = (0,)
TABLE2_STEPS = 8_000
SWEEP_STEPS = 1_000
SWEEP_MATCHER_STEPS = 1_500
TRAINING: dict[str, Any] = {}
"""What all models change in the paper's recipe."""
OURS_STEPS = 10_000
OURS_TASK: dict[str, Any] = {"min_builds": 3}
"""The embedder that searches: the strong recipe, on more functions."""
OURS_MODEL: dict[str, Any] = {"message_norm": "graph"}
MATCHER_TASK: dict[str, Any] = {"hard_negatives": 0.3, "max_nodes": 300}
MATCHER_MODEL: dict[str, Any] = {
    "node_dim": 64,
    "similarity": "alignment",
    "alignment_pool": "mean",
}
"""Without normalised messages: with them an alignment of functions learns more slowly."""
MATCHER_TRAINING: dict[str, Any] = {
    "mode": "pairs",
    "loss": "margin",
    "margin": 0.5,
    "learning_rate": 5e-4,
}


def function_experiments() -> Iterator[Experiment]:
    """In the order of preference: where two models fill a cell, the first counts."""
    yield Experiment(
        "table2-functions-simhash", "simhash", "paper", _task("paper"), table2_rows("simhash")
    )
    for seed in SEEDS:
        for model in LEARNED:
            yield _experiment("table2-functions", model, table2_rows(model), TABLE2_STEPS, seed)
        yield Experiment(
            group="table2-functions-gnn-ours",
            model="gnn",
            variant="ours",
            task=TaskSpec("functions", OURS_TASK),
            evaluations=table2_rows("gnn"),
            model_options=OURS_MODEL,
            training={"steps": OURS_STEPS},
            recipe="strong",
            seed=seed,
        )
        yield from _sweep(seed)


def _task(protocol: str, **options: Any) -> TaskSpec:
    return TaskSpec("functions", {"protocol": protocol, **options})


def table2_rows(model: str) -> tuple[Evaluation, ...]:
    """Pairs by both protocols; searches where the table has the model."""
    pairs = [
        Evaluation("table2", function_row(protocol, negatives), _task(protocol), "pairs", negatives)
        for protocol in ("paper", "clean")
        for negatives in ("random negatives", SIZE_MATCHED)
    ]
    if model not in ("simhash", "gnn", "gmn"):
        return tuple(pairs)
    hundred, everything = (retrieval_row(name) for name in RETRIEVAL_POOLS)
    hardest = [
        Evaluation(
            "table2",
            retrieval_row(name),
            _task("clean", pool=size),
            "retrieval",
            builds=HARDEST,
            costly=True,
        )
        for size, name in HARDEST_POOLS.items()
    ]
    return (
        *pairs,
        Evaluation("table2", hundred, _task("clean", pool=100), "retrieval"),
        Evaluation("table2", everything, _task("clean", pool=0), "retrieval"),
        *hardest,
    )


def _experiment(
    group: str,
    model: str,
    evaluations: tuple[Evaluation, ...],
    steps: int,
    seed: int,
) -> Experiment:
    return Experiment(
        group=f"{group}-{model}-paper",
        model=model,
        variant="paper",
        task=_task("paper", features="mnemonics"),
        evaluations=evaluations,
        training={**TRAINING, "steps": steps},
        seed=seed,
    )


def _sweep(seed: int) -> Iterator[Experiment]:
    """Our models: those of the paper learn too little in so few steps."""
    for features in FEATURES:
        for steps in FUNCTION_STEPS:
            group = f"sweep-functions-{features}-T{steps}"
            rows = (Evaluation("sweep", sweep_row(features, steps), _task("paper")),)
            embedder = Experiment(
                group=f"{group}-gnn-ours",
                model="gnn",
                variant="ours",
                task=_task("paper", features=features),
                evaluations=rows,
                model_options={**OURS_MODEL, "steps": steps},
                training={"steps": SWEEP_STEPS},
                recipe="strong",
                seed=seed,
            )
            yield embedder
            yield _matcher(embedder, features, steps)


def _matcher(embedder: Experiment, features: str, steps: int) -> Experiment:
    """Begins with the weights of the embedder."""
    matcher = replace(
        embedder,
        group=embedder.group.replace("-gnn-", "-gmn-"),
        model="gmn",
        start=embedder,
        training={"steps": SWEEP_MATCHER_STEPS},
    )
    if not steps:  # no attention, and so no alignment
        return matcher
    return replace(
        matcher,
        task=_task("paper", features=features, **MATCHER_TASK),
        model_options={**MATCHER_MODEL, "steps": steps},
        training={**MATCHER_TRAINING, **matcher.training},
        recipe="paper",
        join=embedder,
    )
