"""Experiments from the plan to result files: train, or resume; evaluate; write.

A run lives in a folder of its own, exactly as ``graphkin train`` leaves it, so that one made by
that verb with the same settings is as good.
"""

from __future__ import annotations

import json
import platform
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

from graphkin._support.progress import counter
from graphkin.learning.evaluation import PairScorer
from graphkin.learning.training import TrainConfig, train
from graphkin.learning.training.loop import CHECKPOINT_FILE
from graphkin.learning.training.progress import TrainingProgress
from graphkin.models import GraphEmbedder, GraphMatcher, ModelConfig, build_model, load_model
from graphkin.models.joining import join
from graphkin.models.model import GraphModel
from graphkin.research.baselines.simhash.simhash import SimHash
from graphkin.research.baselines.wl import WLKernel
from graphkin.research.reproduce.experiment import MEASURES, Experiment
from graphkin.research.reproduce.measure import (
    MISSING,
    AnyTask,
    DataPaths,
    Tasks,
    make_task,
    measure,
)
from graphkin.research.reproduce.results import (
    Measurement,
    Result,
    read_result,
    result_file,
    write_result,
)
from graphkin.research.tasks.functions.task import FunctionTask
from graphkin.research.tasks.functions.task import recipe as function_recipe
from graphkin.research.tasks.meshes import MeshTask
from graphkin.research.tasks.meshes import recipe as mesh_recipe

PACKAGES = ("graphkin", "numpy", "torch", "scikit-learn")


@dataclass(frozen=True)
class Places:
    """Where experiments read and write."""

    runs: Path
    """Folders of training runs, by the names of experiments."""
    results: Path
    """Result files; what is here is not run again."""
    store: Path | None = None
    """Where result files go as well."""
    mode: str = "--rerun"
    """As in the command that repeats it."""

    def save(self, result: Result) -> None:
        """Writes a result to every place; one that fills no cell is not stored."""
        write_result(result, self.results)
        if self.store is not None and result.cells:
            write_result(result, self.store)


def run_experiments(
    experiments: Sequence[Experiment], places: Places, data: DataPaths
) -> list[Result]:
    """Runs what can be run with the data at hand, and says on stderr what cannot."""
    possible = [one for one in experiments if data.has(one.data)]
    for kind in dict.fromkeys(one.data for one in experiments if not data.has(one.data)):
        left_out = sum(one.data == kind for one in experiments)
        _say(f"{left_out} experiments are left out: they need {MISSING[kind]}")
    results = []
    for number, experiment in enumerate(possible, 1):
        _say(f"{number}/{len(possible)} {experiment.name}")
        results.append(run_experiment(experiment, places, data))
    return results


def run_experiment(experiment: Experiment, places: Places, data: DataPaths) -> Result:
    """Trains and measures one model; what was done before with the same settings stands."""
    if experiment.trained:
        return _run_trained(experiment, places, data)
    task = make_task(experiment.task, data)
    config = {"model": {"name": experiment.model, **experiment.training}, "task": task.describe()}
    done = _finished(experiment, places, config)
    if done is not None:
        return done
    cells: list[Measurement] = []
    tasks, scorers = Tasks(data), {}  # type: Tasks, dict[str, PairScorer]
    for one in experiment.evaluations:
        task = tasks[one.task]
        # The size of pools says what is searched, not what is learned from.
        key = repr(sorted({**one.task.options, "pool": None}.items()))
        if key not in scorers:
            scorers[key] = _baseline(experiment, task)
        cells += measure(scorers[key], experiment.model, one, task)
    result = _result(experiment, places, config, cells)
    places.save(result)
    return result


def _run_trained(experiment: Experiment, places: Places, data: DataPaths) -> Result:
    model, task, training = prepare(experiment, data)
    config = {
        "model": model.config.to_dict(),
        "training": asdict(training),
        "task": json.loads(json.dumps(task.describe())),
    }
    if experiment.start is not None:
        config["start"] = {"from": experiment.start.name}
    if experiment.join is not None:
        config["join"] = {"from": experiment.join.name}
    done = _finished(experiment, places, config)
    if done is not None:
        return done
    folder = places.runs / experiment.name
    if experiment.start is not None and not (folder / CHECKPOINT_FILE).exists():
        run_experiment(experiment.start, places, data)
        model.start_from(load_model(places.runs / experiment.start.name))
    with TrainingProgress(training.steps) as progress:
        ended = train(model, task, training, folder, resume=True, on_report=progress)
    best = load_model(folder)
    if experiment.join is not None:
        run_experiment(experiment.join, places, data)
        best = _joined(best, load_model(places.runs / experiment.join.name), task)
    cells = _measured(best, experiment, data)
    result = _result(experiment, places, config, cells, ended.step, round(ended.seconds, 1))
    places.save(result)
    return result


def prepare(experiment: Experiment, data: DataPaths) -> tuple[GraphModel, AnyTask, TrainConfig]:
    """A new model, its task and the course of its training, as ``graphkin train`` makes them."""
    options = {"seed": experiment.seed, **experiment.task.options}
    task = make_task(replace(experiment.task, options=options), data)
    defaults: dict[str, dict[str, Any]] = {"model": {}, "train": {}}
    if isinstance(task, FunctionTask):
        defaults = function_recipe(experiment.model, task, experiment.recipe)
    elif isinstance(task, MeshTask):
        defaults = mesh_recipe(experiment.model, task)
    course = {**defaults["train"], "seed": experiment.seed, **experiment.training}
    training = TrainConfig.from_dict(course)
    settings = {**defaults["model"], **experiment.model_options}
    model = build_model(ModelConfig.named(experiment.model, **settings), training.seed)
    if isinstance(task, FunctionTask) and task.features == "mnemonics":
        model.vocabulary = task.vocabulary
    return model, task, training


def _joined(matcher: GraphModel, embedder: GraphModel, task: AnyTask) -> GraphModel:
    assert isinstance(matcher, GraphMatcher)
    assert isinstance(embedder, GraphEmbedder)
    with counter("joining with an embedder") as progress:
        return join(matcher, embedder, task.evaluation_set("validation"), progress=progress)


def _measured(model: GraphModel, experiment: Experiment, data: DataPaths) -> list[Measurement]:
    """The cells of a trained model, whose own features and vocabulary functions get."""
    options: dict[str, Any] = {}
    if experiment.data == "functions":
        tokens = model.config.node_input == "tokens"
        options["features"] = "mnemonics" if tokens else "structure"
        if model.vocabulary is not None:
            options["words"] = model.vocabulary.words
    tasks = Tasks(data, options)
    cells: list[Measurement] = []
    for one in experiment.evaluations:
        cells += measure(model, experiment.model, one, tasks[one.task])
    return cells


def _baseline(experiment: Experiment, task: AnyTask) -> PairScorer:
    if experiment.model == "wl":
        return WLKernel()
    assert isinstance(task, FunctionTask)
    graphs, functions = task.graphs("training")
    steps = experiment.training.get("steps")
    with counter(f"learning weights, {task.protocol} protocol") as progress:
        return SimHash.fit(graphs, functions, seed=experiment.seed, steps=steps, progress=progress)


def _finished(experiment: Experiment, places: Places, config: dict[str, Any]) -> Result | None:
    """The result of the same experiment, where it has one of all its rows."""
    path = result_file(places.results, experiment.name)
    if not path.exists():
        return None
    result = read_result(path)
    wanted = {
        (one.table, one.row, metric)
        for one in experiment.evaluations
        for metric in MEASURES[one.measure]
    }
    have = {(cell.table, cell.row, cell.metric) for cell in result.cells}
    same = json.loads(json.dumps(config)) == result.config
    return result if same and wanted <= have else None


def _result(
    experiment: Experiment,
    places: Places,
    config: dict[str, Any],
    cells: Sequence[Measurement],
    steps: int | None = None,
    seconds: float | None = None,
) -> Result:
    return Result(
        name=experiment.name,
        group=experiment.group,
        variant=experiment.variant,
        seed=None if experiment.model == "wl" else experiment.seed,
        command=_command(experiment, places.mode),
        cells=tuple(cells),
        steps=steps,
        seconds=seconds,
        config=json.loads(json.dumps(config)),
        versions=versions(),
    )


def _command(experiment: Experiment, mode: str) -> str:
    table = experiment.evaluations[0].table if experiment.evaluations else "all"
    given = {"functions": " --corpus CORPUS", "meshes": " --meshes COIL-DEL.zip", "edits": ""}
    command = f"graphkin reproduce {table} {mode} --only {experiment.name}"
    return command + given[experiment.data]


def versions() -> dict[str, str]:
    """Of Python and of the packages that decide a result."""
    return {"python": platform.python_version(), **{name: version(name) for name in PACKAGES}}


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
