"""Connections that only wait: how long, how many of one address, and how many in all."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator

import psutil
import pytest
import uvicorn
from starlette.types import Receive, Scope, Send

from graphkin.web import connections
from graphkin.web.connections import REQUESTS, BoundedConnection
from graphkin.web.guard import Guard
from graphkin.web.limits import ServerLimits
from graphkin.web.serve import bind

REQUEST = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"
LARGE = REQUEST.replace(b"/", b"/large", 1)
TOKEN = "correct horse battery staple"
BODY = b"Host: localhost\r\nContent-Length: 100\r\n"
SESSION = b"POST /api/session HTTP/1.1\r\n" + BODY + b"\r\n"
UPLOAD = b"POST /api/binaries HTTP/1.1\r\n" + BODY
ADMITTED = UPLOAD + b"Authorization: Bearer " + TOKEN.encode() + b"\r\n\r\n"
REQUEST_SECONDS = 1.0
MOST = 20
IN_ALL = 30


async def application(scope: Scope, receive: Receive, send: Send) -> None:
    """Answers files at once, and what is sent to the API when it is there."""
    while scope["path"].startswith("/api/") and (await receive()).get("more_body", False):
        pass
    parts = [bytes(1 << 23)] * 2 if scope["path"] == "/large" else [b"ok"]
    headers = [(b"content-length", str(sum(map(len, parts))).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    for number, part in enumerate(parts, 1):
        more = number < len(parts)
        await send({"type": "http.response.body", "body": part, "more_body": more})


@pytest.fixture
def port(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    monkeypatch.setattr(connections, "REQUEST_SECONDS", REQUEST_SECONDS)
    monkeypatch.setattr(connections, "PER_ADDRESS", MOST)
    monkeypatch.setattr(connections, "CONNECTIONS", IN_ALL)
    config = uvicorn.Config(
        Guard(application, limits=ServerLimits(), token=TOKEN), http=BoundedConnection,
        lifespan="off", log_level="error", limit_concurrency=REQUESTS,
    )  # fmt: skip
    server = uvicorn.Server(config)
    with bind("127.0.0.1", 0) as listener:
        thread = threading.Thread(target=server.run, args=([listener],))
        thread.start()
        yield listener.getsockname()[1]
        server.should_exit = True
        thread.join(30)


def connect(port: int, address: str = "127.0.0.1") -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), 10, (address, 0))


def is_answered(client: socket.socket, request: bytes = REQUEST) -> bool:
    return status(client, request) == b"200"


def status(client: socket.socket, request: bytes = REQUEST) -> bytes:
    received = b""
    client.sendall(request)
    while not received.endswith(b"ok") and (part := client.recv(1000)):
        received += part
    return received.removeprefix(b"HTTP/1.1 ")[:3]


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


@pytest.mark.parametrize(
    "begin",
    [
        b"GET / HTTP/1.1\r\nX-Slow: ",
        SESSION,
        REQUEST[:-2] + b"Content-Length: 100\r\n\r\n",
        UPLOAD + b"\r\n",
        UPLOAD + b"Authorization: Bearer guessed\r\n\r\n",
    ],
    ids=["head", "document", "body that nobody reads", "no token", "wrong token"],
)
@pytest.mark.parametrize("earlier", [0, 1])
def test_a_request_has_a_deadline(port: int, begin: bytes, earlier: int) -> None:
    with connect(port) as client:
        assert all(is_answered(client) for _ in range(earlier))
        client.sendall(begin)
        assert closed_after(client) < 5 * REQUEST_SECONDS


def test_a_request_has_all_of_its_time(port: int) -> None:
    with connect(port) as client:
        client.sendall(SESSION)
        time.sleep(REQUEST_SECONDS / 2)
        assert is_answered(client, bytes(100))


def test_an_upload_with_the_token_has_more(port: int) -> None:
    with connect(port) as client:
        client.sendall(ADMITTED)
        time.sleep(1.5 * REQUEST_SECONDS)
        client.sendall(bytes(50))
        time.sleep(1.5 * REQUEST_SECONDS)
        assert is_answered(client, bytes(50))


def test_a_connection_may_rest_between_requests(port: int) -> None:
    with connect(port) as client:
        assert is_answered(client)
        time.sleep(1.5 * REQUEST_SECONDS)
        assert is_answered(client)


WAITING = {"head": b"GET / HTTP/1.1\r\n", "document": SESSION}


@pytest.mark.parametrize("begin", WAITING.values(), ids=WAITING.keys())
@pytest.mark.parametrize("addresses", [1, 2, 5])
def test_who_waits_makes_room_for_who_asks(port: int, begin: bytes, addresses: int) -> None:
    """All at once, before the deadline of the first."""
    waiting = []
    for number in range(3 * IN_ALL):
        client = connect(port, f"127.0.0.{number % addresses + 1}")
        client.sendall(begin)
        waiting.append(client)
    for address in ("127.0.0.1", "127.0.0.9"):
        with connect(port, address) as client:
            assert is_answered(client)
    assert open_connections(port) <= IN_ALL
    for client in waiting:
        client.close()


def open_connections(port: int) -> int:
    """That the server holds."""
    sockets = psutil.Process().net_connections("tcp")
    return sum(bool(own.raddr) and own.laddr.port == port for own in sockets)


def test_who_does_not_read_an_answer_makes_room(port: int) -> None:
    unread = [connect(port) for _ in range(MOST)]
    for client in unread:
        client.sendall(LARGE)
        assert client.recv(1) == b"H"
    with connect(port) as client:
        assert is_answered(client)
    for client in unread:
        client.close()


def test_who_is_busy_does_not_make_room(port: int) -> None:
    with connect(port, "127.0.0.9") as busy:
        busy.sendall(ADMITTED)
        time.sleep(0.2)
        waiting = [connect(port, f"127.0.0.{number % 3 + 1}") for number in range(3 * IN_ALL)]
        assert is_answered(busy, bytes(100))
        for client in waiting:
            client.close()


def test_a_server_whose_connections_are_all_busy_says_so(port: int) -> None:
    busy = [connect(port, f"127.0.0.{number % 3 + 1}") for number in range(IN_ALL - 1)]
    for client in busy:
        client.sendall(ADMITTED)
    time.sleep(0.5)
    for _ in range(3):
        with connect(port, "127.0.0.9") as client:
            assert status(client) == b"503"
    assert all(is_answered(client, bytes(100)) for client in busy)
    with connect(port, "127.0.0.9") as client:
        assert is_answered(client)
    for client in busy:
        client.close()
