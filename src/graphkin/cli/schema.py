"""``schema``: the JSON schema of what graphkin prints with ``--json``."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from graphkin.errors import ConfigError


def register(app: typer.Typer) -> None:
    """Adds the verb to the application."""
    app.command("schema")(schema)


def schema(
    document: Annotated[
        str | None, typer.Argument(help="Name of one document; by default all of them.")
    ] = None,
) -> None:
    """Print the JSON schema of result documents."""
    from graphkin.results.document import DOCUMENTS, all_schemas, schema_of

    if document is not None and document not in DOCUMENTS:
        raise ConfigError(
            f"there is no document {document!r}; choose one of {', '.join(DOCUMENTS)}"
        )
    content = all_schemas() if document is None else schema_of(document)
    typer.echo(json.dumps(content, indent=2))
