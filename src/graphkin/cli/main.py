"""The command line. Verbs only: what they do lives in the modules they call.

Data goes to stdout, progress and errors to stderr; torch is imported inside the commands,
so that ``--help`` answers at once. A file for each verb, or for a
few that are alike.
"""

from __future__ import annotations

import signal
import sys
import threading
from typing import Annotated

import typer

from graphkin.cli import (
    agents,
    build,
    calibrate,
    compare,
    demo,
    diff,
    evaluate,
    extract,
    graphs,
    index,
    library,
    names,
    reproduce,
    schema,
    search,
    serve,
    show,
    train,
)
from graphkin.errors import GraphkinError

app = typer.Typer(
    name="graphkin",
    help="Learns how similar graphs are, and finds a graph's kin.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
for verb in (
    demo,
    index,
    search,
    compare,
    diff,
    names,
    show,
    library,
    extract,
    build,
    train,
    evaluate,
    calibrate,
    graphs,
    reproduce,
    serve,
    agents,
    schema,
):
    verb.register(app)


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


def main() -> None:
    """The entry point: a graphkin error becomes one line on stderr and its own exit code."""
    if threading.current_thread() is threading.main_thread():
        # An exception, so that private folders and workers are cleaned up as after Ctrl-C.
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        app(standalone_mode=True)
    except GraphkinError as error:
        from graphkin.results.text import printable

        for line in str(error).split("\n"):
            typer.echo(f"graphkin: {printable(line)}", err=True)
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        typer.echo("graphkin: interrupted", err=True)
        sys.exit(130)
    except (MemoryError, RuntimeError) as error:
        if isinstance(error, RuntimeError) and "allocate memory" not in str(error):
            raise
        typer.echo("graphkin: out of memory; use smaller graphs, batches or models", err=True)
        sys.exit(1)


if __name__ == "__main__":  # python -m graphkin.cli.main, as torchrun starts it
    main()
