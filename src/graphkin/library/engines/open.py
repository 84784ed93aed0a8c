"""Which engine keeps a library: that of the scheme of its URL, or SQLite for a file."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

from graphkin.library.engines.base import Engine
from graphkin.library.engines.milvus.address import SCHEME as MILVUS

FILE = ""
ENGINES = {
    FILE: "graphkin.library.engines.sqlite.engine:SqliteEngine",
    MILVUS: "graphkin.library.engines.milvus.engine:MilvusEngine",
}
"""The engine of each scheme, imported when it is needed."""
SQLITE_MAGIC = b"SQLite format 3\0"
"""What a library that is a file begins with."""


def engine_of(url: str | Path) -> type[Engine]:
    """The engine of a path, or of a URL such as ``milvus://host:port/collection``."""
    scheme, colon, _ = str(url).partition("://")
    module, _, name = ENGINES[scheme if colon and scheme in ENGINES else FILE].partition(":")
    engine: type[Engine] = getattr(import_module(module), name)
    return engine


def is_library(url: str | Path) -> bool:
    """Whether a path or a URL is that of a library, and not of another kind of file."""
    scheme, colon, _ = str(url).partition("://")
    if colon and scheme in ENGINES:
        return True
    try:
        with Path(url).open("rb") as file:
            return file.read(len(SQLITE_MAGIC)) == SQLITE_MAGIC
    except OSError:
        return False


def exists(url: str | Path) -> bool:
    """Whether there is such a file, or such a collection on a server."""
    return engine_of(url).exists(str(url))
