"""``serve``: a page and a JSON API over a library."""

from __future__ import annotations

import json
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

import typer

from graphkin.cli.options import GraphsFolder, Json, Seconds
from graphkin.errors import ConfigError, FormatError
from graphkin.results.text import plural

if TYPE_CHECKING:
    from graphkin.library.library import Library

MEGABYTE = 1 << 20


def register(app: typer.Typer) -> None:
    """Adds the verb to the application."""
    app.command("serve")(serve)


def serve(
    library: Annotated[
        str | None,
        typer.Argument(help="Library to serve; by default an empty one that ends with the server."),
    ] = None,
    host: Annotated[
        str, typer.Option(help="Address to listen on; beyond localhost a token is needed.")
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(help="Port to listen on; 0 takes any free port.", min=0, max=65535)
    ] = 8000,
    token: Annotated[
        str | None,
        typer.Option(
            envvar="GRAPHKIN_TOKEN",
            help="Access token; made automatically when listening beyond localhost.",
        ),
    ] = None,
    create: Annotated[
        bool, typer.Option("--create", help="Create the library if it does not exist.")
    ] = False,
    demo: Annotated[
        bool, typer.Option("--demo", help="Serve a temporary library filled with samples.")
    ] = False,
    read_only: Annotated[
        bool, typer.Option("--read-only", help="Refuse to add or remove functions.")
    ] = False,
    upload_mb: Annotated[int, typer.Option(help="Largest upload, in MB.", min=1)] = 256,
    seconds: Seconds = 120.0,
    memory_mb: Annotated[int, typer.Option(help="Memory to read one file, in MB.", min=64)] = 2048,
    graphs_folder: GraphsFolder = None,
    as_json: Json = False,
) -> None:
    """Serve a web page and a JSON API to search, compare and scan."""
    from graphkin.web.limits import ServerLimits
    from graphkin.web.serve import address_of, bind, checked_token, run
    from graphkin.web.server import Options

    if demo and library is not None:
        raise ConfigError("--demo has a library of its own; leave LIBRARY out")
    if read_only and (create or (library is None and not demo)):
        raise ConfigError("--read-only is for a library that exists; nothing could be added to it")
    secret = checked_token(host, token)
    limits = ServerLimits(
        upload_bytes=upload_mb * MEGABYTE,
        extraction_seconds=seconds,
        extraction_bytes=memory_mb * MEGABYTE,
    )
    with ExitStack() as stack:
        listener = stack.enter_context(bind(host, port))
        path = library
        if path is None:
            home = stack.enter_context(TemporaryDirectory(prefix="graphkin-library-"))
            path = str(Path(home, "demo.kin" if demo else "temporary.kin"))
        opened = stack.enter_context(_opened(path, create or library is None, graphs_folder))
        if demo:
            _fill(opened)
        address = address_of(listener, host)
        page = address if secret is None else f"{address}#token={secret}"
        if as_json:
            started = {"address": address, "token": secret, "library": path, "entries": len(opened)}
            typer.echo(json.dumps(started))
        else:
            what = "function" if opened.model.reads_functions else "graph"
            functions = plural(len(opened), what)
            name = "a temporary library" if library is None else path
            typer.echo(f"{name} with {functions}; the API is described at {address}api/docs")
            typer.echo(f"open {page} in a browser; Ctrl-C ends the server")
        temporary = library is None
        run(opened, Options(path, temporary, read_only, secret, limits=limits), listener)


def _opened(library: str, create: bool, graphs_folder: Path | None) -> Library:
    from graphkin.library.engines.open import exists
    from graphkin.library.library import Library

    if exists(library):
        return Library.open(library, graphs_folder=graphs_folder)
    if not create:
        raise FormatError(
            f"there is no library {library}; create it with `graphkin index`, or an "
            "empty one with --create"
        )
    return Library.create(library, graphs_folder=graphs_folder)


def _fill(library: Library) -> None:
    from graphkin.library.indexing.index import index_samples

    index_samples(library)
