"""``search``, ``scan`` and ``compare``: which functions are the same code as these?"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from graphkin.cli.filters import (
    ArchitectureFilter,
    BinaryFilter,
    BuildFilter,
    CompilerFilter,
    FunctionFilter,
    MaxBlocks,
    MinBlocks,
    TagFilter,
    chosen_part,
)
from graphkin.cli.library import LibraryArgument, Payloads, open_library
from graphkin.cli.options import Backend, Json, checked_backend, show_skipped
from graphkin.errors import ConfigError, GraphkinError

if TYPE_CHECKING:
    from graphkin.binaries.function import Function, Skipped
    from graphkin.library.library import Library
    from graphkin.library.records import Filter
    from graphkin.results.document import SearchResult

WORTH_A_LOOK = 0.1
"""A probability that is above that of most functions."""
FORMATS = ("table", "json", "csv", "sarif", "html")
Rerank = Annotated[
    int, typer.Option(help="Nearest candidates that the matcher scores again; 0 for none.", min=0)
]
QueryBlocks = Annotated[
    int, typer.Option("--min-blocks", help="Ask for no smaller functions of a whole file.", min=1)
]
ExitCode = Annotated[
    bool, typer.Option("--exit-code", help="Exit with 1 when something was found, else with 0.")
]
MinProbability = Annotated[
    float, typer.Option(help="Leave less probable hits out.", min=0.0, max=1.0)
]


def register(app: typer.Typer) -> None:
    """Adds the verbs to the application."""
    app.command("search")(search)
    app.command("scan")(scan)
    app.command("compare")(compare)


def search(
    library: LibraryArgument,
    target: Annotated[
        str, typer.Argument(help="BINARY:FUNCTION or BINARY:0x1234; BINARY asks for all of it.")
    ],
    top: Annotated[int, typer.Option(help="Hits of each function.", min=1)] = 10,
    rerank: Rerank = 100,
    min_probability: MinProbability = 0.0,
    min_blocks: QueryBlocks = 5,
    backend: Backend = "auto",
    function: FunctionFilter = None,
    binary: BinaryFilter = None,
    architecture: ArchitectureFilter = None,
    compiler: CompilerFilter = None,
    build: BuildFilter = None,
    tag: TagFilter = None,
    min_nodes: MinBlocks = 0,
    max_nodes: MaxBlocks = None,
    payloads: Payloads = None,
    exit_code: ExitCode = False,
    as_json: Json = False,
) -> None:
    """Find the kin of a function in a library: nearest codes first, then reranked by matching."""
    from graphkin.results.json_lines import to_json_line
    from graphkin.results.tables import search_table

    part = chosen_part(
        function=function,
        binary=binary,
        architecture=architecture,
        compiler=compiler,
        build=build,
        tag=tag,
        min_nodes=min_nodes,
        max_nodes=max_nodes,
    )
    functions = _functions([target], backend, min_blocks)
    with open_library(library, payloads) as opened:
        results = _results(opened, functions, top, rerank, part, min_probability)
    for result in results:
        typer.echo(to_json_line(result) if as_json else search_table(result))
    _finish(results, exit_code)


def scan(
    library: LibraryArgument,
    targets: Annotated[list[str], typer.Argument(help="Binaries, or single BINARY:FUNCTION.")],
    min_probability: MinProbability = 0.9,
    top: Annotated[int, typer.Option(help="Hits of each function.", min=1)] = 3,
    rerank: Rerank = 20,
    format_: Annotated[
        str | None, typer.Option("--format", help=f"{', '.join(FORMATS)}; by default a table.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write to this file, not to stdout.")
    ] = None,
    html: Annotated[
        Path | None, typer.Option(help="Write the report as one HTML file, too.")
    ] = None,
    min_blocks: QueryBlocks = 5,
    backend: Backend = "auto",
    function: FunctionFilter = None,
    binary: BinaryFilter = None,
    architecture: ArchitectureFilter = None,
    compiler: CompilerFilter = None,
    build: BuildFilter = None,
    tag: TagFilter = None,
    min_nodes: MinBlocks = 0,
    max_nodes: MaxBlocks = None,
    payloads: Payloads = None,
    exit_code: ExitCode = False,
    as_json: Json = False,
) -> None:
    """Look every function of some binaries up in a library, and list the probable kin."""
    from graphkin._support.files import write_atomically
    from graphkin.results.html.scan import scan_page

    chosen = format_ or ("json" if as_json else "table")
    if chosen not in FORMATS:
        raise ConfigError(f"unknown format {chosen!r}; choose one of {', '.join(FORMATS)}")
    if as_json and chosen != "json":
        raise ConfigError(f"--json and --format {chosen} ask for different things")
    part = chosen_part(
        function=function,
        binary=binary,
        architecture=architecture,
        compiler=compiler,
        build=build,
        tag=tag,
        min_nodes=min_nodes,
        max_nodes=max_nodes,
    )
    functions = _functions(targets, backend, min_blocks)
    with open_library(library, payloads) as opened:
        results = _results(opened, functions, top, rerank, part, min_probability)
    if html is not None:
        write_atomically(html, scan_page(results, library=library).encode())
    text = _rendered(chosen, results, library)
    if output is None:
        typer.echo(text, nl=False)
    else:
        write_atomically(output, text.encode())
    _finish(results, exit_code)


def compare(
    left: Annotated[str, typer.Argument(help="BINARY:FUNCTION or BINARY:0x1234.")],
    right: Annotated[str, typer.Argument(help="The other function, likewise.")],
    model: Annotated[
        str, typer.Option(help="A model that ships with graphkin, or a folder.")
    ] = "functions",
    html: Annotated[
        Path | None, typer.Option(help="Write the comparison as one HTML file.")
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(help="Draw the attention: a .png, .svg or .pdf file.")
    ] = None,
    backend: Backend = "auto",
    as_json: Json = False,
) -> None:
    """Compare two functions: how alike they are, and which block matches which."""
    from graphkin._support.files import write_atomically
    from graphkin.library.models import SearchModel
    from graphkin.library.scan import compare as run
    from graphkin.results.comparison import comparison_document, comparison_html, comparison_text
    from graphkin.results.drawing.files import picture_ending

    if plot is not None:
        picture_ending(plot)
    sides = [_one_function(side, backend) for side in (left, right)]
    found = run(SearchModel.load(model), *sides)
    if html is not None:
        write_atomically(html, comparison_html(found).encode())
    if plot is not None:
        from graphkin.results.drawing.attention import plot_attention

        plot_attention(*found.graphs, found.maps, plot)
    typer.echo(json.dumps(comparison_document(found)) if as_json else comparison_text(found))


def _functions(targets: Sequence[str], backend: str, min_blocks: int) -> list[Function]:
    """The functions of all targets; a file that cannot be read is named, and the others go on."""
    from graphkin.library.scan import functions_of

    reader = checked_backend(backend)
    skipped: list[Skipped] = []
    found: list[Function] = []
    failures: list[GraphkinError] = []
    for target in targets:
        try:
            found += functions_of(target, reader, min_blocks, skipped)
        except GraphkinError as error:
            failures.append(error)
            if len(targets) > 1:
                typer.echo(f"graphkin: {error}", err=True)
    show_skipped(skipped)
    if len(failures) == len(targets) == 1:
        raise failures[0]
    if len(failures) == len(targets):
        raise typer.Exit(failures[0].exit_code)
    return found


def _one_function(target: str, backend: str) -> Function:
    from graphkin.binaries.targets import find_function, parse_target

    wanted = parse_target(target)
    if wanted.function is None:
        raise ConfigError(f"name one function to compare: {target}:FUNCTION or {target}:0x1234")
    return find_function(wanted, checked_backend(backend))


def _results(
    index: Library,
    functions: Sequence[Function],
    top: int,
    rerank: int,
    part: Filter,
    min_probability: float,
) -> list[SearchResult]:
    """The hits of every function, with evidence where the matcher was asked."""
    from graphkin._support.progress import counter
    from graphkin.library.scan import explained, search_functions

    if not len(index):
        typer.echo("graphkin: the library is empty; nothing can be found in it", err=True)
    with counter("searching") as progress:
        results = search_functions(
            index, functions, top, rerank=rerank, where=part, progress=progress
        )
    if min_probability and index.model.calibration is None:
        typer.echo(
            "graphkin: the library's model has no calibration, so --min-probability leaves "
            "nothing out",
            err=True,
        )
    kept = [result.above(min_probability) for result in results]
    _hint(results, kept, min_probability)
    results = kept
    if rerank:
        with counter("explaining") as progress:
            results = explained(index, functions, results, progress)
    return results


def _hint(
    found: Sequence[SearchResult], kept: Sequence[SearchResult], min_probability: float
) -> None:
    """Says what a lower probability would list, where nothing is left."""
    less = sum(bool(result.above(WORTH_A_LOOK).hits) for result in found)
    if less and not any(result.hits for result in kept):
        typer.echo(
            f"graphkin: nothing is as probable as {min_probability:g}; "
            f"--min-probability {WORTH_A_LOOK:g} lists {less} functions",
            err=True,
        )


def _rendered(form: str, results: Sequence[SearchResult], library: str) -> str:
    """Results in one of the formats, with a line end at the end."""
    from graphkin import __version__
    from graphkin.results.csv_rows import csv_rows
    from graphkin.results.html.scan import scan_page
    from graphkin.results.json_lines import to_json_line
    from graphkin.results.sarif.log import sarif
    from graphkin.results.tables import scan_table

    if form == "json":
        return "".join(f"{to_json_line(result)}\n" for result in results)
    if form == "csv":
        return "".join(csv_rows(results))
    if form == "sarif":
        found = sarif(results, tool_version=__version__, library=library)
        return json.dumps(found, indent=1) + "\n"
    if form == "html":
        return scan_page(results, library=library)
    return scan_table(results) + "\n"


def _finish(results: Sequence[SearchResult], exit_code: bool) -> None:
    if exit_code and any(result.hits for result in results):
        raise typer.Exit(1)
