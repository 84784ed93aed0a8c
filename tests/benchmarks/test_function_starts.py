"""The table of function starts, and radare2 as a peer in it."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.paths import BINARIES, REPOSITORY

SCRIPT = REPOSITORY / "benchmarks" / "function_starts.py"
STATIC = BINARIES / "arm" / "gcc-thumb-static-O2"
"""A program that does not lie at 0."""


def printed(*options: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(SCRIPT), *map(str, options)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_radare2_lists_the_functions_of_the_same_file() -> None:
    if importlib.util.find_spec("libr") is None:
        pytest.skip("there is no wheel r2libr, which the extra test has")
    options = ("--hide", "symbols", "--peers", "radare2", "--radare2", sys.executable)
    done = printed(STATIC, *options, "--json")
    assert done.returncode == 0, done.stderr
    ours, theirs = json.loads(done.stdout)
    assert (ours["reader"], theirs["reader"]) == ("graphkin", "radare2")
    assert theirs["right"] >= 5
    assert ours["recall"] >= theirs["recall"]
    assert theirs["seconds"] > 0.01, "CPU time of the program counts, not only ours"
    assert "radare2 5." in done.stderr


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        ("no-such-radare2", "there is no program 'no-such-radare2'"),
        ("true", "is not a radare2 that runs: it printed nothing"),
    ],
)
def test_an_absent_radare2_is_said_before_anything_is_read(program: str, reason: str) -> None:
    done = printed(Path("absent"), "--peers", "radare2", "--radare2", program)
    assert done.returncode == 2
    assert reason in done.stderr
    assert "Traceback" not in done.stderr
