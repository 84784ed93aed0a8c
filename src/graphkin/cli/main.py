"""The command line. Verbs only: what they do lives in the modules they call.

Data goes to stdout, progress and errors to stderr. A file for each verb, or for a few that are
alike; only the one that is asked for is imported, and torch only inside the commands that need it,
so that a command answers at once.
"""

from __future__ import annotations

import errno
import os
import select
import signal
import sys
import threading
from importlib import import_module
from typing import Annotated, TextIO

import typer

from graphkin.errors import GraphkinError, StorageError

VERBS = {
    "demo": ("demo",),
    "index": ("index",),
    "search": ("search", "scan"),
    "compare": ("compare",),
    "diff": ("diff",),
    "names": ("names",),
    "show": ("show",),
    "library": ("library",),
    "extract": ("extract", "corpus"),
    "build": ("build",),
    "train": ("train",),
    "evaluate": ("eval",),
    "calibrate": ("calibrate",),
    "graphs": ("encode", "predict", "rank"),
    "reproduce": ("reproduce",),
    "serve": ("serve",),
    "agents": ("mcp",),
    "schema": ("schema",),
}
"""The verbs of each file, in the order of the help."""
CLOSED_PIPE = 141
"""As of a program that SIGPIPE ends."""
READING = {"index", "search", "scan", "compare", "diff", "names", "show"}
"""Verbs that read binaries, by processes whose start takes as long as that of the command."""


def application(verb: str | None = None) -> typer.Typer:
    """The command line with all its verbs, or with those of the file that one of them is in."""
    app = typer.Typer(
        name="graphkin",
        help="Learns how similar graphs are, and finds a graph's kin.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
    )
    for file, verbs in VERBS.items():
        if verb is None or verb in verbs:
            import_module(f"graphkin.cli.{file}").register(app)
    app.callback(invoke_without_command=True)(root)
    return app


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
    verb = sys.argv[1] if len(sys.argv) > 1 else None
    if verb in READING and "--help" not in sys.argv:
        from graphkin.binaries.workers import start_server

        start_server()
    is_known = any(verb in verbs for verbs in VERBS.values())
    try:
        application(verb if is_known else None)(standalone_mode=True)
    except GraphkinError as error:
        from graphkin.results.text import printable

        for line in str(error).split("\n"):
            typer.echo(f"graphkin: {printable(line)}", err=True)
        sys.exit(error.exit_code)
    except OSError as error:
        if error.errno != errno.ENOSPC or error.filename is not None:
            raise
        typer.echo("graphkin: cannot write the output: the disk is full", err=True)
        sys.exit(StorageError.exit_code)
    except SystemExit as error:
        broken = error.__context__
        if not isinstance(broken, BrokenPipeError):
            raise
        if not _is_unread(sys.__stdout__):
            raise broken from None  # a pipe of ours, which nobody should pass over
        sys.exit(CLOSED_PIPE)
    except KeyboardInterrupt:
        typer.echo("graphkin: interrupted", err=True)
        sys.exit(130)
    except (MemoryError, RuntimeError) as error:
        if isinstance(error, RuntimeError) and "allocate memory" not in str(error):
            raise
        typer.echo("graphkin: out of memory; use smaller graphs, batches or models", err=True)
        sys.exit(1)


def _is_unread(stream: TextIO | None) -> bool:
    """Whether the program that read an output has ended, as ``head`` does."""
    if stream is None or not hasattr(select, "poll"):
        return True
    if os.path.samestat(os.fstat(stream.fileno()), os.stat(os.devnull)):
        return True  # where rich leads the output once its reader has ended
    waiting = select.poll()
    waiting.register(stream, select.POLLOUT)
    lost = select.POLLERR | select.POLLHUP | select.POLLNVAL
    return any(event & lost for _, event in waiting.poll(0))


if __name__ == "__main__":  # python -m graphkin.cli.main, as torchrun starts it
    main()
