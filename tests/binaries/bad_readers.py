"""Stand-ins for the readers of files, which do what a library may do on a hostile file."""

from __future__ import annotations

import ctypes
import sys
import time
from collections.abc import Iterator
from typing import Any

from graphkin.errors import FormatError


def crash(target: Any, **options: Any) -> Iterator[Any]:
    yield from ()
    ctypes.string_at(0)


def hang(target: Any, **options: Any) -> Iterator[Any]:
    yield from ()
    time.sleep(60)


def eat(target: Any, **options: Any) -> Iterator[Any]:
    yield bytearray(64 << 30)


def tell_modules(target: Any, **options: Any) -> Iterator[Any]:
    loaded = [name for name in ("lief", "capstone", "torch") if name in sys.modules]
    yield FormatError(f"loaded: {loaded}")
