"""Checkpoints: what goes in comes back, and nothing else is taken for one."""

from __future__ import annotations

import dataclasses
import errno
import json
import os
import pickle
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch
from safetensors import safe_open
from torch import Tensor

from graphkin.errors import FormatError, GraphkinError, StorageError, TrainingError
from graphkin.learning.training import train
from graphkin.learning.training.checkpoints import RunState, load_checkpoint, save_checkpoint
from graphkin.learning.training.optimizer import FlatOptimizer
from graphkin.models import GraphEmbedder
from tests.learning.training.runs import (
    CONFIG,
    TASK,
    Crash,
    crash_at,
    finished,
    make_model,
    same,
    weights,
)

SPECIFICATION = {
    "model": {"matching": False, "node_dim": 8},
    "training": {"steps": 30, "margin": 0.1},
    "task": {"task": "edits", "nodes": [6, 9]},
}
STATE = RunState(step=7, best=0.75, seconds=1.5, log_bytes=321, validation={"pair_auc": 0.75})


def trained(seed: int = 0) -> tuple[GraphEmbedder, FlatOptimizer]:
    """A model after one step of its optimiser."""
    model = make_model(seed=seed)
    optimizer = FlatOptimizer(model, CONFIG)
    optimizer.grad.copy_(torch.randn(optimizer.grad.shape))
    optimizer.step(0.1)
    return model, optimizer


@pytest.fixture
def path(tmp_path: Path) -> Path:
    target = tmp_path / "run" / "checkpoint.safetensors"
    save_checkpoint(target, *trained(), STATE, SPECIFICATION)
    return target


def load(path: Path, specification: dict[str, Any] = SPECIFICATION) -> RunState:
    model = make_model(seed=1)
    return load_checkpoint(path, model, FlatOptimizer(model, CONFIG), specification)


def test_what_goes_in_comes_back(tmp_path: Path) -> None:
    model, optimizer = trained()
    save_checkpoint(tmp_path / "c", model, optimizer, STATE, SPECIFICATION)
    other, its_optimizer = trained(seed=1)
    assert not same(weights(model), weights(other))
    assert load_checkpoint(tmp_path / "c", other, its_optimizer, SPECIFICATION) == STATE
    assert same(weights(model), weights(other))
    assert same(optimizer.state(), its_optimizer.state())
    # The parameters are still the views that the optimiser updates.
    its_optimizer.flat.zero_()
    assert all(not parameter.any() for parameter in other.parameters())


def test_a_run_without_validation_yet(tmp_path: Path) -> None:
    save_checkpoint(tmp_path / "c", *trained(), RunState(), SPECIFICATION)
    assert load(tmp_path / "c") == RunState()


@pytest.mark.parametrize(
    ("table", "key", "value", "message"),
    [
        ("training", "steps", 31, "its training.steps is 30, this run's is 31"),
        ("training", "margin", 0.2, "its training.margin is 0.1, this run's is 0.2"),
        ("model", "matching", True, "its model.matching is False, this run's is True"),
        ("task", "nodes", [6, 10], r"its task.nodes is \[6, 9\], this run's is \[6, 10\]"),
        ("task", "depth", 3, "its task.depth is None, this run's is 3"),
    ],
)
def test_another_specification_is_refused_by_key(
    path: Path, table: str, key: str, value: Any, message: str
) -> None:
    with pytest.raises(TrainingError, match=f"belongs to another run: {message}") as caught:
        load(path, {**SPECIFICATION, table: {**SPECIFICATION[table], key: value}})
    assert caught.value.exit_code == 14


@pytest.mark.parametrize(("norm", "fits"), [("none", True), ("graph", False)])
def test_a_run_from_before_an_option_was_added_has_its_default(
    path: Path, norm: str, fits: bool
) -> None:
    expected = {**SPECIFICATION, "model": {**SPECIFICATION["model"], "message_norm": norm}}
    if fits:
        assert load(path, expected) == STATE
        return
    with pytest.raises(TrainingError, match=r"its model\.message_norm is 'none'"):
        load(path, expected)


@pytest.mark.parametrize("resolved", [True, False])
def test_a_run_that_left_it_to_its_values_whether_they_are_distances(
    tmp_path: Path, resolved: bool
) -> None:
    task = {"task": "graphs", "distances": None}
    path = tmp_path / "checkpoint.safetensors"
    save_checkpoint(path, *trained(), STATE, {**SPECIFICATION, "task": task})
    assert load(path, {**SPECIFICATION, "task": {**task, "distances": resolved}}) == STATE


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"training": {"margin": 0.2}}, "training.margin"),
        ({"training": {"steps": 40}}, "training.steps"),
        ({"training": {"seed": 5}}, "training.seed"),
        ({"model": {"graph_dim": 16}}, "model.graph_dim"),
        ({"model": {"shared": False}}, "model.shared"),
        ({"task": {"negative_edits": 4}}, "task.negative_edits"),
        ({"task": {"seed": 1}}, "task.seed"),
    ],
)
def test_a_run_resumes_with_its_own_settings_alone(
    tmp_path: Path, changes: dict[str, dict[str, Any]], key: str
) -> None:
    with pytest.raises(Crash):
        finished("gnn", CONFIG, tmp_path, checkpoint_seconds=0, on_report=crash_at(10))
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    model_config = dataclasses.replace(make_model().config, **changes.get("model", {}))
    config = dataclasses.replace(CONFIG, **changes.get("training", {}))
    task = dataclasses.replace(TASK, **changes.get("task", {}))
    with pytest.raises(TrainingError, match=f"its {key} is .*, this run's is .*another folder"):
        train(GraphEmbedder(model_config), task, config, tmp_path, resume=True)
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before


@pytest.mark.parametrize("kept", [0, 4, 8, 60, 0.25, 0.5, 0.99])
def test_a_truncated_checkpoint(path: Path, kept: float) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: kept if isinstance(kept, int) else int(len(content) * kept)])
    with pytest.raises(FormatError, match=r"cannot read the checkpoint .*checkpoint\.safetensors"):
        load(path)


@pytest.mark.parametrize(
    "content",
    [
        b"not a checkpoint at all",
        b"\x00" * 1000,
        b"PK\x03\x04" + b"\x00" * 100,
        pickle.dumps({"step": 1}),
        safetensors.torch.save({"x": torch.zeros(3)}),
        safetensors.torch.save({"x": torch.zeros(3)}, {"format": "pt"}),
    ],
    ids=["text", "zeros", "zip", "pickle", "safetensors", "pytorch"],
)
def test_a_foreign_file(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    with pytest.raises(FormatError, match=r"checkpoint\.safetensors") as caught:
        load(path)
    assert caught.value.exit_code == 11


def test_a_checkpoint_of_another_version(path: Path) -> None:
    content = path.read_bytes()
    assert content.count(b"graphkin-checkpoint 1") == 1
    path.write_bytes(content.replace(b"graphkin-checkpoint 1", b"graphkin-checkpoint 2"))
    with pytest.raises(FormatError, match="is not a checkpoint that this graphkin reads"):
        load(path)


def test_a_folder_in_its_place(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="cannot read the checkpoint"):
        load(tmp_path)


Change = Callable[[dict[str, Any], dict[str, Tensor]], None]


def without_tensor(prefix: str) -> Change:
    def change(document: dict[str, Any], tensors: dict[str, Tensor]) -> None:
        del tensors[next(name for name in tensors if name.startswith(prefix))]

    return change


def with_moments(size: int) -> Change:
    """Vectors of the optimiser at another size."""

    def change(document: dict[str, Any], tensors: dict[str, Tensor]) -> None:
        for name, tensor in tensors.items():
            if name.startswith("optimizer.") and tensor.ndim:
                tensors[name] = torch.zeros(size)

    return change


@pytest.mark.parametrize(
    "change",
    [
        lambda document, tensors: document.pop("state"),
        lambda document, tensors: document.pop("specification"),
        lambda document, tensors: document["state"].update(flavour="sweet"),
        without_tensor("optimizer."),
        with_moments(3),
        with_moments(1),
    ],
    ids=[
        "no state",
        "no specification",
        "unknown state",
        "no moments",
        "moments too short",
        "one moment for all",
    ],
)
def test_a_checkpoint_with_something_wrong(path: Path, change: Change) -> None:
    tensors = safetensors.torch.load_file(path)
    document = {"state": dataclasses.asdict(STATE), "specification": SPECIFICATION}
    change(document, tensors)
    metadata = {"format": "graphkin-checkpoint 1", "run": json.dumps(document)}
    path.write_bytes(safetensors.torch.save(tensors, metadata))
    with pytest.raises(FormatError, match=r"checkpoint\.safetensors"):
        load(path)


@pytest.mark.parametrize("run", [None, "", "{", "[]", "5"])
def test_a_checkpoint_whose_document_is_damaged(path: Path, run: str | None) -> None:
    tensors = safetensors.torch.load_file(path)
    metadata = {"format": "graphkin-checkpoint 1", **({} if run is None else {"run": run})}
    path.write_bytes(safetensors.torch.save(tensors, metadata))
    with pytest.raises(FormatError, match=r"checkpoint\.safetensors"):
        load(path)


def test_one_flipped_bit_of_the_header(path: Path) -> None:
    """Some flips change a number and nothing else; all others must be told from a crash."""
    content = path.read_bytes()
    header = 8 + int.from_bytes(content[:8], "little")
    refused = 0
    for position in range(0, header, 7):
        damaged = bytearray(content)
        damaged[position] ^= 1 << position % 7
        path.write_bytes(damaged)
        try:
            load(path)
        except GraphkinError:
            refused += 1
        except Exception as error:
            around = content[max(8, position - 10) : position + 10]
            pytest.fail(f"bit {position % 7} of byte {position} ({around!r}): {error!r}")
    assert refused > header / 7 / 2


def test_weights_of_another_shape(path: Path) -> None:
    model = GraphEmbedder(dataclasses.replace(make_model().config, graph_dim=16))
    with pytest.raises(TrainingError, match="holds the weights of another model"):
        load_checkpoint(path, model, FlatOptimizer(model, CONFIG), SPECIFICATION)


@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_a_full_disk_leaves_the_old_checkpoint(
    path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    def full(*arguments: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    before = path.read_bytes()
    monkeypatch.setattr(os, call, full)
    with pytest.raises(StorageError, match=r"cannot write .*: No space left on device") as caught:
        save_checkpoint(path, *trained(seed=3), RunState(step=8), SPECIFICATION)
    assert caught.value.exit_code == 15
    assert path.read_bytes() == before
    assert os.listdir(path.parent) == [path.name]
    assert load(path) == STATE


def test_a_disk_that_fills_up_during_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The run ends, and goes on from the last whole checkpoint once there is room again."""
    expected = finished("gnn", CONFIG, tmp_path / "whole")
    flush = os.fsync
    calls = 0

    def full(handle: int) -> None:
        nonlocal calls
        calls += 1
        if calls > 12:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        flush(handle)

    folder = tmp_path / "full"
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StorageError, match=r"cannot write .*checkpoint.*: No space left"):
        finished("gnn", CONFIG, folder, checkpoint_seconds=0)
    monkeypatch.undo()
    assert same(finished("gnn", CONFIG, folder, resume=True), expected)


def test_any_changed_byte_is_noticed(path: Path) -> None:
    content = path.read_bytes()
    rng = random.Random(0)
    for _ in range(200):
        damaged = bytearray(content)
        damaged[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
        path.write_bytes(damaged)
        with pytest.raises(GraphkinError):
            load(path)


def without_checksum(path: Path, value: float | None = None) -> None:
    """Rewrites a checkpoint as it was before there were checksums, with one weight changed."""
    with safe_open(path, framework="pt") as file:
        metadata = file.metadata()
    tensors = safetensors.torch.load_file(path)
    del metadata["checksum"]
    if value is not None:
        next(t for name, t in tensors.items() if name.startswith("model.")).view(-1)[0] = value
    path.write_bytes(safetensors.torch.save(tensors, metadata))


def test_checkpoints_of_before_there_were_checksums(path: Path) -> None:
    without_checksum(path)
    assert load(path) == STATE


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_weights_that_are_no_numbers_are_refused(path: Path, value: float) -> None:
    without_checksum(path, value)
    with pytest.raises(FormatError, match="holds NaN or infinity"):
        load(path)


def test_a_run_sweeps_what_a_killed_one_left(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    (folder / "model").mkdir(parents=True)
    left = [folder / ".checkpoint.safetensors.abcd_123", folder / "model" / ".config.json.abcd1234"]
    for file in left:
        file.write_bytes(b"half")
    finished("gnn", CONFIG, folder)
    assert not any(file.exists() for file in left)
