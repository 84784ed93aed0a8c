"""The command line. Verbs only: what they do lives in the modules they call.

Data goes to stdout, progress and errors to stderr; torch is imported inside the commands,
so that ``--help`` answers at once. One file for each group of verbs.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from graphkin.cli import (
    build as building,
)
from graphkin.cli import (
    calibrate as calibration,
)
from graphkin.cli import (
    compare,
    edits,
    functions,
    index,
    library,
    meshes,
    reproduce,
    scan,
    schema,
    search,
    serve,
    show,
)
from graphkin.cli import (
    extract as extraction,
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
train_app = typer.Typer(no_args_is_help=True, help="Train a model on a task.")
eval_app = typer.Typer(no_args_is_help=True, help="Evaluate a model, or a baseline, on a task.")
app.add_typer(train_app, name="train")
app.add_typer(eval_app, name="eval")
train_app.command("edits")(edits.train_edits)
eval_app.command("edits")(edits.eval_edits)
train_app.command("functions")(functions.train_functions)
eval_app.command("functions")(functions.eval_functions)
train_app.command("meshes")(meshes.train_meshes)
eval_app.command("meshes")(meshes.eval_meshes)
building.register(app)
calibration.register(app)
extraction.register(app)
index.register(app)
library.register(app)
reproduce.register(app)
search.register(app)
scan.register(app)
compare.register(app)
schema.register(app)
serve.register(app)
show.register(app)


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
