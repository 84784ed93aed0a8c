"""The world around a run: the processes of torchrun, and the signals that ask it to stop."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Iterator

import torch

from graphkin.errors import ConfigError


@contextlib.contextmanager
def process_group(batch_size: int) -> Iterator[tuple[int, int]]:
    """(rank, world); under torchrun joins the group of processes, and leaves it at the end."""
    world = int(os.environ.get("WORLD_SIZE", "1"))
    if world == 1:
        yield 0, 1
        return
    if batch_size % world:
        raise ConfigError(f"batch_size {batch_size} does not split over {world} processes")
    if torch.cuda.is_available():
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    torch.distributed.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
    try:
        yield torch.distributed.get_rank(), world
    finally:
        torch.distributed.destroy_process_group()


def _device() -> str:
    """Where the processes exchange single numbers."""
    return "cuda" if torch.distributed.get_backend() == "nccl" else "cpu"


def agreed(stop: bool, world: int) -> bool:
    """Whether any process wants to stop: all must leave the loop at the same step."""
    if world == 1:
        return stop
    flag = torch.tensor(int(stop), device=_device())
    torch.distributed.all_reduce(flag, op=torch.distributed.ReduceOp.MAX)
    return bool(flag)


def mean_over_processes(value: float, world: int) -> float:
    """The mean of a number over all processes."""
    if world == 1:
        return value
    total = torch.tensor(value, dtype=torch.float64, device=_device())
    torch.distributed.all_reduce(total)
    return float(total) / world


@contextlib.contextmanager
def stop_signals() -> Iterator[threading.Event]:
    """An event that Ctrl-C and SIGTERM set, so that a step is never cut in two."""
    event = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield event
        return
    numbers = (signal.SIGINT, signal.SIGTERM)
    previous = [signal.signal(number, lambda *_: event.set()) for number in numbers]
    try:
        yield event
    finally:
        for number, handler in zip(numbers, previous, strict=True):
            signal.signal(number, handler)
