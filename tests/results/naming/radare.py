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
library, *arguments = sys.argv[1:]
texts = [text.encode() for text in ["radare2", *arguments]]
ctypes.CDLL(library).r_main_radare2(len(texts), (ctypes.c_char_p * len(texts))(*texts))
"""
"""The wheel's own modules need a package that setuptools has no more; its libraries do not."""
SECONDS = 300


def radare2(file: Path, *commands: str, folder: Path) -> str:
    """What it prints while it runs some commands on a file."""
    program, wheel = shutil.which("radare2"), importlib.util.find_spec("libr")
    if program is not None:
        start = [program]
    elif wheel is not None and wheel.origin is not None:
        library = Path(wheel.origin).parent / "libr" / "libr_main.so"
        start = [sys.executable, "-c", FROM_WHEEL, str(library)]
    else:
        pytest.skip("there is no radare2, nor the wheel r2libr of the extra test")
    options = ["-N", "-q", "-e", "scr.color=0", "-c", ";".join(commands), str(file)]
    done = subprocess.run(
        [*start, *options], capture_output=True, timeout=SECONDS, check=True, cwd=folder
    )
    return done.stdout.decode(errors="replace")
