"""Nothing is fetched, and nobody is told: no command but ``serve`` makes a connection."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from graphkin.binaries import samples

WITHOUT_NETWORK = """
import socket, sys
real = socket.socket

class Local(real):
    def __init__(self, family=socket.AF_INET, *args, **named):
        if family != socket.AF_UNIX:  # between this process and its workers
            raise AssertionError("a socket of the network was made")
        super().__init__(family, *args, **named)

def refuse(*args, **named):
    raise AssertionError("a name was looked up")

socket.socket = Local
for name in ("create_connection", "getaddrinfo", "gethostbyname"):
    setattr(socket, name, refuse)
from graphkin.cli.main import main
sys.argv = ["graphkin", *sys.argv[1:]]
main()
"""


def run(folder: Path, *words: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_NETWORK, *words],
        cwd=folder, env={**os.environ, "HOME": str(folder)}, capture_output=True, text=True,
    )  # fmt: skip
    assert "AssertionError" not in done.stderr, done.stderr
    assert done.returncode in (0, 20), done.stderr
    return done.stdout


def test_index_and_scan_make_no_connection(tmp_path: Path) -> None:
    run(tmp_path, "index", "library.kin", str(samples.path("gcc-O2/libkinbeat.so")))
    assert "process_heartbeat" in run(tmp_path, "scan", "library.kin", str(samples.FIRMWARE))


def test_the_check_would_notice(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_NETWORK, "serve", "--port", "0"],
        cwd=tmp_path, capture_output=True, text=True,
    )  # fmt: skip
    assert "a socket of the network was made" in done.stderr
