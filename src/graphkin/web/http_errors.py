"""Errors of the API, and which HTTP status each error of graphkin has."""

from __future__ import annotations

from typing import Any

from graphkin.errors import (
    ConfigError,
    FormatError,
    GraphError,
    GraphkinError,
    ModelError,
    StorageError,
)
from graphkin.library.engines.base import UnknownIdError
from graphkin.results.text import printable
from graphkin.web.api_documents import Error


class RequestError(GraphkinError):
    """A request that cannot be answered, with its HTTP status."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class UnknownError(RequestError):
    """Something that is not here, or no longer."""

    def __init__(self, message: str) -> None:
        super().__init__(404, message)


class BusyError(RequestError):
    """More work than the server takes on."""

    def __init__(self, message: str) -> None:
        super().__init__(503, message)


STATUSES: tuple[tuple[type[GraphkinError], int], ...] = (
    (UnknownIdError, 404),
    (ConfigError, 400),
    (FormatError, 422),
    (GraphError, 422),
    (ModelError, 422),
    (StorageError, 503),
)


def status_of(error: GraphkinError) -> int:
    """The HTTP status that tells what kind of error it is."""
    if isinstance(error, RequestError):
        return error.status
    return next((status for kind, status in STATUSES if isinstance(error, kind)), 500)


def document(error: GraphkinError) -> dict[str, dict[str, str]]:
    """An error as JSON."""
    return body(type(error).__name__, str(error))


def body(kind: str, message: str) -> dict[str, dict[str, str]]:
    return {"error": {"kind": kind, "message": printable(message)}}


def text_of(*media_types: str) -> dict[int | str, dict[str, Any]]:
    """What a route answers whose documents are of these types; errors are JSON still, where its
    ``response_class`` is ``Response``."""
    text = {"schema": {"type": "string"}}
    return {200: {"content": {name: {} if "json" in name else text for name in media_types}}}


ERRORS: dict[int | str, dict[str, Any]] = {
    400: {"model": Error, "description": "A value that is not allowed; the message names it."},
    401: {"model": Error, "description": "The token is missing or wrong."},
    403: {"model": Error, "description": "Not from here, or not on a read-only server."},
    404: {"model": Error, "description": "Not known, or no longer."},
    413: {"model": Error, "description": "More bytes than may be sent."},
    422: {"model": Error, "description": "A file or a function that cannot be worked on."},
    503: {"model": Error, "description": "Too much to do; try again."},
    504: {"model": Error, "description": "It took too long."},
}
"""What a route may answer besides its document."""
