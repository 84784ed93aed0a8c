"""Places of nodes: apart, stable, and alike for graphs that are alike."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest

from graphkin.graphs import Graph
from graphkin.results.drawing.force import LEAST_GAP, Positions, aligned, force_layout


def gaps(places: Positions) -> np.ndarray:
    """Distances between all pairs of nodes."""
    distances = np.linalg.norm(places[:, None] - places[None], axis=2)
    return distances[np.triu_indices(len(places), 1)]


@pytest.mark.parametrize(
    "nodes_and_edges",
    [
        (1, []),
        (2, [(0, 1)]),
        (3, [(0, 1), (1, 1), (1, 2), (1, 2)]),
        (12, [(i, i + 1) for i in range(11)]),
        (20, list(nx.complete_graph(20).edges)),
        (9, [(0, 1), (1, 2), (4, 5), (5, 6)]),
        (300, list(nx.random_labeled_tree(300, seed=0).edges)),
    ],
    ids=["one", "pair", "loop", "path", "complete", "components", "large"],
)
def test_nodes_stand_apart(nodes_and_edges: tuple[int, list[tuple[int, int]]]) -> None:
    graph = Graph(*nodes_and_edges)
    places = force_layout(graph)
    assert places.shape == (graph.num_nodes, 2)
    assert np.isfinite(places).all()
    assert places.min() >= 0
    assert np.array_equal(places, force_layout(graph))
    if graph.num_nodes > 1:
        assert np.quantile(gaps(places), 0.05) > LEAST_GAP / 2


def test_distances_on_paper_are_those_in_the_graph() -> None:
    """A path is drawn as one: its ends are farther from each other than any other nodes."""
    places = force_layout(Graph(8, [(i, i + 1) for i in range(7)]))
    assert np.linalg.norm(places[0] - places[7]) == pytest.approx(gaps(places).max())
    assert np.linalg.norm(places[3] - places[4]) == pytest.approx(1.0, rel=0.2)


def test_components_do_not_overlap() -> None:
    ring = [(0, 1), (1, 2), (2, 3), (3, 0)]
    places = force_layout(Graph(8, [*ring, *((a + 4, b + 4) for a, b in ring)]))
    (left, right), (other_left, other_right) = (
        (part[:, 0].min(), part[:, 0].max()) for part in (places[:4], places[4:])
    )
    (top, low), (other_top, other_low) = (
        (part[:, 1].min(), part[:, 1].max()) for part in (places[:4], places[4:])
    )
    apart = right < other_left or other_right < left or low < other_top or other_low < top
    assert apart


def test_partners_stand_alike() -> None:
    """A mirrored and turned copy comes back to where the first is."""
    places = force_layout(Graph(7, [(0, 1), (1, 2), (2, 3), (3, 4), (1, 5), (2, 6)]))
    turn = np.array([[0.0, -1.0], [-1.0, 0.0]])
    other = (places @ turn)[::-1]
    pairs = [(node, 6 - node) for node in range(7)]
    assert np.allclose(aligned(places, other, pairs)[::-1], places, atol=1e-9)
    assert aligned(places, other, pairs[:1]) is other
