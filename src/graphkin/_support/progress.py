"""Progress on stderr: a live line on a terminal, plain lines elsewhere."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Self

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    TextColumn,
    TimeRemainingColumn,
)
from rich.progress import Progress as Bar

if TYPE_CHECKING:
    from graphkin.learning.training import Report

Progress = Callable[[int, int], None]
"""Called with (done, total) as work goes on."""

LINE_SECONDS = 15.0
"""Time between lines where there is no terminal."""


@contextlib.contextmanager
def counter(what: str) -> Iterator[Progress]:
    """A bar that is told (done, total)."""
    with _bar() as bar:
        task = bar.add_task(what, total=None, status="")
        spoken = time.monotonic()

        def show(done: int, total: int) -> None:
            nonlocal spoken
            bar.update(task, completed=done, total=total)
            # Without a terminal the bar is silent, and a line now and then stands in.
            if not sys.stderr.isatty() and time.monotonic() - spoken > LINE_SECONDS:
                spoken = time.monotonic()
                print(f"{what} {done}/{total}", file=sys.stderr, flush=True)

        yield show


class TrainingProgress:
    """Shows the reports of a training run; use it as a context."""

    def __init__(self, steps: int) -> None:
        self._steps = steps
        self._bar = _bar()
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


def _bar() -> Bar:
    return Bar(
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[status]}"),
        console=Console(stderr=True),
        disable=not sys.stderr.isatty(),
    )
