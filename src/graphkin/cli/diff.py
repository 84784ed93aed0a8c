"""``diff``: two binaries, function by function."""

from __future__ import annotations

from typing import Annotated

import typer

from graphkin.cli.exit_codes import exit_with
from graphkin.cli.options import (
    TRAINED_MODEL,
    Backend,
    Html,
    Json,
    OutputFile,
    Raw,
    checked_backend,
    show_warnings,
)
from graphkin.cli.search_options import ExitCode, Format, MinProbability, chosen_format

IgnoreNames = Annotated[
    bool,
    typer.Option(
        "--ignore-names", help="Pair functions by their code alone, also where both have a name."
    ),
]
MIN_PROBABILITY = 0.1
"""That of :mod:`graphkin.library.diff.diff`, which takes long to import."""


def register(app: typer.Typer) -> None:
    """Adds the verb to the application."""
    app.command("diff")(diff)


def diff(
    old: Annotated[str, typer.Argument(help="The old binary.")],
    new: Annotated[str, typer.Argument(help="The new one, of whatever compiler or processor.")],
    min_probability: MinProbability = MIN_PROBABILITY,
    ignore_names: IgnoreNames = False,
    model: Annotated[str, TRAINED_MODEL] = "functions",
    format_: Format = None,
    output: OutputFile = None,
    html: Html = None,
    backend: Backend = "auto",
    raw: Raw = None,
    as_json: Json = False,
    exit_code: ExitCode = False,
) -> None:
    """Say of every function of two binaries what became of it.

    A function is identical, the same, changed, removed or added; none is paired twice. Formats:
    table, json, csv, html.
    """
    from graphkin._support.files import write_atomically
    from graphkin._support.progress import steps
    from graphkin.library.diff.diff import diff as run
    from graphkin.library.diff.side_by_side import changed_side_by_side
    from graphkin.results.diff_formats import DIFF_FORMATS

    chosen = chosen_format(DIFF_FORMATS, format_, "table", output, html, as_json=as_json)
    reader = checked_backend(backend, raw)
    with steps() as on_step:
        result = run(
            old,
            new,
            model,
            min_probability=min_probability,
            by_name=not ignore_names,
            backend=reader,
            on_step=on_step,
        )
        comparisons = {}
        if chosen == "html" or html is not None:
            on_step("reading the changed functions again")
            comparisons = changed_side_by_side(result, reader)
    show_warnings((*result.skipped, *result.warnings))
    if html is not None:
        write_atomically(html, DIFF_FORMATS["html"](result, comparisons).encode())
    text = DIFF_FORMATS[chosen](result, comparisons)
    if output is None:
        typer.echo(text, nl=False)
    else:
        write_atomically(output, text.encode())
    is_equal = result.count("identical") == len(result.pairs) == result.left.functions
    has_change = not is_equal or bool(result.added)
    exit_with(has_hit=exit_code and has_change, is_partial=False)
