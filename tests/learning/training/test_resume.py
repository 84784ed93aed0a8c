"""A resumed run computes what an uninterrupted one would have, to the last bit."""

from __future__ import annotations

import dataclasses
import os
import random
import signal
import subprocess
import sys
import sysconfig
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from torch import Tensor
from typer.testing import CliRunner

from graphkin.cli.main import application
from graphkin.learning.training import train
from graphkin.learning.training.optimizer import FlatOptimizer
from graphkin.models import load_model
from tests.learning.training.runs import (
    CONFIG,
    TASK,
    Crash,
    InterruptedTask,
    checkpoint_document,
    checkpoint_weights,
    crash_at,
    finished,
    log_lines,
    make_model,
    same,
    weights,
)
from tests.paths import REPOSITORY

COURSE = dataclasses.replace(CONFIG, steps=40, report_every=7, evaluate_every=16)
KINDS = [(name, mode) for name in ("gnn", "gmn") for mode in ("pairs", "triplets")]

Run = tuple[Path, dict[str, Tensor]]
"""The folder of a run, and its weights at the end."""


def crashed(name: str, config: Any, folder: Path) -> None:
    """Ends a run at a report past its last checkpoint, as a power cut would."""
    with pytest.raises(Crash):
        finished(name, config, folder, checkpoint_seconds=0, on_report=crash_at(21))
    assert checkpoint_document(folder)["state"]["step"] == 20
    assert log_lines(folder)[-1]["step"] == 21


def stopped(name: str, config: Any, folder: Path, number: int = signal.SIGINT) -> None:
    """Ends a run by Ctrl-C in the middle between two reports."""
    with pytest.raises(KeyboardInterrupt):
        train(make_model(name), InterruptedTask(TASK, 29, number), config, folder)
    # The batch is made up to five steps before its use.
    assert 22 < checkpoint_document(folder)["state"]["step"] < 31


@pytest.fixture(scope="module", params=KINDS, ids=lambda kind: "-".join(kind))
def kind(request: pytest.FixtureRequest) -> tuple[str, Any]:
    return request.param  # type: ignore[no-any-return]


@pytest.fixture(scope="module")
def whole(kind: tuple[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("whole")
    final = finished(kind[0], dataclasses.replace(COURSE, mode=kind[1]), folder)
    assert not same(final, weights(make_model(kind[0])))
    return folder, final


@pytest.fixture(scope="module", params=[crashed, stopped], ids=["crashed", "stopped"])
def resumed(
    request: pytest.FixtureRequest,
    kind: tuple[str, Any],
    tmp_path_factory: pytest.TempPathFactory,
) -> Run:
    end: Callable[..., None] = request.param
    folder = tmp_path_factory.mktemp("resumed")
    config = dataclasses.replace(COURSE, mode=kind[1])
    end(kind[0], config, folder)
    model = make_model(kind[0], seed=99)
    train(model, TASK, config, folder, resume=True)
    return folder, weights(model)


def test_weights_are_the_same(whole: Run, resumed: Run) -> None:
    assert same(resumed[1], whole[1])
    assert same(checkpoint_weights(resumed[0]), whole[1])
    assert same(weights(load_model(resumed[0])), weights(load_model(whole[0])))


def test_steps_and_validations_of_the_log_are_the_same(whole: Run, resumed: Run) -> None:
    first, second = (
        [{key: line[key] for key in line if key != "loss"} for line in log_lines(folder)]
        for folder, _ in (whole, resumed)
    )
    assert first == second


def test_losses_of_the_log_are_the_same(whole: Run, resumed: Run) -> None:
    first, second = (
        {line["step"]: line["loss"] for line in log_lines(folder)} for folder, _ in (whole, resumed)
    )
    assert first == second


def test_state_at_the_end_is_the_same(whole: Run, resumed: Run) -> None:
    first, second = (checkpoint_document(folder)["state"] for folder, _ in (whole, resumed))
    for key in ("step", "best", "validation"):
        assert first[key] == second[key]


def test_a_run_that_is_stopped_at_every_turn(tmp_path: Path) -> None:
    """Crash, resume, stop before the first report, resume: the log has each line once."""
    expected = finished("gnn", COURSE, tmp_path / "whole")
    folder = tmp_path / "run"
    with pytest.raises(KeyboardInterrupt):
        train(make_model(), InterruptedTask(TASK, 12), COURSE, folder)
    with pytest.raises(Crash):  # lines past the checkpoint
        finished("gnn", COURSE, folder, resume=True, on_report=crash_at(28))
    done = checkpoint_document(folder)["state"]["step"]
    with pytest.raises(KeyboardInterrupt):  # cut off again, and no new line yet
        train(make_model(), InterruptedTask(TASK, done), COURSE, folder, resume=True)
    assert same(finished("gnn", COURSE, folder, resume=True), expected)
    assert b"\x00" not in (folder / "log.jsonl").read_bytes()
    steps = [
        [line["step"] for line in log_lines(position)] for position in (tmp_path / "whole", folder)
    ]
    assert steps[0] == steps[1]


def test_each_step_has_its_own_learning_rate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rates: list[float] = []
    step = FlatOptimizer.step

    def watched(optimizer: FlatOptimizer, rate: float) -> bool:
        rates.append(rate)
        return step(optimizer, rate)

    monkeypatch.setattr(FlatOptimizer, "step", watched)
    stopped("gnn", COURSE, tmp_path)
    assert len(rates) < COURSE.steps
    finished("gnn", COURSE, tmp_path, resume=True)
    assert rates == [COURSE.learning_rate_at(number) for number in range(COURSE.steps)]


def test_sigterm_stops_like_ctrl_c(tmp_path: Path) -> None:
    expected = finished("gnn", COURSE, tmp_path / "whole")
    stopped("gnn", COURSE, tmp_path / "run", signal.SIGTERM)
    assert same(finished("gnn", COURSE, tmp_path / "run", resume=True), expected)


def test_ctrl_c_during_the_last_step_changes_nothing(tmp_path: Path) -> None:
    expected = finished("gnn", COURSE, tmp_path / "whole")

    def at_the_end(report: Any) -> None:
        if report.step == COURSE.steps:
            os.kill(os.getpid(), signal.SIGINT)

    try:
        actual = finished("gnn", COURSE, tmp_path / "run", on_report=at_the_end)
    except KeyboardInterrupt:
        pytest.fail("the run is complete, and there is nothing left to interrupt")
    assert same(actual, expected)


def test_resuming_a_finished_run_gives_its_result_again(tmp_path: Path) -> None:
    first = train(make_model(), TASK, COURSE, tmp_path)
    log = (tmp_path / "log.jsonl").read_bytes()
    model = make_model(seed=99)
    second = train(model, TASK, COURSE, tmp_path, resume=True)
    assert (second.step, second.validation, second.best) == (
        first.step,
        first.validation,
        first.best,
    )
    assert same(weights(model), checkpoint_weights(tmp_path))
    assert (tmp_path / "log.jsonl").read_bytes() == log


def test_resuming_without_a_checkpoint_starts_anew(tmp_path: Path) -> None:
    expected = finished("gnn", COURSE, tmp_path / "whole")
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "log.jsonl").write_text('{"step": 7, "loss": 0.1}\n')
    assert same(finished("gnn", COURSE, tmp_path / "run", resume=True), expected)
    assert log_lines(tmp_path / "run") == log_lines(tmp_path / "whole")


def test_time_adds_up_over_sittings(tmp_path: Path) -> None:
    stopped("gnn", COURSE, tmp_path)
    before = checkpoint_document(tmp_path)["state"]["seconds"]
    result = train(make_model(), TASK, COURSE, tmp_path, resume=True)
    assert 0 < before < result.seconds == checkpoint_document(tmp_path)["state"]["seconds"]


# --- Real processes -----------------------------------------------------------------------


def command(name: str, mode: str, folder: Path) -> list[str]:
    """A run of the command line with a line of the log for each step."""
    options = {
        "--output": str(folder),
        "--kind": name,
        "--mode": mode,
        "--nodes": "6-9",
        "--p": "0.4-0.5",
        "--kn": "3",
        "--batch-size": "4",
        "--steps": "300",
        "--seed": "3",
    }
    settings = ["report_every=1", "evaluate_every=110", "evaluation_size=10", "node_dim=8"]
    settings += ["message_dim=8", "graph_dim=8", "model.steps=2", "learning_rate=0.01"]
    flat = [word for pair in options.items() for word in pair]
    return ["train", "edits", *flat, *(word for s in settings for word in ("--set", s))]


def wait_for_lines(process: subprocess.Popen[bytes], folder: Path, count: int) -> None:
    """Waits until the log of a running process has some lines."""
    log, deadline = folder / "log.jsonl", time.monotonic() + 300
    while not (log.exists() and log.read_bytes().count(b"\n") >= count):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.005)


@pytest.mark.parametrize(("name", "mode"), [("gmn", "pairs"), ("gnn", "triplets")])
def test_ctrl_c_to_the_command_line(tmp_path: Path, name: str, mode: str) -> None:
    folder = tmp_path / "run"
    program = Path(sysconfig.get_path("scripts")) / "graphkin"
    process = subprocess.Popen(
        [program, *command(name, mode, folder)], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    try:
        wait_for_lines(process, folder, 5)
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=300)
    finally:
        process.kill()
    assert process.returncode == 130
    assert output == b""
    assert b"Traceback" not in errors
    assert errors.splitlines()[-1].startswith(b"graphkin: interrupted")
    assert 5 <= checkpoint_document(folder)["state"]["step"] < 300

    runner = CliRunner()
    again = runner.invoke(application(), [*command(name, mode, folder), "--resume"])
    assert again.exit_code == 0, again.output
    whole = runner.invoke(application(), command(name, mode, tmp_path / "whole"))
    assert whole.exit_code == 0, whole.output
    lines = log_lines(folder)
    assert [line["step"] for line in lines] == list(range(1, 301))
    assert lines == log_lines(tmp_path / "whole")
    assert same(checkpoint_weights(folder), checkpoint_weights(tmp_path / "whole"))


KILLED = """
import sys
from pathlib import Path
import torch
from tests.learning.training.runs import TASK, make_model
from tests.learning.training.test_resume import KILLED_COURSE
from graphkin.learning.training import train
from graphkin.learning.training.optimizer import FlatOptimizer

torch.set_num_threads(1)
train(make_model("gmn"), TASK, KILLED_COURSE, Path(sys.argv[1]), checkpoint_seconds=0)
"""
KILLED_COURSE = dataclasses.replace(COURSE, steps=150, report_every=1)


def test_a_run_that_is_killed(tmp_path: Path) -> None:
    """At any moment, the writing of a checkpoint included: the run saves one at every step."""
    folder, wait = tmp_path / "run", random.uniform(0, 0.5)
    process = subprocess.Popen([sys.executable, "-c", KILLED, folder], cwd=REPOSITORY)
    try:
        wait_for_lines(process, folder, 2)
        time.sleep(wait)
    finally:
        process.kill()
        process.wait()
    done = checkpoint_document(folder)["state"]["step"]
    assert done >= 1
    final = finished("gmn", KILLED_COURSE, folder, resume=True)
    assert same(final, finished("gmn", KILLED_COURSE, tmp_path / "whole")), f"killed after {done}"
    assert log_lines(folder) == log_lines(tmp_path / "whole")
