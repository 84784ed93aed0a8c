"""The command line. Verbs only: what they do lives in the modules they call.

Data goes to stdout, progress and errors to stderr; torch is imported inside the commands,
so that ``--help`` answers at once. One file for each verb.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from graphkin.cli import (
    build,
    calibrate,
    evaluate,
    extract,
    library,
    reproduce,
    search,
    serve,
    show,
    train,
)
from graphkin.cli.options import Json
from graphkin.errors import GraphkinError

app = typer.Typer(
    name="graphkin",
    help="Learns how similar graphs are, and finds a graph's kin.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
for verbs in (build, extract, library, reproduce, search, serve, show, train, evaluate, calibrate):
    verbs.register(app)


@app.callback(invoke_without_command=True)
def root(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    """Learns how similar graphs are, and finds a graph's kin."""
    if version:
        from graphkin import __version__

        typer.echo(__version__)
        raise typer.Exit


@app.command()
def demo(
    output: Annotated[Path, typer.Option(help="Folder for library and pages.")] = Path(
        "demo-output"
    ),
    as_json: Json = False,
) -> None:
    """Find a known function in a stripped firmware, on bundled samples, in less than a minute."""
    from graphkin.cli.demo import run_demo

    result = run_demo(output)
    typer.echo(json.dumps(result.to_dict()) if as_json else result.to_text())


def main() -> None:
    """The entry point: a graphkin error becomes one line on stderr and its own exit code."""
    try:
        app(standalone_mode=True)
    except GraphkinError as error:
        typer.echo(f"graphkin: {error}", err=True)
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        typer.echo("graphkin: interrupted", err=True)
        sys.exit(130)
    except (MemoryError, RuntimeError) as error:
        if isinstance(error, RuntimeError) and "allocate memory" not in str(error):
            raise
        typer.echo("graphkin: out of memory; use smaller graphs, batches or models", err=True)
        sys.exit(1)
