"""The list of files that a command walks through."""

from __future__ import annotations

import subprocess
import sys

from tests.paths import BINARIES, REPOSITORY


def test_a_walk() -> None:
    words = [REPOSITORY / "tools" / "walk.py", "show", BINARIES / "show" / "shapes.o"]
    result = subprocess.run([sys.executable, *words], capture_output=True, text=True)
    assert (result.returncode, "grade" in result.stdout) == (0, True), result.stderr
    *files, total = result.stderr.splitlines()[1:]
    assert files.index("cli/show.py") < files.index("binaries/backends/native.py (worker)")
    assert "binaries/function.py" in files
    assert "cli/search.py" not in files
    workers = sum(file.endswith(" (worker)") for file in files)
    assert total == f"{len(files)} files, {workers} of them in workers only"
