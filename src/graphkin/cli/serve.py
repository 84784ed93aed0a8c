"""``serve``: a page and a JSON API over a library."""

from __future__ import annotations

import json
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

import typer

from graphkin.cli.library import GraphsFolder, library_exists
from graphkin.cli.options import Json
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
        typer.Argument(help="A library; without one, an empty one that ends with the server."),
    ] = None,
    host: Annotated[
        str, typer.Option(help="Address to listen on; any but this machine's needs a token.")
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(help="Port to listen on; 0 for any that is free.", min=0, max=65535)
    ] = 8000,
    token: Annotated[
        str | None,
        typer.Option(
            envvar="GRAPHKIN_TOKEN",
            help="What clients must know; by default one is made where it is needed.",
        ),
    ] = None,
    create: Annotated[
        bool, typer.Option("--create", help="Make the library where it does not exist.")
    ] = False,
    demo: Annotated[
        bool, typer.Option("--demo", help="Fill the library of this server with samples.")
    ] = False,
    read_only: Annotated[
        bool, typer.Option("--read-only", help="Nothing is added or removed by the page.")
    ] = False,
    upload_mb: Annotated[int, typer.Option(help="Largest file that is taken.", min=1)] = 256,
    seconds: Annotated[float, typer.Option(help="Time to read one file.", min=1)] = 120.0,
    memory_mb: Annotated[int, typer.Option(help="Memory to read one file.", min=64)] = 2048,
    graphs_folder: GraphsFolder = None,
    as_json: Json = False,
) -> None:
    """Serve a page to search, compare and scan with, and the same as a JSON API."""
    from graphkin.web.limits import ServerLimits
    from graphkin.web.run import address_of, bind, checked_token, run
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
        place = library
        if place is None:
            home = stack.enter_context(TemporaryDirectory(prefix="graphkin-library-"))
            place = str(Path(home, "demo.kin" if demo else "temporary.kin"))
        index = stack.enter_context(_opened(place, create or library is None, graphs_folder))
        if demo:
            _fill(index)
        address = address_of(listener, host)
        page = address if secret is None else f"{address}#token={secret}"
        if as_json:
            found = {"address": address, "token": secret, "library": place, "entries": len(index)}
            typer.echo(json.dumps(found))
        else:
            held = plural(len(index), "function")
            name = "a temporary library" if library is None else place
            typer.echo(f"{name} with {held}; the API is described at {address}api/docs")
            typer.echo(f"open {page} in a browser; Ctrl-C ends the server")
        temporary = library is None
        run(index, Options(place, temporary, read_only, secret, limits=limits), listener)


def _opened(library: str, create: bool, graphs_folder: Path | None) -> Library:
    from graphkin.library.library import Library

    if library_exists(library, graphs_folder):
        return Library.open(library, graphs_folder=graphs_folder)
    if not create:
        raise FormatError(
            f"there is no library {library}; `graphkin index` makes one, and --create an empty one"
        )
    return Library.create(library, graphs_folder=graphs_folder)


def _fill(index: Library) -> None:
    from graphkin.library.indexing.samples import index_samples

    index_samples(index)
