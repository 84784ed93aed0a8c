"""Where a Milvus library is: the parts of its URL."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from graphkin.errors import ConfigError

SCHEME = "milvus"
DEFAULT_PORT = 19530
FORM = (
    f"{SCHEME}://[user:password@]host[:port]/collection[?graphs-folder=FOLDER&shards=N&secure=true]"
)
NAME = re.compile(r"[A-Za-z_]\w{0,199}", re.ASCII)
"""Milvus takes 255 characters; the side collection of a library has a longer name."""
MOST_SHARDS = 16
"""What a Milvus server takes unless it is set up otherwise."""


@dataclass(frozen=True)
class MilvusAddress:
    """A collection on a server, and how to get there."""

    host: str
    collection: str
    port: int = DEFAULT_PORT
    token: str = ""
    """``user:password``, or a token alone."""
    secure: bool = False
    """Whether the connection is encrypted."""
    graphs_folder: str | None = None
    """The folder of the graphs, where the URL names it."""
    shards: int = 1
    """Parts that a new collection is cut into, which different machines write."""

    @classmethod
    def parse(cls, url: str) -> MilvusAddress:
        """Reads ``milvus://host:port/collection``, and the options behind a ``?``."""
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError as error:
            raise ConfigError(f"{url!r} is not the address of a library: {error}") from error
        collection = parts.path.removeprefix("/")
        if parts.scheme != SCHEME or not parts.hostname:
            raise ConfigError(f"{url!r} is not the address of a Milvus library; write {FORM}")
        if not NAME.fullmatch(collection):
            raise ConfigError(
                f"{collection!r} cannot name a collection; use letters, digits and underscores, "
                f"at most 200, as in {FORM}"
            )
        options = dict(parse_qsl(parts.query, keep_blank_values=True))
        if "payloads" in options:  # as the folder was called at first
            options.setdefault("graphs-folder", options.pop("payloads"))
        address = cls(
            host=parts.hostname,
            collection=collection,
            port=DEFAULT_PORT if port is None else port,
            token=":".join(unquote(part) for part in (parts.username, parts.password) if part),
            secure=_flag(options.pop("secure", "false")),
            graphs_folder=options.pop("graphs-folder", None) or None,
            shards=_shards(options.pop("shards", "1")),
        )
        if options:
            raise ConfigError(f"unknown option {next(iter(options))!r} in {url!r}; write {FORM}")
        return address

    @property
    def uri(self) -> str:
        """What the client connects to."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self.secure else 'http'}://{host}:{self.port}"

    def __str__(self) -> str:
        """The address for messages: without the password."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{SCHEME}://{host}:{self.port}/{quote(self.collection)}"


def _flag(text: str) -> bool:
    if text not in ("true", "false"):
        raise ConfigError(f"secure must be true or false, got {text!r}")
    return text == "true"


def _shards(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= MOST_SHARDS:
        raise ConfigError(f"shards must be a number from 1 to {MOST_SHARDS}, got {text!r}")
    return int(text)
