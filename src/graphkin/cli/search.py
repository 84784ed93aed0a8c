"""``search``: which functions of a library are the same code as this one?"""

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
    app.command("search")(with_groups(search))


def search(
    library: LibraryArgument,
    target: Annotated[
        str, typer.Argument(help="BINARY:FUNCTION or BINARY:0x1234; BINARY looks up all of it.")
    ],
    top: Top = 10,
    rerank: Rerank = RERANK,
    min_probability: MinProbability = MIN_PROBABILITY,
    *,
    where: FilterOptions,
    report: ReportOptions,
) -> None:
    """Find the kin of a function in a library: nearest codes first, then reranked by matching."""
    from graphkin.library.records import SearchOptions

    options = SearchOptions(top, rerank, where.filter(), min_probability, evidence=rerank > 0)
    report_and_exit(library, [target], options, report, "hits")
