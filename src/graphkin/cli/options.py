"""Options that several verbs share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

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
