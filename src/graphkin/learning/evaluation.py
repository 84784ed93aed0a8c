"""The measures of the paper, of retrieval and of nearest neighbours, and models to measure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.metrics import roc_auc_score

from graphkin.errors import ConfigError, ModelError
from graphkin.graphs import Graph
from graphkin.learning.target_metrics import target_metrics
from graphkin.learning.task import EvaluationSet, RetrievalPool, TargetSet
from graphkin.models.embedder import GraphEmbedder
from graphkin.models.model import GraphModel

Floats = NDArray[np.float64]

BLOCK = 500
"""Pairs between two reports of progress."""
RETRIEVAL_BLOCK = 5_000
"""The same for retrieval: more, for whoever looks at a graph once in a call sees a pool once."""


class PairScorer(Protocol):
    """Anything that scores pairs: a model, or a baseline."""

    def predict(self, pairs: Sequence[tuple[Graph, Graph]], /) -> ArrayLike:
        """(P,) one score for each pair; higher is more similar."""
        ...


@runtime_checkable
class PoolScorer(Protocol):
    """A scorer with a quicker way than all pairs."""

    def scores(self, queries: Sequence[Graph], pool: Sequence[Graph], /) -> ArrayLike:
        """(Q, P) the score of every query with every graph of a pool."""
        ...


@dataclass(frozen=True)
class WithSteps:
    """A model that predicts after another number of propagation steps than it was trained with."""

    model: GraphModel
    steps: int | None
    """None for the model's own."""

    def predict(self, pairs: Sequence[tuple[Graph, Graph]], /) -> NDArray[np.float32]:
        """Similarity of each pair, (P,) float32."""
        return self.model.predict(pairs, steps=self.steps)

    def similarities(self, pairs: Sequence[tuple[Graph, Graph]], /) -> NDArray[np.float32]:
        """The same, higher for pairs more alike whatever the model was trained to predict."""
        return self.model.similarities(pairs, steps=self.steps)


@dataclass(frozen=True)
class _Similarities:
    """A model of distances, by scores that are higher for pairs more alike."""

    model: GraphModel | WithSteps

    def predict(self, pairs: Sequence[tuple[Graph, Graph]], /) -> NDArray[np.float32]:
        return self.model.similarities(pairs)


def _by_similarity(model: PairScorer) -> PairScorer:
    """The model, where its predictions are higher for pairs more alike; else its similarities."""
    inner = model.model if isinstance(model, WithSteps) else model
    if isinstance(inner, GraphModel) and inner.config.predicts_distances:
        assert isinstance(model, GraphModel | WithSteps), "one of them is the other"
        return _Similarities(model)
    return model


def evaluate(
    model: PairScorer,
    evaluation_set: EvaluationSet | TargetSet,
    *,
    progress: Callable[[int, int], None] | None = None,
) -> dict[str, float]:
    """Pair AUC and triplet accuracy of a model; or of one of targets, how far off it is.

    Args:
        model: what is evaluated.
        evaluation_set: the pairs and triplets; where one kind is empty, its measure is left out.
        progress: called as ``progress(done, total)``, in pairs scored.

    Returns:
        ``pair_auc`` and ``triplet_accuracy``, from 0 to 1; for pairs with target values what
        :func:`graphkin.learning.target_metrics.target_metrics` gives.
    """
    if isinstance(evaluation_set, TargetSet):
        values = _finite(_scores(model, evaluation_set.pairs, progress), "values")
        return target_metrics(
            values,
            evaluation_set.values,
            evaluation_set.queries,
            is_distance=evaluation_set.is_distance,
        )
    pairs, triplets = evaluation_set.pairs, evaluation_set.triplets
    if not pairs and not triplets:
        raise ConfigError("the evaluation set is empty; give it pairs or triplets")
    both = [pair for a, b, c in triplets for pair in ((a, b), (a, c))]
    scores = _scores(_by_similarity(model), [*pairs, *both], progress)
    metrics = {}
    if pairs:
        metrics["pair_auc"] = pair_auc(scores[: len(pairs)], evaluation_set.labels)
    if triplets:
        positive, negative = scores[len(pairs) :].reshape(-1, 2).T
        metrics["triplet_accuracy"] = triplet_accuracy(positive, negative)
    return metrics


def retrieval_metrics(
    model: PairScorer,
    pools: Sequence[RetrievalPool],
    *,
    progress: Callable[[int, int], None] | None = None,
) -> dict[str, float]:
    """Recall at 1 and at 10, and the mean reciprocal rank, of a model.

    A candidate that scores as high as the right one counts as ahead of it.

    Args:
        model: what is evaluated.
        pools: queries, and what they are looked for in.
        progress: called as ``progress(done, total)``, in pairs scored.

    Returns:
        ``recall_at_1``, ``recall_at_10`` and ``mrr_at_10``, from 0 to 1, over all queries.
    """
    total = sum(len(search.queries) * len(search.pool) for search in pools)
    ranks: list[float] = []
    done = 0
    for search in pools:
        at_once = max(1, RETRIEVAL_BLOCK // len(search.pool))
        for start in range(0, len(search.queries), at_once):
            queries = search.queries[start : start + at_once]
            scores = _finite(_pool_scores(_by_similarity(model), queries, search.pool), "scores")
            right = scores[np.arange(len(queries)), start + np.arange(len(queries))]
            ranks += (scores >= right[:, None]).sum(axis=1).tolist()
            done += scores.size
            if progress is not None:
                progress(done, total)
    return {
        "recall_at_1": recall_at_k(ranks, 1),
        "recall_at_10": recall_at_k(ranks, 10),
        "mrr_at_10": mean_reciprocal_rank(ranks, 10),
    }


@dataclass(frozen=True, eq=False)
class Neighbours:
    """Queries, and a pool in which the nearest graph should be of the query's class.

    Example:
        >>> graph = Graph(2, [(0, 1)])
        >>> right, own = np.array([[True, True, False]]), np.array([[True, False, False]])
        >>> neighbours = Neighbours((graph,), (graph,) * 3, right, own)
        >>> neighbours.accuracy([[9.0, 0.5, 0.2]]), neighbours.accuracy([[9.0, 0.2, 0.5]])
        (1.0, 0.0)
    """

    queries: tuple[Graph, ...]
    pool: tuple[Graph, ...]
    right: NDArray[np.bool_]
    """(Q, P) which graphs of the pool are of the class of a query."""
    own: NDArray[np.bool_]
    """(Q, P) which graph of the pool is the query, and does not count."""

    def accuracy(self, scores: ArrayLike) -> float:
        """Share of queries whose nearest graph is of their class; a tie counts as wrong.

        Args:
            scores: (Q, P) of every query with every graph of the pool; higher is more similar.
        """
        values = np.asarray(scores, dtype=np.float64)
        if values.shape != self.right.shape or not np.isfinite(values).all():
            raise ModelError(
                f"scores must be finite and of shape {self.right.shape}, one for each query and "
                f"graph of the pool; got shape {values.shape}"
            )
        best = np.where(self.right & ~self.own, values, -np.inf).max(axis=1)
        other = np.where(self.right, -np.inf, values).max(axis=1)
        return float(np.mean(best > other))

    def scores(
        self,
        predict: Callable[[Sequence[tuple[Graph, Graph]]], ArrayLike],
        progress: Callable[[int, int], None] | None = None,
    ) -> NDArray[np.float64]:
        """(Q, P) scores of all pairs, by whatever scores pairs.

        For an embedder ``similarity(encode(queries), encode(pool))`` is much quicker.

        Args:
            predict: such as ``predict`` of a model or a baseline.
            progress: called as ``progress(done, total)``, in pairs scored.
        """
        matrix = np.empty(self.right.shape)
        at_once = max(1, RETRIEVAL_BLOCK // len(self.pool))
        for start in range(0, len(self.queries), at_once):
            queries = self.queries[start : start + at_once]
            pairs = [(query, graph) for query in queries for graph in self.pool]
            scores = np.asarray(predict(pairs))
            matrix[start : start + at_once] = scores.reshape(len(queries), -1)
            if progress is not None:
                progress((start + len(queries)) * len(self.pool), matrix.size)
        return matrix


def neighbour_accuracy(
    model: PairScorer,
    neighbours: Neighbours,
    *,
    progress: Callable[[int, int], None] | None = None,
) -> float:
    """Share of queries whose nearest graph is of their class: by vectors where a model has them.

    Args:
        model: what is evaluated.
        neighbours: queries and their pool.
        progress: called as ``progress(done, total)``, in graphs encoded or pairs scored.
    """
    embedder, steps = (model.model, model.steps) if isinstance(model, WithSteps) else (model, None)
    if not isinstance(embedder, GraphEmbedder):
        return neighbours.accuracy(neighbours.scores(_by_similarity(model).predict, progress))
    queries, pool = (
        embedder.encode(graphs, steps=steps, progress=progress)
        for graphs in (neighbours.queries, neighbours.pool)
    )
    return neighbours.accuracy(embedder.similarity(queries, pool))


def pair_auc(scores: ArrayLike, labels: ArrayLike) -> float:
    """Area under the ROC curve of all pairs together.

    Args:
        scores: (P,) higher is more similar.
        labels: (P,) +1 similar, -1 dissimilar; both must occur.
    """
    values = _finite(scores, "scores")
    signs = np.asarray(labels)
    if signs.shape != values.shape:
        raise ConfigError(f"{signs.shape} labels for {values.shape} scores; give one for each")
    if not np.array_equal(np.unique(signs), [-1, 1]):
        raise ConfigError(f"labels must be +1 and -1, and both, got {np.unique(signs).tolist()}")
    return float(roc_auc_score(signs, values))


def triplet_accuracy(positive_scores: ArrayLike, negative_scores: ArrayLike) -> float:
    """Share of triplets with s(G1, G2) > s(G1, G3): a tie counts as wrong.

    Args:
        positive_scores: (T,) s(G1, G2).
        negative_scores: (T,) s(G1, G3).
    """
    positive = _finite(positive_scores, "positive_scores")
    negative = _finite(negative_scores, "negative_scores")
    if positive.shape != negative.shape or not positive.size:
        raise ConfigError(
            f"{positive.shape} positive and {negative.shape} negative scores; "
            "give one of each for at least one triplet"
        )
    return float(np.mean(positive > negative))


def recall_at_k(ranks: ArrayLike, k: int) -> float:
    """Share of queries whose right answer is among the first k.

    Args:
        ranks: (Q,) rank of the first right answer, from 1; infinite where there is none.
        k: how many answers count, at least 1.
    """
    if k < 1:
        raise ConfigError(f"k must be at least 1, got {k}")
    return float(np.mean(_ranks(ranks) <= k))


def mean_reciprocal_rank(ranks: ArrayLike, cutoff: int = 10) -> float:
    """Mean over queries of 1 / rank, 0 where the rank is past the cutoff.

    Args:
        ranks: (Q,) rank of the first right answer, from 1; infinite where there is none.
        cutoff: last rank that counts, at least 1.
    """
    if cutoff < 1:
        raise ConfigError(f"cutoff must be at least 1, got {cutoff}")
    values = _ranks(ranks)
    return float(np.mean(np.where(values <= cutoff, 1 / values, 0)))


def _scores(
    model: PairScorer,
    pairs: Sequence[tuple[Graph, Graph]],
    progress: Callable[[int, int], None] | None,
) -> Floats:
    parts = []
    for start in range(0, len(pairs), BLOCK):
        parts.append(_predicted(model, pairs[start : start + BLOCK]))
        if progress is not None:
            progress(start + len(parts[-1]), len(pairs))
    return np.concatenate(parts)


def _pool_scores(model: PairScorer, queries: Sequence[Graph], pool: Sequence[Graph]) -> ArrayLike:
    """(Q, P) every query with every graph of the pool."""
    # Models take the way over pairs, by which the stored tables were measured to the last bit.
    if isinstance(model, PoolScorer) and not isinstance(model, GraphModel):
        return model.scores(queries, pool)
    pairs = [(query, candidate) for query in queries for candidate in pool]
    return _predicted(model, pairs).reshape(len(queries), len(pool))


def _predicted(model: PairScorer, pairs: Sequence[tuple[Graph, Graph]]) -> Floats:
    scores = np.asarray(model.predict(pairs), dtype=np.float64)
    if scores.shape != (len(pairs),):
        raise ModelError(
            f"{type(model).__name__}.predict gave scores of shape {scores.shape} for "
            f"{len(pairs)} pairs; it must give one number for each"
        )
    return scores


def _finite(scores: ArrayLike, name: str) -> Floats:
    values = np.asarray(scores, dtype=np.float64)
    bad = np.flatnonzero(~np.isfinite(values))
    if len(bad):
        raise ModelError(
            f"{name} holds {values.flat[bad[0]]} at position {bad[0]} ({len(bad)} of "
            f"{values.size} are not finite); the model's weights or inputs are broken"
        )
    return values


def _ranks(ranks: ArrayLike) -> Floats:
    values = np.asarray(ranks, dtype=np.float64)
    if not values.size:
        raise ConfigError("ranks is empty; give one rank for each query")
    if not (values >= 1).all():
        raise ConfigError(f"ranks count from 1, got {values[~(values >= 1)][0]}")
    return values
