"""Who may ask: tokens, sites, hosts; and what every answer carries."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from fastapi.testclient import TestClient
from hypothesis import given
from hypothesis import strategies as st
from starlette.types import Message, Receive, Scope, Send

from graphkin.errors import ConfigError
from graphkin.web.guard import Guard, cookie_of, is_loopback, same, session_of
from graphkin.web.limits import ServerLimits
from graphkin.web.serve import TOKEN_LETTERS, checked_token
from tests.web.conftest import Serve
from tests.web.requests import message

HOST = b"localhost"
TOKEN = "correct horse battery staple"
NEEDS_TOKEN = [
    ("GET", "/api/status"),
    ("GET", "/api/openapi.json"),
    ("GET", "/api/binaries"),
    ("POST", "/api/binaries"),
    ("GET", "/api/comparison.html"),
    ("POST", "/api/library/removals"),
    ("GET", "/api/scans/x/events"),
    ("GET", "/api/nothing"),
]


@pytest.fixture
def locked(serve: Serve) -> TestClient:
    return serve(token=TOKEN)


@pytest.mark.parametrize(("method", "path"), NEEDS_TOKEN)
def test_without_the_token_nothing_is_told(locked: TestClient, method: str, path: str) -> None:
    for headers in (
        {},
        {"authorization": "Bearer "},
        {"authorization": f"Bearer {TOKEN[:-1]}"},
        {"authorization": f"Basic {TOKEN}"},
        {"cookie": f"{cookie_of(TOKEN)}={TOKEN}"},
        {"cookie": f"{cookie_of(TOKEN)}="},
        {"cookie": f"other={session_of(TOKEN)}"},
    ):
        actual = locked.request(method, path, headers=headers)
        assert actual.status_code == 401, headers
        assert "token" in message(actual)


def test_with_the_token(locked: TestClient) -> None:
    actual = locked.get("/api/status", headers={"authorization": f"Bearer {TOKEN}"})
    assert actual.status_code == 200
    for page in ("/", "/api/docs", "/static/main.js"):
        assert locked.get(page).status_code == 200, "the pages ask for it"


def test_a_browser_gets_a_cookie_that_scripts_do_not_see(locked: TestClient) -> None:
    assert locked.post("/api/session", json={"token": "wrong"}).status_code == 401
    assert locked.get("/api/status").status_code == 401
    actual = locked.post("/api/session", json={"token": TOKEN})
    assert actual.status_code == 204
    cookie = actual.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert TOKEN not in actual.headers["set-cookie"]
    assert locked.get("/api/status").status_code == 200


def test_other_hosts_are_refused_where_there_is_no_token(client: TestClient) -> None:
    for host, status in (
        ("localhost:8000", 200),
        ("127.0.0.1", 200),
        ("[::1]:80", 200),
        ("127.0.0.2:8000", 200),
        ("LOCALHOST", 200),
        ("evil.example", 403),
        ("localhost.evil.example", 403),
        ("127.0.0.1.evil.example:8000", 403),
        ("192.168.1.5:8000", 403),
        ("[::2]:80", 403),
        ("", 403),
    ):
        assert client.get("/api/status", headers={"host": host}).status_code == status, host
        assert client.get("/", headers={"host": host}).status_code == status, host


def test_a_server_with_a_token_has_any_name(locked: TestClient) -> None:
    headers = {"host": "firmware-lab:8000", "authorization": f"Bearer {TOKEN}"}
    assert locked.get("/api/status", headers=headers).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "https://evil.example"},
        {"origin": "null"},
        {"origin": "http://["},
        {"origin": "http://localhost:9999"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
    ],
)
def test_other_sites_are_refused(client: TestClient, headers: dict[str, str]) -> None:
    for method, path in (("POST", "/api/search"), ("POST", "/api/binaries"), ("GET", "/api/scans")):
        actual = client.request(method, path, headers=headers)
        assert actual.status_code == 403
        assert "other sites" in message(actual)


def test_the_own_page_is_not_another_site(client: TestClient) -> None:
    headers = {"origin": "http://localhost", "sec-fetch-site": "same-origin"}
    assert client.get("/api/scans", headers=headers).status_code == 200
    typed = {"sec-fetch-site": "cross-site"}
    assert client.get("/", headers=typed).status_code == 200, "a link from elsewhere opens the page"


@pytest.mark.parametrize("path", ["/", "/api/status", "/api/nothing", "/static/nothing"])
def test_headers(client: TestClient, path: str) -> None:
    headers = client.get(path).headers
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["x-frame-options"] == "DENY"
    assert headers["referrer-policy"] == "no-referrer"
    assert "server" not in headers


def test_what_the_api_says_is_not_kept(client: TestClient) -> None:
    assert client.get("/api/status").headers["cache-control"] == "no-store"
    assert client.get("/").headers["cache-control"] == "no-cache"


def test_large_documents_are_refused(serve: Serve) -> None:
    client = serve(limits=ServerLimits(document_bytes=1000))
    actual = client.post("/api/search", json={"query": "x" * 2000})
    assert actual.status_code == 413
    for length in ("-1", "x", "9" * 40):
        headers = {"content-length": length}
        actual = client.post("/api/search", content=b"{}", headers=headers)
        assert actual.status_code == 413, length

    def without_length() -> Iterator[bytes]:
        for _ in range(20):
            yield b" " * 100

    actual = client.post("/api/search", content=without_length())
    assert actual.status_code == 413
    assert "at most" in message(actual)
    paths = client.get("/api/openapi.json").json()["paths"]
    assert all("413" in own["responses"] for path in paths.values() for own in path.values())


def test_two_servers_of_one_host_have_cookies_of_their_own() -> None:
    assert cookie_of(TOKEN) != cookie_of(TOKEN + "!")


def test_the_page_answers_head(client: TestClient) -> None:
    actual = client.head("/")
    assert actual.status_code == 200
    assert actual.content == b""


def test_json_needs_its_content_type(client: TestClient) -> None:
    actual = client.post("/api/search", content=b'{"query": "library:1"}')
    assert actual.status_code == 400
    assert "Content-Type: application/json" in message(actual)


def test_files_outside_are_not_served(client: TestClient) -> None:
    for path in (
        "/static/../app.py",
        "/static/%2e%2e/app.py",
        "/static/..%2fapp.py",
        "/static//etc/passwd",
    ):
        assert client.get(path).status_code == 404


def test_an_unknown_path_is_an_error_in_json(client: TestClient) -> None:
    actual = client.get("/api/nothing")
    assert actual.status_code == 404
    assert message(actual)


def test_the_description_of_the_api_names_every_route(client: TestClient) -> None:
    described = client.get("/api/openapi.json").json()
    assert set(described["paths"]) >= {
        "/api/status",
        "/api/session",
        "/api/binaries",
        "/api/search",
        "/api/comparison",
        "/api/comparison.html",
        "/api/scans",
        "/api/scans/{scan}/events",
        "/api/library",
        "/api/library/additions",
        "/api/library/removals",
    }
    for path, methods in described["paths"].items():
        for method, route in methods.items():
            assert route["description"], f"{method} {path}"
            assert list(route["responses"]["404"]["content"]) == ["application/json"], path


@pytest.mark.parametrize("kind", ["waiting", "events", "page"])
def test_who_waits_for_a_server_that_stops_is_told_so(kind: str) -> None:
    """The server cancels what it cannot wait for."""
    headers = [(b"content-length", b"2")] if kind == "page" else []
    sent: list[Message] = []

    async def work(scope: Scope, receive: Receive, send: Send) -> None:
        if kind != "waiting":
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            await send({"type": "http.response.body", "body": b"x", "more_body": True})
        await asyncio.sleep(60)

    async def receive() -> Message:
        return {"type": "http.request"}

    async def send(message: Message) -> None:
        sent.append(message)

    async def stop() -> None:
        guard = Guard(work, limits=ServerLimits(), token=None)
        scope = {"type": "http", "method": "GET", "path": "/api/x", "headers": [(b"host", HOST)]}
        task = asyncio.create_task(guard(scope, receive, send))
        await asyncio.sleep(0.05)
        task.cancel()
        await task

    if kind == "page":
        with pytest.raises(RuntimeError, match="stopped"):  # the server closes the connection
            asyncio.run(stop())
        return
    asyncio.run(stop())
    if kind == "waiting":
        assert sent[0]["status"] == 503
        assert (b"retry-after", b"5") in sent[0]["headers"]
        assert b"stopped" in sent[1]["body"]
    else:
        assert [part["body"] for part in sent[1:]] == [b"x", b""]


@pytest.mark.parametrize(
    ("host", "is_local"),
    [
        ("localhost", True),
        ("127.0.0.1", True),
        ("127.8.9.1", True),
        ("::1", True),
        ("0.0.0.0", False),
        ("::", False),
        ("192.168.1.5", False),
        ("example.org", False),
    ],
)
def test_who_needs_a_token(host: str, is_local: bool) -> None:
    assert is_loopback(host) is is_local
    made = checked_token(host, None)
    assert (made is None) is is_local
    if made is not None:
        assert len(made) >= TOKEN_LETTERS
        assert made != checked_token(host, None)
    assert checked_token(host, TOKEN) == TOKEN


@pytest.mark.parametrize("token", ["", "short", "é" * 30])
def test_weak_tokens_are_refused(token: str) -> None:
    with pytest.raises(ConfigError, match="at least 16"):
        checked_token("0.0.0.0", token)


@given(st.text(), st.text())
def test_secrets_are_compared_whole(one: str, other: str) -> None:
    assert same(one, one)
    assert same(one, other) is (one == other)
