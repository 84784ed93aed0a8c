"""Runs the server until it is told to stop."""

from __future__ import annotations

import secrets
import socket
from dataclasses import replace

import uvicorn

from graphkin.errors import ConfigError, StorageError
from graphkin.library.library import Library
from graphkin.web.app import create_app
from graphkin.web.connections import CONNECTIONS, REQUESTS, BoundedConnection
from graphkin.web.guard import is_loopback
from graphkin.web.server import Options

IDLE_SECONDS = 30
GRACE_SECONDS = 5
TOKEN_LETTERS = 16
"""A token of fewer could be guessed."""


def checked_token(host: str, token: str | None) -> str | None:
    """The token to use: none on this machine alone, else the one given, or a new one."""
    if token is not None and (len(token) < TOKEN_LETTERS or not token.isascii()):
        raise ConfigError(
            f"a token needs at least {TOKEN_LETTERS} letters of ASCII; leave it out to have one "
            "made"
        )
    if token is None and not is_loopback(host):
        return secrets.token_urlsafe(24)
    return token


def bind(host: str, port: int) -> socket.socket:
    """A socket that listens, so that a port in use is known before anything is loaded."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio turns delays of small packets off only where the protocol is named.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(CONNECTIONS)
    except (OSError, OverflowError) as error:
        listener.close()
        reason = getattr(error, "strerror", None) or error
        raise StorageError(
            f"cannot listen on {host} port {port}: {reason}; choose another --port, or --host"
        ) from error
    return listener


def address_of(listener: socket.socket, host: str) -> str:
    """What a person types into a browser, on another machine where the server is for others."""
    shown = socket.gethostname() if host in ("0.0.0.0", "::") else host
    name = f"[{shown}]" if ":" in shown else shown
    return f"http://{name}:{listener.getsockname()[1]}/"


def run(library: Library, options: Options, listener: socket.socket) -> None:
    """Serves until Ctrl-C."""
    config = uvicorn.Config(
        create_app(library, replace(options, warm=True)),
        http=BoundedConnection,
        log_level="warning",
        limit_concurrency=REQUESTS,
        timeout_keep_alive=IDLE_SECONDS,
        timeout_graceful_shutdown=GRACE_SECONDS,
        server_header=False,
    )
    uvicorn.Server(config).run(sockets=[listener])
