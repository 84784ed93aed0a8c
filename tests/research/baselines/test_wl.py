"""The WL kernel against grakel, against a literal version, and against the paper."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphkin.errors import ConfigError
from graphkin.graphs import Graph
from graphkin.learning.evaluation import pair_auc, triplet_accuracy
from graphkin.research.baselines.wl import WLKernel, best_iterations
from graphkin.research.tasks.edits import EditTask


def random_graphs(count: int, seed: int, *, directed: bool = False) -> list[Graph]:
    rng = np.random.default_rng(seed)
    graphs = []
    for _ in range(count):
        n = int(rng.integers(1, 12))
        cells = rng.random((n, n)) < rng.uniform(0.1, 0.5)
        np.fill_diagonal(cells, False)
        graphs.append(
            Graph(n, np.argwhere(cells if directed else np.triu(cells)), directed=directed)
        )
    return graphs


def all_pairs(graphs: list[Graph]) -> list[tuple[Graph, Graph]]:
    return [(a, b) for a in graphs for b in graphs]


@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("iterations", [1, 2, 5])
def test_agrees_with_grakel(iterations, normalize):
    from grakel import Graph as GrakelGraph
    from grakel.kernels import VertexHistogram, WeisfeilerLehman

    graphs = random_graphs(25, seed=iterations)
    theirs = []
    for graph in graphs:
        matrix = np.zeros((graph.num_nodes, graph.num_nodes))
        matrix[graph.edges[:, 0], graph.edges[:, 1]] = 1
        matrix += matrix.T
        degrees = {node: int(degree) for node, degree in enumerate(matrix.sum(axis=1))}
        theirs.append(GrakelGraph(matrix, node_labels=degrees))
    oracle = WeisfeilerLehman(
        n_iter=iterations, base_graph_kernel=VertexHistogram, normalize=normalize
    )
    expected = oracle.fit_transform(theirs)
    kernel = WLKernel(iterations, normalize=normalize)
    got = kernel.predict(all_pairs(graphs)).reshape(len(graphs), -1)
    np.testing.assert_allclose(got, expected, rtol=1e-12)


def literal_kernel(a: Graph, b: Graph, iterations: int) -> float:
    """Labels as nested tuples, histograms as dictionaries."""

    def histograms(graph: Graph) -> list[Counter]:
        into = [[] for _ in range(graph.num_nodes)]
        out = [[] for _ in range(graph.num_nodes)]
        for source, target in graph.edges.tolist():
            into[target].append(source)
            out[source].append(target)
        nodes = range(graph.num_nodes)
        labels = [(len(into[v]), len(out[v])) for v in nodes]
        counters = [Counter(labels)]
        for _ in range(iterations):
            labels = [
                (
                    labels[v],
                    tuple(sorted((labels[u] for u in into[v]), key=repr)),
                    tuple(sorted((labels[u] for u in out[v]), key=repr)),
                )
                for v in nodes
            ]
            counters.append(Counter(labels))
        return counters

    return sum(
        count * second[label]
        for first, second in zip(histograms(a), histograms(b), strict=True)
        for label, count in first.items()
    )


@pytest.mark.parametrize("iterations", [0, 1, 3])
def test_directed_graphs_agree_with_a_literal_version(iterations):
    pairs = all_pairs(random_graphs(12, seed=1, directed=True))
    expected = [literal_kernel(a, b, iterations) for a, b in pairs]
    assert WLKernel(iterations, normalize=False).predict(pairs).tolist() == expected


def test_direction_counts():
    into = Graph(3, [(1, 0), (2, 0)], directed=True)
    out = Graph(3, [(0, 1), (0, 2)], directed=True)
    assert WLKernel(2).predict([(into, out)]).tolist() == [0.0]


@st.composite
def graphs_and_orders(draw):
    n = draw(st.integers(1, 9))
    node = st.integers(0, n - 1)
    edges = draw(st.lists(st.tuples(node, node), max_size=20))
    directed = draw(st.booleans())
    graph = Graph(n, np.array(edges, dtype=np.int64).reshape(-1, 2), directed=directed)
    return graph, draw(st.permutations(range(n)))


@given(graphs_and_orders(), st.integers(0, 4))
@settings(max_examples=150, deadline=None)
def test_numbering_of_nodes_does_not_matter(graph_and_order, iterations):
    graph, order = graph_and_order
    other = Graph(4, [(0, 1), (1, 2), (2, 3)], directed=graph.directed)
    moved = graph.permuted(order)
    same, plain, permuted = WLKernel(iterations).predict(
        [(graph, moved), (graph, other), (moved, other)]
    )
    assert same == pytest.approx(1)
    assert plain == permuted


def test_sweep_holds_every_number_of_iterations():
    pairs = all_pairs(random_graphs(20, seed=3))  # 400 pairs: more than one block
    scores = WLKernel(4).sweep(pairs)
    assert scores.shape == (5, 400)
    assert scores.dtype == np.float64
    for iterations, row in enumerate(scores):
        np.testing.assert_array_equal(row, WLKernel(iterations).predict(pairs))
    assert WLKernel(2).predict([]).shape == (0,)


def test_regular_graphs_that_wl_cannot_tell_apart():
    hexagon = Graph(6, [(i, (i + 1) % 6) for i in range(6)])
    triangles = Graph(6, [(0, 1), (1, 2), (2, 0), (3, 4), (4, 5), (5, 3)])
    assert WLKernel(5).predict([(hexagon, triangles)])[0] == pytest.approx(1)


def test_best_iterations_takes_the_smallest_of_equals():
    scores = np.array([[0.0, 1.0], [2.0, 3.0], [3.0, 2.0]])
    assert best_iterations(scores, lambda row: float(row.sum())) == 1
    assert best_iterations(scores, lambda row: float(row[0])) == 2


def test_comes_near_the_paper():
    """Table 1, n=50 and p=0.2, with fewer examples: 93.9 / 97.8."""
    data = EditTask(nodes=(50, 50), p=(0.2, 0.2), evaluation_size=300).evaluation_set("test")
    aucs = [pair_auc(row, data.labels) for row in WLKernel(5).sweep(data.pairs)]
    pairs = [pair for a, b, c in data.triplets for pair in ((a, b), (a, c))]
    sweep = WLKernel(5).sweep(pairs)
    accuracies = [triplet_accuracy(row[0::2], row[1::2]) for row in sweep]
    assert max(aucs) == pytest.approx(0.939, abs=0.04)
    assert max(accuracies) == pytest.approx(0.978, abs=0.03)
    assert int(np.argmax(aucs)) == 1


@pytest.mark.parametrize("iterations", [-1, 1.5, True])
def test_impossible_iterations_are_refused(iterations):
    with pytest.raises(ConfigError, match=f"got {iterations}"):
        WLKernel(iterations)
