"""The measures against their definitions, and the evaluation of a model on a set."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphkin.errors import ConfigError, GraphError, ModelError
from graphkin.graphs import Graph
from graphkin.learning import evaluation
from graphkin.learning.evaluation import (
    evaluate,
    mean_reciprocal_rank,
    pair_auc,
    recall_at_k,
    retrieval_metrics,
    triplet_accuracy,
)
from graphkin.learning.task import EvaluationSet, RetrievalPool


class ByEdges:
    """Scores a pair by how near its numbers of edges are."""

    def predict(self, pairs):
        return [-abs(a.num_edges - b.num_edges) for a, b in pairs]


def chain(edges: int) -> Graph:
    return Graph(edges + 1, [(i, i + 1) for i in range(edges)])


def example_set() -> EvaluationSet:
    pairs = ((chain(3), chain(3)), (chain(3), chain(5)), (chain(1), chain(3)), (chain(1), chain(2)))
    triplets = (
        (chain(3), chain(3), chain(4)),
        (chain(3), chain(1), chain(2)),
        (chain(3), chain(2), chain(4)),
        (chain(3), chain(4), chain(9)),
    )
    return EvaluationSet(pairs, np.array([1, -1, 1, -1], dtype=np.float32), triplets)


def test_evaluate_gives_both_measures():
    # Similar pairs score 0 and -2, dissimilar ones -2 and -1: 2 + 0.5 of 4 comparisons.
    # Of the triplets two are right, one is wrong and one is a tie.
    assert evaluate(ByEdges(), example_set()) == {"pair_auc": 0.625, "triplet_accuracy": 0.5}


def test_evaluate_leaves_out_what_the_set_does_not_have():
    full = example_set()
    assert evaluate(ByEdges(), EvaluationSet(full.pairs, full.labels, ())) == {"pair_auc": 0.625}
    only_triplets = EvaluationSet((), np.zeros(0, dtype=np.float32), full.triplets)
    assert evaluate(ByEdges(), only_triplets) == {"triplet_accuracy": 0.5}
    with pytest.raises(ConfigError, match="empty"):
        evaluate(ByEdges(), EvaluationSet((), np.zeros(0, dtype=np.float32), ()))


def test_evaluate_reports_progress():
    full = example_set()
    large = EvaluationSet(full.pairs * 150, np.tile(full.labels, 150), full.triplets)
    calls: list[tuple[int, int]] = []
    metrics = evaluate(ByEdges(), large, progress=lambda done, total: calls.append((done, total)))
    assert calls == [(500, 608), (608, 608)]
    assert metrics == {"pair_auc": 0.625, "triplet_accuracy": 0.5}


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_scores_that_are_not_finite_are_refused(bad):
    class Broken:
        def predict(self, pairs):
            return np.where(np.arange(len(pairs)) == 2, bad, 0.0)

    with pytest.raises(ModelError, match=f"holds {bad} at position 2"):
        evaluate(Broken(), example_set())


def test_scores_of_the_wrong_shape_are_refused():
    class Broken:
        def predict(self, pairs):
            return np.zeros((len(pairs), 1))

    with pytest.raises(ModelError, match=r"Broken.predict gave scores of shape \(12, 1\)"):
        evaluate(Broken(), example_set())


@given(
    st.lists(st.integers(-3, 3), min_size=1, max_size=8),
    st.lists(st.integers(-3, 3), min_size=1, max_size=8),
)
def test_pair_auc_is_the_share_of_right_comparisons(similar, dissimilar):
    wins = [(s > d) + 0.5 * (s == d) for s in similar for d in dissimilar]
    labels = [1] * len(similar) + [-1] * len(dissimilar)
    assert pair_auc(similar + dissimilar, labels) == pytest.approx(np.mean(wins))


def test_pair_auc_needs_both_labels():
    with pytest.raises(ConfigError, match=r"got \[1\]"):
        pair_auc([0.1, 0.2], [1, 1])
    with pytest.raises(ConfigError, match="one for each"):
        pair_auc([0.1, 0.2], [1, -1, 1])


def test_a_tie_is_a_wrong_triplet():
    assert triplet_accuracy([1, 2, 3, 4], [0, 2, 5, 3]) == 0.5
    assert triplet_accuracy([1, 1], [1, 1]) == 0
    with pytest.raises(ConfigError, match="at least one triplet"):
        triplet_accuracy([], [])
    with pytest.raises(ConfigError, match="one of each"):
        triplet_accuracy([1, 2], [1])


def test_retrieval_measures():
    ranks = [1, 2, 10, 11, np.inf]
    assert recall_at_k(ranks, 1) == pytest.approx(0.2)
    assert recall_at_k(ranks, 10) == pytest.approx(0.6)
    assert mean_reciprocal_rank(ranks) == pytest.approx((1 + 1 / 2 + 1 / 10) / 5)
    assert mean_reciprocal_rank(ranks, cutoff=1) == pytest.approx(0.2)


@pytest.mark.parametrize("ranks", [[], [0, 1], [np.nan]])
def test_ranks_that_cannot_be_are_refused(ranks):
    with pytest.raises(ConfigError, match="rank"):
        recall_at_k(ranks, 1)
    with pytest.raises(ConfigError, match="rank"):
        mean_reciprocal_rank(ranks)


def test_cutoffs_below_one_are_refused():
    with pytest.raises(ConfigError, match="k must be at least 1, got 0"):
        recall_at_k([1], 0)
    with pytest.raises(ConfigError, match="cutoff must be at least 1, got 0"):
        mean_reciprocal_rank([1], 0)


# --- Retrieval ----------------------------------------------------------------------------


def block(queries, pool):
    return RetrievalPool(tuple(map(chain, queries)), tuple(map(chain, pool)))


def test_retrieval_ranks_the_right_answer():
    # Distances of 4 edges to 4, 9, 20; of 9 to these; of 18 to these: all right answers first.
    metrics = retrieval_metrics(ByEdges(), [block([4, 9, 18], [4, 9, 20])])
    assert metrics == {"recall_at_1": 1, "recall_at_10": 1, "mrr_at_10": 1}
    # The answers are 2nd, 1st and 3rd.
    metrics = retrieval_metrics(ByEdges(), [block([8, 9, 1], [4, 9, 20])])
    assert metrics["recall_at_1"] == pytest.approx(1 / 3)
    assert metrics["mrr_at_10"] == pytest.approx((1 / 2 + 1 + 1 / 3) / 3)


def test_candidates_that_answer_no_query_are_ranked_too():
    # The answers are 1st of three, and the last.
    metrics = retrieval_metrics(ByEdges(), [block([4, 9], [4, 20, 9])])
    assert metrics["recall_at_1"] == 0.5
    assert metrics["mrr_at_10"] == pytest.approx((1 + 1 / 3) / 2)


def test_a_tie_counts_against_the_model():
    class Equal:
        def predict(self, pairs):
            return np.zeros(len(pairs))

    blocks = [block(range(1, 13), range(1, 13)), block([1, 2], [1, 2])]
    metrics = retrieval_metrics(Equal(), blocks)
    assert metrics["recall_at_1"] == 0
    assert metrics["recall_at_10"] == pytest.approx(2 / 14)
    assert metrics["mrr_at_10"] == pytest.approx(2 * 0.5 / 14)


@pytest.mark.parametrize("at_once", [1, 25, 30, 5000])
def test_retrieval_against_sorting(monkeypatch, at_once):
    """However many pairs are scored at once."""
    monkeypatch.setattr(evaluation, "RETRIEVAL_BLOCK", at_once)
    rng = np.random.default_rng(0)
    table = rng.normal(size=(64, 64))

    class Table:
        def predict(self, pairs):
            return [table[a.num_nodes, b.num_nodes] for a, b in pairs]

    blocks, ranks = [], []
    for size in (13, 25):
        queries = rng.permutation(60)[:size] + 1
        pool = rng.permutation(60)[:size] + 1
        blocks.append(block(queries, pool))
        for number, query in enumerate(queries):
            order = np.argsort(-table[query + 1, pool + 1])
            ranks.append(1 + order.tolist().index(number))
    calls = []
    metrics = retrieval_metrics(Table(), blocks, progress=lambda *call: calls.append(call))
    assert metrics["recall_at_1"] == recall_at_k(ranks, 1)
    assert metrics["recall_at_10"] == recall_at_k(ranks, 10)
    assert metrics["mrr_at_10"] == mean_reciprocal_rank(ranks, 10)
    total = 13**2 + 25**2
    assert calls[-1] == (total, total)
    assert all(total == of for _, of in calls)
    assert [done for done, _ in calls] == sorted({done for done, _ in calls})


def test_retrieval_refuses_broken_scores():
    class Broken:
        def __init__(self, value):
            self.value = value

        def predict(self, pairs):
            return self.value(len(pairs))

    blocks = [block([1, 2], [1, 2])]
    with pytest.raises(ModelError, match="holds nan"):
        retrieval_metrics(Broken(lambda n: np.full(n, np.nan)), blocks)
    with pytest.raises(ModelError, match="gave scores of shape"):
        retrieval_metrics(Broken(lambda n: np.zeros(n + 1)), blocks)
    with pytest.raises(ConfigError, match="ranks is empty"):
        retrieval_metrics(ByEdges(), [])


@pytest.mark.parametrize(("queries", "pool"), [([], []), ([], [1]), ([1, 2], [1])])
def test_pools_without_answers_are_refused(queries, pool):
    with pytest.raises(GraphError, match=f"{len(queries)} queries for a pool of {len(pool)}"):
        block(queries, pool)
