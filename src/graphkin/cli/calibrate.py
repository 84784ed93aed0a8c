"""``calibrate edits``, ``calibrate functions``, ...: from score to probability.

Fitted on the validation pairs of a task, checked on its test pairs.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from graphkin.cli.graph_options import AttributeOptions, DatasetFiles
from graphkin.cli.options import Corpus, Json, Plot, Threads, with_groups, without_none
from graphkin.cli.task_options import EditOptions, MeshOptions, Protocol, Size, function_options
from graphkin.errors import ConfigError

if TYPE_CHECKING:
    from graphkin.learning.task import Task
    from graphkin.models.model import GraphModel

Model = Annotated[
    str, typer.Argument(help="Folder of a model or a run; the calibration is written into it.")
]


def register(app: typer.Typer) -> None:
    """Adds the verbs of this file."""
    group = typer.Typer(
        no_args_is_help=True,
        help="Fit and check the calibration that turns scores into probabilities; --plot draws how "
        "reliable they are.",
    )
    group.command("edits")(calibrate_edits)
    group.command("functions")(calibrate_functions)
    group.command("meshes")(calibrate_meshes)
    group.command("graphs")(calibrate_graphs)
    app.add_typer(group, name="calibrate")


@dataclass(frozen=True)
class CalibrationOptions:
    """Of every calibration."""

    size: Size = None
    plot: Plot = None
    threads: Threads = 1
    as_json: Json = False

    def for_task(self) -> dict[str, Any]:
        """What every task takes."""
        return without_none({"evaluation_size": self.size})


@with_groups
def calibrate_edits(model: Model, edits: EditOptions, options: CalibrationOptions) -> None:
    """Fit the probability that a pair is the nearer kind of graph edit distance."""
    from graphkin.models import load_model
    from graphkin.research.tasks.edits import EditTask

    trained = load_model(model)
    task = EditTask(**edits.for_task(), **options.for_task())
    _calibrate(model, trained, task, options)


@with_groups
def calibrate_functions(
    model: Model, corpus: Corpus, options: CalibrationOptions, protocol: Protocol = "clean"
) -> None:
    """Fit the probability that two graphs are compiled from the same function."""
    from graphkin.models import load_model
    from graphkin.research.tasks.functions.task import FunctionTask

    trained = load_model(model)
    own = {"protocol": protocol, **options.for_task()}
    task = FunctionTask(**function_options(trained, model, corpus, own))
    _calibrate(model, trained, task, options)


@with_groups
def calibrate_meshes(model: Model, meshes: MeshOptions, options: CalibrationOptions) -> None:
    """Fit the probability that two meshes show the same object."""
    from graphkin.models import load_model
    from graphkin.research.tasks.meshes import MeshTask

    trained = load_model(model)
    task = MeshTask(**meshes.for_test_of(trained, model), **options.for_task())
    _calibrate(model, trained, task, options)


@with_groups
def calibrate_graphs(
    model: Model, files: DatasetFiles, attributes: AttributeOptions, options: CalibrationOptions
) -> None:
    """Fit the probability that two of your own graphs are similar."""
    from graphkin.models import load_model

    trained = load_model(model)
    dataset = files.test_of(trained, model, attributes, options.for_task())
    _calibrate(model, trained, dataset, options)


def _calibrate(name: str, model: GraphModel, task: Task, options: CalibrationOptions) -> None:
    """Fits on validation pairs, measures on test pairs, and writes to the model's folder.

    The calibration of a model that ships is measured, and not replaced.
    """
    import torch

    from graphkin._support.progress import counter
    from graphkin.learning.reliability import fit_calibration, reliability
    from graphkin.learning.task import EvaluationSet
    from graphkin.models.calibration import score_calibration_to_json
    from graphkin.models.saving import SHIPPED, model_folder, save_calibration
    from graphkin.results.drawing.pictures import picture_ending

    torch.set_num_threads(options.threads)
    if options.plot is not None:
        picture_ending(options.plot)
    validation, test = task.evaluation_set("validation"), task.evaluation_set("test")
    if not isinstance(validation, EvaluationSet) or not isinstance(test, EvaluationSet):
        raise ConfigError(
            "a model of target values predicts them, and has no probability to calibrate"
        )
    calibration, ships = model.calibration, model_folder(name).is_relative_to(SHIPPED)
    if calibration is None or not ships:
        with counter("fitting") as progress:
            model.calibration = calibration = fit_calibration(model, validation, progress=progress)
    with counter("checking") as progress:
        probabilities = model.predict(test.pairs, progress=progress, probability=True)
    curve = reliability(probabilities, test.labels)
    if options.plot is not None:
        from graphkin.results.drawing.charts import plot_reliability

        plot_reliability(curve, options.plot)
    if ships:
        typer.echo(f"graphkin: {name} ships with graphkin; nothing was written", err=True)
    else:
        save_calibration(model_folder(name), calibration)
    document = {
        "model": name,
        "task": task.describe(),
        "calibration": score_calibration_to_json(calibration),
        "validation": {"data": validation.digest, "pairs": len(validation.pairs)},
        "test": {
            "data": test.digest,
            "pairs": len(test.pairs),
            "expected_calibration_error": curve.expected_calibration_error,
            "bins": [asdict(bin) for bin in curve.bins],
        },
    }
    if options.as_json:
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
