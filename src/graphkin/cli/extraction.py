"""``extract`` and ``corpus``: from binaries to a corpus of functions, and what it holds."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Annotated

import typer

from graphkin.cli.options import Json
from graphkin.errors import ConfigError

corpus_app = typer.Typer(no_args_is_help=True, help="Look into a corpus of functions.")

MAX_WARNINGS = 20


def register(app: typer.Typer) -> None:
    """Adds the verbs to the application."""
    app.command("extract")(extract)
    corpus_app.command("stats")(stats)
    app.add_typer(corpus_app, name="corpus")


def extract(
    binaries: Annotated[
        list[Path],
        typer.Argument(readable=False, help="Binaries, or folders that are searched for them."),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="The corpus, a new folder.")],
    min_blocks: Annotated[
        int, typer.Option(help="Leave smaller functions out, by basic blocks.", min=1)
    ] = 5,
    jobs: Annotated[int | None, typer.Option(help="Processes; by default one a core.")] = None,
    backend: Annotated[str, typer.Option(help="auto, native, smda or binexport.")] = "auto",
    seconds: Annotated[float, typer.Option(help="Time for one file.", min=0)] = 600.0,
    as_json: Json = False,
) -> None:
    """Read the functions of binaries into a corpus: one control-flow graph each."""
    from graphkin.binaries.extraction import extract as run
    from graphkin.binaries.native import Limits
    from graphkin.binaries.sources import BACKENDS
    from graphkin.progress import counter

    if backend not in BACKENDS:
        raise ConfigError(f"unknown backend {backend!r}; choose one of {', '.join(BACKENDS)}")
    if jobs is not None and jobs < 1:
        raise ConfigError(f"--jobs must be at least 1, got {jobs}")
    try:
        with counter("reading files") as progress:
            summary = run(
                binaries,
                output,
                min_blocks=min_blocks,
                jobs=jobs or _cores(),
                backend=backend,
                limits=Limits(seconds=seconds),
                progress=progress,
            )
    except KeyboardInterrupt:
        typer.echo("graphkin: interrupted; nothing was written", err=True)
        raise typer.Exit(130) from None
    for skip in summary.skipped[:MAX_WARNINGS]:
        typer.echo(f"graphkin: {skip}", err=True)
    if len(summary.skipped) > MAX_WARNINGS:
        left = len(summary.skipped) - MAX_WARNINGS
        typer.echo(f"graphkin: and {left} more skipped; --json lists them all", err=True)
    if as_json:
        document = {
            "corpus": str(output),
            "files": summary.files,
            "functions": summary.functions,
            "small": summary.small,
            "skipped": [skip._asdict() for skip in summary.skipped],
        }
        typer.echo(json.dumps(document))
        return
    typer.echo(
        f"{output}: {summary.functions:,} functions of {summary.files} files; "
        f"{summary.small:,} smaller than {min_blocks} blocks left out, "
        f"{len(summary.skipped):,} skipped"
    )


def _cores() -> int:
    """The cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def stats(
    corpus: Annotated[Path, typer.Argument(help="A folder that extract wrote.")],
    plot: Annotated[
        Path | None, typer.Option(help="Draw the sizes of the graphs into this file.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Count builds, functions, sizes and mnemonics of a corpus."""
    from graphkin.binaries.corpus import FunctionCorpus
    from graphkin.tasks.corpus_stats import corpus_stats

    opened = FunctionCorpus.open(corpus)
    if plot is not None:
        from graphkin.plots import plot_sizes

        plot_sizes(opened.store.node_counts, opened.store.edge_counts, plot)
        typer.echo(f"picture: {plot}", err=True)
    found = corpus_stats(opened)
    typer.echo(json.dumps(found.to_dict()) if as_json else found.to_text())
