"""The bundled libraries, loaded into this process."""

from __future__ import annotations

import ctypes
import platform
import random
import sys
from ctypes import c_size_t
from typing import Any

import pytest

from graphkin.binaries import samples

runs_samples = pytest.mark.skipif(
    sys.platform != "linux" or platform.machine() != "x86_64",
    reason="the samples are for Linux on x86-64",
)
WORDS = b"the kin of a graph, the kin of a function, the kin of the kin; " * 40
NOISE = random.Random(1).randbytes(3000)


class Library:
    """The libraries of one build."""

    def __init__(self, build: str) -> None:
        self.parts = [
            ctypes.CDLL(str(samples.path(f"{build}/{name}")))
            for name in ("libkinmedia.so", "libkinparse.so", "libkinproto.so")
        ]

    def __getattr__(self, name: str) -> Any:
        return next(getattr(part, name) for part in self.parts if hasattr(part, name))

    def fill(self, name: str, *arguments: Any, room: int = 8192) -> bytes | None:
        """What a function writes into its last two arguments, a buffer and its size."""
        out = ctypes.create_string_buffer(room)
        used = getattr(self, name)(*map(_sized, arguments), out, c_size_t(room))
        return None if used < 0 else out.raw[:used]

    def bytes(self, name: str, data: bytes, *, room: int = 8192) -> bytes | None:
        return self.fill(name, data, len(data), room=room)


def _sized(value: Any) -> Any:
    return c_size_t(value) if isinstance(value, int) else value
