"""A real Milvus server for the tests: one for all workers of a run, on loopback.

Whoever uses it holds a shared lock, which the system lets go of however a process ends. A keeper
process starts the server, waits for the lock to be free of users, and ends the server and its
folder; the server ends with the keeper. So nothing outlives the run, even one that was killed.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import functools
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import pytest

START_SECONDS = 240.0
ADDRESS, FAILURE, USERS, LOCK, LOG = "address", "failure", "users", "lock", "keeper.log"
LOOPBACK = "127.0.0.1"
PR_SET_PDEATHSIG = 1
FASTER = {
    "log.level": "error",
    # Milliseconds between the ticks that a read waits for, to be sure of seeing every write.
    "proxy.timeTickInterval": 20,
    # Milliseconds between looks at what is to be loaded.
    "queryCoord.checkInterval": 100,
    "queryCoord.distPullInterval": 100,
}


def milvus_address() -> str:
    """``host:port`` of the server of this run, which the first call starts; skips without one."""
    server = _start()
    if not server.address:
        pytest.skip(f"no Milvus server: {server.failure}")
    return server.address


class _Found:
    def __init__(self, folder: Path, users: IO[bytes]) -> None:
        self._users = users  # Holds the lock until the process ends.
        self.address, self.failure = _read(folder / ADDRESS), _read(folder / FAILURE)


@functools.cache
def _start() -> _Found:
    """Starts the keeper unless another worker has."""
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID") or f"process-{os.getpid()}"
    folder = Path(tempfile.gettempdir()) / f"graphkin-milvus-{os.getuid()}-{run}"
    folder.mkdir(mode=0o700, exist_ok=True)
    users = open(folder / USERS, "ab")  # noqa: SIM115
    fcntl.flock(users, fcntl.LOCK_SH)
    with open(folder / LOCK, "ab") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / ADDRESS).exists() and not (folder / FAILURE).exists():
            command = [sys.executable, __file__, str(folder)]
            with open(folder / LOG, "ab") as log:
                subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
            _wait_for_keeper(folder)
    return _Found(folder, users)


def _wait_for_keeper(folder: Path) -> None:
    end = time.monotonic() + START_SECONDS + 30
    while not (folder / ADDRESS).exists() and not (folder / FAILURE).exists():
        if time.monotonic() > end:
            _write(folder / FAILURE, f"its keeper says nothing: {_read(folder / LOG)[-500:]}")
        time.sleep(0.1)


def keep(folder: Path) -> None:
    """Runs the server until nobody uses it."""
    try:
        with open(folder / USERS, "ab") as users, _server(folder / "server") as port:
            _write(folder / ADDRESS, f"{LOOPBACK}:{port}")
            fcntl.flock(users, fcntl.LOCK_EX)
    except Exception as error:
        _write(folder / FAILURE, f"{type(error).__name__}: {error}")
        with open(folder / USERS, "ab") as users:
            fcntl.flock(users, fcntl.LOCK_EX)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def _server(folder: Path) -> Iterator[int]:
    """A server with its files in a folder; its port, once it answers."""
    server = LocalServer(folder)
    try:
        server.start()
        yield server.port
    finally:
        server.kill()


class LocalServer:
    """A server with its files in a folder, which can be killed and started again."""

    def __init__(self, folder: Path) -> None:
        from milvus import MilvusServerConfig, _initialize_data_files

        names = [name for name in MilvusServerConfig().configurable_items if name.endswith("_port")]
        free = _free_ports(len(names) + 2)
        ports = dict(zip([*names, "etcd_peer", "health"], free, strict=True))
        config = MilvusServerConfig(data_dir=str(folder), **{name: ports[name] for name in names})
        for name, value in FASTER.items():
            config.set(name, value)
        config.resolve()
        _initialize_data_files(str(folder))
        etcd = folder / "configs" / "etcd.yaml"
        etcd.write_text(_etcd_config(ports["etcd_port"], ports["etcd_peer"]))
        self.port = int(ports["proxy_port"])
        self._folder, self._health = folder, int(ports["health"])
        self._environment = os.environ | {
            "DEPLOY_MODE": "STANDALONE",
            "ETCD_CONFIG_PATH": str(etcd),
            "METRICS_PORT": str(self._health),
            "MILVUS_RUN_DIR": str(folder / "run"),
            "LD_LIBRARY_PATH": str(folder / "bin"),
        }
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Starts it, and waits until it answers."""
        program, log = self._folder / "bin" / "milvus", self._folder / "logs" / "output.log"
        with open(log, "ab") as output:
            self._process = subprocess.Popen(
                [str(program), "run", "standalone"],
                cwd=self._folder, env=self._environment, stdout=output, stderr=output,
                preexec_fn=_end_with_parent,
            )  # fmt: skip
        _wait_for_server(self._process, self._health, log)

    def kill(self) -> None:
        """Ends it at once, wherever it is."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()


def _wait_for_server(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    end = time.monotonic() + START_SECONDS
    while process.poll() is None and time.monotonic() < end:
        with contextlib.suppress(OSError):
            address = f"http://{LOOPBACK}:{port}/healthz"
            with urllib.request.urlopen(address, timeout=5) as answer:
                if b"OK" in answer.read():
                    return
        time.sleep(0.1)
    state = f"ended with {process.returncode}" if process.poll() is not None else "is not ready"
    raise RuntimeError(f"the server {state}: {_read(log)[-500:]}")


def _etcd_config(port: int, peer: int) -> str:
    own, peers = f"http://{LOOPBACK}:{port}", f"http://{LOOPBACK}:{peer}"
    return (
        f"name: default\nlisten-client-urls: {own}\nadvertise-client-urls: {own}\n"
        f"listen-peer-urls: {peers}\ninitial-advertise-peer-urls: {peers}\n"
        f"initial-cluster: default={peers}\n"
    )


def _free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as open_sockets:
        sockets = [open_sockets.enter_context(socket.socket()) for _ in range(count)]
        for own in sockets:
            own.bind((LOOPBACK, 0))
        return [own.getsockname()[1] for own in sockets]


def _end_with_parent() -> None:
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def _read(path: Path) -> str:
    return path.read_text(errors="replace") if path.exists() else ""


def _write(path: Path, text: str) -> None:
    """All of it at once, for those who wait for the file to be there."""
    beside = path.with_suffix(".new")
    beside.write_text(text)
    beside.replace(path)


if __name__ == "__main__":
    keep(Path(sys.argv[1]))
