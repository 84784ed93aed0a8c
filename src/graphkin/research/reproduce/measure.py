"""A scorer on the test sets of an experiment: the values of its cells."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from graphkin._support.progress import counter
from graphkin.errors import ConfigError
from graphkin.graphs import Graph
from graphkin.learning.evaluation import (
    PairScorer,
    evaluate,
    neighbour_accuracy,
    pair_auc,
    retrieval_metrics,
    triplet_accuracy,
)
from graphkin.learning.task import EvaluationSet, RetrievalPool
from graphkin.research.baselines.wl import WLKernel
from graphkin.research.reproduce.experiment import Evaluation, TaskKind, TaskSpec
from graphkin.research.reproduce.results import Measurement
from graphkin.research.tasks.edits import EditTask
from graphkin.research.tasks.functions.pools import build_named, pools_between
from graphkin.research.tasks.functions.task import FunctionTask
from graphkin.research.tasks.meshes import MeshTask

AnyTask = EditTask | FunctionTask | MeshTask
MISSING: dict[TaskKind, str] = {
    "functions": "a corpus of functions: --corpus FOLDER, which graphkin extract writes",
    "meshes": "the meshes: --data COIL-DEL.zip",
}
"""What tasks that need data ask for."""


@dataclass(frozen=True)
class DataPaths:
    """Where the data of tasks lies."""

    corpus: Path | None = None
    """Of functions."""
    meshes: Path | None = None
    """The zip or folder of COIL-DEL."""

    def has(self, kind: TaskKind) -> bool:
        """Whether tasks of a kind can be made."""
        paths = {"edits": True, "functions": self.corpus, "meshes": self.meshes}
        return bool(paths[kind])


@dataclass
class Tasks:
    """Tasks by their specifications, each made once: their graphs are kept."""

    data: DataPaths
    options: dict[str, Any] = field(default_factory=dict)
    """Of every task, over those of its specification."""
    _made: dict[str, AnyTask] = field(default_factory=dict)

    def __getitem__(self, spec: TaskSpec) -> AnyTask:
        key = repr((spec.kind, sorted(spec.options.items())))
        if key not in self._made:
            self._made[key] = make_task(spec, self.data, **self.options)
        return self._made[key]


def make_task(spec: TaskSpec, data: DataPaths, **options: Any) -> AnyTask:
    """The task of a specification, with further options."""
    if not data.has(spec.kind):
        raise ConfigError(f"this needs {MISSING[spec.kind]}")
    merged: dict[str, Any] = {**spec.options, **options}
    if spec.kind == "functions":
        return FunctionTask(corpus=str(data.corpus), **merged)
    if spec.kind == "meshes":
        return MeshTask(data=str(data.meshes), **merged)
    return EditTask(**merged)


def measure(
    scorer: PairScorer, model: str, evaluation: Evaluation, task: AnyTask
) -> list[Measurement]:
    """The cells of one row."""
    with counter(f"{evaluation.table}: {evaluation.row}") as progress:
        if evaluation.measure == "retrieval":
            assert isinstance(task, FunctionTask)
            pools = _pools(task, evaluation.builds)
            if pools is None:
                return []
            graphs = (graph for search in pools for graph in (*search.queries, *search.pool))
            metrics = retrieval_metrics(scorer, pools, progress=progress)
            return _cells(evaluation, model, metrics, digest_of(graphs))
        if evaluation.measure == "neighbours":
            assert isinstance(task, MeshTask)
            neighbours = task.neighbours("test")
            accuracy = neighbour_accuracy(scorer, neighbours, progress=progress)
            digest = digest_of((*neighbours.queries, *neighbours.pool))
            return _cells(evaluation, model, {"nearest_neighbour": accuracy}, digest)
        data = _pairs(task, evaluation)
        if isinstance(scorer, WLKernel) and isinstance(task, EditTask):
            metrics = _best_of_sweep(scorer, data)
        else:
            metrics = evaluate(scorer, data, progress=progress)
    return _cells(evaluation, model, metrics, data.digest)


def digest_of(graphs: Iterable[Graph]) -> str:
    """SHA-256 of graphs in their order."""
    sha = hashlib.sha256()
    for graph in graphs:
        sha.update(bytes.fromhex(graph.digest()))
    return sha.hexdigest()


def _cells(
    evaluation: Evaluation, model: str, metrics: dict[str, float], data: str
) -> list[Measurement]:
    return [
        Measurement(evaluation.table, evaluation.row, model, metric, value, data)
        for metric, value in metrics.items()
    ]


def _pairs(task: AnyTask, evaluation: Evaluation) -> EvaluationSet:
    if isinstance(task, FunctionTask):
        return task.evaluation_sets("test")[evaluation.negatives]
    return task.evaluation_set("test")


def _best_of_sweep(kernel: WLKernel, data: EvaluationSet) -> dict[str, float]:
    """The best number of iterations of each measure, chosen on the set itself as in the paper."""
    halves = [pair for a, b, c in data.triplets for pair in ((a, b), (a, c))]
    return {
        "pair_auc": max(pair_auc(row, data.labels) for row in kernel.sweep(data.pairs)),
        "triplet_accuracy": max(
            triplet_accuracy(row[0::2], row[1::2]) for row in kernel.sweep(halves)
        ),
    }


def _pools(task: FunctionTask, builds: tuple[str, str] | None) -> Sequence[RetrievalPool] | None:
    """Pools to search in; None, with a word on stderr, where the corpus lacks a build."""
    if builds is None:
        return task.retrieval("test")
    query_build, pool_build = (build_named(task, build) for build in builds)
    if query_build is None or pool_build is None:
        print(
            f"not measured: {' to '.join(builds)}, for the corpus lacks one of them",
            file=sys.stderr,
        )
        return None
    return pools_between(task, "test", query_build, pool_build)
