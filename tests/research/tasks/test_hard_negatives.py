"""Classes that are easily confused."""

from __future__ import annotations

import numpy as np
import pytest

from graphkin.errors import ConfigError
from graphkin.graphs import Graph
from graphkin.research.tasks.hard_negatives import NEIGHBOURS, nearest_classes


def graph(nodes: int, token: int) -> Graph:
    edges = [(i, i + 1) for i in range(nodes - 1)]
    return Graph(nodes, edges, directed=True, node_tokens=[[token, 1]] * nodes)


def test_the_nearest_are_alike_in_size_and_tokens() -> None:
    """Two families by token; in each, classes ordered by size."""
    graphs, classes = [], []
    for family in (2, 3):
        for size in range(30):
            classes.append(np.arange(len(graphs), len(graphs) + 3))
            nodes = round(20 * 1.1**size)
            graphs += [graph(nodes + extra, family) for extra in (-1, 0, 1)]
    near = nearest_classes(graphs, classes, 4)
    assert near.shape == (60, NEIGHBOURS)
    for number, others in enumerate(near.tolist()):
        assert number not in others
        assert len(set(others)) == NEIGHBOURS
        assert all(other // 30 == number // 30 for other in others[:5])
        assert all(abs(other - number) <= 6 for other in others[:5])
        assert abs(others[0] - number) == 1


def test_few_classes_have_few_neighbours() -> None:
    graphs = [graph(5, 1), graph(6, 1), graph(50, 2)]
    near = nearest_classes(graphs, [np.array([n]) for n in range(3)], 4)
    assert near.shape == (3, 2)
    assert near[:, 0].tolist() == [1, 0, 1]


@pytest.mark.parametrize("count", [0, 1])
def test_too_few_classes(count: int) -> None:
    with pytest.raises(ConfigError, match=f"{count} classes"):
        nearest_classes([graph(5, 1)], [np.array([0])] * count, 4)


def test_graphs_without_tokens() -> None:
    graphs = [Graph(n, [(0, 1)], directed=True) for n in (5, 6, 90, 95)]
    near = nearest_classes(graphs, [np.array([n]) for n in range(4)], 3)
    assert near[:, 0].tolist() == [1, 0, 3, 2]
