"""Functions of files that nobody vouches for, read in a process that can be lost.

They are what :mod:`graphkin.binaries.targets` gives, and so are the errors; but a file that makes
its reader hang, crash or eat all memory costs a process, and is reported.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from typing import NamedTuple, TypeVar

from graphkin.binaries.backends.base import Limits
from graphkin.binaries.backends.choose import Backend
from graphkin.binaries.function import Function, Skipped
from graphkin.binaries.targets import Target, find_function, list_functions
from graphkin.binaries.workers import Done, Failure, WorkerPool
from graphkin.errors import FormatError, GraphkinError


class Small(NamedTuple):
    """Functions of a file that have too few blocks."""

    functions: int


T = TypeVar("T")
R = TypeVar("R")

MARGIN_SECONDS = 10.0
"""Time that a process gets to report what it skipped when the time of its file is over."""


def reading_pool(jobs: int, task: Callable[[T], Iterator[R]], limits: Limits) -> WorkerPool[T, R]:
    """Processes that read files, each file within its limits."""
    seconds = limits.seconds + MARGIN_SECONDS
    return WorkerPool(jobs, task, seconds=seconds, memory_bytes=limits.memory_bytes)


def read_functions(
    target: Target,
    *,
    backend: Backend = "auto",
    min_blocks: int = 1,
    with_text: bool = False,
    limits: Limits = Limits(),  # noqa: B008 (frozen)
    skipped: list[Skipped] | None = None,
    on_small: Callable[[int], None] | None = None,
) -> Iterator[Function]:
    """Every function of a target's file, or of the member that it names.

    Args:
        target: the file, and the member.
        backend: what reads the file.
        min_blocks: functions with fewer basic blocks are left out.
        with_text: keeps the text of every instruction.
        limits: what the file may cost.
        skipped: is filled with what could not be read.
        on_small: is told at the end how many functions were left out.

    Raises:
        ConfigError: for a member that is not there.
        FormatError: for a file that cannot be read within its limits, or has no functions.
    """
    task = partial(
        _list, backend=backend, min_blocks=min_blocks, with_text=with_text, limits=limits
    )
    results: Iterator[Function | Small | Skipped] = _results(task, target, limits)
    for result in results:
        if isinstance(result, Function):
            yield result
        elif isinstance(result, Small):
            if on_small is not None:
                on_small(result.functions)
        elif skipped is not None:
            skipped.append(result)


def read_function(
    target: Target,
    backend: Backend = "auto",
    *,
    limits: Limits = Limits(),  # noqa: B008 (frozen)
) -> Function:
    """The function that a target names, with the text of its instructions.

    Raises:
        ConfigError: for a name or an address that no function has, or that several have.
        FormatError: for a file that cannot be read within its limits.
    """
    (function,) = _results(partial(_find, backend=backend, limits=limits), target, limits)
    return function


def _results(
    task: Callable[[Target], Iterator[R | GraphkinError]], target: Target, limits: Limits
) -> Iterator[R]:
    """What a task gives for a target in a process of its own; its errors are raised here."""
    pool = reading_pool(1, task, limits)
    with closing(pool.run([target])) as outcomes:  # type: ignore[type-var]
        for _, outcome in outcomes:
            if isinstance(outcome, GraphkinError):
                raise outcome
            if isinstance(outcome, Failure):
                raise FormatError(f"{target.path} cannot be read: {outcome.reason}")
            if not isinstance(outcome, Done):
                yield outcome


def _list(
    target: Target, *, backend: Backend, min_blocks: int, with_text: bool, limits: Limits
) -> Iterator[Function | Small | Skipped | GraphkinError]:
    """Runs in the process: functions, then what was left out or skipped, then what was wrong."""
    skipped: list[Skipped] = []
    small = 0
    problem: GraphkinError | None = None
    try:
        for function in list_functions(
            target, backend, skipped, with_text=with_text, limits=limits
        ):
            if len(function.blocks) >= min_blocks:
                yield function
            else:
                small += 1
    except GraphkinError as error:
        problem = error
    yield Small(small)
    yield from skipped
    if problem is not None:
        yield problem


def _find(
    target: Target, *, backend: Backend, limits: Limits
) -> Iterator[Function | GraphkinError]:
    """Runs in the process."""
    try:
        yield find_function(target, backend, limits=limits)
    except GraphkinError as error:
        yield error
