"""What the train and eval verbs of every task have in common."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from graphkin.graphs.vocabulary import Vocabulary
    from graphkin.models.model import GraphModel


def known_settings(task: type[Any]) -> dict[str, list[str]]:
    """The keys of the tables that ``--set`` and a TOML file may hold."""
    from dataclasses import fields

    from graphkin.learning.training import TrainConfig
    from graphkin.models import ModelConfig

    tables = {"model": ModelConfig, "train": TrainConfig, "task": task}
    return {table: [field.name for field in fields(kind)] for table, kind in tables.items()}


def train_model(
    name: str,
    tables: dict[str, dict[str, Any]],
    task: Any,
    out: Path,
    resume: bool,
    device: str,
    threads: int,
    tensorboard: bool,
    as_json: bool,
    vocabulary: Vocabulary | None = None,
    start: GraphModel | None = None,
) -> None:
    """Trains a model of a name, and prints how far it came."""
    import torch

    from graphkin.learning.training import TrainConfig, train
    from graphkin.learning.training.progress import TrainingProgress
    from graphkin.models import ModelConfig, build_model

    torch.set_num_threads(threads)
    model_config = ModelConfig.named(name, **tables["model"])
    config = TrainConfig.from_dict(tables["train"])
    model = build_model(model_config, config.seed)
    model.vocabulary = vocabulary
    if start is not None:
        model.start_from(start)
    try:
        with TrainingProgress(config.steps) as progress:
            result = train(
                model,
                task,
                config,
                out,
                resume=resume,
                device=device,
                tensorboard=tensorboard,
                on_report=progress,
            )
    except KeyboardInterrupt:
        typer.echo(f"graphkin: interrupted; --resume goes on from {out}", err=True)
        raise typer.Exit(130) from None
    if os.environ.get("RANK", "0") != "0":
        return  # under torchrun the first process speaks for all
    if as_json:
        document = {
            "folder": str(out),
            "steps": result.step,
            "seconds": result.seconds,
            "validation": result.validation,
            "best": result.best,
        }
        typer.echo(json.dumps(document))
        return
    metrics = ", ".join(f"{key} {value:.4f}" for key, value in result.validation.items())
    typer.echo(f"{result.step} steps in {result.seconds:.0f} s: validation {metrics}")
    typer.echo(f"best weights: {out / 'model'}")


def evaluate_model(
    name: str,
    task: Any,
    split: str,
    steps: int | None,
    iterations: int,
    threads: int,
    as_json: bool,
) -> None:
    import torch

    from graphkin._support.progress import counter
    from graphkin.learning.evaluation import PairScorer, evaluate
    from graphkin.models import load_model
    from graphkin.models.model import WithSteps
    from graphkin.research.baselines.wl import WLKernel

    torch.set_num_threads(threads)
    evaluation_set = task.evaluation_set(split)
    scorer: PairScorer
    scorer = WLKernel(iterations) if name == "wl" else WithSteps(load_model(Path(name)), steps)
    with counter("evaluating") as progress:
        metrics = evaluate(scorer, evaluation_set, progress=progress)
    document = {
        "model": name,
        "task": task.describe(),
        "split": split,
        "data": evaluation_set.digest,
        "metrics": metrics,
    }
    if as_json:
        typer.echo(json.dumps(document))
        return
    typer.echo(f"{name} on {split}, data {evaluation_set.digest[:12]}")
    for metric, value in metrics.items():
        typer.echo(f"  {metric:<18}{100 * value:6.2f}")
