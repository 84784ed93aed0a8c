"""``extract`` and ``corpus``: from binaries to a corpus of functions, and what it holds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from graphkin.cli.exit_codes import exit_with, is_incomplete
from graphkin.cli.options import (
    MIN_BLOCKS,
    Backend,
    Jobs,
    Json,
    MinBlocks,
    OutputFolder,
    Plot,
    Raw,
    Seconds,
    checked_backend,
    checked_jobs,
    show_low_coverage,
    show_skipped,
)


def register(app: typer.Typer) -> None:
    """Adds the verbs to the application."""
    app.command("extract")(extract)
    group = typer.Typer(no_args_is_help=True, help="Look into a corpus of functions.")
    group.command("stats")(stats)
    app.add_typer(group, name="corpus")


def extract(
    binaries: Annotated[
        list[Path],
        typer.Argument(readable=False, help="Binaries, containers, or folders to search for both."),
    ],
    output: OutputFolder,
    min_blocks: MinBlocks = MIN_BLOCKS,
    evidence: Annotated[
        bool,
        typer.Option(
            "--evidence",
            help="Keep operations, strings, imports and constants in place of mnemonics.",
        ),
    ] = False,
    jobs: Jobs = None,
    backend: Backend = "auto",
    raw: Raw = None,
    seconds: Seconds = 600.0,
    as_json: Json = False,
) -> None:
    """Read the functions of binaries into a corpus, a new folder: one control-flow graph each.

    The exit code is 21 if some file could not be read, and 11 if none could.
    """
    from graphkin._support.progress import counter
    from graphkin.binaries.backends.base import Limits
    from graphkin.binaries.coverage import coverage_percent
    from graphkin.binaries.extraction import extract as run
    from graphkin.results.coverage import total_document

    reader, processes = checked_backend(backend, raw), checked_jobs(jobs)
    try:
        with counter("reading files") as progress:
            summary = run(
                binaries,
                output,
                min_blocks=min_blocks,
                jobs=processes,
                backend=reader,
                features="evidence" if evidence else "mnemonics",
                limits=Limits(seconds=seconds),
                progress=progress,
            )
    except KeyboardInterrupt:
        typer.echo("graphkin: interrupted; nothing was written", err=True)
        raise typer.Exit(130) from None
    show_skipped(summary.skipped)
    show_low_coverage(summary.coverage.low)
    if as_json:
        document = {
            "corpus": str(output),
            "files": summary.files,
            "functions": summary.functions,
            "small": summary.small,
            "skipped": [skip._asdict() for skip in summary.skipped],
            "coverage": total_document(summary.coverage),
        }
        typer.echo(json.dumps(document))
    else:
        typer.echo(
            f"{output}: {summary.functions:,} functions of {summary.files} files; "
            f"{summary.small:,} smaller than {min_blocks} blocks left out, "
            f"{len(summary.skipped):,} skipped; {coverage_percent(summary.coverage.share)} of the "
            "code is inside functions"
        )
    exit_with(has_hit=False, is_partial=is_incomplete(summary.skipped))


def stats(
    corpus: Annotated[Path, typer.Argument(help="Corpus: a folder that extract wrote.")],
    plot: Plot = None,
    as_json: Json = False,
) -> None:
    """Count builds, functions, sizes and mnemonics of a corpus; --plot draws the sizes."""
    from graphkin.binaries.corpus import FunctionCorpus
    from graphkin.research.tasks.functions.stats import corpus_stats

    opened = FunctionCorpus.open(corpus)
    if plot is not None:
        from graphkin.results.drawing.charts import plot_sizes

        plot_sizes(opened.store.node_counts, opened.store.edge_counts, plot)
        typer.echo(f"picture: {plot}", err=True)
    statistics = corpus_stats(opened)
    typer.echo(json.dumps(statistics.to_dict()) if as_json else statistics.to_text())
