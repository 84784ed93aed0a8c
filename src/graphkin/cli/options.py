"""Options that several verbs share."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from graphkin.errors import ConfigError

if TYPE_CHECKING:
    from graphkin.binaries.backends.choose import Backend as BackendName
    from graphkin.binaries.function import Skipped

MAX_WARNINGS = 20

Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
Threads = Annotated[int, typer.Option(help="Threads of matrix products.", min=1)]
Config = Annotated[
    Path | None, typer.Option(help="TOML file with the tables model, train and task.")
]
Setting = Annotated[
    list[str] | None,
    typer.Option("--set", help="Any setting: model.node_dim=64, learning_rate=1e-3, ..."),
]
RunFolder = Annotated[Path, typer.Option(help="Folder of the run: log, checkpoint, weights.")]
Steps = Annotated[int | None, typer.Option(help="Training steps.")]
BatchSize = Annotated[int | None, typer.Option(help="Pairs or triplets in a batch.")]
Mode = Annotated[str | None, typer.Option(help="pairs or triplets.")]
Seed = Annotated[int | None, typer.Option(help="Seed of weights and data.")]
Resume = Annotated[bool, typer.Option(help="Go on from the folder's checkpoint.")]
Device = Annotated[str, typer.Option(help="cpu, cuda, cuda:1, ...")]
Tensorboard = Annotated[bool, typer.Option(help="Write TensorBoard's event files.")]
Backend = Annotated[str, typer.Option(help="What reads a binary: auto, native, smda or binexport.")]
Jobs = Annotated[int | None, typer.Option(help="Processes; by default one a core.")]


def checked_backend(name: str) -> BackendName:
    """The backend of a name."""
    from graphkin.binaries.backends.choose import BACKENDS

    found = next((backend for backend in BACKENDS if backend == name), None)
    if found is None:
        raise ConfigError(f"unknown backend {name!r}; choose one of {', '.join(BACKENDS)}")
    return found


def checked_jobs(jobs: int | None) -> int:
    """A number of processes; by default that of the cores that this one may use."""
    if jobs is not None and jobs < 1:
        raise ConfigError(f"--jobs must be at least 1, got {jobs}")
    if jobs is None and hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return jobs or os.cpu_count() or 1


def show_skipped(skipped: Sequence[Skipped]) -> None:
    """Says on stderr what could not be read."""
    for skip in skipped[:MAX_WARNINGS]:
        typer.echo(f"graphkin: {skip}", err=True)
    if len(skipped) > MAX_WARNINGS:
        left = len(skipped) - MAX_WARNINGS
        typer.echo(f"graphkin: and {left} more skipped; --json lists them all", err=True)
