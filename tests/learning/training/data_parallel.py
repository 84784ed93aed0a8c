"""One process of a data-parallel run, started by torchrun: see test_processes.py.

Every part writes what this process saw into its own file, so that the test can compare.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from torch import distributed

from graphkin.cli.main import main
from graphkin.learning.training import train
from tests.learning.training.runs import TASK, InterruptedTask, checkpoint_document, weights
from tests.learning.training.test_distributed import COURSES, LONG, double_model, options


def keep_one_group() -> None:
    """torchrun's store serves one group of processes: the runs of this program share it."""
    start = distributed.init_process_group

    def start_once(backend: str) -> None:
        if not distributed.is_initialized():
            start(backend)

    distributed.init_process_group = start_once
    distributed.destroy_process_group = lambda: None


def run(folder: Path, rank: int) -> dict[str, Any]:
    """All parts, in the same order in each process; returns what is to be compared."""
    seen: dict[str, Any] = {"reports": {}}
    for name, course in COURSES.items():
        model = double_model(name, seed=rank)
        steps: list[int] = []
        seen["reports"][name] = steps
        home = folder / f"rank{rank}" / name
        train(model, TASK, course, home, on_report=lambda report, to=steps: to.append(report.step))
        safetensors.torch.save_file(weights(model), folder / f"{name}-{rank}.safetensors")

    output = io.StringIO()
    sys.argv = ["graphkin", *options(folder / "shared")]
    with contextlib.redirect_stdout(output), contextlib.suppress(SystemExit):
        main()
    seen["output"] = output.getvalue()

    # Only the second process is asked to stop.
    task = InterruptedTask(TASK, 6 if rank == 1 else -1, signal.SIGTERM)
    try:
        train(double_model("gnn", seed=0), task, LONG, folder / "stopped")
        seen["stopped"] = None
    except KeyboardInterrupt:
        distributed.barrier()
        seen["stopped"] = checkpoint_document(folder / "stopped")["state"]["step"]
    distributed.barrier()
    model = double_model("gnn", seed=rank)
    train(model, TASK, LONG, folder / "stopped", resume=True)
    safetensors.torch.save_file(weights(model), folder / f"resumed-{rank}.safetensors")
    return seen


if __name__ == "__main__":
    torch.set_num_threads(1)
    keep_one_group()
    place, number = Path(sys.argv[1]), int(os.environ["RANK"])
    (place / f"seen-{number}.json").write_text(json.dumps(run(place, number)))
    distributed.barrier()
