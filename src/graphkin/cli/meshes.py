"""``train meshes`` and ``eval meshes``: which graphs show the same object?"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
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
from graphkin.cli.runs import known_settings, train_model
from graphkin.errors import ConfigError

Data = Annotated[Path, typer.Option(help="The zip or folder of a TUDataset: COIL-DEL.zip.")]
SplitBy = Annotated[
    str | None,
    typer.Option(help="class: test classes are unseen; graph: other graphs of known classes."),
]


def train_meshes(
    data: Data,
    out: RunFolder,
    model: Annotated[
        str, typer.Option(help="gnn, gmn, gcn, siamese-gnn, siamese-gcn or deepset.")
    ] = "gmn",
    split: SplitBy = None,
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
    """Train on meshes of objects: do two graphs show the same one?"""
    from graphkin._support.overrides import gather
    from graphkin.research.tasks.meshes import MeshTask, recipe

    tables = gather(
        known_settings(MeshTask),
        config,
        {
            "train": {"steps": steps, "batch_size": batch_size, "mode": mode, "seed": seed},
            "task": {"data": str(data), "split": split, "seed": seed},
        },
        settings or (),
    )
    task = MeshTask(**tables["task"])
    defaults = recipe(model, task)
    merged = {table: defaults.get(table, {}) | values for table, values in tables.items()}
    train_model(model, merged, task, out, resume, device, threads, tensorboard, as_json)


def eval_meshes(
    model: Annotated[str, typer.Argument(help="A folder of a run or a model, or 'wl'.")],
    data: Data,
    split: SplitBy = None,
    fold: Annotated[
        int | None, typer.Option(help="Which tenth is the test set.", min=0, max=9)
    ] = None,
    part: Annotated[str, typer.Option("--set", help="validation or test.")] = "test",
    size: Annotated[int | None, typer.Option(help="Pairs, and triplets, of the set.")] = None,
    steps: Annotated[
        int | None, typer.Option(help="Propagation steps, for shared parameters.", min=0)
    ] = None,
    iterations: Annotated[int, typer.Option(help="Iterations of the WL kernel.", min=0)] = 5,
    threads: Threads = 1,
    as_json: Json = False,
) -> None:
    """Pair AUC, triplet accuracy and nearest-neighbour accuracy on the fixed sets of meshes.

    Without --split and --fold they are those that the model was trained on.
    """
    import torch

    from graphkin._support.progress import counter
    from graphkin.learning.evaluation import PairScorer, evaluate
    from graphkin.models import GraphEmbedder, load_model
    from graphkin.models.model import WithSteps
    from graphkin.research.baselines.wl import WLKernel
    from graphkin.research.tasks.meshes import MeshTask

    torch.set_num_threads(threads)
    trained = None if model == "wl" else load_model(model)
    options = own_parts(model, {"split": split, "fold": fold})
    if size is not None:
        options["evaluation_size"] = size
    task = MeshTask(str(data), **options)
    evaluation_set = task.evaluation_set(part)  # type: ignore[arg-type]
    scorer: PairScorer
    scorer = WLKernel(iterations) if trained is None else WithSteps(trained, steps)
    with counter("evaluating") as progress:
        metrics = evaluate(scorer, evaluation_set, progress=progress)
    with counter("nearest neighbours") as progress:
        neighbours = task.neighbours(part)  # type: ignore[arg-type]
        if isinstance(trained, GraphEmbedder):
            sides = (neighbours.queries, neighbours.pool)
            vectors = (trained.encode(side, steps=steps, progress=progress) for side in sides)
            metrics["nearest_neighbour"] = neighbours.accuracy(trained.similarity(*vectors))
        else:
            scores = neighbours.scores(scorer.predict, progress)
            metrics["nearest_neighbour"] = neighbours.accuracy(scores)
    if as_json:
        document = {"model": model, "task": task.describe(), "split": part}
        typer.echo(json.dumps(document | {"data": evaluation_set.digest, "metrics": metrics}))
        return
    where = f"split by {task.split}, fold {task.fold}"
    typer.echo(f"{model} on {part}, {where}, data {evaluation_set.digest[:12]}")
    for metric, value in metrics.items():
        typer.echo(f"  {metric:<18}{100 * value:6.2f}")
    pool = len(neighbours.pool) - bool(neighbours.own.any())
    typer.echo(f"  nearest of {pool} graphs, for each of {len(neighbours.queries)}")


OWN_PARTS = {"split": r'"split": "(class|graph)"', "fold": r'"fold": (\d)'}
"""Options of the task that say what is tested on, and where a card has them."""


def own_parts(model: str, given: Mapping[str, str | int | None]) -> dict[str, Any]:
    """What a model was trained on, where its card tells, else what is given.

    What one split or fold keeps for the test was trained on in another.
    """
    cards = (Path(model) / "model" / "README.md", Path(model) / "README.md")
    text = next((card.read_text(encoding="utf-8") for card in cards if card.is_file()), "")
    options: dict[str, Any] = {key: value for key, value in given.items() if value is not None}
    for name, pattern in OWN_PARTS.items():
        found = re.search(pattern, text)
        if found is None:
            continue
        if name in options and str(options[name]) != found[1]:
            raise ConfigError(
                f"{model} was trained with {name} {found[1]}, so it may have seen test graphs of "
                f"{name} {options[name]}; leave --{name} out"
            )
        options[name] = int(found[1]) if name == "fold" else found[1]
    return options
