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
from graphkin.learning.recipes import TrainingRun, assemble
from graphkin.learning.task import EvaluationSet, Task
from graphkin.learning.training.config import ADDED_SETTINGS
from graphkin.learning.training.log import TrainingProgress
from graphkin.learning.training.loop import CHECKPOINT_FILE
from graphkin.models import GraphEmbedder, GraphMatcher, load_model
from graphkin.models.joining import join
from graphkin.models.model import GraphModel
from graphkin.models.saving import ADDED_OPTIONS
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
from graphkin.research.reproduce.queue import own_run
from graphkin.research.reproduce.results import (
    Measurement,
    Result,
    read_result,
    result_file,
    write_result,
)
from graphkin.research.tasks.functions.task import FunctionTask

PACKAGES = ("graphkin", "numpy", "torch", "scikit-learn")


@dataclass(frozen=True)
class Folders:
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
        """Writes a result to both; one that fills no cell is not stored."""
        write_result(result, self.results)
        if self.store is not None and result.cells:
            write_result(result, self.store)


def run_experiments(
    experiments: Sequence[Experiment], folders: Folders, data: DataPaths
) -> list[Result]:
    """Runs what can be run with the data at hand, and says on stderr what cannot."""
    possible = [experiment for experiment in experiments if data.has(experiment.data)]
    kinds = [experiment.data for experiment in experiments]
    for kind in dict.fromkeys(kind for kind in kinds if not data.has(kind)):
        left_out = kinds.count(kind)
        _say(f"{left_out} experiments are left out: they need {MISSING[kind]}")
    results = []
    for number, experiment in enumerate(possible, 1):
        _say(f"{number}/{len(possible)} {experiment.name}")
        with own_run(folders.runs / experiment.name) as is_free:
            if is_free:
                results.append(run_experiment(experiment, folders, data))
            else:
                _say(f"{experiment.name} is being trained by another process; going on")
    return results


def run_experiment(experiment: Experiment, folders: Folders, data: DataPaths) -> Result:
    """Trains and measures one model; what was done before with the same settings stands."""
    if experiment.trained:
        return _run_trained(experiment, folders, data)
    task = make_task(experiment.task, data)
    config = {"model": {"name": experiment.model, **experiment.training}, "task": task.describe()}
    done = _finished(experiment, folders, config)
    if done is not None:
        return done
    cells: list[Measurement] = []
    tasks, scorers = Tasks(data), {}  # type: Tasks, dict[str, PairScorer]
    for row in experiment.evaluations:
        task = tasks[row.task]
        # The size of pools says what is searched, not what is learned from.
        key = repr(sorted({**row.task.options, "pool": None}.items()))
        if key not in scorers:
            scorers[key] = _baseline(experiment, task)
        cells += measure(scorers[key], experiment.model, row, task)
    result = _result(experiment, folders, config, cells)
    folders.save(result)
    return result


def _run_trained(experiment: Experiment, folders: Folders, data: DataPaths) -> Result:
    run = prepare(experiment, data)
    config = {
        "model": run.model.config.to_dict(),
        "training": asdict(run.config),
        "task": json.loads(json.dumps(run.task.describe())),
    }
    if experiment.start is not None:
        config["start"] = {"from": experiment.start.name}
    if experiment.join is not None:
        config["join"] = {"from": experiment.join.name}
    done = _finished(experiment, folders, config)
    if done is not None:
        return done
    folder = folders.runs / experiment.name
    if experiment.start is not None and not (folder / CHECKPOINT_FILE).exists():
        run_experiment(experiment.start, folders, data)
        run.model.start_from(load_model(folders.runs / experiment.start.name))
    with TrainingProgress(run.config.steps) as progress:
        ended = run.train(folder, resume=True, on_report=progress)
    best = load_model(folder)
    if experiment.join is not None:
        run_experiment(experiment.join, folders, data)
        best = _joined(best, load_model(folders.runs / experiment.join.name), run.task)
    cells = _measured(best, experiment, data)
    result = _result(experiment, folders, config, cells, ended.step, round(ended.seconds, 1))
    folders.save(result)
    return result


def prepare(experiment: Experiment, data: DataPaths) -> TrainingRun:
    """A new model, its task and the course of its training, as ``graphkin train`` makes them."""
    options = {"seed": experiment.seed, **experiment.task.options}
    return assemble(
        experiment.model,
        make_task(replace(experiment.task, options=options), data),
        recipe=experiment.recipe,
        model_options=experiment.model_options,
        training={"seed": experiment.seed, **experiment.training},
    )


def _joined(matcher: GraphModel, embedder: GraphModel, task: Task) -> GraphModel:
    assert isinstance(matcher, GraphMatcher)
    assert isinstance(embedder, GraphEmbedder)
    fitted_on = task.evaluation_set("validation")
    assert isinstance(fitted_on, EvaluationSet)
    with counter("joining with an embedder") as progress:
        return join(matcher, embedder, fitted_on.pairs, fitted_on.labels, progress=progress)


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
    for row in experiment.evaluations:
        cells += measure(model, experiment.model, row, tasks[row.task])
    return cells


def _baseline(experiment: Experiment, task: AnyTask) -> PairScorer:
    if experiment.model == "wl":
        return WLKernel()
    assert isinstance(task, FunctionTask)
    graphs, functions = task.graphs("training")
    steps = experiment.training.get("steps")
    with counter(f"learning weights, {task.protocol} protocol") as progress:
        return SimHash.fit(graphs, functions, seed=experiment.seed, steps=steps, progress=progress)


def _finished(experiment: Experiment, folders: Folders, config: dict[str, Any]) -> Result | None:
    """The result of the same experiment, where it has one of all its rows."""
    path = result_file(folders.results, experiment.name)
    if not path.exists():
        return None
    result = read_result(path)
    needed = {
        (row.table, row.row, metric)
        for row in experiment.evaluations
        for metric in MEASURES[row.measure]
    }
    have = {(cell.table, cell.row, cell.metric) for cell in result.cells}
    same = _settings(json.loads(json.dumps(config))) == _settings(result.config)
    return result if same and needed <= have else None


def _settings(config: dict[str, Any]) -> dict[str, Any]:
    """A configuration in which options that results before them lack have their defaults."""
    filled = {**config, "model": {**ADDED_OPTIONS, **config["model"]}}
    if "training" in config:
        filled["training"] = {**ADDED_SETTINGS, **config["training"]}
    return filled


def _result(
    experiment: Experiment,
    folders: Folders,
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
        command=_command(experiment, folders.mode),
        cells=tuple(cells),
        steps=steps,
        seconds=seconds,
        config=json.loads(json.dumps(config)),
        versions=versions(),
    )


def _command(experiment: Experiment, mode: str) -> str:
    table = experiment.evaluations[0].table if experiment.evaluations else "all"
    data = {"functions": " --corpus CORPUS", "meshes": " --data COIL-DEL.zip", "edits": ""}
    command = f"graphkin reproduce {table} {mode} --only {experiment.name}"
    return command + data[experiment.data]


def versions() -> dict[str, str]:
    """Of Python and of the packages that decide a result."""
    return {"python": platform.python_version(), **{name: version(name) for name in PACKAGES}}


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
