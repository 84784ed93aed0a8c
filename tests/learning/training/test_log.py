"""The log: one JSON object a line, cut back to the checkpoint, and TensorBoard by option."""

from __future__ import annotations

import errno
import io
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from graphkin.errors import MissingDependencyError, StorageError
from graphkin.learning.training import StepReport, train
from graphkin.learning.training.log import RunLog
from tests.learning.training.runs import (
    CONFIG,
    TASK,
    InterruptedTask,
    finished,
    log_lines,
    make_model,
)


def report(step: int, loss: float = 0.5) -> StepReport:
    return StepReport(step, 100, loss, 1e-3, 12.34567, 7.0, {"pair_auc": 0.75})


def test_lines(tmp_path: Path) -> None:
    log = RunLog(tmp_path / "new" / "folder", 0, tensorboard=False)
    log.write(report(5, 0.1), evaluated=False)
    log.write(report(10, 0.2), evaluated=True)
    size = log.size()
    log.close()
    path = tmp_path / "new" / "folder" / "log.jsonl"
    assert size == path.stat().st_size
    common = {"learning_rate": 1e-3, "steps_per_second": 12.346}
    assert [json.loads(line) for line in path.read_text().splitlines()] == [
        {"step": 5, "loss": 0.1, **common},
        {"step": 10, "loss": 0.2, **common, "validation": {"pair_auc": 0.75}},
    ]


def test_lines_are_on_disk_at_once(tmp_path: Path) -> None:
    log = RunLog(tmp_path, 0, tensorboard=False)
    log.write(report(5), evaluated=False)
    assert [line["step"] for line in log_lines(tmp_path)] == [5]
    log.close()


def test_lines_past_the_checkpoint_are_written_again(tmp_path: Path) -> None:
    log = RunLog(tmp_path, 0, tensorboard=False)
    log.write(report(5), evaluated=False)
    kept = log.size()
    for step in (10, 15):
        log.write(report(step), evaluated=False)
    log.close()
    resumed = RunLog(tmp_path, kept, tensorboard=False)
    resumed.write(report(10, 0.9), evaluated=False)
    resumed.close()
    assert [(line["step"], line["loss"]) for line in log_lines(tmp_path)] == [(5, 0.5), (10, 0.9)]


def test_size_after_lines_were_cut_off(tmp_path: Path) -> None:
    """A run may be stopped before its first report: its checkpoint must know the true size."""
    log = RunLog(tmp_path, 0, tensorboard=False)
    log.write(report(5), evaluated=False)
    kept = log.size()
    log.write(report(10), evaluated=False)
    log.close()
    resumed = RunLog(tmp_path, kept, tensorboard=False)
    assert resumed.size() == kept == (tmp_path / "log.jsonl").stat().st_size
    resumed.close()


def test_a_log_that_was_deleted_begins_anew(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        train(make_model(), InterruptedTask(TASK, 15), CONFIG, tmp_path)
    (tmp_path / "log.jsonl").unlink()
    finished("gnn", CONFIG, tmp_path, resume=True)
    assert b"\x00" not in (tmp_path / "log.jsonl").read_bytes()
    assert [line["step"] for line in log_lines(tmp_path)][-2:] == [20, 30]


def test_a_file_where_the_folder_should_be(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("something")
    with pytest.raises(StorageError, match=r"cannot write into .*taken: File exists"):
        RunLog(tmp_path / "taken", 0, tensorboard=False)


def test_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Full(io.BytesIO):
        def flush(self) -> None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "open", lambda *arguments, **options: Full())
    log = RunLog(tmp_path, 0, tensorboard=False)
    with pytest.raises(StorageError, match="cannot write the log: No space left on device"):
        log.write(report(5), evaluated=False)


def scalars(folder: Path) -> dict[str, list[tuple[int, float]]]:
    """Everything in the folder's event files."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(folder))
    events.Reload()
    return {
        tag: [(event.step, pytest.approx(event.value)) for event in events.Scalars(tag)]
        for tag in events.Tags()["scalars"]
    }


def test_tensorboard_holds_what_the_log_holds(tmp_path: Path) -> None:
    finished("gnn", CONFIG, tmp_path, tensorboard=True)
    assert len(list(tmp_path.glob("events.out.tfevents.*"))) == 1
    lines, curves = log_lines(tmp_path), scalars(tmp_path)
    assert set(curves) == {"loss", "pair_auc", "triplet_accuracy"}
    assert curves["loss"] == [(line["step"], line["loss"]) for line in lines]
    assert curves["pair_auc"] == [(30, lines[-1]["validation"]["pair_auc"])]


def test_tensorboard_of_a_run_that_was_stopped(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        train(make_model(), InterruptedTask(TASK, 18), CONFIG, tmp_path, tensorboard=True)
    lines = log_lines(tmp_path)
    assert lines
    assert scalars(tmp_path)["loss"] == [(line["step"], line["loss"]) for line in lines]


def test_no_event_files_without_the_option(tmp_path: Path) -> None:
    finished("gnn", CONFIG, tmp_path)
    assert sorted(os.listdir(tmp_path)) == ["checkpoint.safetensors", "log.jsonl", "model"]


def test_tensorboard_that_is_not_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocked: Any = None
    for name in [*sys.modules, "tensorboard", "torch.utils.tensorboard"]:
        if name.startswith(("tensorboard", "torch.utils.tensorboard")):
            monkeypatch.setitem(sys.modules, name, blocked)
    with pytest.raises(MissingDependencyError, match=r"pip install 'graphkin\[tensorboard\]'"):
        finished("gnn", CONFIG, tmp_path, tensorboard=True)
