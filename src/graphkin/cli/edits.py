"""``train edits`` and ``eval edits``: graph edit distance."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Annotated, Any

import typer

from graphkin.cli.options import (
    BatchSize,
    Config,
    Device,
    Json,
    Mode,
    Resume,
    RunFolder,
    Seed,
    Setting,
    Steps,
    Tensorboard,
    Threads,
)
from graphkin.cli.runs import evaluate_model, known_settings, train_model
from graphkin.errors import ConfigError

Nodes = Annotated[
    str | None, typer.Option(help="Nodes of a graph: a number, or a range such as 20-50.")
]
Probability = Annotated[
    str | None, typer.Option("--p", help="Edge probability: a number, or a range: 0.2-0.5.")
]
PositiveEdits = Annotated[int | None, typer.Option("--kp", help="Edits between similar graphs.")]
NegativeEdits = Annotated[int | None, typer.Option("--kn", help="Edits between dissimilar graphs.")]


def train_edits(
    out: RunFolder,
    model: Annotated[
        str, typer.Option(help="gnn, gmn, gcn, siamese-gnn, siamese-gcn or deepset.")
    ] = "gmn",
    nodes: Nodes = None,
    p: Probability = None,
    kp: PositiveEdits = None,
    kn: NegativeEdits = None,
    start_from: Annotated[
        Path | None, typer.Option(help="Begin with the weights of a model of the same shape.")
    ] = None,
    steps: Steps = None,
    batch_size: BatchSize = None,
    mode: Mode = None,
    seed: Seed = None,
    resume: Resume = False,
    config: Config = None,
    settings: Setting = None,
    device: Device = "cpu",
    threads: Threads = 1,
    tensorboard: Tensorboard = False,
    as_json: Json = False,
) -> None:
    """Train on graph edit distance: which of two graphs is fewer edge substitutions away?"""
    from graphkin._support.overrides import gather
    from graphkin.models import load_model
    from graphkin.research.tasks.edits import EditTask

    start = None if start_from is None else load_model(start_from)
    tables = gather(
        known_settings(EditTask),
        config,
        {
            "train": {"steps": steps, "batch_size": batch_size, "mode": mode, "seed": seed},
            "task": {**task_options(nodes, p, kp, kn), "seed": seed},
        },
        settings or (),
    )
    task = EditTask(**tables["task"])
    train_model(
        model, tables, task, out, resume, device, threads, tensorboard, as_json, start=start
    )


def eval_edits(
    model: Annotated[str, typer.Argument(help="A folder of a run or a model, or 'wl'.")],
    nodes: Nodes = None,
    p: Probability = None,
    kp: PositiveEdits = None,
    kn: NegativeEdits = None,
    split: Annotated[str, typer.Option(help="validation or test.")] = "test",
    size: Annotated[int | None, typer.Option(help="Pairs, and triplets, of the set.")] = None,
    steps: Annotated[
        int | None, typer.Option(help="Propagation steps, for shared parameters.", min=0)
    ] = None,
    iterations: Annotated[int, typer.Option(help="Iterations of the WL kernel.", min=0)] = 5,
    threads: Threads = 1,
    as_json: Json = False,
) -> None:
    """Pair AUC and triplet accuracy on the fixed sets of graph edit distance."""
    from graphkin.research.tasks.edits import EditTask

    options = {**task_options(nodes, p, kp, kn), "evaluation_size": size}
    task = EditTask(**{key: value for key, value in options.items() if value is not None})
    evaluate_model(model, task, split, steps, iterations, threads, as_json)


def task_options(
    nodes: str | None, p: str | None, kp: int | None, kn: int | None
) -> dict[str, Any]:
    return {
        "nodes": None if nodes is None else _range(nodes, int, "--nodes"),
        "p": None if p is None else _range(p, float, "--p"),
        "positive_edits": kp,
        "negative_edits": kn,
    }


def _range(text: str, kind: type[int] | type[float], name: str) -> tuple[Any, Any]:
    # A number may hold a dash of its own (2e-1), so that every cut is tried.
    cuts = [(text, text), *((text[:i], text[i + 1 :]) for i, c in enumerate(text) if c == "-")]
    for low, high in cuts:
        with contextlib.suppress(ValueError):
            return kind(low), kind(high)
    example = "20 or 20-50" if kind is int else "0.2 or 0.2-0.5"
    raise ConfigError(f"{name} takes {example}, got {text!r}")
