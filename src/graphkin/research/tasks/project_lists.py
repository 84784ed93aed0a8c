"""Lists for a matcher: a function, another build of it, and functions that an embedder confuses."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from graphkin._support.progress import Progress
from graphkin.errors import ConfigError
from graphkin.graphs import Graph, PairBatch
from graphkin.learning.datasets.splits import generator
from graphkin.learning.task import LIST_NEGATIVES, EvaluationSet, Mode, Recipe, Split
from graphkin.models import GraphEmbedder
from graphkin.research.tasks.projects import ACROSS, ProjectTask, two_builds

NEAREST = 24
"""Functions, the nearest by the embedder's vectors, of which the dissimilar ones are drawn."""
MEAN_RANK = 6.0
"""Of those that are drawn: the nearest most often."""


class ProjectLists:
    """Which of some functions is the same as one of another build?

    Args:
        task: the projects; its functions of training make the lists.
        embedder: chooses the functions that are hard to tell apart.
        apart: whether graphs are encoded apart, so that a batch has each of them once.
        progress: called as ``progress(done, total)``, in graphs that the embedder encodes.
    """

    def __init__(
        self,
        task: ProjectTask,
        embedder: GraphEmbedder,
        *,
        apart: bool = True,
        progress: Progress | None = None,
    ) -> None:
        self._task = task
        self._pack = PairBatch.pack_distinct if apart else PairBatch.pack
        numbers: dict[int, int] = {}
        rows: dict[tuple[str, str], list[int]] = defaultdict(list)
        groups = []
        for item in task.trained():
            for build in item.builds:
                numbers[build.number] = len(numbers)
                rows[item.project, build.configuration].append(build.number)
                groups.append(item.group)
        self._rows = numbers
        self._groups = np.array(groups)
        self._numbers = np.array(list(numbers))
        self._pools = {
            key: np.array([numbers[number] for number in pool]) for key, pool in rows.items()
        }
        graphs = [task.graph(number) for number in numbers]
        vectors = embedder.encode(graphs, progress=progress)
        # Offsets mean nothing between pointers of different widths.
        parts = [embedder.part(vectors, name) for name in ("graph", "words")]
        self._vectors = np.concatenate(parts, axis=1).astype(np.float16)

    def batch(
        self, step: int, size: int, mode: Mode, *, rank: int = 0, world: int = 1
    ) -> PairBatch:
        """The training batch of one step; see :class:`graphkin.learning.task.Task`."""
        if mode != "lists":
            raise ConfigError(f"matchers of projects are trained by mode='lists', got {mode!r}")
        rng = generator(self._task.seed, "training", step)
        pairs: list[tuple[Graph, Graph]] = []
        for item in self._task.drawn(rng, size):
            is_across = bool(rng.random() < ACROSS)
            builds = two_builds(item, is_across, rng) or two_builds(item, not is_across, rng)
            if builds is None:
                continue
            query, answer = builds
            near = self._confused(query.number, item.group, item.project, answer.configuration)
            if len(near) < LIST_NEGATIVES:
                continue
            graph = self._task.without_kinds(self._task.graph(query.number), rng)
            listed = [answer.number, *_drawn_near(near, rng)]
            pairs += [(graph, self._task.graph(number)) for number in listed]
        lists = 1 + LIST_NEGATIVES
        shared = [pairs[start : start + lists] for start in range(0, len(pairs), lists)]
        return self._pack([pair for own in shared[rank::world] for pair in own])

    def _confused(
        self, query: int, group: int, project: str, configuration: str
    ) -> NDArray[np.int64]:
        """Numbers of the nearest functions of the same project that are not the right one."""
        pool = self._pools[project, configuration]
        vector = self._vectors[self._rows[query]].astype(np.float32)
        scores = self._vectors[pool].astype(np.float32) @ vector
        scores[self._groups[pool] == group] = -np.inf
        order = np.argsort(-scores)[:NEAREST]
        numbers: NDArray[np.int64] = self._numbers[pool[order[np.isfinite(scores[order])]]]
        return numbers

    def evaluation_set(self, split: Split) -> EvaluationSet:
        """That of the projects."""
        return self._task.evaluation_set(split)

    def recipe(self, model: str, kind: str = "strong") -> Recipe:
        """That of the projects."""
        return self._task.recipe(model, kind)

    def describe(self) -> dict[str, Any]:
        """That of the projects."""
        return self._task.describe()


def _drawn_near(near: NDArray[np.int64], rng: Generator) -> list[int]:
    """Some of the nearest, those that are nearest of all most often."""
    weights = np.exp(-np.arange(len(near)) / MEAN_RANK)
    drawn = rng.choice(near, LIST_NEGATIVES, replace=False, p=weights / weights.sum())
    return [int(number) for number in drawn]
