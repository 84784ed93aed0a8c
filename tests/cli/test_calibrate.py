"""The verbs calibrate edits, calibrate functions and calibrate meshes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphkin.learning.reliability import fit_calibration, reliability
from graphkin.learning.task import Task
from graphkin.models import ModelConfig, build_model, load_model
from graphkin.models.calibration import Logistic
from graphkin.models.saving import SHIPPED, save_calibration
from graphkin.research.tasks.edits import EditTask
from graphkin.research.tasks.functions.task import FunctionTask
from graphkin.research.tasks.meshes import MeshTask
from tests.command_line import Graphkin, Outcome
from tests.mesh_samples import write_meshes

SMALL = {"node_dim": 8, "message_dim": 8, "graph_dim": 8, "steps": 2}
EDITS = ["--nodes", 10, "--p", 0.3, "--kp", 1, "--kn", 10, "--size", 100]
EDIT_TASK = EditTask((10, 10), (0.3, 0.3), 1, 10, evaluation_size=100)


def save_new(folder: Path, name: str = "gnn", **options: Any) -> Path:
    """A model that is not trained: more edits move even its vectors further."""
    build_model(ModelConfig.named(name, **{**SMALL, **options})).save_pretrained(folder)
    return folder


def document(outcome: Outcome) -> Any:
    """The one line of JSON on stdout."""
    assert outcome.code == 0, outcome.err
    assert outcome.out.count("\n") == 1
    return json.loads(outcome.out)


def refused(outcome: Outcome, code: int, *parts: str) -> None:
    """One line on stderr that says why, and nothing else."""
    assert outcome.code == code, outcome
    assert outcome.out == ""
    assert outcome.err.startswith("graphkin: ")
    assert outcome.err.count("\n") == 1
    for part in parts:
        assert part in outcome.err


def assert_calibrated(answer: Any, folder: Path, task: Task) -> None:
    """The folder holds the fit on the validation pairs, and the curve is that of the test pairs."""
    model = load_model(folder)
    validation, test = task.evaluation_set("validation"), task.evaluation_set("test")
    assert model.calibration == fit_calibration(model, validation)
    assert model.calibration is not None
    line = {"slope": model.calibration.weights[0], "offset": model.calibration.bias}
    curve = reliability(model.predict(test.pairs, probability=True), test.labels)
    assert answer["task"] == task.describe()
    assert answer["calibration"] == line
    assert answer["validation"] == {"data": validation.digest, "pairs": len(validation.pairs)}
    assert (answer["test"]["data"], answer["test"]["pairs"]) == (test.digest, len(test.pairs))
    assert answer["test"]["expected_calibration_error"] == curve.expected_calibration_error
    assert [each["count"] for each in answer["test"]["bins"]] == [b.count for b in curve.bins]


def test_edits(run: Graphkin, tmp_path: Path) -> None:
    folder = save_new(tmp_path / "run" / "model")
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    picture = tmp_path / "curve.png"
    answer = document(run("calibrate", "edits", folder, *EDITS, "--plot", picture, "--json"))
    assert_calibrated(answer, folder, EDIT_TASK)
    assert answer["test"]["expected_calibration_error"] < 0.2
    assert picture.read_bytes().startswith(b"\x89PNG")
    after = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert {name for name in after if after[name] != before.get(name)} == {"config.json"}
    assert set(after) == set(before)
    # The folder of the run stands for its model, and a new fit replaces the old one.
    fitted = load_model(folder).calibration
    save_calibration(folder, Logistic((1.0,), 2.0))
    text = run("calibrate", "edits", tmp_path / "run", *EDITS)
    assert text.code == 0, text.err
    assert load_model(folder).calibration == fitted
    error = 100 * answer["test"]["expected_calibration_error"]
    assert f"expected calibration error {error:.2f}" in text.out
    assert "fitted on 100 validation pairs" in text.out
    rows = [line.split() for line in text.out.splitlines() if " to " in line]
    assert sum(int(row[-1]) for row in rows) == 100


def test_a_fit_tells_the_pairs_apart(run: Graphkin, tmp_path: Path) -> None:
    folder = save_new(tmp_path / "model", "gmn")
    assert run("calibrate", "edits", folder, *EDITS).code == 0
    test = EDIT_TASK.evaluation_set("test")
    probabilities = load_model(folder).predict(test.pairs, probability=True)
    assert probabilities[test.labels > 0].mean() > probabilities[test.labels < 0].mean() + 0.1
    assert np.mean(probabilities) == pytest.approx(0.5, abs=0.1)


def test_functions(run: Graphkin, corpus_path: Path, tmp_path: Path) -> None:
    folder = save_new(tmp_path / "model")
    arguments = ["calibrate", "functions", folder, "--corpus", corpus_path, "--size", 40, "--json"]
    for protocol in ("clean", "paper"):
        answer = document(run(*arguments, "--protocol", protocol))
        task = FunctionTask(str(corpus_path), protocol, "structure", evaluation_size=40)
        assert_calibrated(answer, folder, task)
    assert document(run(*arguments))["task"]["protocol"] == "clean"
    refused(run(*arguments, "--protocol", "other"), 12, "other")


def test_meshes(run: Graphkin, tmp_path: Path) -> None:
    data = write_meshes(tmp_path / "MESH.zip")
    task = MeshTask(str(data), split="graph", evaluation_size=60)
    folder = save_new(tmp_path / "model", **task.recipe("gnn").model)
    arguments = ["calibrate", "meshes", folder, "--data", data, "--size", 60, "--json"]
    answer = document(run(*arguments, "--split-by", "graph", "--fold", 0))
    assert_calibrated(answer, folder, task)


def test_what_is_refused(run: Graphkin, tmp_path: Path) -> None:
    refused(run("calibrate", "edits", tmp_path / "absent", *EDITS), 13, "model folder")
    folder = save_new(tmp_path / "model")
    before = (folder / "config.json").read_bytes()
    picture = tmp_path / "curve.txt"
    refused(run("calibrate", "edits", folder, *EDITS, "--plot", picture), 12, "curve.txt")
    missing = tmp_path / "missing" / "curve.png"
    refused(run("calibrate", "edits", folder, *EDITS, "--plot", missing), 15, "missing")
    assert (folder / "config.json").read_bytes() == before


def test_what_ships_is_checked_and_not_written_to(run: Graphkin) -> None:
    config = SHIPPED / "edits" / "matcher" / "config.json"
    before = config.read_bytes()
    outcome = run("calibrate", "edits", "edits", "--size", 40, "--json")
    assert outcome.code == 0, outcome.err
    assert "ships with graphkin; nothing was written" in outcome.err
    assert json.loads(outcome.out)["test"]["pairs"] == 40
    assert config.read_bytes() == before
