"""``calibrate edits``, ``calibrate functions`` and ``calibrate meshes``: from score to probability.

Fitted on the validation pairs of a task, checked on its test pairs.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from graphkin.cli.edits import NegativeEdits, Nodes, PositiveEdits, Probability, task_options
from graphkin.cli.functions import Corpus, trained_scorer
from graphkin.cli.meshes import Data, SplitBy, own_parts
from graphkin.cli.options import Json, Threads
from graphkin.errors import ConfigError

if TYPE_CHECKING:
    from graphkin.learning.task import Task
    from graphkin.models.model import GraphModel

Model = Annotated[Path, typer.Argument(help="A folder of a run or a model; it is written to.")]
Size = Annotated[int | None, typer.Option(help="Pairs to fit on, and to check on.", min=2)]
Plot = Annotated[
    Path | None, typer.Option(help="Draw the reliability curve: a .png, .svg or .pdf file.")
]


def register(app: typer.Typer) -> None:
    """Adds the verbs of this file."""
    group = typer.Typer(
        no_args_is_help=True, help="Fit from a model's scores to probabilities, and check them."
    )
    group.command("edits")(calibrate_edits)
    group.command("functions")(calibrate_functions)
    group.command("meshes")(calibrate_meshes)
    app.add_typer(group, name="calibrate")


def calibrate_edits(
    model: Model,
    nodes: Nodes = None,
    p: Probability = None,
    kp: PositiveEdits = None,
    kn: NegativeEdits = None,
    size: Size = None,
    plot: Plot = None,
    threads: Threads = 1,
    as_json: Json = False,
) -> None:
    """Fit the probability that a pair is the nearer kind of graph edit distance."""
    from graphkin.models import load_model
    from graphkin.research.tasks.edits import EditTask

    _check_own(model)
    options = _given({**task_options(nodes, p, kp, kn), "evaluation_size": size})
    _calibrate(model, load_model(model), EditTask(**options), plot, threads, as_json)


def calibrate_functions(
    model: Model,
    corpus: Corpus,
    protocol: Annotated[
        str, typer.Option(help="paper or clean: the one that the model was trained by.")
    ] = "clean",
    size: Size = None,
    plot: Plot = None,
    threads: Threads = 1,
    as_json: Json = False,
) -> None:
    """Fit the probability that two graphs are compiled from the same function."""
    from graphkin.research.tasks.functions.task import FunctionTask

    _check_own(model)
    options = _given({"corpus": str(corpus), "protocol": protocol, "evaluation_size": size})
    trained, options = trained_scorer(str(model), options)
    _calibrate(model, trained, FunctionTask(**options), plot, threads, as_json)


def calibrate_meshes(
    model: Model,
    data: Data,
    split: SplitBy = None,
    size: Size = None,
    plot: Plot = None,
    threads: Threads = 1,
    as_json: Json = False,
) -> None:
    """Fit the probability that two meshes show the same object.

    Without --split it is the one that the model was trained on.
    """
    from graphkin.models import load_model
    from graphkin.research.tasks.meshes import MeshTask

    _check_own(model)
    trained = load_model(model)
    own = own_parts(str(model), {"split": split})
    options = _given({"data": str(data), "evaluation_size": size})
    _calibrate(model, trained, MeshTask(**options, **own), plot, threads, as_json)


def _check_own(model: Path) -> None:
    """Refuses a model that ships with graphkin: the calibration is written beside the weights."""
    from graphkin.models.saving import shipped_names

    if str(model) in shipped_names() and not model.exists():
        raise ConfigError(
            f"{model} ships with graphkin, and has its calibration; name the folder of a model of "
            "your own"
        )


def _calibrate(
    folder: Path, model: GraphModel, task: Task, plot: Path | None, threads: int, as_json: bool
) -> None:
    """Fits on validation pairs, measures on test pairs, and writes to the model's folder."""
    import torch

    from graphkin._support.progress import counter
    from graphkin.learning.reliability import fit_calibration, reliability
    from graphkin.models.calibration import score_calibration_to_json
    from graphkin.models.saving import save_calibration, weights_home
    from graphkin.results.drawing.files import picture_ending

    torch.set_num_threads(threads)
    if plot is not None:
        picture_ending(plot)
    validation, test = task.evaluation_set("validation"), task.evaluation_set("test")
    with counter("fitting") as progress:
        model.calibration = calibration = fit_calibration(model, validation, progress=progress)
    with counter("checking") as progress:
        chances = model.predict(test.pairs, progress=progress, probability=True)
    found = reliability(chances, test.labels)
    if plot is not None:
        from graphkin.results.drawing.reliability import plot_reliability

        plot_reliability(found, plot)
    save_calibration(weights_home(folder), calibration)
    document = {
        "model": str(folder),
        "task": task.describe(),
        "calibration": score_calibration_to_json(calibration),
        "validation": {"data": validation.digest, "pairs": len(validation.pairs)},
        "test": {
            "data": test.digest,
            "pairs": len(test.pairs),
            "expected_calibration_error": found.expected_calibration_error,
            "bins": [asdict(each) for each in found.bins],
        },
    }
    if as_json:
        typer.echo(json.dumps(document))
    else:
        _print(document)


def _print(document: dict[str, Any]) -> None:
    line, validation, test = (document[key] for key in ("calibration", "validation", "test"))
    typer.echo(
        f"{document['model']}: 1 / (1 + exp(-({line['slope']:.6g} score {line['offset']:+.6g})))"
    )
    typer.echo(f"fitted on {validation['pairs']} validation pairs, data {validation['data'][:12]}")
    typer.echo(f"checked on {test['pairs']} test pairs, data {test['data'][:12]}")
    typer.echo(f"  {'probability':<14}{'mean %':>8}{'similar %':>11}{'pairs':>8}")
    for each in test["bins"]:
        mean, share = 100 * each["mean_probability"], 100 * each["share_similar"]
        span = f"{each['low']:.1f} to {each['high']:.1f}"
        typer.echo(f"  {span:<14}{mean:8.1f}{share:11.1f}{each['count']:8}")
    error = 100 * test["expected_calibration_error"]
    typer.echo(f"  expected calibration error {error:.2f}")


def _given(options: dict[str, Any]) -> dict[str, Any]:
    """The options that have a value; a task has defaults for the others."""
    return {key: value for key, value in options.items() if value is not None}
