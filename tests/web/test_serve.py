"""The server as a process: what it leaves behind when it is told to stop."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path

from tests.web.browser.servers import PROGRAM


def test_a_server_that_is_told_to_stop_leaves_nothing(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [PROGRAM, "serve", "--demo", "--host", "127.0.0.2", "--port", "0", "--json"],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        address = str(json.loads(process.stdout.readline())["address"])
        assert address.startswith("http://127.0.0.2:")
        assert list(tmp_path.iterdir())
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 128 + signal.SIGTERM, errors
    assert not list(tmp_path.iterdir())
