"""Connections that cost a server nothing but a place: how long they may wait, and how many.

A client may send the head of its request a byte at a time, or connect and say nothing. Such
connections are closed after a while, and before that as soon as their place is needed.
"""

from __future__ import annotations

import asyncio
from typing import cast

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

CONNECTIONS = 256
PER_ADDRESS = CONNECTIONS // 2
"""Connections of one address; the others are for everyone else."""
HEAD_SECONDS = 10.0
"""For the head of a request to arrive, from its first byte, or from the connection on."""


class BoundedConnection(H11Protocol):
    """One connection."""

    _timer: asyncio.TimerHandle | None = None
    _since = 0.0
    """When it began to wait for the head of a request, or got one."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._watch()
        self._make_room()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch()

    def connection_lost(self, error: Exception | None) -> None:
        super().connection_lost(error)
        self._stop_timer()

    @property
    def _is_waiting(self) -> bool:
        """Whether no whole head of a request has come that is not answered yet."""
        return self.conn.their_state is h11.IDLE

    def _watch(self) -> None:
        if not self._is_waiting:
            self._stop_timer()
        elif self._timer is None:
            self._since = self.loop.time()
            self._timer = self.loop.call_later(HEAD_SECONDS, self.transport.close)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _make_room(self) -> None:
        """Closes the connection of this address that has waited longest, where it has too many."""
        own = [
            connection
            for connection in cast("set[BoundedConnection]", self.connections)
            if _address(connection) == _address(self) and not connection.transport.is_closing()
        ]
        if len(own) > PER_ADDRESS:
            waiting = (connection for connection in own if connection._is_waiting)
            min(waiting, key=lambda connection: connection._since).transport.close()


def _address(connection: H11Protocol) -> str | None:
    return None if connection.client is None else connection.client[0]
