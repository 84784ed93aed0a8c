"""NetworkX and PyTorch Geometric: round trips, foreign graphs, and what is refused."""

from __future__ import annotations

import doctest
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given

from graphkin.errors import GraphError
from graphkin.graphs import Graph
from graphkin.graphs.converters import from_networkx as convert
from graphkin.graphs.converters.from_networkx import from_networkx, to_networkx
from tests.graphs.graph_strategies import graphs


@given(graphs())
def test_networkx_round_trip_is_exact(graph: Graph) -> None:
    assert from_networkx(to_networkx(graph)) == graph


@given(graphs())
def test_networkx_holds_the_same_edges(graph: Graph) -> None:
    converted = to_networkx(graph)
    assert converted.is_directed() == graph.directed
    assert list(converted.nodes) == list(range(graph.num_nodes))
    pairs = [(u, v) if graph.directed else tuple(sorted((u, v))) for u, v in graph.edges.tolist()]
    assert sorted(converted.edges()) == sorted(pairs)
    assert converted.is_multigraph() == (len(set(pairs)) < len(pairs))


def test_networkx_attributes_are_plain_values_under_documented_names() -> None:
    dense = to_networkx(Graph(2, [(1, 0)], node_features=[[0.5, 1], [2, 3]], edge_types=[4]))
    assert dense.nodes[1]["features"] == [2.0, 3.0]
    assert dense.edges[0, 1]["type"] == 4
    bags = to_networkx(Graph(2, [(0, 1)], node_tokens=[[7, 7], []], edge_features=[[0.25]]))
    assert [bags.nodes[node]["tokens"] for node in bags] == [[7, 7], []]
    assert bags.edges[0, 1]["features"] == [0.25]


@pytest.mark.parametrize("kind", [nx.Graph, nx.DiGraph, nx.MultiGraph, nx.MultiDiGraph])
def test_nodes_of_any_hashable_are_numbered_in_iteration_order(kind: Any) -> None:
    foreign = kind([("entry", (1, 2)), ((1, 2), 3.5), ("entry", "entry"), ("entry", (1, 2))])
    graph = from_networkx(foreign)
    assert graph.directed == foreign.is_directed()
    assert (graph.node_kind, graph.edge_kind) == ("constant", "constant")
    assert graph.num_edges == foreign.number_of_edges() == (4 if foreign.is_multigraph() else 3)
    names = ["entry", (1, 2), 3.5]
    expected = [(names.index(u), names.index(v)) for u, v in foreign.edges()]
    assert graph.edges.tolist() == [list(pair) for pair in expected]


def test_named_attributes_become_input() -> None:
    foreign = nx.DiGraph()
    foreign.add_node("a", position=np.array([1.0, 2.0]), weight=3, words=[5, 6])
    foreign.add_node("b", position=(4, 5), weight=True, words=8)
    foreign.add_edge("a", "b", kind=np.int64(2), cost="0.5, 1e-3")
    graph = from_networkx(foreign, node_features=["position", "weight"], edge_type="kind")
    assert graph.node_features is not None
    assert graph.node_features.tolist() == [[1, 2, 3], [4, 5, 1]]
    assert graph.edge_types is not None
    assert graph.edge_types.tolist() == [2]
    two = from_networkx(foreign, node_tokens="words", edge_features="cost")
    assert two.node_tokens is not None
    assert [two.node_tokens.bag(0), two.node_tokens.bag(1)] == [[5, 6], [8]]
    assert two.edge_features is not None
    assert two.edge_features.tolist() == [[0.5, np.float32(1e-3)]]


def test_names_win_over_what_graphkin_wrote() -> None:
    written = to_networkx(Graph(2, [(0, 1)], node_features=[[1.0], [2.0]], edge_types=[3]))
    nx.set_node_attributes(written, {0: 8, 1: 9}, "block")
    graph = from_networkx(written, node_tokens="block")
    assert graph.node_kind == "tokens"
    assert graph.edge_kind == "types"


def test_a_changed_networkx_graph_still_loads() -> None:
    written = to_networkx(Graph(3, [(2, 0), (1, 0)], directed=False))
    written.add_edge(1, 2)
    relabelled = nx.relabel_nodes(written, {0: "c", 1: "b", 2: "a"})
    for changed in (written, relabelled, written.subgraph([0, 2])):
        graph = from_networkx(changed)
        names = list(changed.nodes)
        actual = {frozenset((names[u], names[v])) for u, v in graph.edges.tolist()}
        assert actual == {frozenset(edge) for edge in changed.edges()}


NETWORKX_REFUSED: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "missing": ({"x": 1}, {"node_features": "y"}, "node 'a' has no attribute 'y' .it has: x"),
    "text": ({"x": "red"}, {"node_features": "x"}, "node 'a' has x='red', which must be numbers"),
    "none": ({"x": None}, {"node_features": "x"}, "x=None"),
    "matrix": ({"x": [[1.0]]}, {"node_features": "x"}, r"shape \(1, 1\)"),
    "ragged": ({"x": [[1], [1, 2]]}, {"node_features": "x"}, "must be numbers"),
    "nan": ({"x": float("nan")}, {"node_features": "x"}, "finite"),
    "no names": ({"x": 1}, {"node_features": []}, "empty list"),
    "float token": ({"x": 1.5}, {"node_tokens": "x"}, "must be integers"),
    "bool token": ({"x": True}, {"node_tokens": "x"}, "must be integers"),
    "negative token": ({"x": -1}, {"node_tokens": "x"}, "-1"),
    "huge token": ({"x": str(2**70)}, {"node_tokens": "x"}, "must be integers"),
    "both": ({"x": 1}, {"node_tokens": "x", "node_features": "x"}, "not both"),
    "edge": ({"x": 1}, {"edge_features": "w"}, "edge 'a' - 'b' has no attribute 'w'"),
    "two types": ({"x": 1}, {"edge_type": "pair"}, "one integer in 'pair'"),
    "named type": ({"x": 1}, {"edge_type": "call"}, "call='jump', which must be integers"),
}


@pytest.mark.parametrize("case", NETWORKX_REFUSED)
def test_networkx_refusals_name_node_and_attribute(case: str) -> None:
    attributes, names, message = NETWORKX_REFUSED[case]
    foreign = nx.Graph()
    foreign.add_nodes_from(["a", "b"], **attributes)
    foreign.add_edge("a", "b", pair=[1, 2], call="jump")
    with pytest.raises(GraphError, match=message):
        from_networkx(foreign, **names)


def test_networkx_refuses_uneven_rows_unknown_kinds_and_other_objects() -> None:
    uneven = nx.Graph()
    uneven.add_node("a", x=[1, 2])
    uneven.add_node("b", x=[1])
    with pytest.raises(GraphError, match="node 'b' has 1 numbers in x, but node 'a' has 2"):
        from_networkx(uneven, node_features="x")
    with pytest.raises(GraphError, match=r"graphkin_node_kind must be one of .* got 'images'"):
        from_networkx(nx.Graph([(0, 1)], graphkin_node_kind="images"))
    for width, message in ((0, "at least 1"), ("wide", "must be integers"), (2**40, "int32")):
        lonely = nx.Graph(graphkin_edge_kind="dense", graphkin_edge_width=width)
        lonely.add_node("a")
        with pytest.raises(GraphError, match=f"graphkin_edge_width.*{message}"):
            from_networkx(lonely)
    with pytest.raises(GraphError, match="num_nodes"):
        from_networkx(nx.Graph())
    with pytest.raises(GraphError, match="got list"):
        from_networkx([(0, 1)])


def test_docstring_example() -> None:
    assert doctest.testmod(convert).failed == 0
