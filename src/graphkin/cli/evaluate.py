"""``eval edits``, ``eval functions``, ...: a model, or a baseline, on a task."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from graphkin.cli.graph_options import AttributeOptions, DatasetFiles
from graphkin.cli.options import (
    Corpus,
    Json,
    PropagationSteps,
    Seed,
    Threads,
    with_groups,
    without_none,
)
from graphkin.cli.task_options import (
    EditOptions,
    Features,
    MeshOptions,
    Protocol,
    Size,
    function_options,
)
from graphkin.research.reproduce.table_layout import BASELINES

if TYPE_CHECKING:
    from graphkin.learning.evaluation import PairScorer
    from graphkin.learning.task import Task
    from graphkin.models.model import GraphModel
    from graphkin.research.tasks.functions.task import FunctionTask

PROTOCOLS = ("paper", "clean")
A_MODEL = "A model: a folder, a run, or edits or functions, which ship"

Model = Annotated[str, typer.Argument(help=f"{A_MODEL}; or wl, the WL kernel.")]
Iterations = Annotated[int, typer.Option(help="Iterations of the WL kernel.", min=0)]


def register(app: typer.Typer) -> None:
    """Adds the verbs of this file."""
    group = typer.Typer(no_args_is_help=True, help="Evaluate a model, or a baseline, on a task.")
    group.command("edits")(eval_edits)
    group.command("functions")(eval_functions)
    group.command("meshes")(eval_meshes)
    group.command("graphs")(eval_graphs)
    app.add_typer(group, name="eval")


@dataclass(frozen=True)
class EvaluationOptions:
    """Of every evaluation."""

    split: Annotated[str, typer.Option(help="Data to evaluate on: validation or test.")] = "test"
    size: Size = None
    propagation_steps: PropagationSteps = None
    threads: Threads = 1
    as_json: Json = False


@with_groups
def eval_edits(
    model: Model, edits: EditOptions, options: EvaluationOptions, iterations: Iterations = 5
) -> None:
    """Measure pair AUC and triplet accuracy on the fixed sets of graph edit distance."""
    from graphkin.models import load_model
    from graphkin.research.tasks.edits import EditTask

    task = EditTask(**edits.for_task(), **without_none({"evaluation_size": options.size}))
    scorer = _scorer(None if model == "wl" else load_model(model), options, iterations)
    document = _evaluated(model, scorer, task, options)
    _print(document, options, f"{model} on {options.split}, data {document['data'][:12]}")


@with_groups
def eval_meshes(
    model: Model, meshes: MeshOptions, options: EvaluationOptions, iterations: Iterations = 5
) -> None:
    """Measure pair AUC, triplet accuracy and nearest-neighbour accuracy on the sets of meshes."""
    from graphkin._support.progress import counter
    from graphkin.learning.evaluation import neighbour_accuracy
    from graphkin.models import load_model
    from graphkin.research.tasks.meshes import MeshTask

    trained = None if model == "wl" else load_model(model)
    own = meshes.for_task() if trained is None else meshes.for_test_of(trained, model)
    task = MeshTask(**own, **without_none({"evaluation_size": options.size}))
    scorer = _scorer(trained, options, iterations)
    document = _evaluated(model, scorer, task, options)
    neighbours = task.neighbours(options.split)  # type: ignore[arg-type]
    with counter("nearest neighbours") as progress:
        accuracy = neighbour_accuracy(scorer, neighbours, progress=progress)
    document["metrics"]["nearest_neighbour"] = accuracy
    data = f"split by {task.split}, fold {task.fold}, data {document['data'][:12]}"
    _print(document, options, f"{model} on {options.split}, {data}")
    if not options.as_json:
        pool = len(neighbours.pool) - bool(neighbours.own.any())
        typer.echo(f"  nearest of {pool} graphs, for each of {len(neighbours.queries)}")


@with_groups
def eval_graphs(
    model: Model,
    files: DatasetFiles,
    attributes: AttributeOptions,
    options: EvaluationOptions,
    iterations: Iterations = 5,
) -> None:
    """Measure a model on your own graphs, those of a split that it was not trained on.

    Pair AUC and triplet accuracy, and for classes nearest-neighbour accuracy; for target values
    their errors, rank correlations and precision at 10 and 20.
    """
    from graphkin._support.progress import counter
    from graphkin.learning.datasets import ClassDataset
    from graphkin.learning.evaluation import neighbour_accuracy
    from graphkin.models import load_model

    trained = None if model == "wl" else load_model(model)
    size = without_none({"evaluation_size": options.size})
    if trained is None:
        dataset = files.dataset(attributes.names(), {**files.for_task(), **size})
    else:
        dataset = files.test_of(trained, model, attributes, size)
    scorer = _scorer(trained, options, iterations)
    document = _evaluated(model, scorer, dataset, options)
    if isinstance(dataset, ClassDataset):
        with counter("nearest neighbours") as progress:
            accuracy = neighbour_accuracy(
                scorer,
                dataset.neighbours(options.split),  # type: ignore[arg-type]
                progress=progress,
            )
        document["metrics"]["nearest_neighbour"] = accuracy
    if dataset.kind == "targets" and (trained is None or trained.config.link == "none"):
        # Scores order pairs, and are in no unit that values could be missed in.
        for name in ("mse", "mae"):
            del document["metrics"][name]
        typer.echo(
            f"graphkin: {model} was not trained on target values, so its errors have no unit and "
            "are left out",
            err=True,
        )
    title = f"{model} on {options.split} {dataset.kind}, data {document['data'][:12]}"
    _print(document, options, title, percent=dataset.kind != "targets")


@with_groups
def eval_functions(
    model: Annotated[str, typer.Argument(help=f"{A_MODEL}; or {', '.join(BASELINES)}.")],
    corpus: Corpus,
    options: EvaluationOptions,
    protocol: Protocol = None,
    features: Features = None,
    pool: Annotated[
        int | None, typer.Option(help="Candidates for each query; 0 for all functions.", min=0)
    ] = None,
    retrieval: Annotated[bool, typer.Option(help="Measure retrieval too.")] = True,
    min_builds: Annotated[
        int | None, typer.Option(help="Builds that a function must have; 0 for all.", min=0)
    ] = None,
    seed: Seed = None,
) -> None:
    """Measure pair AUC, triplet accuracy and retrieval on the fixed sets of a corpus.

    Without --protocol by both.
    """
    from graphkin.learning.datasets.splits import check_split
    from graphkin.models import load_model
    from graphkin.research.tasks.functions.task import FunctionTask

    check_split(options.split)
    own = {"corpus": str(corpus), "features": features, "pool": pool, "min_builds": min_builds}
    own = without_none({**own, "evaluation_size": options.size})
    trained = None if model in BASELINES else load_model(model)
    if trained is not None:
        own = function_options(trained, model, corpus, own)
    results = []
    for name in (protocol,) if protocol else PROTOCOLS:
        task = FunctionTask(**own, protocol=name)  # type: ignore[arg-type]
        scorer, notes = _function_scorer(model, trained, task, options, seed or 0)
        result: dict[str, Any] = {"protocol": name, "task": task.describe()}
        result["identical_positives"] = task.identical_share(options.split)  # type: ignore[arg-type]
        sets = _function_sets(scorer, task, options.split, retrieval)
        results.append({**result, **notes, "sets": sets})
    if options.as_json:
        typer.echo(json.dumps({"model": model, "split": options.split, "results": results}))
        return
    typer.echo(f"{model} on the {options.split} functions of {corpus}")
    for result in results:
        _print_protocol(result)


def _function_sets(
    scorer: PairScorer, task: FunctionTask, split: Any, retrieval: bool
) -> dict[str, Any]:
    """Metrics of each evaluation set of a split, and of its pools."""
    from graphkin._support.progress import counter
    from graphkin.learning.evaluation import evaluate, retrieval_metrics

    measured: dict[str, Any] = {}
    for label, data in task.evaluation_sets(split).items():
        with counter(f"{task.protocol}: {label}") as progress:
            metrics = evaluate(scorer, data, progress=progress)
        measured[label] = {"data": data.digest, "metrics": metrics}
    if retrieval:
        pools = task.retrieval(split)
        with counter(f"{task.protocol}: retrieval") as progress:
            metrics = retrieval_metrics(scorer, pools, progress=progress)
        measured["retrieval"] = {"pools": [len(pool.pool) for pool in pools], "metrics": metrics}
    return measured


def _function_scorer(
    name: str, trained: GraphModel | None, task: FunctionTask, options: EvaluationOptions, seed: int
) -> tuple[PairScorer, dict[str, Any]]:
    """What is evaluated, and notes on how it was made."""
    from graphkin._support.progress import counter
    from graphkin.learning.evaluation import pair_auc
    from graphkin.research.baselines.simhash.simhash import SimHash
    from graphkin.research.baselines.size import GraphSize
    from graphkin.research.baselines.tfidf import TfIdf
    from graphkin.research.baselines.wl import WLKernel, best_iterations

    kernel = WLKernel()
    scorer = _scorer(trained, options, kernel.iterations)
    if trained is not None:
        return scorer, {}
    if name == "size":
        return GraphSize(), {}
    if name == "wl":
        validation = task.evaluation_set("validation")
        scores = kernel.sweep(validation.pairs)
        iterations = best_iterations(scores, lambda row: pair_auc(row, validation.labels))
        return WLKernel(iterations), {"iterations": iterations}
    graphs, functions = task.graphs("training")
    if name == "tfidf":
        return TfIdf.fit(graphs), {}
    with counter(f"{task.protocol}: learning weights") as progress:
        return SimHash.fit(graphs, functions, seed=seed, progress=progress), {"seed": seed}


def _scorer(trained: GraphModel | None, options: EvaluationOptions, iterations: int) -> PairScorer:
    import torch

    from graphkin.learning.evaluation import WithSteps
    from graphkin.research.baselines.wl import WLKernel

    torch.set_num_threads(options.threads)
    if trained is None:
        return WLKernel(iterations)
    return WithSteps(trained, options.propagation_steps)


def _evaluated(
    name: str, scorer: PairScorer, task: Task, options: EvaluationOptions
) -> dict[str, Any]:
    """Pair AUC and triplet accuracy, as ``--json`` prints them."""
    from graphkin._support.progress import counter
    from graphkin.learning.evaluation import evaluate

    data = task.evaluation_set(options.split)  # type: ignore[arg-type]
    with counter("evaluating") as progress:
        metrics = evaluate(scorer, data, progress=progress)
    document = {"model": name, "task": task.describe(), "split": options.split}
    return document | {"data": data.digest, "metrics": metrics}


def _print(
    document: dict[str, Any], options: EvaluationOptions, title: str, percent: bool = True
) -> None:
    if options.as_json:
        typer.echo(json.dumps(document))
        return
    typer.echo(title)
    for metric, value in document["metrics"].items():
        text = f"{100 * value:6.2f}" if percent else f"{value:10.6f}"
        typer.echo(f"  {metric:<18}{text}")


def _print_protocol(result: dict[str, Any]) -> None:
    from graphkin.research.tasks.functions.task import PROTOCOL_NAMES

    notes = {key: result[key] for key in ("iterations", "seed") if key in result}
    extra = "".join(f", {key} {value}" for key, value in notes.items())
    typer.echo(f"{PROTOCOL_NAMES[result['protocol']]}{extra}")
    for label, measured in result["sets"].items():
        values = "".join(f"{key:>20} {100 * v:6.2f}" for key, v in measured["metrics"].items())
        pools = f"  in pools of {max(measured['pools'])}" if "pools" in measured else ""
        typer.echo(f"  {label:<24}{values}{pools}")
    share = result["identical_positives"]
    left = ", left out above" if result["protocol"] == "clean" else ""
    typer.echo(f"  pairs of builds with equal graphs: {share:.1%}{left}")
