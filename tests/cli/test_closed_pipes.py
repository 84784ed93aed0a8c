"""Output that nobody reads to its end, as of ``graphkin show X | head -3``."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from graphkin.binaries import samples

NEW, OLD = samples.FIRMWARE, samples.FIXED_FIRMWARE


def ended(*arguments: str | Path) -> tuple[int, str]:
    """The exit code and stderr of a command whose reader went away before it wrote a word."""
    command = [sys.executable, "-m", "graphkin.cli.main", *map(str, arguments)]
    reader, writer = os.pipe()
    os.close(reader)
    with open(writer, "wb") as output:
        result = subprocess.run(command, stdout=output, stderr=subprocess.PIPE, text=True)
    return result.returncode, result.stderr


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("pipes") / "x.kin"
    command = [sys.executable, "-m", "graphkin.cli.main", "index", path, samples.KNOWN[0]]
    subprocess.run(command, check=True, capture_output=True)
    return path


@pytest.mark.parametrize(
    "verb",
    ["show", "show --json", "scan", "search", "diff", "names", "library list", "schema", "--help"],
)
def test_the_command_ends_quietly(verb: str, library: Path) -> None:
    arguments: dict[str, tuple[str | Path, ...]] = {
        "show": ("show", NEW),
        "show --json": ("show", NEW, "--json"),
        "scan": ("scan", library, NEW),
        "search": ("search", library, samples.KNOWN[0]),
        "diff": ("diff", OLD, NEW),
        "names": ("names", OLD, NEW),
        "library list": ("library", "list", library),
        "schema": ("schema",),
        "--help": ("--help",),
    }
    code, errors = ended(*arguments[verb])
    assert code == 141, errors
    assert "Traceback" not in errors
    assert "BrokenPipe" not in errors


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no full device")
def test_a_full_disk() -> None:
    command = [sys.executable, "-m", "graphkin.cli.main", "show", str(NEW)]
    with open("/dev/full", "wb") as output:
        result = subprocess.run(command, stdout=output, stderr=subprocess.PIPE, text=True)
    assert result.returncode == 15
    assert result.stderr.splitlines()[-1] == ("graphkin: cannot write the output: the disk is full")


def test_a_pipe_of_our_own_is_not_passed_over() -> None:
    """Someone reads the output, so the broken pipe is another one, and a defect."""
    script = """
import sys
import typer
from graphkin.cli import main

def broken():
    raise BrokenPipeError(32, "a worker is gone")

app = typer.Typer()
app.command()(broken)
main.application = lambda verb: app
sys.argv = ["graphkin"]
main.main()
"""
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert result.returncode == 1
    assert "a worker is gone" in result.stderr
