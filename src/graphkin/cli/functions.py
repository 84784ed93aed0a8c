"""``train functions`` and ``eval functions``: which functions are the same code?"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

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
from graphkin.errors import ConfigError, ModelError

if TYPE_CHECKING:
    from graphkin.learning.evaluation import PairScorer
    from graphkin.models.model import GraphModel
    from graphkin.research.tasks.functions.task import FunctionTask

Corpus = Annotated[Path, typer.Option(help="The folder that extract wrote.")]
Features = Annotated[
    str | None, typer.Option(help="What a node carries: mnemonics, or structure for nothing.")
]
BASELINES = ("simhash", "tfidf", "wl", "size")
PROTOCOLS = ("paper", "clean")


def train_functions(
    corpus: Corpus,
    out: RunFolder,
    model: Annotated[
        str, typer.Option(help="gnn, gmn, gcn, siamese-gnn, siamese-gcn or deepset.")
    ] = "gmn",
    steps_of_propagation: Annotated[
        int | None, typer.Option(help="T, the propagation steps of the model.", min=0)
    ] = None,
    features: Features = None,
    protocol: Annotated[str | None, typer.Option(help="paper or clean.")] = None,
    hard_negatives: Annotated[
        float | None, typer.Option(help="Share of negatives that are easily confused.")
    ] = None,
    recipe: Annotated[
        str, typer.Option(help="paper: its losses; strong: contrastive, learns faster.")
    ] = "paper",
    start_from: Annotated[
        Path | None,
        typer.Option(
            help="Begin with the weights of a trained model; a matcher may begin with an "
            "embedder, whose codes then choose the hard negatives."
        ),
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
    """Train on a corpus of functions: are two graphs compiled from the same one?"""
    from graphkin._support.overrides import gather
    from graphkin.models.config import INHERITED
    from graphkin.research.tasks.functions.task import FunctionTask
    from graphkin.research.tasks.functions.task import recipe as recipe_of

    start = None if start_from is None else _start(start_from)
    tables = gather(
        known_settings(FunctionTask),
        config,
        {
            "model": {"steps": steps_of_propagation},
            "train": {"steps": steps, "batch_size": batch_size, "mode": mode, "seed": seed},
            "task": {
                "corpus": str(corpus),
                "features": features,
                "protocol": protocol,
                "hard_negatives": hard_negatives,
                "seed": seed,
            },
        },
        settings or (),
    )
    if start is not None and start.vocabulary is not None:
        tables["task"].setdefault("words", start.vocabulary.words)
    task = FunctionTask(**tables["task"])
    defaults = recipe_of(model, task, recipe)
    if start is not None:
        inherited = ("similarity", "steps", *INHERITED)
        defaults["model"] |= {key: getattr(start.config, key) for key in inherited}
        task = _confused_by(start, task, out)
    merged = {table: defaults.get(table, {}) | values for table, values in tables.items()}
    words = task.vocabulary if task.features == "mnemonics" else None
    train_model(
        model, merged, task, out, resume, device, threads, tensorboard, as_json, words, start
    )


def _start(folder: Path) -> GraphModel:
    from graphkin.models import load_model

    return load_model(folder)


def _confused_by(model: GraphModel, task: FunctionTask, out: Path) -> FunctionTask:
    """The task with hard negatives that the codes of an embedder choose, where it has codes."""
    from dataclasses import replace
    from io import BytesIO

    import numpy as np

    from graphkin._support.files import write_atomically
    from graphkin._support.progress import counter
    from graphkin.models import GraphEmbedder
    from graphkin.models.similarity import pack_codes

    codable = isinstance(model, GraphEmbedder) and model.config.similarity == "hamming"
    if not task.hard_negatives or task.codes is not None or not codable:
        return task
    assert isinstance(model, GraphEmbedder)
    file = out / "codes.npy"
    if not file.exists():
        graphs, numbers = task.numbered_graphs("training")
        with counter("encoding training functions") as progress:
            found = pack_codes(model.encode(graphs, progress=progress))
        codes = np.zeros((len(task.data.corpus.store), found.shape[1]), dtype=np.uint8)
        codes[numbers] = found
        content = BytesIO()
        np.save(content, codes)
        write_atomically(file, content.getvalue())
    return replace(task, codes=str(file))


def eval_functions(
    corpus: Corpus,
    model: Annotated[
        str, typer.Option(help=f"A folder of a run or a model, or {', '.join(BASELINES)}.")
    ],
    protocol: Annotated[str | None, typer.Option(help="paper or clean; by default both.")] = None,
    split: Annotated[str, typer.Option(help="validation or test.")] = "test",
    features: Features = None,
    size: Annotated[int | None, typer.Option(help="Pairs, and triplets, of a set.", min=2)] = None,
    pool: Annotated[
        int | None, typer.Option(help="Candidates for each query; 0 for all functions.", min=0)
    ] = None,
    retrieval: Annotated[bool, typer.Option(help="Measure retrieval too.")] = True,
    steps_of_propagation: Annotated[
        int | None, typer.Option(help="Propagation steps, for shared parameters.", min=0)
    ] = None,
    min_builds: Annotated[
        int | None, typer.Option(help="Builds that a function must have; 0 for all.", min=0)
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of a baseline that learns.", min=0)] = 0,
    threads: Threads = 1,
    as_json: Json = False,
) -> None:
    """Pair AUC, triplet accuracy and retrieval on the fixed sets of a corpus."""
    import torch

    from graphkin._support.progress import counter
    from graphkin.learning.evaluation import evaluate, retrieval_metrics
    from graphkin.research.tasks.functions.task import FunctionTask
    from graphkin.research.tasks.splits import check_split

    torch.set_num_threads(threads)
    check_split(split)
    given = {"features": features, "evaluation_size": size, "pool": pool, "min_builds": min_builds}
    options: dict[str, Any] = {key: value for key, value in given.items() if value is not None}
    options["corpus"] = str(corpus)
    trained = None
    if model not in BASELINES:
        trained, options = trained_scorer(model, options)
    results = []
    for name in (protocol,) if protocol else PROTOCOLS:
        task = FunctionTask(**options, protocol=name)  # type: ignore[arg-type]
        scorer, notes = _scorer(model, trained, task, steps_of_propagation, seed)
        measured: dict[str, Any] = {}
        for label, evaluation_set in task.evaluation_sets(split).items():  # type: ignore[arg-type]
            with counter(f"{name}: {label}") as progress:
                metrics = evaluate(scorer, evaluation_set, progress=progress)
            measured[label] = {"data": evaluation_set.digest, "metrics": metrics}
        if retrieval:
            blocks = task.retrieval(split)  # type: ignore[arg-type]
            with counter(f"{name}: retrieval") as progress:
                metrics = retrieval_metrics(scorer, blocks, progress=progress)
            sizes = [len(block.pool) for block in blocks]
            measured["retrieval"] = {"pools": sizes, "metrics": metrics}
        identical = task.identical_share(split)  # type: ignore[arg-type]
        results.append(
            {
                "protocol": name,
                "task": task.describe(),
                "identical_positives": identical,
                **notes,
                "sets": measured,
            }
        )
    if as_json:
        document = {"model": model, "split": split, "results": results}
        typer.echo(json.dumps(document))
        return
    typer.echo(f"{model} on the {split} functions of {corpus}")
    for result in results:
        _print(result)


def trained_scorer(model: str, options: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """A model, and the options of a task whose graphs it can take."""
    from graphkin.models import load_model

    if not Path(model).is_dir():
        raise ModelError(f"{model} is no folder of a model, and none of {', '.join(BASELINES)}")
    loaded = load_model(Path(model))
    own = "mnemonics" if loaded.config.node_input == "tokens" else "structure"
    if options.setdefault("features", own) != own:
        raise ConfigError(f"{model} was trained on {own}; leave --features out")
    if loaded.vocabulary is not None:
        options["words"] = loaded.vocabulary.words
    elif own == "mnemonics":
        raise ConfigError(f"{model} has no vocabulary, so what its tokens mean is unknown")
    return loaded, options


def _scorer(
    model: str, trained: Any, task: FunctionTask, steps: int | None, seed: int
) -> tuple[PairScorer, dict[str, Any]]:
    """What is evaluated, and notes on how it was made."""
    from graphkin._support.progress import counter

    if trained is not None:
        from graphkin.models.model import WithSteps

        return WithSteps(trained, steps), {}
    if model == "wl":
        from graphkin.learning.evaluation import pair_auc
        from graphkin.research.baselines.wl import WLKernel, best_iterations

        chosen = task.evaluation_set("validation")
        scores = WLKernel().sweep(chosen.pairs)
        iterations = best_iterations(scores, lambda row: pair_auc(row, chosen.labels))
        return WLKernel(iterations), {"iterations": iterations}
    if model == "size":
        from graphkin.research.baselines.size import GraphSize

        return GraphSize(), {}
    graphs, functions = task.graphs("training")
    if model == "tfidf":
        from graphkin.research.baselines.tfidf import TfIdf

        return TfIdf.fit(graphs), {}
    from graphkin.research.baselines.simhash.simhash import SimHash

    with counter(f"{task.protocol}: learning weights") as progress:
        return SimHash.fit(graphs, functions, seed=seed, progress=progress), {"seed": seed}


def _print(result: dict[str, Any]) -> None:
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
