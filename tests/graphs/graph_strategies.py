"""Small random graphs of every kind, for property tests."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from graphkin.graphs import Graph, WordBags

NODE_KINDS = ("constant", "dense", "tokens")
EDGE_KINDS = ("constant", "dense", "types")

_values = st.floats(width=32, allow_nan=False, allow_infinity=False)
_ids = st.integers(0, 2**31 - 1)
_hashes = st.integers(0, 2**64 - 1)


@st.composite
def graphs(
    draw: st.DrawFn,
    *,
    node_kind: str | None = None,
    edge_kind: str | None = None,
    directed: bool | None = None,
    widths: tuple[int, int] | None = None,
    bag_size: int | None = None,
    words: bool | None = False,
) -> Graph:
    """Graphs of 1 to 6 nodes with self loops and parallel edges; None draws a trait."""
    num_nodes = draw(st.integers(1, 6))
    node = st.integers(0, num_nodes - 1)
    edges = draw(st.lists(st.tuples(node, node), max_size=8))
    node_kind = node_kind or draw(st.sampled_from(NODE_KINDS))
    edge_kind = edge_kind or draw(st.sampled_from(EDGE_KINDS))
    node_width, edge_width = widths or draw(st.tuples(st.integers(1, 3), st.integers(1, 3)))
    inputs: dict[str, Any] = {}
    if node_kind == "dense":
        inputs["node_features"] = draw(_matrix(num_nodes, node_width))
    if node_kind == "tokens":
        sizes = (0, 3) if bag_size is None else (bag_size, bag_size)
        bag = st.lists(_ids, min_size=sizes[0], max_size=sizes[1])
        inputs["node_tokens"] = draw(st.lists(bag, min_size=num_nodes, max_size=num_nodes))
    if edge_kind == "dense":
        rows = draw(_matrix(len(edges), edge_width))
        inputs["edge_features"] = np.reshape(rows, (len(edges), edge_width))
    if edge_kind == "types":
        inputs["edge_types"] = draw(st.lists(_ids, min_size=len(edges), max_size=len(edges)))
    if draw(st.booleans()) if words is None else words:
        bags = draw(st.lists(st.lists(_hashes, max_size=3), min_size=num_nodes, max_size=num_nodes))
        offsets = np.cumsum([0, *map(len, bags)])
        hashes = np.array([word for bag in bags for word in bag], dtype=np.uint64)
        inputs["node_words"] = WordBags(hashes, offsets)
    direction = draw(st.booleans()) if directed is None else directed
    return Graph(num_nodes, edges, directed=direction, **inputs)


def _matrix(rows: int, columns: int) -> st.SearchStrategy[list[list[float]]]:
    row = st.lists(_values, min_size=columns, max_size=columns)
    return st.lists(row, min_size=rows, max_size=rows)
