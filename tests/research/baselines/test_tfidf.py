"""TF-IDF against dictionaries, and against scikit-learn."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphkin.errors import ConfigError, GraphError
from graphkin.graphs import Graph
from graphkin.research.baselines.tfidf import TfIdf
from tests.research.baselines.small_programs import random_programs


def bag(graph: Graph) -> Counter:
    return Counter(graph.node_tokens.ids.tolist())


def literal_cosine(a: Graph, b: Graph, fitted: list[Graph]) -> float:
    def vector(graph: Graph) -> dict[int, float]:
        weights = {}
        for token, count in bag(graph).items():
            having = sum(token in bag(other) for other in fitted)
            idf = 1 + math.log((1 + len(fitted)) / (1 + having))
            weights[token] = (1 + math.log(count)) * idf
        return weights

    first, second = vector(a), vector(b)
    lengths = [math.sqrt(sum(x * x for x in v.values())) for v in (first, second)]
    product = sum(value * second.get(token, 0) for token, value in first.items())
    return product / (lengths[0] * lengths[1]) if all(lengths) else 0.0


def test_predict_is_the_literal_cosine():
    fitted = random_programs(20, seed=1, tokens=5)
    graphs = random_programs(15, seed=2, tokens=9)  # tokens 5 to 8 were never seen
    graphs.append(Graph(1, directed=True, node_tokens=[[]]))
    pairs = [(a, b) for a in graphs for b in graphs]
    expected = [literal_cosine(a, b, fitted) for a, b in pairs]
    np.testing.assert_allclose(TfIdf.fit(fitted).predict(pairs), expected, atol=1e-12)


def test_vectors_are_those_of_scikit_learn():
    from sklearn.feature_extraction.text import TfidfTransformer

    graphs = random_programs(25, seed=3, tokens=6)
    counts = np.array([[bag(graph)[token] for token in range(6)] for graph in graphs])
    expected = TfidfTransformer(sublinear_tf=True).fit_transform(counts).toarray()
    np.testing.assert_allclose(TfIdf.fit(graphs).vectors(graphs).toarray(), expected)


bags = st.lists(st.integers(0, 5), min_size=1, max_size=8)


@given(bags, bags, st.permutations(range(3)))
@settings(max_examples=100, deadline=None)
def test_symmetric_highest_for_itself_and_blind_to_order(first, second, order):
    a = Graph(3, [(0, 1)], directed=True, node_tokens=[first, [], [1]])
    b = Graph(1, directed=True, node_tokens=[second])
    model = TfIdf.fit([a, b])
    both, turned, itself, moved = model.predict([(a, b), (b, a), (a, a), (a.permuted(order), b)])
    assert both == turned == moved
    assert itself == pytest.approx(1)
    assert both <= itself + 1e-12


def test_far_token_ids_take_no_memory_of_their_own():
    far = Graph(1, node_tokens=[[2**31 - 1, 5]])
    near = Graph(1, node_tokens=[[5]])
    model = TfIdf.fit([far])
    assert model.vectors([far]).shape == (1, 2)
    np.testing.assert_allclose(model.scores([far], [far, near]), [[1, math.sqrt(0.5)]])


def test_nothing_to_fit_or_to_compare():
    empty = Graph(2, node_tokens=[[], []])
    model = TfIdf.fit([empty])
    assert model.predict([(empty, empty)]).tolist() == [0]
    assert model.predict([]).shape == (0,)
    with pytest.raises(ConfigError, match="at least one graph"):
        TfIdf.fit([])


def test_graphs_without_tokens_are_refused():
    with pytest.raises(GraphError, match=r"graph 1 has no node_tokens.* SimHash or WLKernel"):
        TfIdf.fit([Graph(1, node_tokens=[[1]]), Graph(1)])
