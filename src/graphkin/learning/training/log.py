"""What a run says of itself: reports, the JSONL log, and TensorBoard by option."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from graphkin.errors import MissingDependencyError, StorageError

LOG_FILE = "log.jsonl"


@dataclass(frozen=True)
class Report:
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
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._file = (folder / LOG_FILE).open("ab")
            # Lines past the checkpoint come from steps that are computed again.
            self._file.truncate(min(keep_bytes, self._file.tell()))
            self._file.seek(0, os.SEEK_END)
        except OSError as error:
            raise StorageError(f"cannot write into {folder}: {error.strerror}") from error
        self._board = None if board is None else board(str(folder))

    def write(self, report: Report, evaluated: bool) -> None:
        line: dict[str, Any] = {
            "step": report.step,
            "loss": report.loss,
            "learning_rate": report.learning_rate,
            "steps_per_second": round(report.steps_per_second, 3),
        }
        if evaluated:
            line["validation"] = report.validation
        try:
            self._file.write(json.dumps(line).encode() + b"\n")
            self._file.flush()
        except OSError as error:
            raise StorageError(f"cannot write the log: {error.strerror}") from error
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
