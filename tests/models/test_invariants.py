"""What must hold for any graphs, whatever the weights."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from graphkin.graphs import Graph, PairBatch, WordBags
from graphkin.models import GraphEmbedder, GraphMatcher, ModelConfig
from tests.models.samples import KNOWN, SMALL, WORDS, make_model

FEATURES = {"node_input": "dense", "node_input_size": 2}
TYPED = {**FEATURES, "edge_input": "types", "edge_input_size": 3}

LATE = {
    "matching": True,
    "propagation": "residual",
    "similarity": "late",
    "node_degrees": True,
}

CONFIGS: dict[str, dict[str, Any]] = {
    "gnn": {},
    "gnn of typed edges": TYPED,
    "gnn with max and lstm": {**FEATURES, "message_aggregation": "max", "node_update": "lstm"},
    "gnn with attention": {**TYPED, "message_aggregation": "attention", "node_update": "rnn"},
    "gcn": {**FEATURES, "propagation": "convolution"},
    "siamese": {**FEATURES, "similarity": "siamese"},
    "hamming": {"similarity": "hamming", "node_input": "tokens", "node_input_size": 3},
    "gmn": {"matching": True},
    "gmn of features": {**TYPED, "matching": True},
    "gmn with cosine": {**FEATURES, "matching": True, "attention_similarity": "cosine"},
    "gmn with normalised messages": {"matching": True, "message_norm": "graph"},
    "gmn with alignment": {
        **FEATURES,
        "matching": True,
        "similarity": "alignment",
        "message_norm": "graph",
    },
    "gmn with a joint similarity": {**FEATURES, "matching": True, "similarity": "joint"},
    "gmn with projections": {
        **FEATURES,
        "matching": True,
        "attention_projections": True,
        "attention_similarity": "dot",
        "similarity": "cosine",
    },
    "late": {**LATE, **FEATURES},
    "edits": {"matching": True, "similarity": "edits", **TYPED},
    "late with words": {**LATE, "word_dim": 64, "words_known": len(KNOWN.hashes)},
}
MATCHERS = [name for name, options in CONFIGS.items() if options.get("matching")]
EMBEDDERS = [name for name, options in CONFIGS.items() if not options.get("matching")]

COMPARING_NODES = [
    name for name in MATCHERS if any(kind in name for kind in ("align", "joint", "late", "edits"))
]

examples = settings(deadline=None, max_examples=10)


@cache
def model_of(name: str) -> GraphEmbedder | GraphMatcher:
    return make_model(ModelConfig.from_dict({**SMALL, **CONFIGS[name]}))


@st.composite
def graphs(draw: st.DrawFn, name: str, *, directed: bool = False, max_nodes: int = 7) -> Graph:
    """Graphs that the named model takes, with self loops and duplicate edges."""
    config = model_of(name).config
    nodes = draw(st.integers(1, max_nodes))
    node = st.integers(0, nodes - 1)
    edges = draw(st.lists(st.tuples(node, node), max_size=10))
    inputs: dict[str, Any] = {}
    if config.node_input == "dense":
        value = st.floats(-2, 2, width=16)
        inputs["node_features"] = draw(
            st.lists(st.tuples(value, value), min_size=nodes, max_size=nodes)
        )
    if config.node_input == "tokens":
        bag = st.lists(st.integers(0, 2), max_size=3)
        inputs["node_tokens"] = draw(st.lists(bag, min_size=nodes, max_size=nodes))
    if config.edge_input == "types":
        kinds = st.lists(st.integers(0, 2), min_size=len(edges), max_size=len(edges))
        inputs["edge_types"] = draw(kinds)
    if config.word_dim:
        said = st.lists(st.sampled_from(WORDS), max_size=3)
        bags = draw(st.lists(said, min_size=nodes, max_size=nodes))
        hashes = np.array([word for bag in bags for word in bag], dtype=np.uint64)
        inputs["node_words"] = WordBags(hashes, np.cumsum([0, *map(len, bags)]))
    return Graph(nodes, edges, directed=directed, **inputs)


def shuffled(data: st.DataObject, graph: Graph) -> Graph:
    """The same graph with nodes renumbered and edges listed in another order."""
    renumbered = graph.permuted(data.draw(st.permutations(range(graph.num_nodes))))
    order = data.draw(st.permutations(range(graph.num_edges)))
    return with_edges(renumbered, list(order))


def with_edges(graph: Graph, rows: list[int], **changes: Any) -> Graph:
    """The graph with the given rows of its edge list only, or other fields changed."""
    fields: dict[str, Any] = {
        "edges": graph.edges[rows],
        "directed": graph.directed,
        "node_features": graph.node_features,
        "node_tokens": graph.node_tokens,
        "node_words": graph.node_words,
        "edge_types": None if graph.edge_types is None else graph.edge_types[rows],
    }
    return Graph(graph.num_nodes, **{**fields, **changes})


def outputs(name: str, *pairs: tuple[Graph, Graph]) -> tuple[Tensor, Tensor, Tensor]:
    with torch.no_grad():
        output = model_of(name)(PairBatch.pack(pairs))
    return output.scores, output.left, output.right


def assert_close(got: Tensor, expected: Tensor) -> None:
    torch.testing.assert_close(got, expected, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("name", CONFIGS)
@examples
@given(data=st.data())
def test_numbering_of_nodes_and_order_of_edges_change_nothing(
    name: str, data: st.DataObject
) -> None:
    left, right = data.draw(graphs(name)), data.draw(graphs(name))
    expected = outputs(name, (left, right))
    got = outputs(name, (shuffled(data, left), shuffled(data, right)))
    for ours, theirs in zip(got, expected, strict=True):
        assert_close(ours, theirs)


@pytest.mark.parametrize("name", CONFIGS)
@examples
@given(data=st.data())
def test_similarity_is_symmetric(name: str, data: st.DataObject) -> None:
    left, right = data.draw(graphs(name)), data.draw(graphs(name))
    scores, x, y = outputs(name, (left, right))
    swapped, y_again, x_again = outputs(name, (right, left))
    assert_close(swapped, scores)
    assert_close(x_again, x)
    assert_close(y_again, y)


# An alignment compares nodes with an average of those that they look at, which is another node's
# state only where attention is sharp; what a late matcher makes of it is learned.
@pytest.mark.parametrize("name", [name for name in MATCHERS if name not in COMPARING_NODES])
@examples
@given(data=st.data())
def test_isomorphic_graphs_match_perfectly(name: str, data: st.DataObject) -> None:
    graph = data.draw(graphs(name))
    scores, left, right = outputs(name, (graph, graph), (graph, shuffled(data, graph)))
    assert_close(left, right)
    assert_close(scores, torch.full_like(scores, 1.0 if "projections" in name else 0.0))


@examples
@given(data=st.data())
def test_isomorphic_graphs_match_in_single_precision(data: st.DataObject) -> None:
    graph = data.draw(graphs("gmn"))
    matcher = default_matcher()
    scores = matcher.predict([(graph, graph), (graph, shuffled(data, graph))])
    assert np.abs(scores).max() < 1e-6


@cache
def default_matcher() -> GraphMatcher:
    torch.manual_seed(0)
    return GraphMatcher(ModelConfig.named("gmn"))


@pytest.mark.parametrize("name", CONFIGS)
@examples
@given(data=st.data())
def test_a_score_does_not_depend_on_the_rest_of_the_batch(name: str, data: st.DataObject) -> None:
    pairs = data.draw(st.lists(st.tuples(graphs(name), graphs(name)), min_size=2, max_size=3))
    together = outputs(name, *pairs)
    for row, pair in enumerate(pairs):
        for all_rows, alone in zip(together, outputs(name, pair), strict=True):
            assert_close(all_rows[row : row + 1], alone)


@pytest.mark.parametrize("name", EMBEDDERS)
@examples
@given(data=st.data())
def test_an_embedding_does_not_depend_on_the_partner(name: str, data: st.DataObject) -> None:
    graph, one, other = (data.draw(graphs(name)) for _ in range(3))
    _, vectors, _ = outputs(name, (graph, one), (graph, other))
    assert_close(vectors[0], vectors[1])


@pytest.mark.parametrize("name", MATCHERS)
def test_a_matching_vector_does_depend_on_the_partner(name: str) -> None:
    config = model_of(name).config
    inputs: dict[str, Any] = {}
    if config.node_input == "dense":
        inputs["node_features"] = [[1.0, 0.5], [-1.0, 0.25], [0.0, 2.0]]
    if config.word_dim:
        inputs["node_words"] = WordBags(np.array(WORDS[:3], dtype=np.uint64), np.arange(4))
    types = {"edge_types": [0, 1, 2]} if config.edge_input == "types" else {}
    ring = Graph(3, [(0, 1), (1, 2), (2, 0)], **inputs, **types)
    chain = with_edges(ring, [0, 1])
    _, vectors, _ = outputs(name, (ring, ring), (ring, chain))
    assert float((vectors[0] - vectors[1]).abs().max()) > 1e-3


@pytest.mark.parametrize("matching", [False, True], ids=["deep set", "matching"])
@examples
@given(data=st.data())
def test_without_propagation_edges_play_no_part(matching: bool, data: st.DataObject) -> None:
    model = deep_set(matching)
    graph, other = (data.draw(graphs("gnn with max and lstm")) for _ in range(2))
    bare = with_edges(graph, [])
    with torch.no_grad():
        output = model(PairBatch.pack([(graph, other), (bare, other)]))
    # Equal but for rounding: a product of matrices may take other paths for other rows.
    torch.testing.assert_close(output.left[0], output.left[1], rtol=1e-12, atol=1e-12)
    assert float(output.scores[0]) == pytest.approx(float(output.scores[1]), abs=1e-12)


@cache
def deep_set(matching: bool) -> GraphEmbedder | GraphMatcher:
    return make_model(
        ModelConfig.from_dict({**SMALL, **FEATURES, "steps": 0, "matching": matching})
    )


@pytest.mark.parametrize("name", ["gnn", "gnn of typed edges", "gcn", "gmn of features"])
@examples
@given(data=st.data())
def test_an_undirected_edge_is_two_directed_ones(name: str, data: st.DataObject) -> None:
    graph, other = data.draw(graphs(name)), data.draw(graphs(name, directed=True))
    there = list(range(graph.num_edges))
    back = [row for row in there if graph.edges[row, 0] != graph.edges[row, 1]]
    doubled = with_edges(
        graph,
        there + back,
        edges=np.concatenate([graph.edges, graph.edges[back][:, ::-1]]),
        directed=True,
    )
    one_way = with_edges(graph, there, directed=True)
    undirected = with_edges(other, list(range(other.num_edges)), directed=False)
    if name.startswith("gmn"):  # a pair has one kind of edges: compare graphs with themselves
        expected = outputs(name, (graph, graph))[1]
        assert_close(outputs(name, (doubled, doubled))[1], expected)
        return
    expected = outputs(name, (graph, undirected))[1]
    assert_close(outputs(name, (doubled, one_way))[1], expected)


@pytest.mark.parametrize("aggregation", ["mean", "max", "attention"])
@examples
@given(data=st.data())
def test_all_edges_twice_change_a_sum_only(aggregation: str, data: st.DataObject) -> None:
    graph = data.draw(graphs("gnn of typed edges"))
    twice = with_edges(graph, [*range(graph.num_edges), *range(graph.num_edges)])
    with torch.no_grad():
        output = aggregating(aggregation)(PairBatch.pack([(graph, twice)]))
    assert_close(output.left, output.right)


def test_all_edges_twice_change_a_sum() -> None:
    graph = Graph(2, [(0, 1)], node_features=[[1.0, 2.0], [0.5, 1.0]], edge_types=[0])
    twice = with_edges(graph, [0, 0])
    with torch.no_grad():
        output = aggregating("sum")(PairBatch.pack([(graph, twice)]))
    assert float((output.left - output.right).abs().max()) > 1e-3


@cache
def aggregating(kind: str) -> GraphEmbedder | GraphMatcher:
    return make_model(ModelConfig.from_dict({**SMALL, **TYPED, "message_aggregation": kind}))
