"""``index``: add the functions of binaries, or graphs of your own, to a library."""

from __future__ import annotations

import json
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from graphkin.cli.exit_codes import exit_with, is_incomplete
from graphkin.cli.graph_options import AttributeOptions
from graphkin.cli.options import (
    MIN_BLOCKS,
    TRAINED_MODEL,
    AddTag,
    Backend,
    GraphsFolder,
    Jobs,
    Json,
    Matcher,
    MinBlocks,
    Raw,
    Seconds,
    checked_backend,
    checked_jobs,
    parse_tags,
    show_low_coverage,
    show_skipped,
    show_warnings,
    with_groups,
)
from graphkin.errors import ConfigError, FormatError, GraphkinError
from graphkin.results.text import plural

if TYPE_CHECKING:
    from graphkin.library.indexing.writer import IndexSummary
    from graphkin.library.library import Library


def register(app: typer.Typer) -> None:
    """Adds the verb to the application."""
    app.command("index")(with_groups(index))


def index(
    paths: Annotated[
        list[str],
        typer.Argument(
            metavar="LIBRARY PATH...",
            help="The library, created if it does not exist; then binaries, containers, folders, "
            "corpora. BINARY:FUNCTION adds one function, - reads a list from stdin. Files and "
            "folders of graphs, with a model of your own graphs.",
        ),
    ],
    to: Annotated[
        str | None, typer.Option(help="The library, if it is not the first argument.")
    ] = None,
    add_tag: AddTag = None,
    model: Annotated[str | None, TRAINED_MODEL] = None,
    matcher: Matcher = None,
    min_blocks: MinBlocks = MIN_BLOCKS,
    jobs: Jobs = None,
    ray: Annotated[
        str | None, typer.Option(help="Use Ray: local, or the address of a cluster.")
    ] = None,
    backend: Backend = "auto",
    raw: Raw = None,
    seconds: Seconds = 600.0,
    named_only: Annotated[
        bool, typer.Option("--named-only", help="Leave out functions whose names nobody knows.")
    ] = False,
    approximate: Annotated[
        bool,
        typer.Option(
            help="Create a library with approximate search: faster beyond 10 million functions."
        ),
    ] = False,
    graphs_folder: GraphsFolder = None,
    as_json: Json = False,
    *,
    attributes: AttributeOptions,
) -> None:
    """Add the functions of binaries to a library; files already indexed are skipped.

    A new library is made for --model, by default functions; an existing one keeps its own.
    A model that was trained on your own graphs makes a library of graphs, read from graph files.
    The exit code is 21 if some input could not be read, and 11 if none could.
    """
    from graphkin._support.progress import counter
    from graphkin.binaries.backends.base import Limits
    from graphkin.library.engines.open import exists
    from graphkin.library.indexing.index import index_paths
    from graphkin.library.own_graphs import index_graphs

    library, sources = (to, paths) if to is not None else (paths[0], paths[1:])
    sources = [line for path in sources for line in (_from_stdin() if path == "-" else [path])]
    if not sources:
        raise ConfigError(f"name what to add to {library}: graphkin index LIBRARY PATH...")
    tags = parse_tags(add_tag or [])
    reader, processes = checked_backend(backend, raw), checked_jobs(jobs)
    is_new = not exists(library)
    total: int | None = None
    try:
        with _open_or_create(
            library, model, matcher, sources, approximate, graphs_folder
        ) as opened:
            what = "function" if opened.model.reads_functions else "graph"
            try:
                with counter("indexing files") as progress:
                    if what == "graph":
                        summary = index_graphs(
                            opened,
                            sources,
                            names=attributes.names(opened.embedder),
                            tags=tags,
                            progress=progress,
                        )
                    else:
                        summary = index_paths(
                            opened,
                            sources,
                            tags=tags,
                            jobs=processes,
                            min_blocks=min_blocks,
                            backend=reader,
                            limits=Limits(seconds=seconds),
                            ray=ray,
                            named_only=named_only,
                            progress=progress,
                        )
            except KeyboardInterrupt:
                typer.echo("graphkin: interrupted; the same command goes on from here", err=True)
                raise typer.Exit(130) from None
            finally:
                with suppress(GraphkinError):
                    total = len(opened)
    finally:
        if is_new and total == 0:
            _remove_empty(library)
    show_skipped(summary.skipped)
    show_low_coverage(summary.coverage.low)
    show_warnings(summary.warnings)
    if as_json:
        typer.echo(json.dumps({"library": library, "total": total, **_document(summary)}))
    elif what == "graph":
        tagged = f", {summary.tagged:,} tagged" if tags else ""
        typer.echo(
            f"{library}: {plural(summary.added, 'graph')} added, {total or 0:,} in all; "
            f"{summary.known:,} known{tagged}, {len(summary.skipped):,} skipped"
        )
    else:
        tagged = f", {summary.tagged:,} tagged" if tags else ""
        unnamed = f"{summary.unnamed:,} without names, " if named_only else ""
        rate = summary.rates().get("total", 0.0)
        from graphkin.binaries.coverage import coverage_percent

        coverage = summary.coverage
        covered = (
            f", {coverage_percent(coverage.share)} of their code" if coverage.code_bytes else ""
        )
        typer.echo(
            f"{library}: {plural(summary.added, 'function')} added, {total or 0:,} in all; "
            f"{summary.known:,} known{tagged}, "
            f"{summary.small:,} smaller than {plural(min_blocks, 'block')}, "
            f"{unnamed}{len(summary.skipped):,} skipped; {plural(summary.files, 'file')}{covered}, "
            f"{summary.known_files:,} known; {rate:,.0f} functions/s"
        )
    has_unread = any(item.has_code for item in summary.skipped)
    if has_unread and not (summary.functions or summary.small or summary.known_files):
        raise typer.Exit(FormatError.exit_code)
    exit_with(has_hit=False, is_partial=is_incomplete(summary.skipped, sources))


def _document(summary: IndexSummary) -> dict[str, Any]:
    from graphkin.results.coverage import total_document

    return {
        **vars(summary),
        "skipped": [item._asdict() for item in summary.skipped],
        "coverage": total_document(summary.coverage),
        "rates": summary.rates(),
    }


def _from_stdin() -> list[str]:
    return [line for line in (text.rstrip("\r\n") for text in sys.stdin) if line]


def _open_or_create(
    library: str,
    model: str | None,
    matcher: str | None,
    sources: list[str],
    approximate: bool,
    graphs_folder: Path | None,
) -> Library:
    from graphkin.graphs.converters.graph_files import is_graph_file
    from graphkin.library.engines.open import exists
    from graphkin.library.library import DEFAULT_MODEL, Library
    from graphkin.library.models import SearchModel

    if exists(library):
        if matcher is not None:
            raise ConfigError(f"{library} exists and keeps its models; leave --matcher out")
        return Library.open(library, model, graphs_folder=graphs_folder)
    made_by = SearchModel.load(model or DEFAULT_MODEL, matcher)
    graphs = next((source for source in sources if is_graph_file(source)), None)
    if made_by.reads_functions and graphs is not None:
        raise ConfigError(
            f"{graphs} holds graphs, and the model {made_by.model_id.name} reads functions of "
            "binaries; name one of your own: --model FOLDER, as `graphkin train graphs` writes it"
        )
    return Library.create(library, made_by, approximate=approximate, graphs_folder=graphs_folder)


def _remove_empty(library: str) -> None:
    """Removes a file that was made for this run, and that nothing was added to."""
    if Path(library).is_file():
        for ending in ("", "-wal", "-shm"):
            Path(library + ending).unlink(missing_ok=True)
