"""Graphs made by hand, in classes: molecules with labels, and circles of people without any."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import networkx as nx
import numpy as np

from graphkin.graphs import Graph
from graphkin.graphs.converters.json_lines import write_json_lines
from graphkin.graphs.converters.named import NamedGraph
from graphkin.models import GraphEmbedder, GraphMatcher, ModelConfig


def molecules(count: int = 120, seed: int = 0) -> tuple[list[Graph], list[str]]:
    """Random trees of atoms; in the class ``nitro`` one N has two O, in the other one O two N."""
    rng = np.random.default_rng(seed)
    graphs, labels = [], []
    for number in range(count):
        size = int(rng.integers(8, 16))
        tree = nx.random_labeled_tree(size, seed=int(rng.integers(1 << 30)))
        atoms = rng.choice(["C", "N", "O"], size, p=[0.7, 0.2, 0.1]).tolist()
        is_nitro = number % 2 == 1
        group = ["N", "O", "O"] if is_nitro else ["O", "N", "O"]
        bonds = [(int(rng.integers(size)), size), (size, size + 1), (size, size + 2)]
        graphs.append(Graph(size + 3, [*tree.edges, *bonds], node_labels=[*atoms, *group]))
        labels.append("nitro" if is_nitro else "other")
    return graphs, labels


def circles(count: int = 120, seed: int = 0) -> tuple[list[Graph], list[int]]:
    """People around one who knows all: a mixed crowd, or two groups that do not know each other."""
    rng = np.random.default_rng(seed)
    graphs, labels = [], []
    for number in range(count):
        size = int(rng.integers(12, 22))
        half = size // 2 if number % 2 else 0
        parts = [(half, 0.8), (size - half, 0.8)] if half else [(size, 0.4)]
        crowd = nx.disjoint_union_all(
            [nx.gnp_random_graph(n, p, seed=int(rng.integers(1 << 30))) for n, p in parts]
        )
        edges = [*crowd.edges, *((size, person) for person in range(size))]
        graphs.append(Graph(size + 1, edges))
        labels.append(number % 2)
    return graphs, labels


def edit_pairs(count: int = 60, seed: int = 0) -> tuple[list[tuple[Graph, Graph]], list[float]]:
    """Pairs of paths, and by how many nodes they differ."""
    rng = np.random.default_rng(seed)
    paths = [Graph(n, [(i, i + 1) for i in range(n - 1)]) for n in range(2, 14)]
    numbers = rng.integers(0, len(paths), (count, 2)).tolist()
    return [(paths[a], paths[b]) for a, b in numbers], [float(abs(a - b)) for a, b in numbers]


SMALL = {"node_dim": 8, "message_dim": 8, "graph_dim": 16, "steps": 2}


@lru_cache
def molecule_models() -> tuple[GraphEmbedder, GraphMatcher]:
    """Two small models of :func:`molecules`; nobody changes them."""
    graphs, labels = molecules(40)
    embedder = GraphEmbedder(ModelConfig.named("gnn-strong", **SMALL))
    embedder.fit(graphs, labels, steps=3, progress=False)
    matcher = GraphMatcher(ModelConfig.named("gmn-strong", **SMALL))
    matcher.fit(graphs, labels, steps=3, progress=False)
    return embedder, matcher


def write_molecules(file: Path, count: int = 12) -> Path:
    """A file of JSON lines with molecules m0, m1 and so on, each with its class."""
    graphs = zip(*molecules(count), strict=True)
    write_json_lines(file, [NamedGraph(f"m{n}", g, c) for n, (g, c) in enumerate(graphs)])
    return file
