"""``compare``: two functions, or two graphs, side by side."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from graphkin.cli.graph_options import AttributeOptions
from graphkin.cli.options import (
    TRAINED_MODEL,
    Backend,
    Html,
    Json,
    Matcher,
    Plot,
    Raw,
    checked_backend,
    show_warnings,
    with_groups,
)
from graphkin.errors import ConfigError


def register(app: typer.Typer) -> None:
    """Adds the verb to the application."""
    app.command("compare")(with_groups(compare))


def compare(
    left: Annotated[
        str,
        typer.Argument(help="BINARY:FUNCTION or BINARY:0x1234; a graph file, or FILE:NAME."),
    ],
    right: Annotated[str, typer.Argument(help="The other function or graph, likewise.")],
    model: Annotated[str, TRAINED_MODEL] = "functions",
    matcher: Matcher = None,
    html: Html = None,
    plot: Plot = None,
    backend: Backend = "auto",
    raw: Raw = None,
    as_json: Json = False,
    *,
    attributes: AttributeOptions,
) -> None:
    """Compare two functions: how alike they are, and which block matches which.

    --plot draws the attention between their blocks. Graphs of your own take the --model that was
    trained on such graphs, and are compared node by node.
    """
    from graphkin._support.files import write_atomically
    from graphkin.library.compare import compare as run
    from graphkin.results.drawing.pictures import picture_ending
    from graphkin.results.html.comparison import comparison_page
    from graphkin.results.render import to_json
    from graphkin.results.tables import comparison_text

    if plot is not None:
        picture_ending(plot)
    if _are_graphs(left, right, model):
        _compare_graphs(left, right, model, matcher, attributes, html, plot, as_json=as_json)
        return
    if matcher is not None:
        raise ConfigError("--matcher is for graphs of your own; functions have one in their model")
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


def _are_graphs(left: str, right: str, model: str) -> bool:
    """Whether a model reads graphs; files of graphs with one that reads functions are refused."""
    from graphkin.graphs.converters.graph_files import is_graph_file
    from graphkin.models.saving import saved_vocabulary

    vocabulary = saved_vocabulary(model)
    if vocabulary is None or vocabulary.reads == "labels":
        return True
    for side in (left, right):
        if is_graph_file(side) or is_graph_file(side.rpartition(":")[0]):
            raise ConfigError(
                f"{side} holds graphs, and the model {model} reads functions of binaries; name one "
                "of your own: --model FOLDER, as `graphkin train graphs` writes it"
            )
    return False


def _compare_graphs(
    left: str,
    right: str,
    model: str,
    matcher: str | None,
    attributes: AttributeOptions,
    html: Path | None,
    plot: Path | None,
    *,
    as_json: bool,
) -> None:
    from graphkin._support.files import write_atomically
    from graphkin.library.compare_graphs import GraphModels, compare_graphs
    from graphkin.results.graph_text import graph_comparison_text
    from graphkin.results.html.comparison import graph_comparison_page
    from graphkin.results.render import to_json

    names = attributes.names(GraphModels.of(model, matcher).judge)
    compared = compare_graphs(left, right, model, matcher, names=names)
    if html is not None:
        page = graph_comparison_page(compared.document, *compared.sides, compared.maps)
        write_atomically(html, page.encode())
    if plot is not None:
        from graphkin.results.drawing.attention import plot_attention

        first, second = compared.sides
        plot_attention(first.graph, second.graph, compared.maps, plot)
    if as_json:
        typer.echo(to_json(compared.document))
    else:
        typer.echo(graph_comparison_text(compared.document, *compared.sides))
