"""What all baselines have in common: pools are scored as pairs are."""

from __future__ import annotations

import numpy as np
import pytest

from graphkin.errors import GraphError
from graphkin.graphs import Graph
from graphkin.graphs.packing import distinct_graphs
from graphkin.research.baselines import tfidf
from graphkin.research.baselines.simhash import simhash
from graphkin.research.baselines.simhash.simhash import SimHash
from graphkin.research.baselines.size import GraphSize
from graphkin.research.baselines.tfidf import TfIdf
from graphkin.research.baselines.wl import WLKernel
from tests.research.baselines.small_programs import random_programs

BASELINES = {
    "simhash": SimHash(),
    "simhash, 72 bits": SimHash(bits=72),
    "tfidf": TfIdf.fit(random_programs(10, seed=1)),
    "size": GraphSize(),
    "wl": WLKernel(3),
    "wl, not normalised": WLKernel(3, normalize=False),
}


@pytest.mark.parametrize("name", BASELINES)
def test_scores_are_those_of_predict(name):
    baseline = BASELINES[name]
    queries, pool = random_programs(9, seed=2), random_programs(300, seed=3)
    scores = baseline.scores(queries, pool)
    assert scores.shape == (9, 300)
    assert scores.dtype == np.float64
    expected = baseline.predict([(query, graph) for query in queries for graph in pool])
    assert expected.dtype == np.float64
    if name == "tfidf":  # sums in another order
        np.testing.assert_allclose(scores.ravel(), expected, atol=1e-12)
    else:
        np.testing.assert_array_equal(scores.ravel(), expected)


@pytest.mark.parametrize("name", BASELINES)
def test_scores_are_symmetric_and_empty_where_graphs_are(name):
    baseline, graphs = BASELINES[name], random_programs(20, seed=4)
    scores = baseline.scores(graphs, graphs)
    np.testing.assert_allclose(scores, scores.T, atol=1e-12)
    assert baseline.scores(graphs, []).shape == (20, 0)
    assert baseline.scores([], graphs).shape == (0, 20)
    assert baseline.scores([], []).shape == (0, 0)


def test_many_queries_go_through_in_blocks():
    queries = random_programs(20, seed=5)
    scores = WLKernel(2).scores(queries * 30, queries)
    np.testing.assert_array_equal(scores, np.tile(WLKernel(2).scores(queries, queries), (30, 1)))


def test_a_graph_that_recurs_is_looked_at_once(monkeypatch):
    a, b, c = random_programs(3, seed=6)
    graphs, left, right = distinct_graphs([(a, b), (b, c), (a, a)])
    assert [graph is other for graph, other in zip(graphs, (a, b, c), strict=True)] == [True] * 3
    assert left.tolist() == [0, 1, 0]
    assert right.tolist() == [1, 2, 0]
    seen = []
    for module, name in ((simhash, "extract_features"), (tfidf, "_histograms")):
        whole = getattr(module, name)
        monkeypatch.setattr(module, name, lambda x, whole=whole: seen.append(len(x)) or whole(x))
    for baseline in (BASELINES["simhash"], BASELINES["tfidf"]):
        baseline.predict([(a, b), (b, a)] * 50)
    assert seen == [2, 2]


def test_pairs_of_three_are_refused():
    with pytest.raises(GraphError, match="pair 1 holds 3 graphs, not 2"):
        distinct_graphs([(Graph(1), Graph(1)), (Graph(1), Graph(1), Graph(1))])
