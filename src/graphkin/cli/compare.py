"""``compare``: two functions side by side."""

from __future__ import annotations

from typing import Annotated

import typer

from graphkin.cli.options import (
    TRAINED_MODEL,
    Backend,
    Html,
    Json,
    Plot,
    Raw,
    checked_backend,
    show_warnings,
)


def register(app: typer.Typer) -> None:
    """Adds the verb to the application."""
    app.command("compare")(compare)


def compare(
    left: Annotated[str, typer.Argument(help="BINARY:FUNCTION or BINARY:0x1234.")],
    right: Annotated[str, typer.Argument(help="The other function, likewise.")],
    model: Annotated[str, TRAINED_MODEL] = "functions",
    html: Html = None,
    plot: Plot = None,
    backend: Backend = "auto",
    raw: Raw = None,
    as_json: Json = False,
) -> None:
    """Compare two functions: how alike they are, and which block matches which.

    --plot draws the attention between their blocks.
    """
    from graphkin._support.files import write_atomically
    from graphkin.library.compare import compare as run
    from graphkin.results.drawing.pictures import picture_ending
    from graphkin.results.html.comparison import comparison_page
    from graphkin.results.render import to_json
    from graphkin.results.tables import comparison_text

    if plot is not None:
        picture_ending(plot)
    compared = run(left, right, model, backend=checked_backend(backend, raw))
    show_warnings(compared.document.warnings)
    if html is not None:
        page = comparison_page(compared.document, *compared.functions, compared.maps)
        write_atomically(html, page.encode())
    if plot is not None:
        from graphkin.results.drawing.attention import plot_attention

        plot_attention(*compared.graphs, compared.maps, plot)
    if as_json:
        typer.echo(to_json(compared.document))
    else:
        typer.echo(comparison_text(compared.document, *compared.functions))
