"""``search`` and ``scan`` in a library of graphs of your own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import typer

from graphkin.cli.graph_options import AttributeOptions
from graphkin.cli.search_options import MIN_PROBABILITY, RERANK
from graphkin.errors import ConfigError, GraphkinError
from graphkin.results.text import printable

if TYPE_CHECKING:
    from graphkin.library.library import Library
    from graphkin.library.records import SearchOptions
    from graphkin.results.document import Report, SearchedFile

OF_CODE = ("sarif", "cyclonedx", "known")
"""Formats that speak of code, and have nothing to say of other graphs."""


def graph_report(
    library: Library,
    name: str,
    targets: Sequence[str],
    options: SearchOptions,
    attributes: AttributeOptions,
    formats: Sequence[str],
) -> tuple[Report, bool]:
    """Looks up the graphs of files; says, too, whether all that was named was read."""
    from graphkin import __version__
    from graphkin._support.progress import counter
    from graphkin.library.own_graphs import graph_queries
    from graphkin.library.scan import look_up
    from graphkin.results.document import Report, Tool

    for chosen in formats:
        if chosen in OF_CODE:
            raise ConfigError(f"the format {chosen} is about code; choose another for graphs")
    if library.model.matcher is None:
        if options.rerank not in (0, RERANK):
            raise ConfigError(
                f"{name} was made without a matcher, so that nothing can be reranked; index with "
                "--matcher, or leave --rerank out"
            )
        options = replace(options, rerank=0, evidence=False)
    if options.min_probability not in (0, MIN_PROBABILITY):
        typer.echo(
            "graphkin: hits among graphs have no probability, so --min-probability leaves nothing "
            "out",
            err=True,
        )
    files: list[SearchedFile] = []
    failures: list[GraphkinError] = []
    queries = graph_queries(
        library, targets, attributes.names(library.embedder), files=files, on_error=failures.append
    )
    if len(failures) == len(targets) == 1:
        raise failures[0]
    for error in failures:
        typer.echo(f"graphkin: {printable(str(error))}", err=True)
    if len(failures) == len(targets):
        raise typer.Exit(failures[0].exit_code)
    with counter("searching") as progress:
        results = tuple(look_up(library, queries, options, progress=progress))
    report = Report(
        tool=Tool(version=__version__),
        library=name,
        model=str(library.model_id),
        options=options.to_dict(),
        results=results,
        files=tuple(files),
        skipped=tuple(map(str, failures)),
    )
    return report, not failures
