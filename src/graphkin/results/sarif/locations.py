"""How SARIF names the files that were scanned."""

from __future__ import annotations

import os
from pathlib import Path, PurePath
from typing import Any
from urllib.parse import quote

from graphkin.binaries.function import MEMBER
from graphkin.results.text import encodable

BASE = "%SRCROOT%"
"""What relative locations begin at."""


def member_of(binary: str) -> str:
    """The member of ``archive(member)``; empty for a plain file."""
    match = MEMBER.fullmatch(binary)
    return match[2] if match else ""


class Artifacts:
    """The files that were scanned, and how locations name them."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._places: dict[str, int] = {}
        self._known: dict[str, dict[str, Any]] = {}

    def location(self, binary: str) -> dict[str, Any]:
        """Where a binary is. A member of an archive is at its archive."""
        if binary not in self._known:
            match = MEMBER.fullmatch(binary)
            found = relative_uri(match[1] if match else binary, self._root)
            place = self._places.setdefault(found["uri"], len(self._places))
            self._known[binary] = {**found, "index": place}
        return self._known[binary]

    def documents(self) -> list[dict[str, Any]]:
        first: dict[str, dict[str, Any]] = {}
        for location in self._known.values():
            first.setdefault(location["uri"], location)
        return [{"location": location, "roles": ["analysisTarget"]} for location in first.values()]


def relative_uri(path: str, root: Path) -> dict[str, str]:
    """A location relative to a directory; absolute for a file outside it."""
    full = PurePath(os.path.normpath(root / path))
    try:
        inside = full.relative_to(root)
    except ValueError:
        return {"uri": "file://" + _quoted(full.as_posix())}
    return {"uri": _quoted(inside.as_posix()), "uriBaseId": BASE}


def _quoted(path: str) -> str:
    """Bytes of a path that is not UTF-8 stay the bytes that they are."""
    try:
        content = path.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        content = encodable(path).encode()
    return quote(content, safe="/")
