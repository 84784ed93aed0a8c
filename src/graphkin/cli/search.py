"""``search``: which functions of a library are the same code as this one?"""

from __future__ import annotations

from typing import Annotated

import typer

from graphkin.cli.filters import FilterOptions
from graphkin.cli.library import GraphsFolder, LibraryArgument, open_library
from graphkin.cli.options import Backend, Json, with_groups
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
    app.command("search")(with_groups(search))


def search(
    library: LibraryArgument,
    target: Annotated[
        str, typer.Argument(help="BINARY:FUNCTION or BINARY:0x1234; BINARY looks up all of it.")
    ],
    where: FilterOptions,
    top: Top = 10,
    rerank: Rerank = 100,
    min_probability: MinProbability = 0.0,
    query_min_blocks: QueryMinBlocks = 5,
    backend: Backend = "auto",
    graphs_folder: GraphsFolder = None,
    format_: FormatOption = None,
    output: Output = None,
    exit_code: ExitCode = False,
    as_json: Json = False,
) -> None:
    """Find the kin of a function in a library: nearest codes first, then reranked by matching."""
    from graphkin.library.records import SearchOptions

    chosen = chosen_format(format_, as_json, "hits")
    options = SearchOptions(top, rerank, where.filter(), min_probability, evidence=rerank > 0)
    with open_library(library, graphs_folder) as opened:
        report = report_on(
            opened, library, [target], options, backend=backend, min_blocks=query_min_blocks
        )
    write_report(report, chosen, output)
    finish(report, exit_code)
