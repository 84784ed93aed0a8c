"""What a confined process can no longer do, tried in a process of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from graphkin._support.confinement import landlock_version

needs_landlock = pytest.mark.skipif(not landlock_version(), reason="this kernel has no Landlock")
needs_linux = pytest.mark.skipif(sys.platform != "linux", reason="only Linux confines processes")
TRY = """
import os, socket, subprocess, sys, signal
from pathlib import Path
from graphkin._support.confinement import confine
kept = open("kept", "a")
confine()
try:
    {action}
except PermissionError:
    sys.exit(42)
"""


def try_confined(action: str, folder: Path) -> int:
    (folder / "there").write_text("content")
    command = [sys.executable, "-c", TRY.format(action=action)]
    return subprocess.run(command, cwd=folder, check=False).returncode


@needs_landlock
@pytest.mark.parametrize(
    "action",
    [
        "open('new', 'w')",
        "open('there', 'a')",
        "os.remove('there')",
        "os.mkdir('folder')",
        "os.symlink('there', 'link')",
        "os.rename('there', 'other')",
        "os.truncate('there', 0)",
        "os.kill(os.getppid(), 0)",
    ],
)
def test_files_and_other_processes_are_out_of_reach(action: str, tmp_path: Path) -> None:
    assert try_confined(action, tmp_path) == 42
    assert (tmp_path / "there").read_text() == "content"
    assert {path.name for path in tmp_path.iterdir()} == {"kept", "there"}


@needs_linux
@pytest.mark.parametrize(
    "action",
    [
        "socket.socket()",
        "socket.socket(socket.AF_INET, socket.SOCK_DGRAM)",
        "socket.socket(socket.AF_UNIX)",
        "os.execv(sys.executable, ['python', '-c', ''])",
        "subprocess.run(['true'])",
    ],
)
def test_no_sockets_and_no_other_programs(action: str, tmp_path: Path) -> None:
    assert try_confined(action, tmp_path) == 42


@needs_linux
@pytest.mark.parametrize(
    "action",
    [
        "assert Path('there').read_text() == 'content'",
        "kept.write('more'); kept.close()",
        "open(os.devnull, 'w').write('x')",
        "__import__('threading').Thread(target=print).start()",
        "os._exit(0) if os.fork() == 0 else os.wait()",
        "import mmap; mmap.mmap(-1, 4096)",
    ],
)
def test_what_reading_needs_is_left(action: str, tmp_path: Path) -> None:
    assert try_confined(action, tmp_path) == 0
