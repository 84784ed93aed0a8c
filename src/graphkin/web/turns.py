"""Work in threads: some at a time, the others wait."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import torch

from graphkin.web.errors import BusyError

R = TypeVar("R")


class Turns:
    """A bounded pool. Work whose client has gone is left out when its turn comes."""

    def __init__(self, name: str, threads: int, most_waiting: int) -> None:
        self._pool = ThreadPoolExecutor(threads, name, initializer=_one_thread)
        self._most = most_waiting
        self._count = 0

    async def run(self, work: Callable[[], R]) -> R:
        """What ``work`` gives; it runs in a thread of its own."""
        if self._count >= self._most:
            raise BusyError("the server has too much to do; try again in some seconds")
        self._count += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._pool, work)
        finally:
            self._count -= 1

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)


def _one_thread() -> None:

    # Several products at once, each by one thread, are faster than one after the other by all.
    torch.set_num_threads(1)
