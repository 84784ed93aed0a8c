"""Work on files that may hang, crash or eat all memory, done in processes that can be lost.

A time limit inside the process does not hold while a C library runs, and nothing inside the
process survives its crash. So each worker is a process of its own, which the parent kills when
an item takes too long, and replaces when it has died.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from io import BytesIO
from math import ceil
from multiprocessing import forkserver, resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkServerContext, SpawnContext
from multiprocessing.util import get_temp_dir
from pathlib import Path
from threading import Lock
from types import ModuleType
from typing import Generic, TypeVar

from graphkin._support.confinement import confine
from graphkin.errors import GraphkinError

if sys.platform != "win32":
    import resource

T = TypeVar("T")
R = TypeVar("R")

BATCH_BYTES = 1 << 18
BATCH_SECONDS = 0.2
"""A worker sends its results when it has this many bytes of them, or after this long."""
START_SECONDS = 120.0
"""Time for a worker to import what its task needs. It does not count for the first item."""
STARTS = 3
"""Workers started for one item, where each is killed before it can say that it runs."""
PAUSE_SECONDS = 0.1
"""Before it is started again: what killed it may pass."""
PRELOADED = (
    "graphkin.binaries.reading",
    "graphkin.binaries.backends.native",
    "graphkin.binaries.formats.elf.load",
)
"""Imported once, before workers are forked. LIEF, which takes longer to load than all of these, is
imported by the worker that meets a PE or Mach-O file."""
_CAN_FORK = "forkserver" in multiprocessing.get_all_start_methods()
_MAIN_LOCK = Lock()
_SOCKET_FOLDER_LOCK = Lock()
SOCKET_PATH_BYTES = 104
"""Of the path of a socket on macOS, with a zero at its end; Linux has 108."""
SOCKET_NAME_BYTES = len("/pymp-01234567/listener-01234567")
SHORT_FOLDERS = ("/tmp", "/var/tmp", "/dev/shm")
GRACE_SECONDS = 10
"""CPU time beyond the limit after which the system ends a worker whose parent is gone."""


@dataclass(frozen=True)
class Failure:
    """The end of an item that could not be finished."""

    reason: str


@dataclass(frozen=True)
class Done:
    """The end of an item that was finished."""


@dataclass(frozen=True)
class _Message:
    """What a worker sends: results, and the end of the item with the last."""

    results: bytes = b""
    """One pickle after the other; what they share is in the first."""
    count: int = 0
    end: Done | Failure | None = None
    spent: float = 0.0
    """Seconds on the item so far, without the time that the parent took to read."""
    retires: bool = False
    """The worker exits, because its memory is no longer fit for another item."""


class WorkerPool(Generic[T, R]):
    """Runs a task on many items in several processes, within limits for each item.

    Args:
        jobs: processes to run.
        task: gives the results of one item, one by one; it must be picklable, so a function of
            a module, or a :func:`functools.partial` of one. What it prints goes to stderr.
        seconds: wall-clock time for an item. Time in which the parent does not read the results
            does not count.
        memory_bytes: address space for an item, beyond what the idle worker has. Only Linux
            enforces it.
        confined: whether the workers may only read files and answer, where Linux can see to that:
            what takes one of them over can then write nothing, start nothing and connect to nobody.
    """

    def __init__(
        self,
        jobs: int,
        task: Callable[[T], Iterator[R]],
        *,
        seconds: float,
        memory_bytes: int,
        confined: bool = False,
    ) -> None:
        self.jobs = jobs
        self.task = task
        self.seconds = seconds
        self.memory_bytes = memory_bytes
        self.confined = confined

    def run(self, items: Iterable[T]) -> Generator[tuple[T, R | Failure | Done]]:
        """Each item with its results in order, and then with one Done or Failure.

        Items are taken when a worker is free, and results of several items come interleaved.
        A worker whose results are not taken waits, so memory stays bounded. Closing the
        iterator, or leaving it by an error or Ctrl-C, ends the workers.
        """
        queue = iter(items)
        workers: list[_Worker[T, R]] = []
        try:
            for item in queue:
                workers.append(self._start(item))
                if len(workers) >= self.jobs:
                    break
            while workers:
                pause = min(worker.deadline for worker in workers) - time.monotonic()
                wait([worker.pipe for worker in workers], max(0.0, pause))
                for number, worker in reversed([*enumerate(workers)]):
                    for outcome in worker.outcomes():
                        yield worker.item, outcome
                    if worker.was_lost_at_start:
                        time.sleep(PAUSE_SECONDS)
                        workers[number] = self._start(worker.item, worker.starts + 1)
                        continue
                    if worker.is_busy:
                        continue
                    for item in queue:
                        if worker.is_alive:
                            worker.take(item)
                        else:
                            workers[number] = self._start(item)
                        break
                    else:
                        workers.pop(number).stop()
        finally:
            for worker in workers:
                worker.stop()

    def _start(self, item: T, starts: int = 1) -> _Worker[T, R]:
        return _Worker(self.task, self.seconds, self.memory_bytes, self.confined, item, starts)


class _Worker(Generic[T, R]):
    """One process, seen from the parent. It always has an item, done or not."""

    def __init__(
        self,
        task: Callable[[T], Iterator[R]],
        seconds: float,
        memory_bytes: int,
        confined: bool,
        item: T,
        starts: int,
    ) -> None:
        self._seconds = seconds
        self.starts = starts
        """Workers that were started for its first item, with this one."""
        self.was_lost_at_start = False
        context = _context(task)
        self.pipe, theirs = context.Pipe()
        self._process = context.Process(
            target=_serve, args=(task, theirs, seconds, memory_bytes, confined), daemon=True
        )
        # A process that is killed at once breaks its pipes; the first read will say so.
        with suppress(EOFError, ConnectionError), _main_for(task), _without_interrupts():
            self._process.start()
        theirs.close()
        self._has_started = False
        self.is_alive = True
        self.take(item)
        self.deadline = time.monotonic() + START_SECONDS

    def take(self, item: T) -> None:
        self.item = item
        self.is_busy = True
        self.deadline = time.monotonic() + self._seconds
        with suppress(BrokenPipeError, ConnectionResetError):  # the next read will say why
            self.pipe.send(item)

    def outcomes(self) -> Iterator[R | Failure | Done]:
        """What the worker has sent, or what became of it."""
        if not self.pipe.poll():
            # Nothing to read, so it is not this side that the worker waits for.
            if time.monotonic() >= self.deadline:
                yield self._overdue()
            return
        try:
            message: _Message = self.pipe.recv()
        except (EOFError, OSError):
            if self._has_started:
                yield self._death()
            else:
                self._lose_at_start()
            return
        self._has_started = True
        results = pickle.Unpickler(BytesIO(message.results))
        for _ in range(message.count):
            yield results.load()
        self.deadline = time.monotonic() + self._seconds - message.spent
        if message.end is not None:
            self.is_busy = False
            if message.retires:
                self.stop()
            yield message.end
        elif message.spent >= self._seconds:
            yield self._overdue()

    def stop(self) -> None:
        """Ends the process; it has nothing to lose."""
        if self.is_alive:
            self.is_alive = False
            if self._process.pid is not None:
                self._process.kill()
                self._process.join()
            self.pipe.close()

    def _overdue(self) -> Failure:
        self.stop()
        self.is_busy = False
        if not self._has_started:
            raise GraphkinError(f"a worker process did not start within {START_SECONDS:g} s")
        return Failure(f"not finished after {self._seconds:g} s")

    def _death(self) -> Failure:
        self.is_busy = False
        return Failure(_cause(self._exit_code(), self._seconds))

    def _lose_at_start(self) -> None:
        """Its item is not to blame, and can be given to another worker, unless all end so."""
        code = self._exit_code()
        self.was_lost_at_start = True
        if self.starts >= STARTS or (code is not None and code >= 0):
            raise GraphkinError(
                f"a worker process ended with code {code} before it took any work, and says why "
                "above; a script that starts workers needs \"if __name__ == '__main__':\""
            )

    def _exit_code(self) -> int | None:
        """Of a process that has closed its pipe; None where it was not even started."""
        if self._process.pid is not None:
            self._process.join(GRACE_SECONDS)
        code = self._process.exitcode
        self.stop()
        return code


def _cause(code: int | None, seconds: float) -> str:
    """What the exit code of a worker tells."""
    if code is None or code >= 0:
        return f"the process that read it ended with code {code}"
    if code == -signal.SIGKILL:
        return "the process that read it was killed, most likely for want of memory"
    if code == -signal.SIGXCPU:
        return f"not finished after {seconds:g} s"
    return f"the process that read it crashed with {signal.Signals(-code).name}"


def _context(task: Callable[[T], Iterator[R]]) -> ForkServerContext | SpawnContext:
    """Workers are forked from a small server that has imported the task, and nothing else.

    A fork of the parent would take its threads' locks and its open files with it.
    """
    if not _CAN_FORK:
        return multiprocessing.get_context("spawn")
    return _prepare_server(_home(task))


def _prepare_server(home: str | None) -> ForkServerContext:
    """Says what the server imports, which it does once."""
    context = multiprocessing.get_context("forkserver")
    _choose_socket_folder()
    context.set_forkserver_preload([__name__, *([home] if home else []), *PRELOADED])
    return context


def start_server() -> None:
    """Lets the server that workers are forked from start, while the caller does other things.

    It imports what reads binaries, which takes longer than most files do.
    """
    if not _CAN_FORK:
        return
    _prepare_server(None)
    with _without_interrupts():
        forkserver.ensure_running()


def _choose_socket_folder() -> None:
    """Makes the folder of this process for sockets where their paths are short enough to bind.

    multiprocessing makes it in the folder of temporary files, once, and removes it at the end.
    """
    usual = tempfile.gettempdir()
    if len(os.fsencode(usual)) + SOCKET_NAME_BYTES < SOCKET_PATH_BYTES:
        return
    folder = next((path for path in SHORT_FOLDERS if os.access(path, os.W_OK | os.X_OK)), None)
    if folder is None:
        raise GraphkinError(
            f"the path of the folder for temporary files, {usual}, is too long for sockets; set "
            "TMPDIR to a shorter one"
        )
    with _SOCKET_FOLDER_LOCK:
        tempfile.tempdir = folder
        try:
            get_temp_dir()
        finally:
            tempfile.tempdir = usual


@contextmanager
def _without_interrupts() -> Iterator[None]:
    """What is started in here never sees Ctrl-C, also while it imports: the parent handles it.

    A signal that comes meanwhile reaches the parent at the end.
    """
    if sys.platform == "win32":
        yield
        return
    resource_tracker.ensure_running()  # unblocks signals
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _home(task: Callable[[T], Iterator[R]]) -> str | None:
    """The module that a task is defined in."""
    return getattr(getattr(task, "func", task), "__module__", None)


@contextmanager
def _main_for(task: Callable[[T], Iterator[R]]) -> Iterator[None]:
    """Lets a worker import the caller's script only where the task is defined in it.

    Otherwise a script without ``if __name__ == "__main__":`` would run again in each worker, and
    one from standard input could not be imported at all.
    """
    if _home(task) == "__main__":
        yield
        return
    with _MAIN_LOCK:
        caller = sys.modules["__main__"]
        sys.modules["__main__"] = ModuleType("__main__")
        try:
            yield
        finally:
            sys.modules["__main__"] = caller


def _serve(
    task: Callable[[T], Iterator[R]],
    pipe: Connection,
    seconds: float,
    memory_bytes: int,
    confined: bool,
) -> None:
    """Runs in the worker: items in, messages out, until the parent is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle
    os.dup2(2, 1)  # stdout is for data
    if confined:
        confine()
    baseline = _address_space()
    if baseline is not None:
        _lower(resource.RLIMIT_AS, baseline + memory_bytes)
        _lower(resource.RLIMIT_CORE, 0)
    with suppress(EOFError, BrokenPipeError, ConnectionResetError):
        pipe.send(_Message())
        while True:
            item = pipe.recv()
            if baseline is not None:
                _lower(resource.RLIMIT_CPU, ceil(time.process_time() + seconds) + GRACE_SECONDS)
            outbox = _Outbox(pipe)
            end: Done | Failure = Done()
            is_spent = False
            try:
                for result in task(item):
                    outbox.add(result)
            except MemoryError:
                end = Failure(f"it takes more than {memory_bytes >> 20} MB of memory")
                is_spent = True
            except (BrokenPipeError, ConnectionResetError):
                raise
            except Exception as error:
                end = Failure(_describe(error))
            size = _address_space()
            if baseline is not None and size is not None:
                # Memory that an item leaves behind would count for the next.
                is_spent |= size > baseline + memory_bytes // 4
            outbox.close(end, is_spent)
            if is_spent:
                return


class _Outbox:
    """Collects the results of one item into messages."""

    def __init__(self, pipe: Connection) -> None:
        self._pipe = pipe
        self._begin()
        self._since = time.monotonic()
        self._spent = 0.0
        self._sent = self._since

    def _begin(self) -> None:
        """Begins a message."""
        self._results = BytesIO()
        self._pickler = pickle.Pickler(self._results, pickle.HIGHEST_PROTOCOL)
        self._size = self._count = 0

    def add(self, result: object) -> None:
        """Adds a result, all of it or nothing."""
        self._pickler.dump(result)
        self._size = self._results.tell()
        self._count += 1
        if self._size >= BATCH_BYTES or time.monotonic() - self._sent >= BATCH_SECONDS:
            self._send(None, False)

    def close(self, end: Done | Failure, retires: bool) -> None:
        self._send(end, retires)

    def _send(self, end: Done | Failure | None, retires: bool) -> None:
        self._spent += time.monotonic() - self._since
        results = self._results.getvalue()[: self._size]
        self._pipe.send(_Message(results, self._count, end, self._spent, retires))
        self._begin()
        self._since = self._sent = time.monotonic()


def _describe(error: Exception) -> str:
    """One line; the name of the class only where graphkin has no words of its own for it."""
    text = " ".join(str(error).split())
    return text if isinstance(error, GraphkinError) else f"{type(error).__name__}: {text}"


def _address_space() -> int | None:
    """Bytes of address space of this process; None where the system does not say."""
    try:
        pages = Path("/proc/self/statm").read_text("ascii").split()[0]
    except OSError:
        return None
    return int(pages) * resource.getpagesize()


def _lower(kind: int, limit: int) -> None:
    """Sets a soft limit of this process, within the hard one."""
    _, hard = resource.getrlimit(kind)
    resource.setrlimit(kind, (limit if hard == resource.RLIM_INFINITY else min(limit, hard), hard))
