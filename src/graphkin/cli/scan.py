"""``scan``: every function of some binaries against a library."""

from __future__ import annotations

from typing import Annotated

import typer

from graphkin.cli.options import LibraryArgument, with_groups
from graphkin.cli.reporting import report_and_exit
from graphkin.cli.search_options import (
    MIN_PROBABILITY,
    RERANK,
    FilterOptions,
    MinProbability,
    ReportOptions,
    Rerank,
    Top,
)


def register(app: typer.Typer) -> None:
    """Adds the verb to the application."""
    app.command("scan")(with_groups(scan))


def scan(
    library: LibraryArgument,
    targets: Annotated[
        list[str],
        typer.Argument(help="Binaries, containers, folders, or single BINARY:FUNCTION."),
    ],
    top: Top = 3,
    rerank: Rerank = RERANK,
    min_probability: MinProbability = MIN_PROBABILITY,
    *,
    where: FilterOptions,
    report: ReportOptions,
) -> None:
    """Look up every function of the given binaries, and list probable matches."""
    from graphkin.library.records import SearchOptions

    options = SearchOptions(top, rerank, where.filter(), min_probability, evidence=rerank > 0)
    report_and_exit(library, targets, options, report, "table")
