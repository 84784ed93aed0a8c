"""What a task offers: training batches without end, fixed sets to evaluate on, and recipes."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from graphkin.errors import GraphError
from graphkin.graphs import Graph, PairBatch
from graphkin.graphs.labels import similarity_labels
from graphkin.graphs.vocabulary import Vocabulary
from graphkin.models.words import WordStatistics

Mode = Literal["pairs", "triplets", "lists", "kin"]
"""Pairs, each labelled as similar or not, or with its target value; triplets; lists of a graph, a
similar one and dissimilar ones; or similar pairs, with the number of their group as label."""
LIST_NEGATIVES = 4
"""Dissimilar graphs in a list."""
Split = Literal["validation", "test"]


@dataclass(frozen=True)
class Recipe:
    """What a task asks of a model, and settings that train it well."""

    model: Mapping[str, Any] = field(default_factory=dict)
    """Options of ModelConfig."""
    training: Mapping[str, Any] = field(default_factory=dict)
    """Options of TrainConfig."""
    vocabulary: Vocabulary | None = None
    """What the tokens of the graphs' nodes stand for."""
    words: WordStatistics | None = None
    """How rare the hashed words of the graphs are."""
    feature_scale: tuple[NDArray[np.float32], NDArray[np.float32]] | None = None
    """Mean and standard deviation, each (F,), of the features of nodes."""


class Task(Protocol):
    """Graphs with a notion of which of them are similar."""

    def batch(
        self, step: int, size: int, mode: Mode, *, rank: int = 0, world: int = 1
    ) -> PairBatch:
        """The training batch of one step.

        A pure function of the task and the arguments, so that a resumed run sees the data
        that an uninterrupted one would have seen.

        Args:
            step: number of the step, from 0.
            size: pairs, triplets or lists in the joint batch of all ranks.
            mode: what the batch holds; a task may refuse ``lists`` and ``kin``.
            rank: which share of the joint batch: its examples ``rank::world``.
            world: number of shares.
        """
        ...

    def evaluation_set(self, split: Split) -> EvaluationSet | TargetSet:
        """The fixed pairs and triplets of a split, or its pairs with target values."""
        ...

    def recipe(self, model: str, kind: str) -> Recipe:
        """The settings for a model of a name, such as ``gmn``.

        Args:
            model: its name.
            kind: ``paper``, or the name of another recipe that the task has.
        """
        ...

    def describe(self) -> dict[str, Any]:
        """The parameters that define the task, ready for JSON."""
        ...


@dataclass(frozen=True, eq=False)
class EvaluationSet:
    """Fixed pairs and triplets, on which models are compared."""

    pairs: tuple[tuple[Graph, Graph], ...]
    labels: NDArray[np.float32]
    """(P,) float32, +1 similar and -1 dissimilar, in the order of ``pairs``. Booleans, and 1 and 0,
    become that."""
    triplets: tuple[tuple[Graph, Graph, Graph], ...]
    """(G1, G2, G3) where G1 is closer to G2 than to G3."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "labels", similarity_labels(self.labels))
        if self.labels.shape != (len(self.pairs),):
            raise GraphError(
                f"labels must have shape ({len(self.pairs)},), one for each pair, "
                f"got {self.labels.shape}"
            )

    def score(self, metrics: Mapping[str, float]) -> float:
        """What picks the best of several models; higher is better."""
        return sum(metrics.values()) / len(metrics)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the content, order included: stored with every result."""
        sha = hashlib.sha256(f"evaluation {len(self.pairs)} {len(self.triplets)}".encode())
        for group in (*self.pairs, *self.triplets):
            for graph in group:
                sha.update(bytes.fromhex(graph.digest()))
        sha.update(self.labels.astype("<i1").tobytes())
        return sha.hexdigest()


@dataclass(frozen=True, eq=False)
class TargetSet:
    """Fixed pairs with the values that a model is to predict."""

    pairs: tuple[tuple[Graph, Graph], ...]
    values: NDArray[np.float64]
    """(P,) float64, in the order of ``pairs``."""
    queries: NDArray[np.int64]
    """(P,) int64: pairs of one number are compared with each other, as candidates of one query."""
    is_distance: bool = False
    """Whether the smallest value is the nearest, and not the largest."""

    def __post_init__(self) -> None:
        for name in ("values", "queries"):
            shape = getattr(self, name).shape
            if shape != (len(self.pairs),):
                raise GraphError(
                    f"{name} must have shape ({len(self.pairs)},), one for each pair, got {shape}"
                )

    def score(self, metrics: Mapping[str, float]) -> float:
        """What picks the best of several models; higher is better."""
        return -metrics["mse"]

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the content, order included: stored with every result."""
        sha = hashlib.sha256(f"targets {len(self.pairs)}".encode())
        for pair in self.pairs:
            for graph in pair:
                sha.update(bytes.fromhex(graph.digest()))
        sha.update(self.values.astype("<f8").tobytes())
        return sha.hexdigest()


@dataclass(frozen=True, eq=False)
class RetrievalPool:
    """Queries that share a pool of candidates.

    The answer to query i is ``pool[i]``; further candidates answer none.
    """

    queries: tuple[Graph, ...]
    pool: tuple[Graph, ...]

    def __post_init__(self) -> None:
        if not 0 < len(self.queries) <= len(self.pool):
            raise GraphError(
                f"{len(self.queries)} queries for a pool of {len(self.pool)}; each query needs its "
                "answer in the pool"
            )
