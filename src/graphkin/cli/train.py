"""``train edits``, ``train functions``, ``train meshes``, ``train projects``, ``train graphs``."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from graphkin.cli.graph_options import AttributeOptions, DatasetFiles
from graphkin.cli.options import (
    Corpus,
    Json,
    OutputFolder,
    PropagationSteps,
    Seed,
    Threads,
    with_groups,
)
from graphkin.cli.task_options import EditOptions, Features, MeshOptions, Protocol

if TYPE_CHECKING:
    from graphkin.learning.recipes import TrainingRun
    from graphkin.learning.task import Task
    from graphkin.learning.training import TrainingResult
    from graphkin.models.model import GraphModel

Tables = dict[str, dict[str, Any]]


def register(app: typer.Typer) -> None:
    """Adds the verbs of this file."""
    group = typer.Typer(
        no_args_is_help=True,
        help="Train a model on a task, and write log, checkpoint and best weights into a folder.",
    )
    group.command("edits")(train_edits)
    group.command("functions")(train_functions)
    group.command("meshes")(train_meshes)
    group.command("projects")(train_projects)
    group.command("graphs")(train_graphs)
    app.add_typer(group, name="train")


@dataclass(frozen=True)
class TrainOptions:
    """Of every training."""

    output: OutputFolder
    kind: Annotated[
        str | None,
        typer.Option(
            help="Kind of model: gnn, gmn, gcn, siamese-gnn, siamese-gcn, deepset, gnn-strong, "
            "gmn-strong, or late for projects. By default gmn; for graphs gnn, which with --recipe "
            "strong is gnn-strong."
        ),
    ] = None
    recipe: Annotated[
        str | None,
        typer.Option(
            help="Settings to start from. paper: the model and losses of the paper; strong: ours, "
            "which learn faster. By default paper; for graphs strong."
        ),
    ] = None
    start_from: Annotated[
        str | None,
        typer.Option(
            help="Begin with weights and options of a trained model: a folder, or one that ships. "
            "A matcher may begin with an embedder."
        ),
    ] = None
    propagation_steps: PropagationSteps = None
    steps: Annotated[
        int | None, typer.Option(help="Training steps; by default 20,000, for graphs 3,000.")
    ] = None
    batch_size: Annotated[int | None, typer.Option(help="Pairs, triplets or lists in a batch.")] = (
        None
    )
    mode: Annotated[
        str | None, typer.Option(help="What a batch holds: pairs, triplets, lists or kin.")
    ] = None
    seed: Seed = None
    resume: Annotated[bool, typer.Option(help="Go on from the folder's checkpoint.")] = False
    config: Annotated[
        Path | None, typer.Option(help="TOML file with the tables model, train and task.")
    ] = None
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", help="Any setting: model.node_dim=64, learning_rate=1e-3, ..."),
    ] = None
    device: Annotated[str, typer.Option(help="cpu, cuda, cuda:1, ...")] = "cpu"
    threads: Threads = 1
    tensorboard: Annotated[bool, typer.Option(help="Write TensorBoard's event files.")] = False
    as_json: Json = False

    def start(self) -> GraphModel | None:
        """The model to begin with."""
        from graphkin.models import load_model

        return None if self.start_from is None else load_model(self.start_from)

    def tables(self, task: type[Any], task_options: dict[str, Any]) -> Tables:
        """Settings of model, training and task: from the file, the options, and ``--set``."""
        from graphkin._support.settings import gather
        from graphkin.learning.training import TrainConfig
        from graphkin.models import ModelConfig

        kinds = {"model": ModelConfig, "train": TrainConfig, "task": task}
        known = {table: [field.name for field in fields(kind)] for table, kind in kinds.items()}
        course = {name: getattr(self, name) for name in ("steps", "batch_size", "mode", "seed")}
        options = {"model": {"steps": self.propagation_steps}, "train": course}
        options["task"] = {**task_options, "seed": self.seed}
        return gather(known, self.config, options, self.settings or ())

    def assemble(
        self,
        task: Task,
        tables: Tables,
        start: GraphModel | None,
        kind: str = "gmn",
        recipe: str = "paper",
    ) -> TrainingRun:
        """The run of a task, which has a kind of model and a recipe by default."""
        from graphkin.learning.recipes import assemble

        return assemble(
            self.kind or kind,
            task,
            recipe=self.recipe or recipe,
            model_options=tables["model"],
            training=tables["train"],
            start=start,
        )


@with_groups
def train_edits(edits: EditOptions, options: TrainOptions) -> None:
    """Train on graph edit distance: which of two graphs is fewer edge substitutions away?"""
    from graphkin.research.tasks.edits import EditTask

    start = options.start()
    tables = options.tables(EditTask, edits.for_task())
    _train(options.assemble(EditTask(**tables["task"]), tables, start), options)


@with_groups
def train_functions(
    corpus: Corpus,
    options: TrainOptions,
    features: Features = None,
    protocol: Protocol = None,
    hard_negatives: Annotated[
        float | None, typer.Option(help="Share of negatives that are easily confused, 0 to 1.")
    ] = None,
) -> None:
    """Train on a corpus of functions: are two graphs compiled from the same one?

    With --start-from an embedder, its codes choose the hard negatives.
    """
    from graphkin._support.progress import counter
    from graphkin.research.tasks.functions.task import FunctionTask
    from graphkin.research.tasks.hard_negatives import with_hard_negatives

    start = options.start()
    own = {"features": features, "protocol": protocol, "hard_negatives": hard_negatives}
    tables = options.tables(FunctionTask, {"corpus": str(corpus), **own})
    if start is not None and start.vocabulary is not None:
        tables["task"].setdefault("words", start.vocabulary.words)
    task = FunctionTask(**tables["task"])
    run = options.assemble(task, tables, start)
    if start is not None:
        with counter("encoding training functions") as progress:
            task = with_hard_negatives(task, start, options.output / "codes.npy", progress)
    _train(replace(run, task=task), options)


@with_groups
def train_meshes(meshes: MeshOptions, options: TrainOptions) -> None:
    """Train on meshes of objects: do two graphs show the same one?"""
    from graphkin.research.tasks.meshes import MeshTask

    start = options.start()
    tables = options.tables(MeshTask, meshes.for_task())
    _train(options.assemble(MeshTask(**tables["task"]), tables, start), options)


@with_groups
def train_projects(corpus: Corpus, options: TrainOptions) -> None:
    """Train on functions of many projects, to find code that nobody trained on.

    It takes --recipe strong, and --kind gnn for an embedder, or --kind late or gmn for a matcher,
    with --start-from an embedder: that chooses what is hard to tell apart, and --kind late begins
    with its weights. The corpus is of PROJECT/CONFIGURATION.so, extracted with --evidence.
    """
    from graphkin._support.progress import counter
    from graphkin.models import GraphEmbedder
    from graphkin.research.tasks.project_lists import ProjectLists
    from graphkin.research.tasks.projects import ProjectTask

    start = options.start()
    tables = options.tables(ProjectTask, {"corpus": str(corpus)})
    task = ProjectTask(**tables["task"])
    # The steps of a GMN are not those of an embedder of projects.
    is_new = options.kind == "gmn" and isinstance(start, GraphEmbedder)
    run = options.assemble(task, tables, None if is_new else start)
    if isinstance(start, GraphEmbedder) and run.model.config.matching:
        is_late = run.model.config.similarity == "late"
        with counter("encoding training functions") as progress:
            run = replace(run, task=ProjectLists(task, start, apart=is_late, progress=progress))
    _train(run, options)


@with_groups
def train_graphs(files: DatasetFiles, attributes: AttributeOptions, options: TrainOptions) -> None:
    """Train on your own graphs: in classes, in pairs, or with target values to predict.

    Without a CSV, graphs have classes of their own: those of a TUDataset, "label" in each line of
    JSON, or the folder that a file is in.
    """
    from graphkin.learning.datasets.dataset import DatasetOptions

    start = options.start()
    tables = options.tables(DatasetOptions, files.for_task())
    if start is not None and start.vocabulary is not None:
        tables["task"]["vocabulary"] = start.vocabulary
    dataset = files.dataset(attributes.names(start), tables["task"])
    for remark in dataset.remarks:
        typer.echo(f"graphkin: {remark}", err=True)
    _train(options.assemble(dataset, tables, start, "gnn", "strong"), options)


def _train(run: TrainingRun, options: TrainOptions) -> None:
    """Trains, and prints how far it came."""
    import torch

    from graphkin.learning.training.log import TrainingProgress

    torch.set_num_threads(options.threads)
    try:
        with TrainingProgress(run.config.steps) as progress:
            result = run.train(
                options.output,
                resume=options.resume,
                device=options.device,
                tensorboard=options.tensorboard,
                on_report=progress,
            )
    except KeyboardInterrupt:
        typer.echo(f"graphkin: interrupted; --resume goes on from {options.output}", err=True)
        raise typer.Exit(130) from None
    if os.environ.get("RANK", "0") == "0":  # under torchrun the first process speaks for all
        _print(result, options)


def _print(result: TrainingResult, options: TrainOptions) -> None:
    if options.as_json:
        document = {"folder": str(options.output), "steps": result.step, "seconds": result.seconds}
        document |= {"validation": result.validation, "best": result.best}
        typer.echo(json.dumps(document))
        return
    metrics = ", ".join(f"{key} {value:.4f}" for key, value in result.validation.items())
    typer.echo(f"{result.step} steps in {result.seconds:.0f} s: validation {metrics}")
    typer.echo(f"best weights: {options.output / 'model'}")
