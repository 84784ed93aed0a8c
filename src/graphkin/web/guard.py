"""What every request passes: who may ask, how much, for how long; and how answers are shown."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import ipaddress
import json
from http.cookies import CookieError, SimpleCookie
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from graphkin.web.http_errors import RequestError, body
from graphkin.web.limits import ServerLimits

API = "/api/"
OPEN = frozenset({"/api/session", "/api/docs"})
"""What takes a token, and what asks for one."""
UPLOADS = "/api/binaries"
ADMITTED_UPLOAD = "graphkin.admitted_upload"
"""In the scope of an upload that may be sent: it has longer to arrive than other requests."""
EVENTS = "/events"
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; frame-src 'self'; base-uri 'none'; form-action 'none'; "
)
NOT_FRAMED = "frame-ancestors 'none'"
FRAMED = "frame-ancestors 'self'"
"""Of a report, which has a policy of its own in its head, and may be shown inside the page."""


class Guard:
    """Wraps the application.

    Without a token only this machine can reach the server, but so can every site that a browser
    on it has open: by a form, or under a name that the site lets point here. So the host must be
    one of this machine, and what comes from another site is refused.
    """

    def __init__(self, app: ASGIApp, *, limits: ServerLimits, token: str | None) -> None:
        self._app = app
        self._limits = limits
        self._token = token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        framed = _may_be_framed(scope)
        answer = _Answer(send, framed)
        try:
            self._check(scope)
            if self._is_upload(scope):
                scope[ADMITTED_UPLOAD] = True
            async with asyncio.timeout(self._seconds(scope)):
                bounded = _Bounded(receive, self._most_bytes(scope))
                answer.request = bounded
                await self._app(scope, bounded, answer.send)
        except RequestError as error:
            await answer.fail(error.status, type(error).__name__, str(error))
        except TimeoutError:
            seconds = self._seconds(scope)
            message = f"not finished after {seconds:g} s; ask for less, or use the command line"
            await answer.fail(504, "TimeoutError", message)
        except asyncio.CancelledError:
            # The server is told to stop, and waits no longer.
            await answer.end()

    def _check(self, scope: Scope) -> None:
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        if self._token is None and not is_loopback(_name(host)):
            raise RequestError(403, f"this server answers as localhost only, not as {host[:100]!r}")
        path, is_safe = scope["path"], scope["method"] in SAFE_METHODS
        is_api = path.startswith(API)
        if (is_api or not is_safe) and _is_foreign(headers, host):
            raise RequestError(403, "requests from other sites are refused")
        if is_api and path not in OPEN and not self._is_known(headers):
            raise RequestError(401, "this server needs its token: the one that it was started with")
        length = headers.get("content-length", "0")
        if not length.isdecimal() or int(length) > self._most_bytes(scope):
            raise _too_large(self._most_bytes(scope))

    def _is_known(self, headers: Headers) -> bool:
        if self._token is None:
            return True
        scheme, _, token = headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer":
            return same(token.strip(), self._token)
        try:
            cookies = SimpleCookie(headers.get("cookie", ""))
        except CookieError:
            return False
        cookie = cookies.get(cookie_of(self._token))
        return cookie is not None and same(cookie.value, session_of(self._token))

    def _is_upload(self, scope: Scope) -> bool:
        return bool(scope["method"] == "POST" and scope["path"] == UPLOADS)

    def _most_bytes(self, scope: Scope) -> int:
        limits = self._limits
        return limits.upload_bytes if self._is_upload(scope) else limits.document_bytes

    def _seconds(self, scope: Scope) -> float | None:
        limits = self._limits
        if scope["path"].endswith(EVENTS):
            return None
        if self._is_upload(scope):
            return limits.upload_seconds + 2 * limits.extraction_seconds
        return limits.request_seconds


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach a name or an address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def same(secret: str, expected: str) -> bool:
    """Whether two secrets are equal; how long it takes does not tell where they differ."""
    return hmac.compare_digest(
        hashlib.sha256(secret.encode()).digest(), hashlib.sha256(expected.encode()).digest()
    )


def session_of(token: str) -> str:
    """What the cookie of a browser that knew the token holds."""
    return hmac.new(token.encode(), b"graphkin session", "sha256").hexdigest()


def cookie_of(token: str) -> str:
    """The name of that cookie, for browsers send cookies to every port of a host."""
    return f"graphkin_{hashlib.sha256(token.encode()).hexdigest()[:8]}"


STOPPING = "the server is being stopped; try again when it is back"


class _Answer:
    """Sends an answer with the headers of all answers."""

    def __init__(self, send: Send, framed: bool) -> None:
        self._send = send
        self._framed = framed
        self._began = False
        self._is_stream = False
        """Whether it may end anywhere."""
        self._is_over = False
        self.request: _Bounded | None = None

    async def send(self, message: Message) -> None:
        if self.request is not None and self.request.is_too_large:
            # Whatever the application makes of a request that was cut off.
            error, self.request = self.request.error(), None
            if not self._began:
                await self.fail(error.status, type(error).__name__, str(error))
            self._is_over = True
        if self._is_over:
            return
        if message["type"] == "http.response.start":
            self._began = True
            headers = MutableHeaders(scope=message)
            self._is_stream = "content-length" not in headers
            for name, value in HEADERS.items():
                headers[name] = value
            headers.setdefault("Cache-Control", "no-store")
            headers["Content-Security-Policy"] = FRAMED if self._framed else POLICY + NOT_FRAMED
            headers["X-Frame-Options"] = "SAMEORIGIN" if self._framed else "DENY"
        else:
            self._is_over = not message.get("more_body", False)
        await self._send(message)

    async def end(self) -> None:
        """Ends what the server has no time for any more: events end here, other answers are an
        error, or cut off."""
        if self._is_over:
            return
        if self._began and self._is_stream:
            await self.send({"type": "http.response.body", "body": b""})
        else:
            await self.fail(503, "BusyError", STOPPING)

    async def fail(self, status: int, kind: str, message: str) -> None:
        """An error, where no answer has begun; one that has is cut off by the server."""
        if self._began:
            raise RuntimeError(message)
        content = json.dumps(body(kind, message)).encode()
        headers = [
            (b"content-type", b"application/json"),
            (b"content-length", str(len(content)).encode()),
            # The rest of what the client sends is not read.
            (b"connection", b"close"),
        ]
        if status == 503:
            headers.append((b"retry-after", b"5"))
        self._framed = False
        await self.send({"type": "http.response.start", "status": status, "headers": headers})
        await self.send({"type": "http.response.body", "body": content})


class _Bounded:
    """Counts what a client sends: it may have said nothing, or something false, of its length."""

    def __init__(self, receive: Receive, most: int) -> None:
        self._receive = receive
        self._most = most
        self._count = 0

    @property
    def is_too_large(self) -> bool:
        return self._count > self._most

    def error(self) -> RequestError:
        return _too_large(self._most)

    async def __call__(self) -> Message:
        message = await self._receive()
        self._count += len(message.get("body", b""))
        if self.is_too_large:
            raise self.error()
        return message


def _too_large(most: int) -> RequestError:
    size = f"{most >> 20} MB" if most >= 1 << 20 else f"{most >> 10} KB"
    return RequestError(413, f"at most {size} can be sent here")


def _is_foreign(headers: Headers, host: str) -> bool:
    """Whether a browser says that another site makes the request."""
    if headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        return True
    origin = headers.get("origin")
    try:
        return origin is not None and urlsplit(origin).netloc.lower() != host.lower()
    except ValueError:
        return True


def _name(host: str) -> str:
    """``localhost`` of ``localhost:8000``, ``::1`` of ``[::1]:8000``."""
    name, _, port = host.rpartition(":")
    name = (name if name and port.isdecimal() else host).lower()
    return name[1:-1] if name.startswith("[") and name.endswith("]") else name


def _may_be_framed(scope: Scope) -> bool:
    return bool(scope["path"] == "/api/comparison.html")
