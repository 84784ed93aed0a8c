"""Where the steps of a build run, and how: in a clean environment, ended when we end."""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from graphkin.errors import ConfigError

KEPT_VARIABLES = ("PATH", "HOME", "TMPDIR", "USER", "LOGNAME", "LD_LIBRARY_PATH")
"""What a build sees of the caller's environment: no flags, and no settings of an outer make."""


class StepError(Exception):
    """A command that could not be run, or failed."""


@contextlib.contextmanager
def workspace() -> Iterator[Path]:
    """A folder that is gone afterwards."""
    folder = tempfile.gettempdir()
    if shlex.quote(folder) != folder:
        # Makefiles and configure scripts break at spaces and the like.
        raise ConfigError(
            f"packages cannot be built in {folder!r}; set TMPDIR to a folder whose path has no "
            f"spaces or other special characters"
        )
    with tempfile.TemporaryDirectory(prefix="graphkin-build-", ignore_cleanup_errors=True) as name:
        yield Path(name)


def environment(tools: Path) -> dict[str, str]:
    """What a step sees: the programs of ``tools`` before all others, no flags of the caller's."""
    kept = {name: os.environ[name] for name in KEPT_VARIABLES if name in os.environ}
    path = f"{tools}{os.pathsep}{kept.get('PATH', os.defpath)}"
    return kept | {"PATH": path, "LC_ALL": "C", "SOURCE_DATE_EPOCH": "0"}


def run_step(
    command: list[str],
    folder: Path,
    variables: dict[str, str],
    log: IO[bytes],
    seconds: float | None = None,
) -> None:
    """Runs a command, whose output goes to the log.

    Raises:
        StepError: when it cannot be run, fails, or takes more than ``seconds``.
    """
    try:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env=variables,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    except OSError as error:
        raise StepError(f"{command[0]} cannot be run: {error.strerror}") from error
    try:
        code = process.wait(seconds)
    except BaseException as error:
        # With its children, which would go on compiling in a folder that is about to go.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        if isinstance(error, subprocess.TimeoutExpired):
            raise StepError(f"{command[0]} did not end in {seconds:g} s") from None
        raise
    if code:
        status = f"exit code {code}" if code > 0 else f"signal {-code}"
        raise StepError(f"{command[0]} ended with {status}")
