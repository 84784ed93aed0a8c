"""Functions of files that nobody vouches for, read in a process that can be lost.

They are what :mod:`graphkin.binaries.targets` gives, and so are the errors; but a file that makes
its reader hang, crash or eat all memory costs a process, and is reported.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from typing import NamedTuple, TypeVar

from graphkin.binaries.backends.base import Limits
from graphkin.binaries.backends.choose import Backend, is_raw
from graphkin.binaries.coverage import Coverage
from graphkin.binaries.function import Function, Skipped
from graphkin.binaries.inputs import Input, Inputs
from graphkin.binaries.targets import Target, find_function, list_functions, nothing_read, shortened
from graphkin.binaries.workers import Done, Failure, WorkerPool
from graphkin.errors import ConfigError, FormatError, GraphkinError, NoCodeError


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
    return WorkerPool(jobs, task, seconds=seconds, memory_bytes=limits.memory_bytes, confined=True)


def read_functions(
    target: Target,
    *,
    backend: Backend = "auto",
    min_blocks: int = 1,
    with_text: bool = False,
    with_files: bool = False,
    with_evidence: bool = False,
    limits: Limits = Limits(),  # noqa: B008 (frozen)
    skipped: list[Skipped] | None = None,
    on_small: Callable[[int], None] | None = None,
    coverages: list[Coverage] | None = None,
) -> Iterator[Function]:
    """Every function of a target's file, or of the member that it names.

    The functions of a folder, or of a container, are those of all binaries in it.

    Args:
        target: the file, and the member.
        backend: what reads the file.
        min_blocks: functions with fewer basic blocks are left out, unless they were read with
            evidence, and say enough to be known by.
        with_text: keeps the text of every instruction.
        with_files: tells in which file a function was written, where the backend knows.
        with_evidence: tells what functions say, where the backend knows.
        limits: what the file may cost.
        skipped: is filled with what could not be read.
        on_small: is told at the end how many functions were left out.
        coverages: is filled with how much of the code is inside functions.

    Raises:
        ConfigError: for a member that is not there.
        FormatError: for a file that cannot be read within its limits, or has no functions.
    """
    skipped = [] if skipped is None else skipped
    task = partial(
        _list,
        backend=backend,
        min_blocks=min_blocks,
        with_text=with_text,
        with_files=with_files,
        with_evidence=with_evidence,
        limits=limits,
    )
    already, is_whole, is_empty, small = len(skipped), True, True, 0
    with Inputs(limits, skipped=skipped, as_is=is_raw(backend)) as inputs:
        pool = reading_pool(1, task, limits)
        jobs = (_Job(target, item) for item in _inputs_of(target, inputs))
        with closing(pool.run(jobs)) as outcomes:
            for job, outcome in outcomes:
                if isinstance(outcome, Function):
                    yield outcome
                elif isinstance(outcome, Small):
                    small += outcome.functions
                elif isinstance(outcome, Coverage):
                    if coverages is not None:
                        coverages.append(outcome)
                elif isinstance(outcome, Skipped):
                    skipped.append(outcome)
                elif not isinstance(outcome, Done):
                    error = _error(outcome, job)
                    if job.is_alone:
                        raise error
                    skip = Skipped(job.file.label, "", _reason(error, job))
                    # What was skipped may be all of the file, and so the error as well.
                    if not isinstance(error, NoCodeError) and skip not in [
                        item._replace(has_code=True) for item in skipped
                    ]:
                        skipped.append(skip)
                    is_whole = False
                if isinstance(outcome, Done | Failure):
                    job.file.discard()
                    is_empty &= not is_whole
                    is_whole = True
        if is_empty:
            raise _nothing(target, inputs, skipped[already:])
    if on_small is not None:
        on_small(small)


def read_function(
    target: Target,
    backend: Backend = "auto",
    *,
    limits: Limits = Limits(),  # noqa: B008 (frozen)
) -> Function:
    """The function that a target names, with the text of its instructions.

    Raises:
        ConfigError: for a name or an address that no function has, or that several have; for a
            folder, and for a container of several binaries of which none is named.
        FormatError: for a file that cannot be read within its limits.
    """
    if os.path.isdir(target.path):
        raise ConfigError(f"{target.path} is a folder; name one binary in it, and its function")
    with Inputs(limits, as_is=is_raw(backend)) as inputs:
        files = list(_inputs_of(target, inputs))
        if len(files) > 1:
            labels = ", ".join(shortened([f"{file.label}:{target.function}" for file in files]))
            raise ConfigError(f"{target.binary} holds {len(files)} binaries; name one: {labels}")
        if not files:
            raise _nothing(target, inputs, inputs.skipped)
        pool = reading_pool(1, partial(_find, backend=backend, limits=limits), limits)
        with closing(pool.run([_Job(target, files[0])])) as outcomes:
            for job, outcome in outcomes:
                if isinstance(outcome, Function):
                    return outcome
                raise _error(outcome, job)
    raise AssertionError("a worker says what became of its item")


class _Job(NamedTuple):
    """A file to read for a target."""

    target: Target
    file: Input

    @property
    def is_alone(self) -> bool:
        """Whether it is all that the target stands for, so that its error is that of the whole."""
        return self.file.label in (self.target.path, self.target._replace(member=None).binary)

    @property
    def local(self) -> Target:
        """The target as a worker sees it."""
        return Target(self.file.path, self.target.member, self.target.function)


def _inputs_of(target: Target, inputs: Inputs) -> Iterator[Input]:
    if target.inside is not None:
        return inputs.inputs(inputs.member_files(target.path, target.inside))
    return inputs.inputs(inputs.files([target._replace(member=None).binary]))


def _nothing(target: Target, inputs: Inputs, skipped: list[Skipped]) -> GraphkinError:
    if inputs.absent:
        return ConfigError(inputs.absent[0])
    reasons = "; ".join(shortened([str(item) for item in skipped]))
    return nothing_read(skipped)(reasons or f"there is no binary in {target.binary}")


def _error(outcome: object, job: _Job) -> GraphkinError:
    """The error that a worker reports, or is."""
    if isinstance(outcome, GraphkinError):
        return outcome
    reason = outcome.reason if isinstance(outcome, Failure) else str(outcome)
    return FormatError(f"{job.file.label} cannot be read: {job.file.named(reason)}")


def _reason(error: GraphkinError, job: _Job) -> str:
    """Why a file was skipped, which the error may say already."""
    return str(error).removeprefix(f"{job.file.label} skipped: ")


def _list(
    job: _Job,
    *,
    backend: Backend,
    min_blocks: int,
    with_text: bool,
    with_files: bool,
    with_evidence: bool,
    limits: Limits,
) -> Iterator[Function | Small | Skipped | Coverage | GraphkinError]:
    """Runs in the process: functions, then what was left out or skipped, then what was wrong."""
    skipped: list[Skipped] = []
    coverages: list[Coverage] = []
    small = 0
    problem: GraphkinError | None = None
    try:
        for function in list_functions(
            job.local,
            backend,
            skipped,
            coverages=coverages,
            with_text=with_text,
            with_files=with_files,
            with_evidence=with_evidence,
            limits=limits,
        ):
            if function.is_large(min_blocks):
                yield job.file.function(function)
            else:
                small += 1
    except GraphkinError as error:
        problem = error
    yield Small(small)
    yield from map(job.file.skip, skipped)
    yield from map(job.file.coverage, coverages)
    if problem is not None:
        yield _named(problem, job)


def _find(job: _Job, *, backend: Backend, limits: Limits) -> Iterator[Function | GraphkinError]:
    """Runs in the process."""
    try:
        yield job.file.function(find_function(job.local, backend, limits=limits))
    except GraphkinError as error:
        yield _named(error, job)


def _named(error: GraphkinError, job: _Job) -> GraphkinError:
    """The same error in words that name the file, and not its copy."""
    return type(error)(job.file.named(str(error)))
