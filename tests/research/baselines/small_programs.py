"""What literal versions of the baselines need: small random graphs, and the hash of integers."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from graphkin.graphs import Graph


def literal_mixed(value: int) -> int:
    """SplitMix64's finaliser, after its increment."""
    value = (value + 0x9E3779B97F4A7C15) % 2**64
    value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
    value = (value ^ (value >> 27)) * 0x94D049BB133111EB % 2**64
    return value ^ (value >> 31)


def random_programs(count: int, seed: int, *, nodes: int = 12, tokens: int = 4) -> list[Graph]:
    rng = np.random.default_rng(seed)
    programs = []
    for _ in range(count):
        n = int(rng.integers(1, nodes + 1))
        edges = rng.integers(n, size=(int(rng.integers(0, 2 * n + 1)), 2))
        bags = [rng.integers(tokens, size=rng.integers(6)).tolist() for _ in range(n)]
        programs.append(Graph(n, edges, directed=True, node_tokens=bags))
    return programs


@st.composite
def programs_and_orders(draw: st.DrawFn) -> tuple[Graph, list[int]]:
    """A graph with self loops and parallel edges, and a renumbering of its nodes."""
    n = draw(st.integers(1, 9))
    node = st.integers(0, n - 1)
    edges = draw(st.lists(st.tuples(node, node), max_size=20))
    bag = st.lists(st.integers(0, 3), max_size=6)
    tokens = draw(st.one_of(st.none(), st.lists(bag, min_size=n, max_size=n)))
    graph = Graph(n, edges, directed=draw(st.booleans()), node_tokens=tokens)
    return graph, draw(st.permutations(range(n)))
