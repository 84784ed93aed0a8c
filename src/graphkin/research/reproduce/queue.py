"""The queue of long runs: several processes may work on it, and anybody may ask how far it is."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from graphkin._support.files import locked
from graphkin.errors import StorageError
from graphkin.learning.training.log import LOG_FILE
from graphkin.research.reproduce.experiment import Experiment
from graphkin.research.reproduce.results import result_file

LOCK_FILE = ".lock"
CURVE_STEPS = (5_000, 10_000, 20_000, 50_000, 100_000, 200_000, 500_000)
"""Where the text of a learning curve has its points."""

State = Literal["done", "running", "paused", "waiting"]


@dataclass(frozen=True)
class RunStatus:
    """How far a run is."""

    name: str
    state: State
    step: int
    steps: int
    hours_left: float | None
    """At the speed of the last report; None before the first."""
    curve: tuple[dict[str, Any], ...]
    """Validation metrics, each with its ``step``."""

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


@contextmanager
def own_run(folder: Path) -> Iterator[bool]:
    """Whether a run's folder is free, and if so, keeps others from it."""
    folder.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        try:
            lock = locked(folder / LOCK_FILE, f"{folder} is being trained by another process")
            stack.enter_context(lock)
            is_free = True
        except StorageError:
            is_free = False
        yield is_free


def queue_status(experiments: Sequence[Experiment], runs: Path, results: Path) -> list[RunStatus]:
    """How far each run of the queue is, in their order."""
    return [_status(experiment, runs, results) for experiment in experiments]


def _status(experiment: Experiment, runs: Path, results: Path) -> RunStatus:
    folder, steps = runs / experiment.name, int(experiment.training["steps"])
    reports = list(_reports(folder / LOG_FILE))
    last = reports[-1] if reports else {"step": 0}
    speed = float(last.get("steps_per_second", 0.0))
    state: State = "waiting"
    if result_file(results, experiment.name).exists():
        state = "done"
    elif (folder / LOCK_FILE).exists():
        with own_run(folder) as is_free:
            state = ("paused" if reports else "waiting") if is_free else "running"
    elif reports:
        state = "paused"
    curve = tuple(
        {"step": report["step"], **report["validation"]}
        for report in reports
        if "validation" in report
    )
    left = None if not speed else (steps - last["step"]) / speed / 3600
    return RunStatus(experiment.name, state, last["step"], steps, left, curve)


def _reports(path: Path) -> Iterator[dict[str, Any]]:
    """The lines of a log; the last may be half written."""
    if not path.exists():
        return
    for line in path.read_bytes().splitlines():
        try:
            yield json.loads(line)
        except ValueError:
            return


def status_text(queue: Sequence[RunStatus]) -> str:
    """A line for each run, with points of its learning curve: pair AUC / triplet accuracy."""
    counts = {state: sum(run.state == state for run in queue) for state in _STATES}
    lines = [", ".join(f"{count} {state}" for state, count in counts.items())]
    width = max((len(run.name) for run in queue), default=0)
    for run in queue:
        left = (
            "" if run.hours_left is None or run.state == "done" else f"{run.hours_left:.1f} h left"
        )
        lines.append(
            f"{run.name:<{width}}  {run.state:<8} {run.step:>7,}/{run.steps:<7,} {left}".rstrip()
        )
        points = "  ".join(_point(run, step) for step in CURVE_STEPS if step <= run.step)
        if points:
            lines.append(f"{'':<{width}}  {points}")
    return "\n".join(lines)


def _point(run: RunStatus, step: int) -> str:
    """The curve at a step, or at the last evaluation before it."""
    before = [point for point in run.curve if point["step"] <= step]
    if not before:
        return f"{step // 1000}k -"
    values = " / ".join(
        f"{100 * value:.1f}" for metric, value in before[-1].items() if metric != "step"
    )
    return f"{step // 1000}k {values}"


_STATES: tuple[State, ...] = ("done", "running", "paused", "waiting")
