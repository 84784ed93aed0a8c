"""What a run says of itself: reports, the JSONL log, TensorBoard by option, and progress."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from graphkin._support.files import storing
from graphkin._support.progress import status_bar
from graphkin.errors import MissingDependencyError

LOG_FILE = "log.jsonl"


@dataclass(frozen=True)
class StepReport:
    """What a run says of itself as it goes on."""

    step: int
    steps: int
    loss: float
    """Mean since the last report."""
    learning_rate: float
    steps_per_second: float
    seconds_left: float
    validation: dict[str, float]
    """The latest validation metrics; empty before the first evaluation."""


class RunLog:
    """``log.jsonl``, and TensorBoard's event files by option."""

    def __init__(self, folder: Path, keep_bytes: int, tensorboard: bool) -> None:
        board = _summary_writer() if tensorboard else None
        with storing(f"write into {folder}"):
            folder.mkdir(parents=True, exist_ok=True)
            self._file = (folder / LOG_FILE).open("ab")
            # Lines past the checkpoint come from steps that are computed again.
            self._file.truncate(min(keep_bytes, self._file.tell()))
            self._file.seek(0, os.SEEK_END)
        self._board = None if board is None else board(str(folder))

    def write(self, report: StepReport, evaluated: bool) -> None:
        line: dict[str, Any] = {
            "step": report.step,
            "loss": report.loss,
            "learning_rate": report.learning_rate,
            "steps_per_second": round(report.steps_per_second, 3),
        }
        if evaluated:
            line["validation"] = report.validation
        with storing("write the log"):
            self._file.write(json.dumps(line).encode() + b"\n")
            self._file.flush()
        if self._board is not None:
            scalars = {"loss": report.loss, **(report.validation if evaluated else {})}
            for name, value in scalars.items():
                self._board.add_scalar(name, value, report.step)

    def size(self) -> int:
        return self._file.tell()

    def close(self) -> None:
        self._file.close()
        if self._board is not None:
            self._board.close()


def _summary_writer() -> Any:
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError as error:
        raise MissingDependencyError(
            "TensorBoard is not installed; pip install 'graphkin[tensorboard]'"
        ) from error
    return SummaryWriter


class TrainingProgress:
    """Shows the reports of a training run; use it as a context."""

    def __init__(self, steps: int) -> None:
        self._steps = steps
        self._bar = status_bar()
        self._shown: dict[str, float] = {}

    def __enter__(self) -> Self:
        self._bar.start()
        self._task = self._bar.add_task("training", total=self._steps, status="")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._bar.stop()

    def __call__(self, report: StepReport) -> None:
        metrics = "  ".join(f"{_short(key)} {v:.3f}" for key, v in report.validation.items())
        status = f"{report.steps_per_second:.1f} steps/s  loss {report.loss:.4f}  {metrics}"
        self._bar.update(self._task, completed=report.step, status=status)
        # Without a terminal the bar is silent, and a line for each evaluation stands in.
        if not sys.stderr.isatty() and report.validation != self._shown:
            self._shown = report.validation
            print(f"step {report.step}/{report.steps}  {status}", file=sys.stderr, flush=True)


def _short(metric: str) -> str:
    return {"pair_auc": "AUC", "triplet_accuracy": "triplets"}.get(metric, metric)
