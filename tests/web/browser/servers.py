"""Servers in processes of their own, as a person starts them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sysconfig
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.request import urlopen

PROGRAM = Path(sysconfig.get_path("scripts")) / "graphkin"
START_SECONDS = 120
END_SECONDS = 30


@contextmanager
def served(*arguments: str | Path) -> Iterator[str]:
    """The address of ``graphkin serve`` with these arguments, which ends with the context."""
    environment = {name: value for name, value in os.environ.items() if name != "GRAPHKIN_TOKEN"}
    process = subprocess.Popen(
        [PROGRAM, "serve", *arguments, "--port", "0", "--json"],
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    )
    try:
        assert process.stdout is not None
        first = process.stdout.readline()
        assert first, f"graphkin serve ended with code {process.wait()}"
        address = str(json.loads(first)["address"])
        _wait_for(address)
        yield address
    finally:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(END_SECONDS)
        finally:
            process.kill()


def _wait_for(address: str) -> None:
    end = time.monotonic() + START_SECONDS
    while True:
        try:
            urlopen(f"{address}api/status", timeout=START_SECONDS).close()
        except HTTPError:
            return
        except URLError:
            if time.monotonic() > end:
                raise
            time.sleep(0.05)
        else:
            return
