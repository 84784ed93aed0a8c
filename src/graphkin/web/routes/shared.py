"""What the routes have in common."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Depends

from graphkin.web.schema import Error
from graphkin.web.server import Server, server_of

Here = Annotated[Server, Depends(server_of)]
"""The server, for a route that asks for it."""

ERRORS: dict[int | str, dict[str, Any]] = {
    400: {"model": Error, "description": "A value that is not allowed; the message names it."},
    401: {"model": Error, "description": "The token is missing or wrong."},
    403: {"model": Error, "description": "Not from here, or not on a read-only server."},
    404: {"model": Error, "description": "Not known, or no longer."},
    422: {"model": Error, "description": "A file or a function that cannot be worked on."},
    503: {"model": Error, "description": "Too much to do; try again."},
    504: {"model": Error, "description": "It took too long."},
}
