"""The verbs for meshes: train meshes and eval meshes."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from graphkin.learning.evaluation import evaluate
from graphkin.models import GraphEmbedder, load_model
from graphkin.research.baselines.wl import WLKernel
from graphkin.research.tasks.meshes import MeshTask
from tests.command_line import Graphkin, Outcome
from tests.mesh_samples import write_meshes

SMALL = ["node_dim=8", "message_dim=8", "graph_dim=8", "model.steps=2", "evaluation_size=100"]
SETTINGS = [word for setting in SMALL for word in ("--set", setting)]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_meshes(tmp_path_factory.mktemp("meshes") / "MESH.zip")


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


def test_an_embedder_learns_and_is_evaluated(run: Graphkin, data: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    arguments = ["train", "meshes", "--data", data, "--kind", "gnn", "--output", out, *SETTINGS]
    trained = document(run(*arguments, "--steps", 150, "--split-by", "graph", "--json"))
    assert trained["steps"] == 150
    assert trained["best"] > 0.8
    evaluated = ["eval", "meshes", out, "--data", data, "--split", "validation", "--size", 100]
    answer = document(run(*evaluated, "--json"))
    # The split is that of the training, which the model has recorded.
    task = MeshTask(str(data), split="graph", evaluation_size=100)
    expected = task.evaluation_set("validation")
    assert answer["task"] == task.describe()
    assert (answer["split"], answer["data"]) == ("validation", expected.digest)
    metrics = answer["metrics"]
    assert {name: metrics[name] for name in trained["validation"]} == trained["validation"]
    model = load_model(out)
    assert isinstance(model, GraphEmbedder)
    neighbours = task.neighbours("validation")
    scores = neighbours.scores(model.predict)
    assert metrics["nearest_neighbour"] == pytest.approx(neighbours.accuracy(scores), abs=0.03)
    assert metrics["nearest_neighbour"] > 0.3
    text = run(*evaluated)
    assert f"{out} on validation, split by graph, fold 0, data {expected.digest[:12]}" in text.out
    assert f"nearest_neighbour {100 * metrics['nearest_neighbour']:6.2f}" in text.out
    assert "nearest of 320 graphs, for each of 40" in text.out


def test_a_matcher_by_class(run: Graphkin, data: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    arguments = ["train", "meshes", "--data", data, "--output", out, "--steps", 2, *SETTINGS]
    outcome = run(*arguments)
    assert outcome.code == 0, outcome.err
    assert "2 steps in" in outcome.out
    # On test graphs unless told otherwise, and by whatever folder the model lies in.
    answer = document(run("eval", "meshes", out / "model", "--data", data, "--size", 50, "--json"))
    task = MeshTask(str(data), evaluation_size=50)
    assert answer["task"] == task.describe()
    assert answer["split"] == "test"
    neighbours = task.neighbours("test")
    accuracy = neighbours.accuracy(neighbours.scores(load_model(out).predict))
    assert answer["metrics"]["nearest_neighbour"] == accuracy
    text = run("eval", "meshes", out, "--data", data, "--size", 50, "--propagation-steps", 1)
    assert "nearest of 39 graphs, for each of 40" in text.out


def test_propagation_steps_reach_the_vectors(run: Graphkin, data: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    arguments = ["train", "meshes", "--data", data, "--kind", "gnn", "--output", out, *SETTINGS]
    assert run(*arguments, "--steps", 60, "--split-by", "graph").code == 0
    evaluated = ["eval", "meshes", out, "--data", data, "--size", 50, "--json"]
    after = [document(run(*evaluated, "--propagation-steps", steps))["metrics"] for steps in (0, 2)]
    assert after[1] == document(run(*evaluated))["metrics"]
    assert after[0]["nearest_neighbour"] != after[1]["nearest_neighbour"]


def test_a_moved_dataset_is_resumed(run: Graphkin, data: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    arguments = ["train", "meshes", "--output", out, "--kind", "gnn", "--steps", 3, *SETTINGS]
    assert run(*arguments, "--data", data).code == 0
    moved = tmp_path / "elsewhere.zip"
    shutil.copyfile(data, moved)
    assert document(run(*arguments, "--data", moved, "--resume", "--json"))["steps"] == 3
    other = write_meshes(tmp_path / "other.zip", views=21)
    refused(run(*arguments, "--data", other, "--resume"), 14, "task.data")
    refused(run(*arguments, "--data", data, "--resume", "--split-by", "graph"), 14, "task.split")


def test_the_wl_kernel(run: Graphkin, data: Path) -> None:
    arguments = ["eval", "meshes", "wl", "--data", data, "--size", 50, "--iterations", 2]
    answer = document(run(*arguments, "--split-by", "graph", "--json"))
    task = MeshTask(str(data), split="graph", evaluation_size=50)
    kernel, neighbours = WLKernel(2), task.neighbours("test")
    expected = evaluate(kernel, task.evaluation_set("test"))
    expected["nearest_neighbour"] = neighbours.accuracy(neighbours.scores(kernel.predict))
    assert answer["metrics"] == expected


def test_what_is_refused(run: Graphkin, data: Path, tmp_path: Path) -> None:
    train = ["train", "meshes", "--output", tmp_path / "run"]
    refused(run(*train, "--data", tmp_path / "absent.zip"), 11, "absent.zip does not exist")
    refused(run(*train, "--data", data, "--split-by", "views"), 12, "split", "'views'")
    refused(run(*train, "--data", data, "--set", "colour=red"), 12, "colour", "task.data")
    refused(run(*train, "--data", data, "--kind", "gat"), 12, "'gat'", "gmn")
    assert not (tmp_path / "run").exists()
    refused(run("eval", "meshes", "wl", "--data", data, "--split", "training"), 12, "'training'")
    refused(run("eval", "meshes", tmp_path / "no", "--data", data), 13, "model folder")
    assert run("eval", "meshes", "wl").code == 2
    assert run(*train, "--data", data, "--kind", "gnn", "--steps", 1, *SETTINGS).code == 0
    evaluated = ["eval", "meshes", tmp_path / "run", "--data", data]
    refused(run(*evaluated, "--split-by", "graph"), 12, "split class", "seen", "--split-by")
    refused(run(*evaluated, "--fold", 3), 12, "fold 0", "seen", "--fold")
    assert run(*evaluated, "--split-by", "class", "--size", 20).code == 0


def test_a_model_is_tested_on_the_fold_that_it_has_not_seen(
    run: Graphkin, data: Path, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    train = ["train", "meshes", "--data", data, "--kind", "gnn", "--output", out, *SETTINGS]
    assert run(*train, "--steps", 1, "--set", "task.fold=3").code == 0
    answer = document(run("eval", "meshes", out, "--data", data, "--size", 50, "--json"))
    expected = MeshTask(str(data), fold=3, evaluation_size=50).evaluation_set("test")
    assert answer["data"] == expected.digest
    assert answer["data"] != MeshTask(str(data), evaluation_size=50).evaluation_set("test").digest
    other = document(
        run("eval", "meshes", "wl", "--data", data, "--fold", 3, "--size", 50, "--json")
    )
    assert other["data"] == expected.digest


def test_a_model_without_a_record_must_be_told(run: Graphkin, data: Path, tmp_path: Path) -> None:
    """Saved by an older graphkin; whatever its card says."""
    out = tmp_path / "run"
    train = ["train", "meshes", "--data", data, "--kind", "gnn", "--output", out, *SETTINGS]
    assert run(*train, "--steps", 1, "--fold", 3).code == 0
    config = out / "model" / "config.json"
    config.write_text(json.dumps({**json.loads(config.read_text()), "trained_on": {}}))
    refused(run("eval", "meshes", out, "--data", data), 11, "trained_on")
    document_ = json.loads(config.read_text())
    del document_["trained_on"]
    config.write_text(json.dumps(document_))
    evaluated = ["eval", "meshes", out, "--data", data, "--size", 50]
    missing = ("no record of what it was trained on", "--split-by and --fold")
    refused(run(*evaluated), 12, *missing)
    refused(run(*evaluated, "--split-by", "class"), 12, *missing)
    refused(run("calibrate", "meshes", out, "--data", data), 12, *missing)
    told = document(run(*evaluated, "--split-by", "class", "--fold", 3, "--json"))
    assert (
        told["data"]
        == MeshTask(str(data), fold=3, evaluation_size=50).evaluation_set("test").digest
    )


def test_a_model_begins_with_another(run: Graphkin, data: Path, tmp_path: Path) -> None:
    """And takes over its options: inputs of the nodes are those of the dataset in any case."""
    train = ["train", "meshes", "--data", data, "--set", "evaluation_size=20", "--steps", 1]
    first = [*train, "--kind", "gnn", "--output", tmp_path / "one", *SETTINGS]
    assert run(*first, "--set", "similarity=cosine").code == 0
    begun = [
        *train,
        "--kind",
        "gmn",
        "--output",
        tmp_path / "two",
        "--start-from",
        tmp_path / "one",
    ]
    outcome = run(*begun)
    assert outcome.code == 0, outcome.err
    config = load_model(tmp_path / "two").config
    assert (config.matching, config.similarity, config.node_dim) == (True, "cosine", 8)
