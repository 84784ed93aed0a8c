"""Batches made ahead of time, so that generating data never holds training back."""

from __future__ import annotations

import contextlib
import queue
import threading
from collections.abc import Callable, Generator

from graphkin.graphs import PairBatch

PREFETCH = 4
"""Batches that the worker keeps ready."""


def prefetch(make: Callable[[int], PairBatch], start: int, stop: int) -> Generator[PairBatch]:
    """make(start), ..., make(stop - 1), computed ahead by a thread of their own."""
    ready: queue.Queue[PairBatch | BaseException] = queue.Queue(maxsize=PREFETCH)
    closed = threading.Event()

    def put(item: PairBatch | BaseException) -> None:
        while not closed.is_set():
            with contextlib.suppress(queue.Full):
                ready.put(item, timeout=0.1)
                return

    def work() -> None:
        try:
            for step in range(start, stop):
                if closed.is_set():
                    return
                put(make(step))
        except BaseException as error:
            put(error)

    worker = threading.Thread(target=work, name="graphkin-batches", daemon=True)
    worker.start()
    try:
        for _ in range(start, stop):
            item = ready.get()
            if isinstance(item, BaseException):
                raise item
            yield item
    finally:
        closed.set()
        worker.join()
