"""Features as hashes against features as nested tuples."""

from __future__ import annotations

import tracemalloc
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings

from graphkin.errors import GraphError
from graphkin.graphs import Graph
from graphkin.research.baselines.simhash import features as simhash_features
from graphkin.research.baselines.simhash.features import KINDS, MAX_NEIGHBOURHOOD, extract_features
from tests.research.baselines.small_programs import programs_and_orders, random_programs

Feature = tuple  # (kind, what it describes, which occurrence)


def literal_features(graph: Graph, limit: int = MAX_NEIGHBOURHOOD) -> set[Feature]:
    """Breadth-first searches and slices."""
    nodes = range(graph.num_nodes)
    into, out = Counter(), Counter()
    near: list[set[int]] = [set() for _ in nodes]
    for source, target in graph.edges.tolist():
        out[source] += 1
        into[target] += 1
        if not graph.directed and source != target:
            out[target] += 1
            into[source] += 1
        near[source].add(target)
        near[target].add(source)
    listed: list[tuple] = []
    for root in nodes:
        distances = {root: 0}
        for hops in (1, 2, 3):
            for node in [node for node, far in distances.items() if far == hops - 1]:
                for other in near[node]:
                    distances.setdefault(other, hops)
            if len(distances) <= limit:
                ball = sorted((far, into[node], out[node]) for node, far in distances.items())
                listed.append((hops - 1, tuple(ball)))
        if graph.node_tokens is not None:
            bag = graph.node_tokens.bag(root)
            grams = [bag[i : i + 3] for i in range(len(bag) - 2)] or ([bag] if bag else [])
            listed += [(3, tuple(gram)) for gram in grams]
    seen: Counter = Counter()
    features = set()
    for feature in listed:
        features.add((*feature, seen[feature]))
        seen[feature] += 1
    return features


def hashed(graphs: list[Graph]) -> list[set[tuple[int, int]]]:
    sets = extract_features(graphs)
    pairs = list(zip(sets.kinds.tolist(), sets.keys.tolist(), strict=True))
    return [
        set(pairs[start:stop])
        for start, stop in zip(sets.offsets[:-1], sets.offsets[1:], strict=True)
    ]


def assert_same_features(graphs: list[Graph], limit: int = MAX_NEIGHBOURHOOD) -> None:
    """As many of each kind in each graph, and as many in common in each pair of graphs."""
    got, expected = hashed(graphs), [literal_features(graph, limit) for graph in graphs]
    for mine, theirs in zip(got, expected, strict=True):
        assert Counter(kind for kind, _ in mine) == Counter(kind for kind, *_ in theirs)
    for i, _ in enumerate(graphs):
        for j in range(i):
            common = Counter(kind for kind, _ in got[i] & got[j])
            assert common == Counter(kind for kind, *_ in expected[i] & expected[j])


@pytest.mark.parametrize("directed", [True, False])
@pytest.mark.parametrize("with_tokens", [True, False])
def test_features_are_those_of_the_literal_version(directed, with_tokens):
    graphs = [
        Graph(
            graph.num_nodes,
            graph.edges,
            directed=directed,
            node_tokens=graph.node_tokens if with_tokens else None,
        )
        for graph in random_programs(40, seed=1)
    ]
    assert_same_features(graphs)


def test_features_do_not_depend_on_how_graphs_are_packed(monkeypatch):
    graphs = random_programs(30, seed=2)
    together = hashed(graphs)
    monkeypatch.setattr(simhash_features, "BLOCK_NODES", 10)
    assert hashed(graphs) == together
    assert [hashed([graph])[0] for graph in graphs] == together


@pytest.mark.parametrize("limit", [1, 3, 6])
def test_large_neighbourhoods_are_left_out(monkeypatch, limit):
    graphs = random_programs(30, seed=3)
    monkeypatch.setattr(simhash_features, "MAX_NEIGHBOURHOOD", limit)
    assert_same_features(graphs, limit)


def test_a_hub_costs_no_quadratic_memory():
    leaves = 10_000  # all within two hops of each other: 1e8 pairs
    edges = np.stack([np.zeros(leaves, dtype=np.int64), np.arange(1, leaves + 1)], axis=1)
    graph = Graph(leaves + 1, edges, directed=True)
    tracemalloc.start()
    features = extract_features([graph])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(features.keys) == leaves
    assert (features.kinds == KINDS.index("1 hop")).all()
    assert peak < 50e6


def test_a_repeated_feature_is_one_for_each_occurrence():
    once, twice = (Graph(n, node_tokens=[[1, 2, 3]] * n, directed=True) for n in (1, 2))
    first, second = hashed([once, twice])
    assert len(first) == 4
    assert len(second) == 8
    assert first < second


def test_trigrams_stay_within_a_block():
    split = Graph(2, directed=True, node_tokens=[[1, 2], [3]])
    whole = Graph(2, directed=True, node_tokens=[[1, 2, 3], []])
    grams = [{key for kind, key in features if kind == 3} for features in hashed([split, whole])]
    assert [len(features) for features in grams] == [2, 1]
    assert not grams[0] & grams[1]


@given(programs_and_orders())
@settings(max_examples=150, deadline=None)
def test_numbering_of_nodes_does_not_matter(graph_and_order):
    graph, order = graph_and_order
    first, second = hashed([graph, graph.permuted(order)])
    assert first == second


def test_no_graphs_have_no_features():
    features = extract_features([])
    assert features.offsets.tolist() == [0]
    assert len(features.keys) == len(features.kinds) == len(features.owners) == 0


def test_mixed_kinds_are_refused():
    with pytest.raises(GraphError, match="graph 1 of the batch has node_kind 'constant'"):
        extract_features([Graph(1, node_tokens=[[1]]), Graph(1)])
