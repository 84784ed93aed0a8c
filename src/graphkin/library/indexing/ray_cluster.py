"""Files read and embedded by the machines of a Ray cluster, stored by this one alone.

A task reads and embeds a few files, and sends its rows in chunks. A task that is lost with its
worker or its machine is started again from its first file that is not complete, file by file,
so that one that kills its workers is found out and given up. Rows are stored by one process,
and their keys come from their content, so what comes twice is stored once.
"""

from __future__ import annotations

import os
import socket
import sys
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, redirect_stdout, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from graphkin._support.files import hash_file
from graphkin.binaries.function import Skipped
from graphkin.errors import ConfigError, FormatError, MissingDependencyError
from graphkin.graphs.vocabulary import Vocabulary
from graphkin.library.indexing.batches import Chunk, Embedding, FileEnd, batches, ready
from graphkin.library.indexing.file_queue import FileJob, ReadSettings, groups

if TYPE_CHECKING:
    from graphkin.library.models import SearchModel

RAY_MISSING = "bulk work over many machines needs Ray: pip install 'graphkin[ray]'"
ATTEMPTS = 4
"""Times that a file is tried while its worker, or its machine, is lost each time."""
TASK_BYTES, TASK_FILES = 4 << 20, 64
"""Small files are sent together, up to this many bytes and files."""
TASKS_PER_CPU = 2
"""Tasks that are with the cluster at a time: one at work, and one to follow."""
CHUNKS_AHEAD = 2
"""Chunks of a task that wait to be stored; the task waits then."""
WAIT_SECONDS = 10.0
CONNECT_SECONDS = 10.0


@dataclass(frozen=True)
class _Absent:
    """A worker does not find a file, or finds another in its place."""

    path: str


@dataclass
class _Task:
    """Files that one task is to read."""

    left: dict[str, FileJob]
    """Those that have not ended, by path."""
    attempt: int = 1
    sends_bytes: bool = False
    """Whether the content goes along, because workers cannot read the files."""


def ray_chunks(
    jobs: Iterator[FileJob],
    model: SearchModel,
    settings: ReadSettings,
    tags: Mapping[str, str],
    address: str,
    restart: Callable[[str], None],
) -> Generator[Chunk]:
    """What the files give, in the order in which the cluster is done with it.

    Workers read files from the path that this process has, where that leads to the same bytes
    (one machine, or shared storage). Else the bytes are sent through Ray's object store.

    Args:
        jobs: the files; they are taken as the cluster has room for them.
        model: what embeds; it goes into the object store once.
        settings: how files are read, with limits that hold on every machine.
        tags: of every function.
        address: ``local`` starts Ray here for the time of this call.
        restart: is told the path of a file that is read again from its beginning.
    """
    # Ray reports lost workers on stdout, which is for data.
    with redirect_stdout(sys.stderr), _connected(address) as ray:
        yield from _Driver(ray, model, settings, tags, restart).run(jobs)


@contextmanager
def _connected(address: str) -> Iterator[Any]:
    """Ray, connected, unless the process is connected already; whoever connects disconnects."""
    # Read when Ray is imported: a Ray of one machine then listens on the loopback device only.
    if address == "local":
        os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        import ray
    except ImportError as error:
        raise MissingDependencyError(RAY_MISSING) from error
    if ray.is_initialized():
        yield ray
        return
    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": "WARNING"}
    if address == "local":
        ray.init(address, include_dashboard=False, **quiet)
    else:
        _check_address(address)
        ray.init(address, **quiet)
    try:
        yield ray
    finally:
        ray.shutdown()


def _check_address(address: str) -> None:
    """Refuses an address where nothing listens; Ray itself would try for minutes."""
    host, _, port = address.rpartition(":")
    try:
        with socket.create_connection((host.strip("[]"), int(port)), CONNECT_SECONDS):
            pass
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"no Ray cluster at {address}: {error}; give 'local', or the host:port of a head node "
            "that was started by: ray start --head"
        ) from error


class _Driver:
    """Keeps the cluster busy, and tries again what was lost."""

    def __init__(
        self,
        ray: Any,
        model: SearchModel,
        settings: ReadSettings,
        tags: Mapping[str, str],
        restart: Callable[[str], None],
    ) -> None:
        self._ray = ray
        self._settings = settings.text
        self._restart = restart
        self._work = ray.remote(
            max_retries=0,  # a lost task is not repeated as it was, but file by file
            _generator_backpressure_num_objects=CHUNKS_AHEAD,
        )(_work)
        self._shared = ray.put(_embedder_files(model.files)), settings, dict(tags)
        self._running: dict[Any, _Task] = {}
        self._again: deque[_Task] = deque()

    def run(self, jobs: Iterator[FileJob]) -> Generator[Chunk]:
        waiting = groups(jobs, TASK_BYTES, TASK_FILES)
        try:
            self._fill(waiting)
            while self._running:
                # A task is ready when it has a chunk, or its end.
                ready_tasks, _ = self._ray.wait(list(self._running), timeout=WAIT_SECONDS)
                for results in ready_tasks:
                    yield from self._next(results)
                self._fill(waiting)
        finally:
            for results in self._running:
                self._ray.cancel(results, force=True)

    def _fill(self, waiting: Iterator[tuple[FileJob, ...]]) -> None:
        """Starts as many tasks as the cluster, as large as it is now, has room for."""
        room = TASKS_PER_CPU * max(1, int(self._ray.cluster_resources().get("CPU", 1)))
        while len(self._running) < room:
            if self._again:
                self._start(self._again.popleft())
                continue
            group = next(waiting, None)
            if group is None:
                return
            self._start(_Task({job.path: job for job in group}))

    def _start(self, task: _Task) -> None:
        contents = {}
        if task.sends_bytes:
            with suppress(OSError):  # the worker will say that it is absent
                contents = {
                    path: Path(job.copy or path).read_bytes() for path, job in task.left.items()
                }
        # Workers have another working directory.
        jobs = [
            job._replace(copy=os.path.abspath(job.copy or path)) for path, job in task.left.items()
        ]
        results = self._work.remote(*self._shared, jobs, contents)
        self._running[results] = task

    def _next(self, results: Any) -> Iterator[Chunk]:
        """The next chunk of a task that has one, or what became of it."""
        task = self._running[results]
        try:
            item = self._ray.get(next(results))
        except StopIteration:
            del self._running[results]
            return
        except self._ray.exceptions.RayError as error:
            del self._running[results]
            yield from self._lost(task, error)
            return
        if isinstance(item, _Absent):
            job = task.left.pop(item.path)
            if task.sends_bytes:
                yield self._given_up(item.path, "it is gone, or has changed since it was listed")
            else:
                self._again.append(_Task({item.path: job}, task.attempt, sends_bytes=True))
            return
        for end in item.ends:
            del task.left[end.path]
        yield item

    def _lost(self, task: _Task, error: Exception) -> Iterator[Chunk]:
        """Plans the files of a task that was lost anew, each by itself, or gives them up."""
        for path, job in task.left.items():
            self._restart(path)
            if task.attempt < ATTEMPTS:
                self._again.append(_Task({path: job}, task.attempt + 1, task.sends_bytes))
                continue
            reason = f"given up after {ATTEMPTS} attempts on Ray: {_first_line(error)}"
            yield self._given_up(path, reason)

    def _given_up(self, path: str, reason: str) -> Chunk:
        skipped = [Skipped(path, "", reason)]
        return Chunk([], Counter(), [FileEnd(path, "", self._settings, skipped=skipped)], 0.0)


def _first_line(error: Exception) -> str:
    text = str(error).strip().partition("\n")[0]
    return f"{type(error).__name__}: {text}"


def _embedder_files(files: Mapping[str, bytes]) -> dict[str, bytes]:
    """What of a model's files embedding needs."""
    from graphkin.library.models import EMBEDDER, ID_FILE

    return {
        name: content
        for name, content in files.items()
        if name == ID_FILE or name.startswith(f"{EMBEDDER}/")
    }


# --- What runs on the workers -------------------------------------------------------------


_models: dict[str, tuple[Embedding, Vocabulary]] = {}
"""The model of this process, by the hash of its weights."""


def _work(
    files: Mapping[str, bytes],
    settings: ReadSettings,
    tags: Mapping[str, str],
    jobs: Sequence[FileJob],
    contents: Mapping[str, bytes],
) -> Iterator[Chunk | _Absent]:
    """Reads and embeds files; reading is done by a process that may be lost."""
    embedding, vocabulary = _loaded(files)
    with TemporaryDirectory(prefix="graphkin-") as folder:
        present = []
        for number, job in enumerate(jobs):
            if job.path in contents:
                copy = Path(folder, str(number))
                copy.write_bytes(contents[job.path])
                present.append(job._replace(copy=str(copy)))
            elif _is_here(job):
                present.append(job)
            else:
                yield _Absent(job.path)
        with closing(settings.pool(1).run(present)) as results:
            functions = ready(
                results, vocabulary, tags, settings.min_blocks, named_only=settings.named_only
            )
            for batch in batches(functions, settings.text):
                yield embedding.chunk(batch)


def _is_here(job: FileJob) -> bool:
    try:
        return hash_file(job.copy or job.path) == job.file_hash
    except FormatError:
        return False


def _loaded(files: Mapping[str, bytes]) -> tuple[Embedding, Vocabulary]:
    from graphkin.library.models import SearchModel, read_model_id

    weights = read_model_id(files).weights
    if weights not in _models:
        import torch

        torch.set_num_threads(1)
        model = SearchModel.from_files(files)
        _models.clear()
        _models[weights] = Embedding(model), model.vocabulary
    return _models[weights]
