"""Work in threads: a bounded pool for requests, jobs that outlast a request, and their events."""

from __future__ import annotations

import asyncio
import logging
import queue
import secrets
import threading
import time
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from time import monotonic
from typing import Generic, TypeVar

from fastapi.responses import StreamingResponse
from pydantic import BaseModel

from graphkin._support.threads import take_one_thread
from graphkin.errors import GraphkinError
from graphkin.results.text import printable
from graphkin.web.api_documents import State
from graphkin.web.http_errors import BusyError, UnknownError
from graphkin.web.limits import MOST_WAITING_JOBS

log = logging.getLogger(__name__)
R = TypeVar("R")
LOOK_SECONDS = 0.1
"""Between two looks at a job: a person sees no difference, and nothing crosses threads."""
QUIET_SECONDS = 15.0
"""After which a comment is sent, so that nothing between takes the stream for dead."""
RESULTS_AT_ONCE = 200
"""Results in one event."""


class BoundedPool:
    """Runs the work of requests in threads, some at a time; the others wait, and not too many."""

    def __init__(self, name: str, threads: int, most_waiting: int) -> None:
        # Several products at once, each by one thread, are faster than one after the other by all.
        self._pool = ThreadPoolExecutor(threads, name, initializer=take_one_thread)
        self._most = most_waiting
        self._count = 0

    async def run(self, work: Callable[[], R]) -> R:
        """The result of ``work``; where the client has gone before its turn, it is left out."""
        if self._count >= self._most:
            raise BusyError("the server has too much to do; try again in some seconds")
        self._count += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._pool, work)
        finally:
            self._count -= 1

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)


class Cancelled(Exception):
    """Raised inside a job that was asked to stop."""


class Job(ABC):
    """One piece of work. Its thread changes it, requests only read."""

    def __init__(self) -> None:
        self.id = secrets.token_hex(8)
        self.state: State = "waiting"
        self.error: str | None = None
        self.changes = 0
        """Rises with every change that a watcher should see."""
        self._stop = threading.Event()
        self._began: float | None = None
        self._ended: float | None = None

    @property
    def is_over(self) -> bool:
        return self.state in ("done", "failed", "cancelled")

    @property
    def seconds(self) -> float:
        """Of work so far."""
        if self._began is None:
            return 0.0
        return (self._ended or time.monotonic()) - self._began

    @abstractmethod
    def work(self) -> None:
        """What is to be done; it calls :meth:`checkpoint` now and then."""

    def checkpoint(self) -> None:
        """Tells watchers of progress, and ends the work where it was cancelled."""
        self.changes += 1
        if self._stop.is_set():
            raise Cancelled

    def cancel(self) -> None:
        self._stop.set()
        if self.state == "waiting":
            self._end("cancelled")

    def run(self) -> None:
        """Works, and keeps what becomes of it."""
        if self.is_over:
            return
        self._began = time.monotonic()
        self.state = "running"
        try:
            self.checkpoint()
            self.work()
        except Cancelled:
            self._end("cancelled")
        except GraphkinError as error:
            self.error = printable(str(error))
            self._end("failed")
        except Exception:
            log.exception("a job failed")
            self.error = "the server failed; its log says why"
            self._end("failed")
        else:
            self._end("done")

    def _end(self, state: State) -> None:
        self._ended = time.monotonic()
        self.state = state
        self.changes += 1


J = TypeVar("J", bound=Job)


class JobQueue(Generic[J]):
    """Jobs of one kind: those that wait, the one that runs, and the latest that are over."""

    def __init__(self, name: str, remembered: int) -> None:
        self._remembered = remembered
        self._lock = threading.Lock()
        self._jobs: OrderedDict[str, J] = OrderedDict()
        self._waiting: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._serve, name=name, daemon=True)
        self._thread.start()

    def add(self, job: J) -> J:
        with self._lock:
            if sum(other.state == "waiting" for other in self._jobs.values()) >= MOST_WAITING_JOBS:
                raise BusyError(
                    f"{MOST_WAITING_JOBS} jobs are waiting already; try again when one is done"
                )
            self._jobs[job.id] = job
            over = [other.id for other in self._jobs.values() if other.is_over]
            for oldest in over[: max(0, len(self._jobs) - self._remembered)]:
                del self._jobs[oldest]
        self._waiting.put(job.run)
        return job

    def get(self, number: str) -> J:
        with self._lock:
            job = self._jobs.get(number)
        if job is None:
            raise UnknownError("the server does not know this job, or no longer; start it again")
        return job

    def newest_first(self) -> list[J]:
        with self._lock:
            return [*reversed(self._jobs.values())]

    def drop(self, number: str) -> None:
        """Cancels a job; one that is over is forgotten."""
        job = self.get(number)
        if job.is_over:
            with self._lock:
                self._jobs.pop(number, None)
        else:
            job.cancel()

    def close(self) -> None:
        """Cancels everything, and waits for what runs to notice."""
        for job in self.newest_first():
            job.cancel()
        self._waiting.put(None)
        self._thread.join(timeout=10)

    def _serve(self) -> None:
        while (run := self._waiting.get()) is not None:
            run()


def stream(
    job: Job,
    body: Callable[[], BaseModel],
    results: Sequence[BaseModel] = (),
    seen: int = 0,
) -> StreamingResponse:
    """The server-sent events of a job: ``results`` as they come, ``progress``, and at last ``end``.

    Args:
        job: is watched.
        body: the job as a document.
        results: results so far; a list that only grows. Each event's id says how many were sent.
        seen: results that the client has already.
    """
    events = _events(job, body, results, max(seen, 0))
    return StreamingResponse(events, media_type="text/event-stream")


async def _events(
    job: Job, body: Callable[[], BaseModel], results: Sequence[BaseModel], sent: int
) -> AsyncIterator[str]:
    changes, told = -1, monotonic()
    while True:
        # Read first, so that nothing that came before the end is left out.
        is_over, latest = job.is_over, job.changes
        while sent < len(results):
            batch = results[sent : sent + RESULTS_AT_ONCE]
            sent += len(batch)
            listed = ",".join(result.model_dump_json() for result in batch)
            yield _event("results", f'{{"results":[{listed}]}}', sent)
        if is_over:
            yield _event("end", body().model_dump_json(), sent)
            return
        if latest != changes:
            document = body().model_dump_json()
            # One that has ended meanwhile has results that come first.
            if not job.is_over:
                changes, told = latest, monotonic()
                yield _event("progress", document, sent)
        elif monotonic() - told > QUIET_SECONDS:
            told = monotonic()
            yield ": still here\n\n"
        await asyncio.sleep(LOOK_SECONDS)


def _event(name: str, data: str, number: int) -> str:
    return f"event: {name}\nid: {number}\ndata: {data}\n\n"
