"""Experiments are trained once, go on where they stopped, and leave a result file."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
import torch

from graphkin.errors import ConfigError, TrainingError
from graphkin.learning import recipes
from graphkin.learning.evaluation import evaluate
from graphkin.learning.training import StepReport, train
from graphkin.models import GraphEmbedder, GraphMatcher, load_model
from graphkin.models.joining import join
from graphkin.research.reproduce import run_experiment as running
from graphkin.research.reproduce.experiment import Evaluation, Experiment, TaskSpec
from graphkin.research.reproduce.measure import DataPaths
from graphkin.research.reproduce.results import read_result, result_file
from graphkin.research.reproduce.run_experiment import (
    Folders,
    prepare,
    run_experiment,
    run_experiments,
)
from graphkin.research.tasks.edits import EditTask
from tests.command_line import Graphkin
from tests.research.reproduce.made_up import TINY, tiny_experiment

NO_DATA = DataPaths()


class Crash(Exception):
    """Ends a run the hard way."""


@pytest.fixture
def folders(tmp_path: Path) -> Folders:
    return Folders(tmp_path / "runs", tmp_path / "results")


def refuse(*_: Any, **__: Any) -> None:
    raise AssertionError("nothing is to be trained again")


def test_the_best_weights_are_measured_on_the_test_set(folders: Folders, tmp_path: Path) -> None:
    experiment = tiny_experiment()
    measured = run_experiment(experiment, replace(folders, store=tmp_path / "store"), NO_DATA)
    data = EditTask(**TINY.options).evaluation_set("test")
    expected = evaluate(load_model(folders.runs / experiment.name), data)
    assert {cell.metric: cell.value for cell in measured.cells} == expected
    assert {cell.data for cell in measured.cells} == {data.digest}
    assert (measured.name, measured.seed, measured.steps) == ("tiny-gmn-seed3", 3, 12)
    assert measured.config["training"]["steps"] == 12
    assert measured.config["model"]["matching"] is True
    assert measured.config["task"]["nodes"] == [6, 9]
    assert "torch" in measured.versions
    assert "--only tiny-gmn-seed3" in measured.command
    for folder in (folders.results, tmp_path / "store"):
        assert read_result(result_file(folder, experiment.name)) == measured


def test_a_finished_experiment_is_not_run_again(
    folders: Folders, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = run_experiment(tiny_experiment(), folders, NO_DATA)
    monkeypatch.setattr(recipes, "train", refuse)
    monkeypatch.setattr(running, "measure", refuse)
    assert run_experiment(tiny_experiment(), folders, NO_DATA) == first


def test_a_result_from_before_an_option_came_stands(
    folders: Folders, monkeypatch: pytest.MonkeyPatch
) -> None:
    experiment = tiny_experiment()
    first = run_experiment(experiment, folders, NO_DATA)
    path = result_file(folders.results, experiment.name)
    document = json.loads(path.read_text())
    del document["config"]["model"]["word_dim"]
    path.write_text(json.dumps(document))
    monkeypatch.setattr(recipes, "train", refuse)
    monkeypatch.setattr(running, "measure", refuse)
    assert run_experiment(experiment, folders, NO_DATA).cells == first.cells


def test_a_new_row_is_measured_without_training(folders: Folders) -> None:
    experiment = tiny_experiment()
    run_experiment(experiment, folders, NO_DATA)
    log = (folders.runs / experiment.name / "log.jsonl").read_bytes()
    more = Evaluation("table3", "n=100 p=0.2", TINY)
    wider = replace(experiment, evaluations=(*experiment.evaluations, more))
    measured = run_experiment(wider, folders, NO_DATA)
    assert {cell.table for cell in measured.cells} == {"table1", "table3"}
    assert (folders.runs / experiment.name / "log.jsonl").read_bytes() == log


def test_an_interrupted_run_goes_on(folders: Folders, tmp_path: Path) -> None:
    experiment = tiny_experiment()
    whole = run_experiment(experiment, Folders(tmp_path / "other", tmp_path / "there"), NO_DATA)
    prepared = prepare(experiment, NO_DATA)
    model, task, training = prepared.model, prepared.task, prepared.config

    def crash(report: StepReport) -> None:
        if report.step == 9:
            raise Crash

    folder = folders.runs / experiment.name
    with pytest.raises(Crash):
        train(model, task, training, folder, checkpoint_seconds=0.0, on_report=crash)
    assert b'"step": 12' not in (folder / "log.jsonl").read_bytes()
    measured = run_experiment(experiment, folders, NO_DATA)
    assert measured.cells == whole.cells
    assert measured.steps == 12


def test_a_run_of_the_train_verb_is_taken_as_it_is(folders: Folders, run: Graphkin) -> None:
    experiment = tiny_experiment("gnn")
    tables = {f"model.{key}": value for key, value in experiment.model_options.items()}
    tables |= {f"train.{key}": value for key, value in experiment.training.items()}
    tables |= {"task.evaluation_size": 10}
    words = [word for key, value in tables.items() for word in ("--set", f"{key}={value}")]
    options = ["--nodes", "6-9", "--p", "0.4-0.5", "--kp", 1, "--kn", 3, "--seed", 3]
    folder = folders.runs / experiment.name
    outcome = run("train", "edits", "--kind", "gnn", "--output", folder, *options, *words)
    assert outcome.code == 0, outcome.err
    before = {file.name: file.read_bytes() for file in (folder / "model").iterdir()}
    run_experiment(experiment, folders, NO_DATA)
    assert {file.name: file.read_bytes() for file in (folder / "model").iterdir()} == before


def test_an_experiment_begins_with_the_weights_of_another(folders: Folders, tmp_path: Path) -> None:
    folders = replace(folders, store=tmp_path / "store")
    first = replace(tiny_experiment("gnn"), group="first", evaluations=())
    still = {**tiny_experiment().training, "steps": 1, "learning_rate": 0.0, "seed": 77}
    second = replace(tiny_experiment("gnn"), start=first, training=still)
    measured = run_experiment(second, folders, NO_DATA)
    assert measured.config["start"] == {"from": "first-seed3"}
    assert measured.config["training"]["seed"] == 77
    ours, theirs = (load_model(folders.runs / item.name).state_dict() for item in (second, first))
    assert all(torch.equal(ours[name], theirs[name]) for name in theirs)
    assert second.quick().start == first.quick()
    # What fills no cell is not stored.
    assert [path.stem for path in (tmp_path / "store").rglob("*.json")] == [second.name]


def test_an_experiment_is_joined_with_the_embedder_of_another(folders: Folders) -> None:
    alone = tiny_experiment("gmn")
    alone = replace(alone, model_options={**alone.model_options, "similarity": "alignment"})
    embedder = replace(tiny_experiment("gnn"), group="embedder", evaluations=())
    both = replace(alone, group="both", join=embedder)
    before, after = (run_experiment(item, folders, NO_DATA) for item in (alone, both))
    assert after.config["join"] == {"from": "embedder-seed3"}
    assert "join" not in before.config
    matcher, other = (load_model(folders.runs / item.name) for item in (both, embedder))
    assert isinstance(matcher, GraphMatcher)
    assert isinstance(other, GraphEmbedder)
    task = prepare(both, NO_DATA).task
    validation = task.evaluation_set("validation")
    joined = join(matcher, other, validation.pairs, validation.labels)
    assert after.cells[0].value == evaluate(joined, task.evaluation_set("test"))["pair_auc"]
    assert both.quick().join == embedder.quick()


def test_a_run_of_other_settings_is_refused_by_name(folders: Folders) -> None:
    run_experiment(tiny_experiment(), folders, NO_DATA)
    with pytest.raises(TrainingError, match=r"training\.steps"):
        run_experiment(tiny_experiment(steps=24), folders, NO_DATA)


def test_the_kernel_is_measured_without_training(folders: Folders) -> None:
    rows = (Evaluation("table1", "n=20 p=0.2", TINY), Evaluation("table3", "n=100 p=0.2", TINY))
    measured = run_experiment(Experiment("wl", "wl", "paper", TINY, rows), folders, NO_DATA)
    assert [cell.table for cell in measured.cells] == ["table1", "table1", "table3", "table3"]
    assert (measured.seed, measured.steps) == (None, None)
    assert measured.cells[0].value > 0.5
    assert not folders.runs.exists()


def test_functions_by_both_protocols_and_a_search(folders: Folders, corpus_path: Path) -> None:
    options = {"evaluation_size": 10}
    rows = tuple(
        Evaluation("table2", protocol, TaskSpec("functions", {"protocol": protocol, **options}))
        for protocol in ("paper", "clean")
    )
    clean = TaskSpec("functions", {"protocol": "clean", "pool": 0, **options})
    search = (
        Evaluation("table2", "retrieval", clean, "retrieval"),
        Evaluation("table2", "hardest", clean, "retrieval", builds=("clang-O0", "gcc-O3")),
        Evaluation("table2", "absent", clean, "retrieval", builds=("gcc-O0", "icc-O3")),
    )
    tiny = tiny_experiment("gnn")
    task = TaskSpec("functions", {"protocol": "paper", **options})
    experiment = replace(tiny, task=task, evaluations=(*rows, *search))
    actual = run_experiment(experiment, folders, DataPaths(corpus=corpus_path))
    measured = {(cell.row, cell.metric): cell for cell in actual.cells}
    assert ("paper", "pair_auc") in measured
    assert measured["paper", "pair_auc"].data != measured["clean", "pair_auc"].data
    assert ("hardest", "mrr_at_10") in measured
    assert not [row for row, _ in measured if row == "absent"]
    assert actual.config["model"]["node_input"] == "tokens"
    assert actual.config["model"]["similarity"] == "hamming", "by the paper's recipe"


def test_data_that_is_not_given_is_asked_for(
    folders: Folders, capsys: pytest.CaptureFixture[str]
) -> None:
    missing = replace(tiny_experiment(), task=TaskSpec("meshes"), group="meshes")
    measured = run_experiments([missing, tiny_experiment()], folders, NO_DATA)
    assert [result.name for result in measured] == ["tiny-gmn-seed3"]
    said = capsys.readouterr().err
    assert "1 experiments are left out" in said
    assert "--data COIL-DEL.zip" in said
    with pytest.raises(ConfigError, match="--data"):
        run_experiment(missing, folders, NO_DATA)


def test_prepared_as_the_command_line_would() -> None:
    prepared = prepare(tiny_experiment(), NO_DATA)
    assert prepared.task.describe()["seed"] == 3
    assert (prepared.config.seed, prepared.config.steps) == (3, 12)
    assert asdict(prepared.model.config)["node_dim"] == 8
