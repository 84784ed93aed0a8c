"""The measures of the paper, and of retrieval; and one call that evaluates a model on a set."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.metrics import roc_auc_score

from graphkin.errors import ConfigError, ModelError
from graphkin.graphs import Graph
from graphkin.learning.task import EvaluationSet, RetrievalBlock

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


def evaluate(
    model: PairScorer,
    evaluation_set: EvaluationSet,
    *,
    progress: Callable[[int, int], None] | None = None,
) -> dict[str, float]:
    """Pair AUC and triplet accuracy of a model.

    Args:
        model: what is evaluated.
        evaluation_set: the pairs and triplets; where one kind is empty, its measure is left out.
        progress: called as ``progress(done, total)``, in pairs scored.

    Returns:
        ``pair_auc`` and ``triplet_accuracy``, from 0 to 1.
    """
    pairs, triplets = evaluation_set.pairs, evaluation_set.triplets
    if not pairs and not triplets:
        raise ConfigError("the evaluation set is empty; give it pairs or triplets")
    both = [pair for a, b, c in triplets for pair in ((a, b), (a, c))]
    scores = _scores(model, [*pairs, *both], progress)
    metrics = {}
    if pairs:
        metrics["pair_auc"] = pair_auc(scores[: len(pairs)], evaluation_set.labels)
    if triplets:
        positive, negative = scores[len(pairs) :].reshape(-1, 2).T
        metrics["triplet_accuracy"] = triplet_accuracy(positive, negative)
    return metrics


def retrieval_metrics(
    model: PairScorer,
    blocks: Sequence[RetrievalBlock],
    *,
    progress: Callable[[int, int], None] | None = None,
) -> dict[str, float]:
    """Recall at 1 and at 10, and the mean reciprocal rank, of a model.

    A candidate that scores as high as the right one counts as ahead of it.

    Args:
        model: what is evaluated.
        blocks: queries and pools.
        progress: called as ``progress(done, total)``, in pairs scored.

    Returns:
        ``recall_at_1``, ``recall_at_10`` and ``mrr_at_10``, from 0 to 1, over all queries.
    """
    total = sum(len(block.queries) * len(block.pool) for block in blocks)
    ranks: list[float] = []
    done = 0
    for block in blocks:
        at_once = max(1, RETRIEVAL_BLOCK // len(block.pool))
        for start in range(0, len(block.queries), at_once):
            queries = block.queries[start : start + at_once]
            scores = _finite(_pool_scores(model, queries, block.pool), "scores")
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
    if isinstance(model, PoolScorer):
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
