"""``scan``: every function of some binaries against a library."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from graphkin.cli.filters import with_filter
from graphkin.cli.library import GraphsFolder, LibraryArgument, open_library
from graphkin.cli.options import Backend, Json
from graphkin.cli.reporting import (
    ExitCode,
    FormatOption,
    MinProbability,
    Output,
    QueryMinBlocks,
    Rerank,
    Top,
    chosen_format,
    finish,
    report_on,
    write_report,
)

if TYPE_CHECKING:
    from graphkin.library.records import Filter


def register(app: typer.Typer) -> None:
    """Adds the verb to the application."""
    app.command("scan")(with_filter(scan))


def scan(
    library: LibraryArgument,
    targets: Annotated[list[str], typer.Argument(help="Binaries, or single BINARY:FUNCTION.")],
    where: Filter,
    min_probability: MinProbability = 0.5,
    top: Top = 3,
    rerank: Rerank = 20,
    format_: FormatOption = None,
    output: Output = None,
    html: Annotated[
        Path | None, typer.Option(help="Write the report as one HTML file, too.")
    ] = None,
    query_min_blocks: QueryMinBlocks = 5,
    backend: Backend = "auto",
    graphs_folder: GraphsFolder = None,
    exit_code: ExitCode = False,
    as_json: Json = False,
) -> None:
    """Look up every function of the given binaries, and list probable matches."""
    from graphkin.library.records import SearchOptions

    chosen = chosen_format(format_, as_json, "table")
    options = SearchOptions(top, rerank, where, min_probability, evidence=rerank > 0)
    with open_library(library, graphs_folder) as opened:
        report = report_on(
            opened, library, targets, options, backend=backend, min_blocks=query_min_blocks
        )
    if html is not None:
        write_report(report, "html", html)
    write_report(report, chosen, output)
    finish(report, exit_code)
