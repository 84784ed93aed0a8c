"""Searches for the functions of one build of a corpus in another build."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice

from graphkin.errors import ConfigError
from graphkin.learning.datasets.splits import generator
from graphkin.learning.task import RetrievalPool, Split
from graphkin.research.tasks.functions.task import FunctionTask

STREAM = 3
"""Of the random numbers of a split; the task uses those below."""


def pools_between(
    task: FunctionTask, split: Split, query_build: str, pool_build: str
) -> list[RetrievalPool]:
    """Pools of functions as one build has them, to look for as another has them.

    One function of each group is looked for. They are divided into pools of ``task.pool``; 0 puts
    all into one. Where the split has too few to fill a pool, it is filled up with functions that
    nobody looks for: others of the split, then of validation, and the rest of training.

    Args:
        task: whose functions, protocol and size of pools.
        split: the functions to look for.
        query_build: the build that queries come from, by name.
        pool_build: the build that is searched.
    """
    both = _both(task, split, query_build, pool_build)
    if len(both) < 2:
        raise ConfigError(
            f"{query_build} and {pool_build} share {len(both)} {split} functions, too few"
        )
    size = task.pool or len(both)
    if size < len(both):
        order = generator(0, split, STREAM).permutation(len(both))
        parts = [order[start : start + size] for start in range(0, len(both) - size + 1, size)]
        return [_pool(task, [both[number] for number in numbers]) for numbers in parts]
    others = islice(_others(task, split, pool_build), size - len(both))
    return [_pool(task, both, list(others))]


def build_named(task: FunctionTask, kind: str) -> str | None:
    """The build of test functions whose name ends as ``compiler-level``.

    Between the two it may have a version: ``gcc-O0`` stands for ``gcc-12-O0`` as well.
    """
    compiler, level = kind.split("-")
    pattern = re.compile(rf"\b{re.escape(compiler)}(-[\d.]+)?-{re.escape(level)}$")
    names = sorted({name for item in task.classes("test") for name in item.graphs})
    return next((name for name in names if pattern.search(name)), None)


def _both(task: FunctionTask, split: Split, *builds: str) -> list[tuple[int, int]]:
    """The graphs of each function in two builds, one function of each group."""
    first, second = builds
    by_group = {item.group: item.graphs for item in reversed(task.classes(split))}
    return [
        (graphs[first], graphs[second])
        for graphs in by_group.values()
        if {first, second} <= graphs.keys()
    ]


def _others(task: FunctionTask, split: Split, build: str) -> Iterator[int]:
    """Graphs of a build, one of each group that has no function that is looked for."""
    # A task of the paper's protocol numbers groups anew.
    group_of = {item.key: item.group for item in task.data.classes}
    seen = {group_of[item.key] for item in task.classes(split)}
    everything = replace(task, min_builds=2)
    for name in dict.fromkeys((split, "validation", "training")):
        for item in everything.classes(name):
            group = group_of[item.key]
            if build in item.graphs and group not in seen:
                seen.add(group)
                yield item.graphs[build]


def _pool(
    task: FunctionTask, both: Sequence[tuple[int, int]], others: Sequence[int] = ()
) -> RetrievalPool:
    queries, answers = zip(*both, strict=True)
    candidates = task.graphs_of([*answers, *others])
    return RetrievalPool(tuple(task.graphs_of(queries)), tuple(candidates))
