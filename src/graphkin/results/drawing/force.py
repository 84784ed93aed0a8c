"""Places for the nodes of a graph that is not control flow: springs between them.

Small components are placed after Kamada and Kawai (1989), so that distances on paper are those in
the graph; large ones after Fruchterman and Reingold (1991). Components stand beside each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphkin.graphs import Graph

Positions = NDArray[np.float64]
"""(N, 2) in lengths of an edge, from (0, 0); they grow to the right and downwards."""

EXACT = 120
"""Nodes of a component up to which every distance counts."""
LEAST_GAP = 0.55
"""Between neighbouring nodes, so that their labels do not lie on each other."""
MOST_STRETCHED = 4.0
BETWEEN = 1.0
"""Components."""
WORK = 20_000_000
"""Pairs of nodes that are looked at, at most, over all rounds of a large component."""


def force_layout(graph: Graph) -> Positions:
    """Places for all nodes; the same for the same graph, whenever it is asked for."""
    import networkx as nx

    plain = nx.Graph()
    plain.add_nodes_from(range(graph.num_nodes))
    plain.add_edges_from((a, b) for a, b in graph.edges.tolist() if a != b)
    parts = sorted(nx.connected_components(plain), key=lambda part: (-len(part), min(part)))
    places = np.zeros((graph.num_nodes, 2))
    members = [sorted(part) for part in parts]
    shapes = [_component(plain.subgraph(part), part) for part in members]
    for part, shape, corner in zip(members, shapes, _packed(shapes), strict=True):
        places[part] = shape + corner
    return places


def aligned(left: Positions, right: Positions, pairs: Sequence[tuple[int, int]]) -> Positions:
    """The right places turned, or mirrored, so that partners stand alike on both sides."""
    if len(pairs) < 2:
        return right
    ours, theirs = (np.array(side) for side in zip(*pairs, strict=True))
    a, b = left[ours] - left[ours].mean(axis=0), right[theirs] - right[theirs].mean(axis=0)
    # Procrustes: of all turns, the one that leaves the least squares between partners.
    u, _, vt = np.linalg.svd(b.T @ a)
    return _from_corner(right @ (u @ vt))


def _component(part: Any, members: list[int]) -> Positions:
    import networkx as nx

    count = len(members)
    if count == 1:
        return np.zeros((1, 2))
    start = nx.circular_layout(members)
    if count <= EXACT:
        found = nx.kamada_kawai_layout(part, pos=start)
    else:
        rounds = int(min(50, max(5, WORK // count**2)))
        found = nx.spring_layout(part, pos=start, iterations=rounds, seed=0)
    places = np.array([found[node] for node in members])
    return _stretched(places, part, members)


def _stretched(places: Positions, part: Any, members: list[int]) -> Positions:
    """In lengths of an edge, and far enough apart."""
    from scipy.spatial import cKDTree

    row = {node: number for number, node in enumerate(members)}
    edges = np.array([(row[a], row[b]) for a, b in part.edges])
    lengths = np.linalg.norm(places[edges[:, 0]] - places[edges[:, 1]], axis=1)
    places = places / max(float(np.median(lengths)), 1e-9)
    nearest = cKDTree(places).query(places, k=2)[0][:, 1]
    close = float(np.quantile(nearest, 0.05))
    places = places * min(max(1.0, LEAST_GAP / max(close, 1e-9)), MOST_STRETCHED)
    return _from_corner(places)


def _from_corner(places: Positions) -> Positions:
    moved: Positions = places - places.min(axis=0)
    return moved


def _packed(shapes: Sequence[Positions]) -> list[NDArray[np.float64]]:
    """The corner of each component: in rows, about as wide as they are high."""
    sizes = [shape.max(axis=0) + BETWEEN for shape in shapes]
    widest = max(float(size[0]) for size in sizes)
    room = max(widest, float(np.sqrt(sum(size[0] * size[1] for size in sizes))) * 1.2)
    corners, x, y, height = [], 0.0, 0.0, 0.0
    for width, tall in sizes:
        if x and x + width > room:
            x, y, height = 0.0, y + height, 0.0
        corners.append(np.array([x, y]))
        x, height = x + width, max(height, tall)
    return corners
