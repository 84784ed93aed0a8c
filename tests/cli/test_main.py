"""The command line: data on stdout, the rest on stderr, and an exit code for each failure."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors import safe_open

import graphkin
from graphkin.learning.evaluation import evaluate
from graphkin.models import load_model
from graphkin.research.baselines.wl import WLKernel
from graphkin.research.tasks.edits import EditTask
from tests.command_line import Graphkin, Outcome

T = "--propagation-steps"
PROGRAM = Path(sysconfig.get_path("scripts")) / "graphkin"
TASK = ["--nodes", "6-9", "--p", "0.4-0.5", "--kp", "1", "--kn", "3"]
SETTINGS = ["evaluation_size=10", "node_dim=8", "message_dim=8", "graph_dim=8", "model.steps=2"]
SMALL = [*TASK, "--batch-size", "4", *(word for s in SETTINGS for word in ("--set", s))]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a finished run, whose outputs the tests of ``eval`` read."""
    folder = tmp_path_factory.mktemp("trained") / "run"
    arguments = ["train", "edits", "--output", str(folder), "--steps", "3", *SMALL, "--json"]
    result = subprocess.run([PROGRAM, *arguments], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    (folder / "stdout").write_text(result.stdout)
    (folder / "stderr").write_text(result.stderr)
    return folder


def specification(folder: Path) -> dict[str, Any]:
    """The settings that a run was made with."""
    with safe_open(folder / "checkpoint.safetensors", framework="pt") as file:
        document: dict[str, Any] = json.loads(file.metadata()["run"])["specification"]
    return document


def assert_refused(outcome: Outcome, code: int, *parts: str) -> None:
    """One line on stderr that says why, and nothing else."""
    assert outcome.code == code, outcome
    assert outcome.out == ""
    assert outcome.err.startswith("graphkin: ")
    assert outcome.err.count("\n") == 1
    assert outcome.err.endswith("\n")
    assert "Traceback" not in outcome.err
    for part in parts:
        assert part in outcome.err


# --- Help and version ---------------------------------------------------------------------


def test_help_answers_at_once() -> None:
    """Less than half a second of computing, the best of a few runs."""
    spent = []
    for _ in range(5):
        process = subprocess.Popen([PROGRAM, "--help"], stdout=subprocess.PIPE)
        assert process.stdout is not None
        output = process.stdout.read().decode()
        process.stdout.close()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        assert process.returncode == 0
        assert all(verb in output for verb in ("train", "eval", "demo", "--version"))
        spent.append(usage.ru_utime + usage.ru_stime)
        if spent[-1] < 0.5:
            break
    assert min(spent) < 0.5


@pytest.mark.parametrize("arguments", [["--help"], ["train", "edits", "--help"], ["--version"]])
def test_help_loads_no_heavy_module(arguments: list[str]) -> None:
    code = (
        f"import atexit, sys; sys.argv = ['graphkin', *{arguments!r}]\n"
        "atexit.register(lambda: print(*{'torch', 'numba', 'numpy'} & {*sys.modules}, end='|'))\n"
        "from graphkin.cli.main import main; main()"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.returncode == 0
    assert result.stdout.splitlines()[-1] == "|"


def test_version(run: Graphkin) -> None:
    assert run("--version") == Outcome(0, f"{graphkin.__version__}\n", "")


@pytest.mark.parametrize("arguments", [[], ["train"], ["eval"]])
def test_without_a_verb_there_is_help(run: Graphkin, arguments: list[str]) -> None:
    outcome = run(*arguments)
    assert outcome.code in (0, 2)
    assert "Usage:" in outcome.out + outcome.err


@pytest.mark.parametrize(
    "arguments",
    [
        ["fly"],
        ["train", "edits"],
        ["train", "edits", "--output", "x", "--stepz", "5"],
        ["train", "edits", "--output", "x", "--steps", "many"],
        ["train", "edits", "--output", "x", "--threads", "0"],
        ["eval", "edits"],
        ["eval", "edits", "wl", "--iterations", "-1"],
        ["demo", "--steps", "0"],
    ],
)
def test_usage_errors(run: Graphkin, arguments: list[str]) -> None:
    outcome = run(*arguments)
    assert outcome.code == 2
    assert outcome.out == ""
    assert "Traceback" not in outcome.err


# --- train --------------------------------------------------------------------------------


def test_train_prints_one_json_document(trained: Path) -> None:
    document = json.loads((trained / "stdout").read_text())
    assert document.keys() == {"folder", "steps", "seconds", "validation", "best"}
    assert document["folder"] == str(trained)
    assert document["steps"] == 3
    assert document["validation"].keys() == {"pair_auc", "triplet_accuracy"}
    assert document["best"] == pytest.approx(sum(document["validation"].values()) / 2)
    assert "step 3/3" in (trained / "stderr").read_text()
    assert load_model(trained).config.matching


def test_train_prints_text(run: Graphkin, tmp_path: Path) -> None:
    outcome = run("train", "edits", "--output", tmp_path / "run", "--steps", "2", *SMALL)
    assert outcome.code == 0
    first, second = outcome.out.splitlines()
    assert first.startswith("2 steps in ")
    assert "validation pair_auc 0." in first or "validation pair_auc 1." in first
    assert second == f"best weights: {tmp_path / 'run' / 'model'}"
    assert "step 2/2" in outcome.err


@pytest.mark.parametrize(
    ("name", "changed"),
    [
        ("gnn", {}),
        ("gmn", {"matching": True}),
        ("gcn", {"propagation": "convolution"}),
        ("siamese-gnn", {"similarity": "siamese"}),
        ("siamese-gcn", {"propagation": "convolution", "similarity": "siamese"}),
        ("deepset", {"steps": 0}),
    ],
)
def test_every_model_trains(
    run: Graphkin, tmp_path: Path, name: str, changed: dict[str, Any]
) -> None:
    sizes = [] if name == "deepset" else ["--set", "model.steps=2"]
    options = [*TASK, "--batch-size", "4", "--set", "evaluation_size=10", "--set", "node_dim=8"]
    outcome = run(
        "train", "edits", "--kind", name, "--output", tmp_path, "--steps", "1", *options, *sizes
    )
    assert outcome.code == 0, outcome.err
    config = specification(tmp_path)["model"]
    assert {key: config[key] for key in changed} == changed
    assert config["node_dim"] == 8


def test_options_reach_task_and_training(run: Graphkin, tmp_path: Path) -> None:
    text = "--nodes 7 --p 0.5 --kp 0 --kn 4 --steps 2 --batch-size 6 --mode triplets --seed 9"
    outcome = run("train", "edits", "--output", tmp_path, *SMALL, *text.split())
    assert outcome.code == 0, outcome.err
    settings = specification(tmp_path)
    assert settings["task"] == {
        "task": "edits",
        "nodes": [7, 7],
        "p": [0.5, 0.5],
        "positive_edits": 0,
        "negative_edits": 4,
        "seed": 9,
        "evaluation_size": 10,
    }
    expected = {"steps": 2, "batch_size": 6, "mode": "triplets", "seed": 9}
    assert {key: settings["training"][key] for key in expected} == expected


def test_a_number_may_have_an_exponent(run: Graphkin, tmp_path: Path) -> None:
    outcome = run("train", "edits", "--output", tmp_path, "--steps", "1", *SMALL, "--p", "5e-1")
    assert outcome.code == 0, outcome.err
    assert specification(tmp_path)["task"]["p"] == [0.5, 0.5]


def test_settings_from_a_file(run: Graphkin, tmp_path: Path) -> None:
    (tmp_path / "run.toml").write_text(
        "[model]\nnode_dim = 8\nsteps = 1\nsimilarity = 'cosine'\n"
        "[train]\nsteps = 50\nbatch_size = 4\nlearning_rate = 1e-2\nloss = 'hamming'\n"
        "[task]\nnodes = [6, 8]\np = [0.5, 0.5]\nevaluation_size = 10\nseed = 4\n"
    )
    arguments = ["--config", tmp_path / "run.toml", "--steps", "40", "--set", "train.steps=2"]
    arguments += ["--set", "bf16=true", "--set", "schedule=constant", "--nodes", "7-8"]
    outcome = run("train", "edits", "--kind", "gnn", "--output", tmp_path / "run", *arguments)
    assert outcome.code == 0, outcome.err
    settings = specification(tmp_path / "run")
    expected = {
        "model": {"node_dim": 8, "steps": 1, "similarity": "cosine", "matching": False},
        "training": {
            "steps": 2,
            "batch_size": 4,
            "learning_rate": 0.01,
            "loss": "hamming",
            "bf16": True,
            "schedule": "constant",
            "seed": 0,
        },
        "task": {"nodes": [7, 8], "p": [0.5, 0.5], "evaluation_size": 10, "seed": 4},
    }
    for table, values in expected.items():
        assert {key: settings[table][key] for key in values} == values


def test_the_seed_decides_the_run(run: Graphkin, tmp_path: Path) -> None:
    weights = []
    for number, seed in enumerate((1, 1, 2)):
        folder = tmp_path / str(number)
        assert (
            run("train", "edits", "--output", folder, "--steps", "2", "--seed", seed, *SMALL).code
            == 0
        )
        with safe_open(folder / "checkpoint.safetensors", framework="np") as file:
            weights.append({k: file.get_tensor(k).tobytes() for k in file.keys()})  # noqa: SIM118
    assert weights[0] == weights[1] != weights[2]


def test_a_model_begins_with_another(run: Graphkin, trained: Path, tmp_path: Path) -> None:
    """With its weights, and the options that they were trained with."""
    first = tmp_path / "first"
    unusual = ["--set", "message_norm=graph", "--set", "similarity=alignment"]
    command = ["train", "edits", *TASK, "--batch-size", "4", "--set", "evaluation_size=10"]
    still = ["--set", "learning_rate=0.0", "--steps", "1"]
    assert run(*command, "--output", first, *still, *SMALL, *unusual).code == 0
    second = tmp_path / "second"
    outcome = run(*command, "--output", second, *still, "--start-from", first, "--seed", "5")
    assert outcome.code == 0, outcome.err
    begun, before = load_model(second), load_model(first)
    assert begun.config == before.config
    weights = before.state_dict()
    assert all(torch.equal(weights[name], own) for name, own in begun.state_dict().items())
    shipped = run(*command, "--output", tmp_path / "third", *still, "--start-from", "edits")
    assert shipped.code == 0, shipped.err
    assert load_model(tmp_path / "third").config.similarity == "alignment"
    absent = run(*command, "--output", tmp_path / "no", "--start-from", tmp_path / "absent")
    assert_refused(absent, 13, "is neither a model folder nor a model that ships")


def test_a_run_records_what_it_was_trained_on(trained: Path) -> None:
    record = load_model(trained).trained_on
    assert record is not None
    settings = specification(trained)
    assert record["task"] == settings["task"]
    assert record["training"] == settings["training"]
    document = json.loads((trained / "stdout").read_text())
    assert (record["step"], record["validation"]["metrics"]) == (3, document["validation"])
    task = EditTask((6, 9), (0.4, 0.5), positive_edits=1, negative_edits=3, evaluation_size=10)
    assert record["validation"]["data"] == task.evaluation_set("validation").digest


def test_tensorboard(run: Graphkin, tmp_path: Path) -> None:
    outcome = run("train", "edits", "--output", tmp_path, "--steps", "1", "--tensorboard", *SMALL)
    assert outcome.code == 0, outcome.err
    assert len(list(tmp_path.glob("events.out.tfevents.*"))) == 1


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (["--nodes", "5-"], ["--nodes takes 20 or 20-50", "'5-'"]),
        (["--nodes", "x"], ["--nodes takes 20 or 20-50", "'x'"]),
        (["--nodes", "-5"], ["nodes", "at least 2, got -5"]),
        (["--nodes", "9-6"], ["nodes", "(9, 6)"]),
        (["--nodes", "1"], ["nodes", "1"]),
        (["--nodes", "6.5"], ["--nodes takes 20 or 20-50", "'6.5'"]),
        (["--p", "1.5"], ["p must lie strictly between 0 and 1", "1.5"]),
        (["--p", "0.2-x"], ["--p takes 0.2 or 0.2-0.5", "'0.2-x'"]),
        (["--p", "nan"], ["p must be a range", "nan"]),
        (["--kp", "3", "--kn", "3"], ["negative_edits", "3"]),
        (["--kn", "100"], ["negative_edits=100 is impossible"]),
        (["--seed", "-1"], ["seed", "-1"]),
        (["--seed", "99999999999999999999999"], ["seed", "99999999999999999999999"]),
        (["--steps", "0"], ["steps must be at least 1", "0"]),
        (["--batch-size", "0"], ["batch_size must be at least 1", "0"]),
        (["--mode", "quadruplets"], ["mode must be one of pairs, triplets", "'quadruplets'"]),
        (["--kind", "gnm"], ["unknown model 'gnm'", "gnn, gmn, gcn"]),
        (["--device", "nonsense"], ["device", "nonsense"]),
        (["--set", "node_dims=5"], ["unknown option 'node_dims'", "model.node_dim"]),
        (["--set", "model.node_dims=5"], ["unknown model option 'node_dims'", "node_dim"]),
        (["--set", "models.node_dim=5"], ["unknown table 'models'", "model, train, task"]),
        (["--set", "seed=5"], ["ambiguous", "train.seed or task.seed"]),
        (["--set", "steps=5"], ["ambiguous", "model.steps or train.steps"]),
        (["--set", "node_dim"], ["--set takes key=value", "'node_dim'"]),
        (["--set", "node_dim=big"], ["node_dim must be of type int", "'big'"]),
        (["--set", "node_dim=4.0"], ["node_dim must be of type int", "4.0"]),
        (["--set", "node_dim=0"], ["node_dim must be at least 1", "0"]),
        (["--set", "learning_rate=fast"], ["learning_rate must be of type float", "'fast'"]),
        (["--set", "bf16=1"], ["bf16 must be of type bool", "1"]),
        (["--set", "task.nodes=7"], ["nodes must be a range", "7"]),
        (["--set", "loss=hamming"], ["Hamming loss needs", "euclidean"]),
        (["--config", "absent.toml"], ["cannot read absent.toml"]),
    ],
    ids=lambda value: " ".join(value) if value[0].startswith("--") else "",
)
def test_settings_that_are_refused(
    run: Graphkin, tmp_path: Path, arguments: list[str], parts: list[str]
) -> None:
    outcome = run(
        "train", "edits", "--output", tmp_path / "run", *SMALL, "--steps", "1", *arguments
    )
    assert_refused(outcome, 12, *parts)
    assert not (tmp_path / "run").exists()


# --- Failures, by exit code ---------------------------------------------------------------


def test_graphs_that_do_not_fit_the_model(run: Graphkin, tmp_path: Path) -> None:
    arguments = ["--output", tmp_path / "run", "--steps", "1", *SMALL, "--set", "node_input=dense"]
    assert_refused(run("train", "edits", *arguments), 10, "dense node input", "constant")


def test_a_mistake_in_the_settings_does_not_spoil_the_folder(run: Graphkin, tmp_path: Path) -> None:
    """The graphs of the first batch show it; nothing has been trained by then."""
    command = ["train", "edits", "--output", tmp_path / "run", "--steps", "1", *SMALL]
    assert run(*command, "--set", "node_input=dense").code == 10
    outcome = run(*command)
    assert outcome.code == 0, outcome.err


def test_a_config_that_is_no_toml(run: Graphkin, tmp_path: Path) -> None:
    (tmp_path / "run.toml").write_text("[model\n")
    outcome = run("train", "edits", "--output", tmp_path / "run", "--config", tmp_path / "run.toml")
    assert_refused(outcome, 11, "run.toml is not valid TOML")


def test_a_damaged_checkpoint(run: Graphkin, trained: Path, tmp_path: Path) -> None:
    shutil.copytree(trained, tmp_path / "run")
    checkpoint = tmp_path / "run" / "checkpoint.safetensors"
    checkpoint.write_bytes(checkpoint.read_bytes()[:-100])
    arguments = ["train", "edits", "--output", tmp_path / "run", "--steps", "3", *SMALL, "--resume"]
    assert_refused(run(*arguments), 11, "cannot read the checkpoint", str(checkpoint))


def test_a_damaged_model(run: Graphkin, trained: Path, tmp_path: Path) -> None:
    shutil.copytree(trained, tmp_path / "run")
    (tmp_path / "run" / "model" / "config.json").write_text("{")
    assert_refused(run("eval", "edits", tmp_path / "run", *TASK), 11, "config.json")


def test_a_folder_without_a_model(run: Graphkin, tmp_path: Path) -> None:
    assert_refused(run("eval", "edits", tmp_path, *TASK), 11, "config.json")


def test_evaluating_a_missing_folder(run: Graphkin, tmp_path: Path) -> None:
    outcome = run("eval", "edits", tmp_path / "absent", *TASK)
    assert_refused(outcome, 13, str(tmp_path / "absent"), "is neither a model folder nor")


def test_an_existing_run(run: Graphkin, trained: Path) -> None:
    before = (trained / "checkpoint.safetensors").read_bytes()
    outcome = run("train", "edits", "--output", trained, "--steps", "3", *SMALL)
    assert_refused(outcome, 14, str(trained), "holds a run already", "resume")
    assert (trained / "checkpoint.safetensors").read_bytes() == before


def test_resuming_with_other_settings(run: Graphkin, trained: Path) -> None:
    outcome = run("train", "edits", "--output", trained, "--steps", "4", *SMALL, "--resume")
    assert_refused(outcome, 14, "steps is 3, this run's is 4")


def test_resuming_a_finished_run(run: Graphkin, trained: Path, tmp_path: Path) -> None:
    shutil.copytree(trained, tmp_path / "run")
    arguments = ["--output", tmp_path / "run", "--steps", "3", *SMALL, "--resume", "--json"]
    again = json.loads(run("train", "edits", *arguments).out)
    first = json.loads((trained / "stdout").read_text())
    assert {**again, "folder": 0, "seconds": 0} == {**first, "folder": 0, "seconds": 0}


def test_a_loss_that_is_no_number(run: Graphkin, tmp_path: Path) -> None:
    settings = ["--set", "learning_rate=1e30", "--set", "clip=1e30"]
    outcome = run("train", "edits", "--output", tmp_path, "--steps", "9", *SMALL, *settings)
    assert_refused(
        outcome, 14, "is NaN or infinite", "checkpoint.safetensors", "lower learning_rate"
    )


def test_an_output_that_cannot_be_written(run: Graphkin, tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("something")
    outcome = run("train", "edits", "--output", tmp_path / "taken", "--steps", "1", *SMALL)
    assert_refused(outcome, 15, "cannot write into", "taken")
    assert (tmp_path / "taken").read_text() == "something"


def test_a_package_that_is_not_installed(
    run: Graphkin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    outcome = run("train", "edits", "--output", tmp_path, "--steps", "1", "--tensorboard", *SMALL)
    assert_refused(outcome, 16, "pip install 'graphkin[tensorboard]'")


def test_an_interrupt(run: Graphkin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*arguments: Any, **options: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("graphkin.learning.recipes.train", interrupted)
    assert_refused(run("train", "edits", "--output", tmp_path, *SMALL), 130, "interrupted")


def test_failures_of_the_real_program(tmp_path: Path) -> None:
    arguments = ["eval", "edits", tmp_path / "absent", *TASK]
    result = subprocess.run([PROGRAM, *arguments], capture_output=True, text=True)
    assert_refused(Outcome(result.returncode, result.stdout, result.stderr), 13, "model folder")


# --- eval ---------------------------------------------------------------------------------


def evaluated(run: Graphkin, *arguments: Any) -> dict[str, Any]:
    outcome = run("eval", "edits", *arguments, "--json")
    assert outcome.code == 0, outcome.err
    assert outcome.out.count("\n") == 1
    document: dict[str, Any] = json.loads(outcome.out)
    return document


def test_eval_gives_what_training_found(run: Graphkin, trained: Path) -> None:
    document = evaluated(run, trained, *TASK, "--size", "10", "--split", "validation")
    assert document["metrics"] == json.loads((trained / "stdout").read_text())["validation"]
    task = EditTask((6, 9), (0.4, 0.5), positive_edits=1, negative_edits=3, evaluation_size=10)
    assert document["model"] == str(trained)
    assert document["task"] == task.describe()
    assert document["split"] == "validation"
    assert document["data"] == task.evaluation_set("validation").digest
    same = evaluated(run, trained / "model", *TASK, "--size", "10", "--split", "validation")
    assert same["metrics"] == document["metrics"]


def test_eval_takes_the_test_set_by_default(run: Graphkin, trained: Path) -> None:
    document = evaluated(run, trained, *TASK, "--size", "40")
    task = EditTask((6, 9), (0.4, 0.5), positive_edits=1, negative_edits=3, evaluation_size=40)
    assert document["split"] == "test"
    assert document["data"] == task.evaluation_set("test").digest
    assert document["metrics"] == evaluate(load_model(trained), task.evaluation_set("test"))


@pytest.mark.parametrize("name", ["edits", "edits/embedder"])
def test_eval_of_a_model_that_ships(run: Graphkin, name: str) -> None:
    arguments = ["--nodes", "20-50", "--p", "0.2-0.5", "--size", "40"]
    document = evaluated(run, name, *arguments)
    task = EditTask((20, 50), (0.2, 0.5), evaluation_size=40)
    assert document["metrics"] == evaluate(load_model(name), task.evaluation_set("test"))
    assert document["metrics"]["pair_auc"] > 0.85


def test_eval_after_another_number_of_steps(run: Graphkin, trained: Path) -> None:
    metrics = {
        steps: evaluated(run, trained, *TASK, "--size", "40", *steps)["metrics"]
        for steps in ((), (T, 2), (T, 0), (T, 7))
    }
    assert metrics[()] == metrics[T, 2]
    # Without propagation all nodes are alike, and so are all pairs of one size.
    assert metrics[T, 0]["triplet_accuracy"] == 0
    assert metrics[T, 7] != metrics[()]


def test_eval_of_parameters_that_are_not_shared(run: Graphkin, tmp_path: Path) -> None:
    arguments = ["--output", tmp_path, "--steps", "1", *SMALL, "--set", "shared=false"]
    assert run("train", "edits", *arguments).code == 0
    outcome = run("eval", "edits", tmp_path, *TASK, "--size", "10", T, "7")
    assert_refused(outcome, 13, "exactly 2 steps", "7")


@pytest.mark.parametrize("iterations", [0, 3])
def test_eval_of_the_wl_kernel(run: Graphkin, iterations: int) -> None:
    arguments = ["--nodes", "20", "--size", "60", "--iterations", iterations]
    document = evaluated(run, "wl", *arguments)
    task = EditTask(nodes=(20, 20), evaluation_size=60)
    assert document["model"] == "wl"
    assert document["metrics"] == evaluate(WLKernel(iterations), task.evaluation_set("test"))


def test_eval_prints_text(run: Graphkin) -> None:
    outcome = run("eval", "edits", "wl", "--size", "60")
    assert outcome.code == 0
    first, *rows = outcome.out.splitlines()
    assert first.startswith("wl on test, data ")
    assert [row.split()[0] for row in rows] == ["pair_auc", "triplet_accuracy"]
    assert all(0 <= float(row.split()[1]) <= 100 for row in rows)


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (
            ["--split", "training"],
            ["split must be 'validation' or 'test'", "'training'", "drawn anew"],
        ),
        (["--nodes", "5-"], ["--nodes takes 20 or 20-50", "'5-'"]),
        (["--p", "1.5"], ["p must lie strictly between 0 and 1", "1.5"]),
        (["--size", "0"], ["evaluation_size", "0"]),
        (["--size", "1"], ["both"]),
    ],
    ids=" ".join,
)
def test_evaluations_that_are_refused(
    run: Graphkin, arguments: list[str], parts: list[str]
) -> None:
    assert_refused(run("eval", "edits", "wl", *arguments), 12, *parts)
