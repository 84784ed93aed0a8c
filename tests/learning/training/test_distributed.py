"""Data-parallel training in two processes, against one process with the joint batch."""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch

from graphkin.errors import ConfigError
from graphkin.learning.training import train
from graphkin.learning.training.distributed import process_group
from graphkin.models import GraphEmbedder, GraphMatcher
from tests.learning.training.runs import CONFIG, TASK, finished, log_lines, make_model, weights
from tests.paths import REPOSITORY

SHORT = dataclasses.replace(CONFIG, steps=6, batch_size=8, report_every=2, evaluate_every=3)
COURSES = {
    "gnn": SHORT,
    "gmn": dataclasses.replace(SHORT, mode="triplets"),
    "gcn": SHORT,
}
LONG = dataclasses.replace(SHORT, steps=40, evaluate_every=40, report_every=20)


def double_model(name: str, seed: int) -> GraphEmbedder | GraphMatcher:
    """In double precision the order of sums makes no difference that counts."""
    return make_model(name, seed).double()


def options(folder: Path) -> list[str]:
    """Arguments of a short run of the command line."""
    text = "train edits --nodes 6-9 --p 0.4-0.5 --kn 3 --batch-size 4 --steps 2 --kind gnn --json"
    return [*text.split(), "--output", str(folder), "--set", "evaluation_size=10"]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What two processes leave behind."""
    position = tmp_path_factory.mktemp("parallel")
    launcher = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2"]
    launcher += ["--master-addr", "127.0.0.1", "--master-port", str(free_port())]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    if sys.platform == "linux":
        environment["GLOO_SOCKET_IFNAME"] = "lo"
    process = subprocess.Popen(
        [*launcher, "-m", "tests.learning.training.data_parallel", str(position)],
        cwd=REPOSITORY,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        output, _ = process.communicate(timeout=180)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
    assert process.returncode == 0, output
    return position


@pytest.fixture(scope="module")
def seen(folder: Path) -> list[dict[str, Any]]:
    return [json.loads((folder / f"seen-{rank}.json").read_text()) for rank in (0, 1)]


def assert_weights(folder: Path, name: str, model: GraphEmbedder | GraphMatcher) -> None:
    """Both processes end with the weights of the model, up to the order of sums."""
    expected = weights(model)
    for rank in (0, 1):
        tensors = safetensors.torch.load_file(folder / f"{name}-{rank}.safetensors")
        assert tensors.keys() == expected.keys()
        for key, tensor in tensors.items():
            assert torch.allclose(tensor, expected[key], rtol=0, atol=1e-6), key


def assert_logs(run: Path, expected: Path) -> None:
    """Two runs report the same, up to the order of sums."""
    for line, expected_list in zip(log_lines(run), log_lines(expected), strict=True):
        assert line["step"] == expected_list["step"]
        assert line["loss"] == pytest.approx(expected_list["loss"], rel=1e-5)
        assert line.get("validation") == pytest.approx(expected_list.get("validation"))


@pytest.mark.parametrize("name", COURSES)
def test_a_run_is_that_of_the_joint_batch(folder: Path, tmp_path: Path, name: str) -> None:
    start = weights(double_model(name, seed=0))
    model = double_model(name, seed=0)
    train(model, TASK, COURSES[name], tmp_path)
    moved = max(float((tensor - start[key]).abs().max()) for key, tensor in weights(model).items())
    assert moved > 0.02
    assert_weights(folder, name, model)
    assert_logs(folder / "rank0" / name, tmp_path)


@pytest.mark.parametrize("name", COURSES)
def test_only_the_first_process_writes(folder: Path, seen: list[Any], name: str) -> None:
    assert sorted(os.listdir(folder / "rank0" / name)) == [
        "checkpoint.safetensors",
        "log.jsonl",
        "model",
    ]
    assert not (folder / "rank1").exists()
    assert [record["reports"][name] for record in seen] == [[2, 3, 4, 6], []]


def test_one_process_prints_the_result(folder: Path, seen: list[Any]) -> None:
    first, second = (record["output"] for record in seen)
    document = json.loads(first)
    assert document["steps"] == 2
    assert document["folder"] == str(folder / "shared")
    assert second == ""


def test_all_processes_stop_when_one_is_asked_to(folder: Path, seen: list[Any]) -> None:
    first, second = (record["stopped"] for record in seen)
    assert first == second
    assert 0 < first < 20


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    home, model = tmp_path_factory.mktemp("whole"), double_model("gnn", seed=0)
    train(model, TASK, LONG, home)
    return home, model


def test_all_processes_resume(folder: Path, uninterrupted: tuple[Path, Any]) -> None:
    assert_weights(folder, "resumed", uninterrupted[1])


def test_the_log_of_processes_that_resume(folder: Path, uninterrupted: tuple[Path, Any]) -> None:
    assert_logs(folder / "stopped", uninterrupted[0])


def test_a_batch_that_does_not_split(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "3")
    with pytest.raises(ConfigError, match="batch_size 4 does not split over 3 processes"):
        finished("gnn", CONFIG, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_one_process_needs_no_group(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "1")
    with process_group(7) as (rank, world):
        assert (rank, world) == (0, 1)
        assert not torch.distributed.is_initialized()
