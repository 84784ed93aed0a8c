"""The command line. Verbs only: what they do lives in the modules they call.

Data goes to stdout, progress and errors to stderr; torch is imported inside the commands,
so that ``--help`` answers at once.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from graphkin.errors import ConfigError, GraphkinError

app = typer.Typer(
    name="graphkin",
    help="Learns how similar graphs are, and finds a graph's kin.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
train_app = typer.Typer(no_args_is_help=True, help="Train a model on a task.")
eval_app = typer.Typer(no_args_is_help=True, help="Evaluate a model, or a baseline, on a task.")
app.add_typer(train_app, name="train")
app.add_typer(eval_app, name="eval")

Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
Nodes = Annotated[
    str | None, typer.Option(help="Nodes of a graph: a number, or a range such as 20-50.")
]
Probability = Annotated[
    str | None, typer.Option("--p", help="Edge probability: a number, or a range: 0.2-0.5.")
]
PositiveEdits = Annotated[int | None, typer.Option("--kp", help="Edits between similar graphs.")]
NegativeEdits = Annotated[int | None, typer.Option("--kn", help="Edits between dissimilar graphs.")]
Threads = Annotated[int, typer.Option(help="Threads of matrix products.", min=1)]
Config = Annotated[
    Path | None, typer.Option(help="TOML file with the tables model, train and task.")
]
Setting = Annotated[
    list[str] | None,
    typer.Option("--set", help="Any setting: model.node_dim=64, learning_rate=1e-3, ..."),
]


@app.callback(invoke_without_command=True)
def root(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    """Learns how similar graphs are, and finds a graph's kin."""
    if version:
        from graphkin import __version__

        typer.echo(__version__)
        raise typer.Exit


@app.command()
def demo(
    output: Annotated[Path, typer.Option(help="Folder for the picture.")] = Path("demo-output"),
    steps: Annotated[int | None, typer.Option(help="Training steps.", min=1)] = None,
    as_json: Json = False,
) -> None:
    """Train a small matching network for about a minute, and compare it with the WL kernel."""
    from graphkin.demo import run_demo

    result = run_demo(output, steps)
    typer.echo(json.dumps(result.to_dict()) if as_json else result.to_text())


@train_app.command("edits")
def train_edits(
    out: Annotated[Path, typer.Option(help="Folder of the run: log, checkpoint, weights.")],
    model: Annotated[
        str, typer.Option(help="gnn, gmn, gcn, siamese-gnn, siamese-gcn or deepset.")
    ] = "gmn",
    nodes: Nodes = None,
    p: Probability = None,
    kp: PositiveEdits = None,
    kn: NegativeEdits = None,
    steps: Annotated[int | None, typer.Option(help="Training steps.")] = None,
    batch_size: Annotated[int | None, typer.Option(help="Pairs or triplets in a batch.")] = None,
    mode: Annotated[str | None, typer.Option(help="pairs or triplets.")] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of weights and data.")] = None,
    resume: Annotated[bool, typer.Option(help="Go on from the folder's checkpoint.")] = False,
    config: Config = None,
    settings: Setting = None,
    device: Annotated[str, typer.Option(help="cpu, cuda, cuda:1, ...")] = "cpu",
    threads: Threads = 1,
    tensorboard: Annotated[bool, typer.Option(help="Write TensorBoard's event files.")] = False,
    as_json: Json = False,
) -> None:
    """Train on graph edit distance: which of two graphs is fewer edge substitutions away?"""
    from graphkin.overrides import gather
    from graphkin.tasks.edits import EditTask

    tables = gather(
        _known_settings(),
        config,
        {
            "train": {"steps": steps, "batch_size": batch_size, "mode": mode, "seed": seed},
            "task": {**_task_options(nodes, p, kp, kn), "seed": seed},
        },
        settings or (),
    )
    task = EditTask(**tables["task"])
    _train(model, tables, task, out, resume, device, threads, tensorboard, as_json)


@eval_app.command("edits")
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
    from graphkin.tasks.edits import EditTask

    options = {**_task_options(nodes, p, kp, kn), "evaluation_size": size}
    task = EditTask(**{key: value for key, value in options.items() if value is not None})
    _evaluate(model, task, split, steps, iterations, threads, as_json)


def main() -> None:
    """The entry point: a graphkin error becomes one line on stderr and its own exit code."""
    try:
        app(standalone_mode=True)
    except GraphkinError as error:
        typer.echo(f"graphkin: {error}", err=True)
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        typer.echo("graphkin: interrupted", err=True)
        sys.exit(130)
    except (MemoryError, RuntimeError) as error:
        if isinstance(error, RuntimeError) and "allocate memory" not in str(error):
            raise
        typer.echo("graphkin: out of memory; use smaller graphs, batches or models", err=True)
        sys.exit(1)


def _known_settings() -> dict[str, list[str]]:
    from dataclasses import fields

    from graphkin.models import ModelConfig
    from graphkin.tasks.edits import EditTask
    from graphkin.training import TrainConfig

    tables = {"model": ModelConfig, "train": TrainConfig, "task": EditTask}
    return {table: [field.name for field in fields(kind)] for table, kind in tables.items()}


def _task_options(
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


def _train(
    name: str,
    tables: dict[str, dict[str, Any]],
    task: Any,
    out: Path,
    resume: bool,
    device: str,
    threads: int,
    tensorboard: bool,
    as_json: bool,
) -> None:
    import torch

    from graphkin.models import ModelConfig, build_model
    from graphkin.progress import TrainingProgress
    from graphkin.training import TrainConfig, train

    torch.set_num_threads(threads)
    model_config = ModelConfig.named(name, **tables["model"])
    config = TrainConfig.from_dict(tables["train"])
    model = build_model(model_config, config.seed)
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


def _evaluate(
    name: str,
    task: Any,
    split: str,
    steps: int | None,
    iterations: int,
    threads: int,
    as_json: bool,
) -> None:
    import torch

    from graphkin.baselines.wl import WLKernel
    from graphkin.evaluation import PairScorer, evaluate
    from graphkin.models import load_model
    from graphkin.models.base import Unrolled
    from graphkin.progress import counter

    torch.set_num_threads(threads)
    evaluation_set = task.evaluation_set(split)
    scorer: PairScorer
    scorer = WLKernel(iterations) if name == "wl" else Unrolled(load_model(Path(name)), steps)
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
