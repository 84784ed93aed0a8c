"""``scan``: every function of some binaries against a library."""

from __future__ import annotations

from typing import Annotated

import typer

from graphkin.cli.filters import FilterOptions
from graphkin.cli.library import GraphsFolder, LibraryArgument, open_library
from graphkin.cli.options import Backend, Html, Json, with_groups
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


def register(app: typer.Typer) -> None:
    """Adds the verb to the application."""
    app.command("scan")(with_groups(scan))


def scan(
    library: LibraryArgument,
    targets: Annotated[list[str], typer.Argument(help="Binaries, or single BINARY:FUNCTION.")],
    where: FilterOptions,
    min_probability: MinProbability = 0.5,
    top: Top = 3,
    rerank: Rerank = 20,
    format_: FormatOption = None,
    output: Output = None,
    html: Html = None,
    query_min_blocks: QueryMinBlocks = 5,
    backend: Backend = "auto",
    graphs_folder: GraphsFolder = None,
    exit_code: ExitCode = False,
    as_json: Json = False,
) -> None:
    """Look up every function of the given binaries, and list probable matches."""
    from graphkin.library.records import SearchOptions

    chosen = chosen_format(format_, as_json, "table")
    options = SearchOptions(top, rerank, where.filter(), min_probability, evidence=rerank > 0)
    with open_library(library, graphs_folder) as opened:
        report = report_on(
            opened, library, targets, options, backend=backend, min_blocks=query_min_blocks
        )
    if html is not None:
        write_report(report, "html", html)
    write_report(report, chosen, output)
    finish(report, exit_code)
