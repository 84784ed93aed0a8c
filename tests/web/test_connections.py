"""Connections that only wait: how long, and how many of one address."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator

import pytest
import uvicorn
from starlette.types import Receive, Scope, Send

from graphkin.web import connections
from graphkin.web.connections import BoundedConnection
from graphkin.web.serve import bind

REQUEST = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"
HEAD_SECONDS = 1.0
MOST = 20


async def answer(scope: Scope, receive: Receive, send: Send) -> None:
    """A small application."""
    if scope["type"] == "http":
        headers = [(b"content-length", b"2")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b"ok"})


@pytest.fixture
def port(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    monkeypatch.setattr(connections, "HEAD_SECONDS", HEAD_SECONDS)
    monkeypatch.setattr(connections, "PER_ADDRESS", MOST)
    config = uvicorn.Config(answer, http=BoundedConnection, lifespan="off", log_level="error")
    server = uvicorn.Server(config)
    with bind("127.0.0.1", 0) as listener:
        thread = threading.Thread(target=server.run, args=([listener],))
        thread.start()
        yield listener.getsockname()[1]
        server.should_exit = True
        thread.join(30)


def connect(port: int, address: str = "127.0.0.1") -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), 10, (address, 0))


def is_answered(client: socket.socket) -> bool:
    client.sendall(REQUEST)
    received = b""
    while not received.endswith(b"ok") and (part := client.recv(1000)):
        received += part
    return received.startswith(b"HTTP/1.1 200")


def closed_after(client: socket.socket) -> float:
    """Seconds until the server closes a connection to which a byte is sent now and then."""
    began = time.monotonic()
    client.settimeout(0.2)
    while time.monotonic() - began < 10:
        try:
            client.sendall(b"x")
            if client.recv(1) == b"":
                break
        except TimeoutError:
            continue
        except OSError:
            break
    return time.monotonic() - began


def test_the_head_of_a_request_has_a_deadline(port: int) -> None:
    with connect(port) as client:
        client.sendall(b"GET / HTTP/1.1\r\nX-Slow: ")
        assert HEAD_SECONDS / 2 < closed_after(client) < 5 * HEAD_SECONDS


def test_so_has_that_of_the_second_request(port: int) -> None:
    with connect(port) as client:
        assert is_answered(client)
        client.sendall(b"GET / HTTP/1.1\r\nX-Slow: ")
        assert HEAD_SECONDS / 2 < closed_after(client) < 5 * HEAD_SECONDS


def test_a_connection_may_rest_between_requests(port: int) -> None:
    with connect(port) as client:
        assert is_answered(client)
        time.sleep(1.5 * HEAD_SECONDS)
        assert is_answered(client)


def test_who_waits_makes_room_for_who_asks(port: int) -> None:
    waiting = [connect(port) for _ in range(3 * MOST)]
    for client in waiting:
        client.sendall(b"GET / HTTP/1.1\r\n")
    for address in ("127.0.0.1", "127.0.0.2"):
        with connect(port, address) as client:
            assert is_answered(client)
    for client in waiting:
        client.close()
