"""``mcp``: tools for agents."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer

from graphkin.cli.options import GraphsFolder, Seconds
from graphkin.errors import MissingDependencyError


def register(app: typer.Typer) -> None:
    """Adds the verb to the application."""
    app.command("mcp")(serve_agents)


def serve_agents(
    folders: Annotated[
        list[Path], typer.Argument(help="Folders whose files agents may read, and no others.")
    ],
    library: Annotated[
        str | None, typer.Option(help="Library for search and scan; it is only read.")
    ] = None,
    seconds: Seconds = 120.0,
    graphs_folder: GraphsFolder = None,
) -> None:
    """Offer tools to agents over the Model Context Protocol, on stdin and stdout.

    Tools: list_files, show, compare, search, scan, diff, library_content. It needs the extra mcp.
    """
    try:
        import mcp.server  # noqa: F401
    except ImportError as error:
        raise MissingDependencyError(
            "this needs the Python SDK of the Model Context Protocol; install it with "
            "pip install 'graphkin[mcp]'"
        ) from error
    from graphkin.agents.allowed_folders import AllowedFolders
    from graphkin.agents.server import create_server
    from graphkin.agents.toolbox import Toolbox
    from graphkin.library.library import Library
    from graphkin.web.limits import ServerLimits

    allowed = AllowedFolders(folders)
    with ExitStack() as stack:
        opened = None
        if library is not None:
            opened = stack.enter_context(Library.open(library, graphs_folder=graphs_folder))
        limits = ServerLimits(extraction_seconds=seconds)
        create_server(Toolbox(allowed, opened, limits)).run()
