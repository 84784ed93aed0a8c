"""A real radare2: the program where it is installed, or the one inside the wheel r2libr."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

FROM_WHEEL = """
import ctypes, sys
from libr import r_main
arguments = [argument.encode() for argument in ["radare2", *sys.argv[1:]]]
kind = ctypes.POINTER(ctypes.c_char)
texts = [ctypes.cast(ctypes.create_string_buffer(text), kind) for text in arguments]
r_main.r_main_radare2(len(texts), (kind * len(texts))(*texts))
"""
SECONDS = 300


def radare2(file: Path, *commands: str, folder: Path) -> str:
    """What it prints while it runs some commands on a file."""
    program = shutil.which("radare2")
    if program is not None:
        start = [program]
    elif importlib.util.find_spec("libr") is not None:
        start = [sys.executable, "-c", FROM_WHEEL]
    else:
        pytest.skip("there is no radare2, nor the wheel r2libr of the extra test")
    options = ["-N", "-q", "-e", "scr.color=0", "-c", ";".join(commands), str(file)]
    done = subprocess.run(
        [*start, *options], capture_output=True, timeout=SECONDS, check=True, cwd=folder
    )
    return done.stdout.decode(errors="replace")
