"""The progress of a training run on stderr."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import TYPE_CHECKING, Self

from graphkin._support.progress import status_bar

if TYPE_CHECKING:
    from graphkin.learning.training.log import Report


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

    def __call__(self, report: Report) -> None:
        metrics = "  ".join(f"{_short(key)} {v:.3f}" for key, v in report.validation.items())
        status = f"{report.steps_per_second:.1f} steps/s  loss {report.loss:.4f}  {metrics}"
        self._bar.update(self._task, completed=report.step, status=status)
        # Without a terminal the bar is silent, and a line for each evaluation stands in.
        if not sys.stderr.isatty() and report.validation != self._shown:
            self._shown = report.validation
            print(f"step {report.step}/{report.steps}  {status}", file=sys.stderr, flush=True)


def _short(metric: str) -> str:
    return {"pair_auc": "AUC", "triplet_accuracy": "triplets"}.get(metric, metric)
