"""How many threads matrix products take: those of numpy, and of torch where it is loaded."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from threadpoolctl import ThreadpoolController, threadpool_limits


def take_one_thread() -> None:
    """From now on a product takes one thread: several at once are faster than one by all."""
    threadpool_limits(1)
    if (torch := sys.modules.get("torch")) is not None:
        torch.set_num_threads(1)


@contextmanager
def one_thread() -> Iterator[None]:
    """While this lasts, a product takes one thread.

    Products of a few thousand rows gain little from a second one, which waits for the next by
    turning in circles: a search took twice the time of the processor, beside other work more.
    """
    torch = sys.modules.get("torch")
    threads = None if torch is None else torch.get_num_threads()
    with _controller().limit(limits=1):
        if torch is not None:
            torch.set_num_threads(1)
        try:
            yield
        finally:
            if torch is not None:
                torch.set_num_threads(threads)


@cache
def _controller() -> ThreadpoolController:
    """Looks once for the libraries that have threads."""
    return ThreadpoolController()
