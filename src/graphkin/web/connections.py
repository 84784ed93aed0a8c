"""Connections that cost a server nothing but a place: how long they may wait, and how many.

A client may send its request a byte at a time, connect and say nothing, or not read its answer.
Such connections are closed after a while, and before that as soon as their place is needed.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import cast

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from graphkin.web.guard import ADMITTED_UPLOAD

CONNECTIONS = 256
PER_ADDRESS = CONNECTIONS // 2
"""Connections of one address; the others are for everyone else."""
REQUESTS = 16 * CONNECTIONS
"""Requests in progress. A flood that makes room for its own next connection leaves requests behind
that end a moment later, and must not fill the places of others with them."""
REQUEST_SECONDS = 10.0
"""For a request to arrive, from its first byte, or from the connection on. An upload that the guard
has admitted has a time of its own."""


class BoundedConnection(H11Protocol):
    """One connection."""

    _timer: asyncio.TimerHandle | None = None
    _since = 0.0
    """When it began to wait for a request, or got one."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._start_timer()
        self._make_room()

    def handle_events(self) -> None:
        super().handle_events()
        self._watch()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._watch()

    def connection_lost(self, error: Exception | None) -> None:
        super().connection_lost(error)
        self._stop_timer()

    @property
    def _is_incomplete(self) -> bool:
        """Whether no whole request has come that is not answered yet."""
        state = self.conn.their_state
        if state is h11.SEND_BODY:
            return self.cycle.response_complete or ADMITTED_UPLOAD not in self.scope
        return state is h11.IDLE

    @property
    def _is_waiting(self) -> bool:
        """Whether it is the client's turn: to send a request, or to read the answer."""
        return self._is_incomplete or self.flow.write_paused or self.transport.is_closing()

    @property
    def _is_resting(self) -> bool:
        """Whether it is between two requests, for which it has the time of an idle connection."""
        return self.conn.their_state is h11.IDLE and not self.conn.trailing_data[0]

    def _watch(self) -> None:
        if self._is_resting:
            self._stop_timer()
            self._since = self.loop.time()
        elif not self._is_incomplete:
            self._stop_timer()
        elif self._timer is None:
            self._start_timer()

    def _start_timer(self) -> None:
        self._since = self.loop.time()
        self._timer = self.loop.call_later(REQUEST_SECONDS, self._expire)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _expire(self) -> None:
        self._timer = None
        # An upload may have been admitted since the last bytes came.
        if self._is_incomplete:
            self.transport.close()

    def _make_room(self) -> None:
        """Closes the connection that has waited longest: of this address where it has too many, or
        of the one that has most waiting ones where the server is full."""
        connections = cast("set[BoundedConnection]", self.connections)
        own = [connection for connection in connections if connection._address == self._address]
        if len(own) > PER_ADDRESS:
            _close_oldest([connection for connection in own if connection._is_waiting])
        elif len(connections) >= CONNECTIONS:
            others = [other for other in connections - {self} if other._is_waiting]
            if not others:
                # All are busy, which the answer to any request tells.
                self.limit_concurrency = 0
                return
            counts = Counter(other._address for other in others)
            most = max(counts.values())
            _close_oldest([other for other in others if counts[other._address] == most])

    @property
    def _address(self) -> str | None:
        return None if self.client is None else self.client[0]


def _close_oldest(waiting: list[BoundedConnection]) -> None:
    oldest = min(waiting, key=lambda connection: connection._since)
    # Its place is free at once, though its client reads nothing more.
    oldest.connections.discard(oldest)
    oldest.transport.abort()
