"""``show``: one function of a binary as text, DOT, JSON or a picture; or all in a list."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Annotated

import typer

from graphkin.cli.exit_codes import exit_with, is_incomplete
from graphkin.cli.options import Backend, Json, Plot, Raw, checked_backend, show_coverage
from graphkin.errors import ConfigError, NoCodeError
from graphkin.results.text import printable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from graphkin.binaries.backends.choose import Backend as BackendName
    from graphkin.binaries.coverage import Coverage
    from graphkin.binaries.function import Function, Skipped
    from graphkin.binaries.targets import Target


def register(app: typer.Typer) -> None:
    """Adds the verb to the application."""
    app.command("show")(show)


def show(
    target: Annotated[
        str,
        typer.Argument(
            help="BINARY:FUNCTION or BINARY:0x1234; a file or folder alone lists functions."
        ),
    ],
    dot: Annotated[bool, typer.Option("--dot", help="Print the graph for Graphviz.")] = False,
    plot: Plot = None,
    backend: Backend = "auto",
    raw: Raw = None,
    as_json: Json = False,
) -> None:
    """Show the control flow of a function: its blocks, instructions and edges."""
    from graphkin.binaries.inputs import find_target
    from graphkin.binaries.reading import read_function
    from graphkin.results.function import code_of, to_dot, to_text
    from graphkin.results.render import to_json

    if dot and as_json:
        raise ConfigError("--dot and --json both print on stdout; choose one")
    reader = checked_backend(backend, raw)
    parsed = find_target(target)
    if parsed.function is None:
        if dot or plot is not None:
            option = "--dot" if dot else "--plot"
            raise ConfigError(f"{option} takes one function; name it: {target}:FUNCTION")
        _list_functions(parsed, reader, as_json)
        return
    function = read_function(parsed, reader)
    if plot is not None:
        from graphkin.results.drawing.function import plot_function

        plot_function(function, plot)
    if dot:
        typer.echo(_printable(to_dot(function)))
    elif as_json:
        typer.echo(to_json(code_of(function, picture=None if plot is None else str(plot))))
    elif plot is not None:
        typer.echo(str(plot))
    else:
        typer.echo(_printable(to_text(function)))


def _list_functions(target: Target, backend: BackendName, as_json: bool) -> None:
    from graphkin.binaries.function import MEMBER
    from graphkin.binaries.reading import read_functions
    from graphkin.results.coverage import coverage_of
    from graphkin.results.document import FunctionList, FunctionSummary
    from graphkin.results.function import summary_of
    from graphkin.results.render import to_json

    skipped: list[Skipped] = []
    coverages: list[Coverage] = []
    rows: list[FunctionSummary] = []
    binary = None
    functions = read_functions(target, backend=backend, skipped=skipped, coverages=coverages)
    for function in _without_error(functions):
        if as_json:
            rows.append(summary_of(function))
            continue
        # Members of a static library are told apart by their addresses and source files.
        named = MEMBER.sub(r"\1", function.binary)
        if named != binary:
            if named != target._replace(member=None).binary:
                gap = "" if binary is None else "\n"
                typer.echo(f"{gap}{printable(named)}")
            binary = named
            typer.echo(f"{'address':>12} {'bytes':>8} {'blocks':>7} {'edges':>7}  name")
        size, blocks, edges = function.size, len(function.blocks), len(function.edges)
        origin = f"  ({function.unit})" if function.unit else ""
        name = printable(f"{function.shown}{origin}")
        typer.echo(f"{function.address:#12x} {size:>8} {blocks:>7} {edges:>7}  {name}")
    if as_json:
        covered = tuple(map(coverage_of, coverages))
        document = FunctionList(binary=target.binary, functions=tuple(rows), coverage=covered)
        typer.echo(to_json(document))
    for item in skipped:
        typer.echo(f"graphkin: {printable(str(item))}", err=True)
    show_coverage(coverages)
    exit_with(has_hit=False, is_partial=is_incomplete(skipped))


def _without_error(functions: Iterator[Function]) -> Iterator[Function]:
    """Ends where a file has no code, which was noted as skipped; there is nothing to show."""
    with suppress(NoCodeError):
        yield from functions


def _printable(text: str) -> str:
    """Lines that do nothing to a terminal but show: names in a binary are its maker's choice."""
    return "\n".join(map(printable, text.split("\n")))
