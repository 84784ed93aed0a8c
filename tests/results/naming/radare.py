"""A real radare2: the program where it is installed, or the one inside the wheel r2libr."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.scripts import script

PEER = script("benchmarks/radare2.py")


def radare2(file: Path, *commands: str, folder: Path) -> str:
    """What it prints while it runs some commands on a file."""
    for program in ("radare2", sys.executable):
        try:
            peer = PEER.Radare2.at(program)
        except PEER.Absent:
            continue
        return str(peer.run(file, *commands, folder=folder))
    pytest.skip("there is no radare2, nor the wheel r2libr of the extra test")
