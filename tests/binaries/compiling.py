"""What the fixture that compiles C is: ``compile_c(source, "-O2", "-shared", "-fPIC")``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

Compile = Callable[..., Path]
