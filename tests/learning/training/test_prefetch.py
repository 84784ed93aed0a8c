"""Batches made ahead: their order, their errors, and the end of their thread."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest

from graphkin.learning.training.loop import PREFETCH, prefetch


def workers() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "graphkin-batches"]


def wait_for(condition: Any) -> None:
    deadline = time.monotonic() + 100
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


@pytest.mark.parametrize(("start", "stop"), [(0, 50), (7, 9), (5, 5), (0, 1)])
def test_batches_come_in_order(start: int, stop: int) -> None:
    assert list(prefetch(lambda step: step * step, start, stop)) == [
        step * step for step in range(start, stop)
    ]
    assert not workers()


def test_order_holds_when_making_takes_its_time() -> None:
    def make(step: int) -> Any:
        time.sleep(0.01 if step % 3 else 0)
        return step

    assert list(prefetch(make, 0, 12)) == list(range(12))


def test_batches_are_made_ahead_by_another_thread_but_not_without_end() -> None:
    made: list[int] = []
    makers: set[int] = set()

    def make(step: int) -> Any:
        makers.add(threading.get_ident())
        made.append(step)
        return step

    batches = prefetch(make, 0, 1000)
    assert next(batches) == 0
    wait_for(lambda: len(made) >= PREFETCH + 1)
    time.sleep(0.3)
    assert len(made) <= PREFETCH + 2
    assert threading.get_ident() not in makers
    batches.close()


@pytest.mark.parametrize("error", [ValueError("broken"), KeyboardInterrupt("now")])
def test_an_error_comes_in_its_place(error: BaseException) -> None:
    def make(step: int) -> Any:
        if step == 3:
            raise error
        return step

    batches = prefetch(make, 0, 10)
    assert [next(batches) for _ in range(3)] == [0, 1, 2]
    with pytest.raises(type(error)) as caught:
        next(batches)
    assert caught.value is error
    assert not workers()


def test_the_thread_ends_when_the_consumer_stops_early() -> None:
    made: list[int] = []

    def make(step: int) -> Any:
        made.append(step)
        return step

    batches = prefetch(make, 0, 1000)
    next(batches)
    assert len(workers()) == 1
    # Wait until the worker is stuck on a full queue.
    wait_for(lambda: len(made) == PREFETCH + 2)
    batches.close()
    assert not workers()
    assert len(made) <= PREFETCH + 3


def test_the_thread_ends_when_the_consumer_fails() -> None:
    batches = prefetch(lambda step: step, 0, 1000)
    next(batches)
    with pytest.raises(RuntimeError, match="consumer"):
        batches.throw(RuntimeError("consumer"))
    assert not workers()


def test_no_thread_for_batches_that_nobody_asks_for() -> None:
    batches = prefetch(lambda step: step, 0, 1000)
    batches.close()
    assert not workers()
