"""``names``: names for the functions of a stripped binary."""

from __future__ import annotations

from typing import Annotated

import typer

from graphkin.cli.options import (
    TRAINED_MODEL,
    Backend,
    Json,
    OutputFile,
    Raw,
    checked_backend,
    show_warnings,
)
from graphkin.cli.search_options import Format, MinProbability, chosen_format

MIN_PROBABILITY = 0.7
"""That of :mod:`graphkin.library.naming`, which takes long to import."""


def register(app: typer.Typer) -> None:
    """Adds the verb to the application."""
    app.command("names")(names)


def names(
    old: Annotated[
        str, typer.Argument(help="A binary with names, or a library: of SDKs, static libraries.")
    ],
    new: Annotated[str, typer.Argument(help="The binary to name, of whatever compiler.")],
    min_probability: MinProbability = MIN_PROBABILITY,
    model: Annotated[str, TRAINED_MODEL] = "functions",
    format_: Format = None,
    output: OutputFile = None,
    backend: Backend = "auto",
    raw: Raw = None,
    as_json: Json = False,
) -> None:
    """Carry names over to the functions of a stripped binary, from another binary or a library.

    Functions that have a name keep it. Formats: table, csv, json, and scripts that can be undone:
    ghidra, ida, binja, radare2.
    """
    from graphkin._support.files import write_atomically
    from graphkin._support.progress import steps
    from graphkin.library.naming import names as run
    from graphkin.results.naming.formats import NAME_FORMATS

    chosen = chosen_format(NAME_FORMATS, format_, "table", output, as_json=as_json)
    with steps() as on_step:
        result = run(
            old,
            new,
            model,
            min_probability=min_probability,
            backend=checked_backend(backend, raw),
            on_step=on_step,
        )
    show_warnings((*result.skipped, *result.warnings))
    text = NAME_FORMATS[chosen](result)
    if output is None:
        typer.echo(text, nl=False)
    else:
        write_atomically(output, text.encode())
