"""``search`` and ``scan``: which functions or graphs of a library are like these?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from graphkin.cli.exit_codes import exit_with, is_incomplete
from graphkin.cli.graph_options import AttributeOptions
from graphkin.cli.graph_search import graph_report
from graphkin.cli.options import (
    LibraryArgument,
    checked_backend,
    show_coverage,
    show_failures,
    show_skipped,
    show_warnings,
    with_groups,
)
from graphkin.cli.search_options import (
    MIN_PROBABILITY,
    RERANK,
    FilterOptions,
    MinProbability,
    ReportOptions,
    Rerank,
    Top,
    Without,
)
from graphkin.results.text import plural

if TYPE_CHECKING:
    from graphkin.library.library import Library
    from graphkin.library.records import SearchOptions
    from graphkin.results.document import FunctionResult, Report, SearchedFile

WORTH_A_LOOK = 0.1
"""A probability that is above that of most functions."""


def register(app: typer.Typer) -> None:
    """Adds the verbs to the application."""
    app.command("search")(with_groups(search))
    app.command("scan")(with_groups(scan))


def search(
    library: LibraryArgument,
    target: Annotated[
        str,
        typer.Argument(
            help="BINARY:FUNCTION or BINARY:0x1234; BINARY looks up all of it. In a library of "
            "graphs, a graph file, or FILE:NAME."
        ),
    ],
    top: Top = 10,
    rerank: Rerank = RERANK,
    min_probability: MinProbability = MIN_PROBABILITY,
    without: Without = None,
    *,
    attributes: AttributeOptions,
    where: FilterOptions,
    report: ReportOptions,
) -> None:
    """Find the kin of a function in a library: nearest codes first, then reranked by matching.

    A library of your own graphs is searched for the kin of a graph.

    Formats: hits, table, known, json, jsonl, csv, sarif, cyclonedx,
    html.
    """
    options = _search_options(top, rerank, min_probability, without, where)
    _report_and_exit(library, [target], options, report, attributes, "hits")


def scan(
    library: LibraryArgument,
    targets: Annotated[
        list[str],
        typer.Argument(
            help="Binaries, containers, folders, or single BINARY:FUNCTION; graph files in a "
            "library of graphs."
        ),
    ],
    top: Top = 3,
    rerank: Rerank = RERANK,
    min_probability: MinProbability = MIN_PROBABILITY,
    without: Without = None,
    *,
    attributes: AttributeOptions,
    where: FilterOptions,
    report: ReportOptions,
) -> None:
    """Look up every function of the given binaries, and list probable matches.

    Formats: table, hits, known, json, jsonl, csv, sarif, cyclonedx,
    html.
    """
    options = _search_options(top, rerank, min_probability, without, where)
    _report_and_exit(library, targets, options, report, attributes, "table")


def _search_options(
    top: int, rerank: int, min_probability: float, without: list[str] | None, where: FilterOptions
) -> SearchOptions:
    from graphkin.library.records import SearchOptions

    left_out = frozenset(without or ())
    part = where.filter()
    return SearchOptions(top, rerank, part, min_probability, evidence=rerank > 0, without=left_out)


def _report_and_exit(
    library: str,
    targets: Sequence[str],
    options: SearchOptions,
    how: ReportOptions,
    attributes: AttributeOptions,
    default_format: str,
) -> None:
    """Looks up the functions of all targets, writes what was found, and exits with its code."""
    from graphkin.library.library import Library
    from graphkin.results.render import evidence_top

    chosen = how.format(default_format)
    formats = [chosen] if how.html is None else [chosen, "html"]
    options = replace(options, evidence_top=evidence_top(formats))
    with Library.open(library, graphs_folder=how.graphs_folder) as opened:
        if opened.reads_functions:
            report, is_complete = _report(opened, targets, options, how)
        else:
            report, is_complete = graph_report(
                opened, library, targets, options, attributes, formats
            )
    if how.html is not None:
        _write(report, "html", how.html)
    _write(report, chosen, how.output)
    has_hit = how.exit_code and any(_counts(result, options) for result in report.results)
    exit_with(has_hit=has_hit, is_partial=not is_complete)


def _counts(result: FunctionResult, options: SearchOptions) -> bool:
    """Whether a function has a hit with the tags that are asked for: repaired ones have not."""
    tags = set() if options.where is None else set(options.where.tags)
    return any(tags <= hit.tags.keys() for hit in result.hits)


def _report(
    library: Library, targets: Sequence[str], options: SearchOptions, how: ReportOptions
) -> tuple[Report, bool]:
    """Looks up the functions of all targets; says, too, whether all that was named was read.

    A file that cannot be read is named on stderr, and the others go on; where none can be read,
    the command fails.
    """
    from graphkin._support.progress import counter
    from graphkin.library.report import make_report, read_targets

    if not len(library):
        typer.echo("graphkin: the library is empty; nothing can be found in it", err=True)
    backend = checked_backend(how.backend, how.raw)
    read = read_targets(library, targets, backend, how.min_blocks)
    failures = read.failures
    show_skipped(read.skipped)
    show_coverage(read.coverages)
    show_failures(failures, len(targets))
    # Files without code have nothing that could be looked up.
    has_code = not read.skipped or any(item.has_code for item in read.skipped)
    if not read.queries and (has_code or read.files):
        _explain_nothing(read.files, how.min_blocks)
    if options.min_probability and not library.model.knows_probabilities:
        typer.echo(
            "graphkin: the library's model has no calibration, so --min-probability leaves "
            "nothing out",
            err=True,
        )
    with counter("searching") as progress:
        report = make_report(
            library, read, options, min_blocks=how.min_blocks, backend=backend, progress=progress
        )
    show_warnings(report.warnings)
    _hint(report, options.min_probability)
    is_unread = is_incomplete(read.skipped, targets) or any(
        coverage.is_low for coverage in read.coverages
    )
    is_looked_up = bool(read.queries) or not (has_code or read.files)
    return report, is_looked_up and not failures and not is_unread


def _explain_nothing(files: Sequence[SearchedFile], min_blocks: int) -> None:
    """Says why there was nothing to look up."""
    small = sum(file.small for file in files)
    typer.echo(
        f"graphkin: nothing was looked up: {plural(small, 'function')} of "
        f"{plural(len(files), 'file')} found, none with {plural(min_blocks, 'basic block')} or "
        "more. Look at smaller ones with --min-blocks 1; where a file should hold more, "
        "`graphkin show BINARY` lists what was found in it",
        err=True,
    )


def _hint(report: Report, min_probability: float) -> None:
    """Says what a lower probability would show: of a single function, or where nothing is left."""
    if len(report.results) == 1 and (best := report.results[0].best_left_out) is not None:
        typer.echo(
            f"graphkin: hits less probable than {min_probability:g} are left out, the best with "
            f"{best:.3f}; --min-probability 0 lists them",
            err=True,
        )
        return
    worth = sum((result.best_left_out or 0.0) >= WORTH_A_LOOK for result in report.results)
    if worth and not any(result.hits for result in report.results):
        typer.echo(
            f"graphkin: nothing is as probable as {min_probability:g}; "
            f"--min-probability {WORTH_A_LOOK:g} lists {plural(worth, 'function')}",
            err=True,
        )


def _write(report: Report, name: str, output: Path | None) -> None:
    from graphkin._support.files import write_atomically
    from graphkin.results.render import render

    text = render(report, name)
    if output is None:
        typer.echo(text, nl=False)
    else:
        write_atomically(output, text.encode())
