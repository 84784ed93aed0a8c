"""Which node is which, by embedders and matchers, and graphs of other libraries."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from graphkin import Graph, GraphEmbedder, GraphMatcher, ModelConfig
from graphkin.errors import ConfigError, GraphError
from graphkin.graphs.converters.from_networkx import to_networkx
from graphkin.graphs.converters.from_pyg import to_pyg
from tests.graph_samples import SMALL, molecule_models, molecules

TREE = Graph(7, [(0, 1), (0, 2), (2, 3), (0, 4), (4, 5), (5, 6)])


@pytest.mark.parametrize("kind", [GraphEmbedder, GraphMatcher])
def test_a_copy_with_other_numbers(kind: type[GraphEmbedder] | type[GraphMatcher]) -> None:
    torch.manual_seed(0)
    name = "gnn" if kind is GraphEmbedder else "gmn"
    model = kind(ModelConfig.named(name, node_input="tokens", node_input_size=7)).eval()
    order = [3, 5, 0, 1, 6, 4, 2]
    tree = Graph(7, TREE.edges, node_tokens=[[node] for node in range(7)])
    matches = model.match(tree, tree.permuted(order))
    assert [(match.left, match.right) for match in matches] == list(enumerate(order))


def test_an_embedder_looks_once() -> None:
    embedder, _ = molecule_models()
    graphs, _ = molecules(2)
    maps = embedder.explain(*graphs)
    sizes = tuple(graph.num_nodes for graph in graphs)
    assert maps.steps == 0
    assert maps.left_to_right[0].shape == sizes
    assert maps.right_to_left[0].shape == sizes[::-1]
    assert np.allclose(maps.left_to_right[0].sum(axis=1), 1)
    assert maps.score == pytest.approx(embedder.predict([graphs])[0])


@pytest.mark.parametrize("convert", [to_networkx, to_pyg])
def test_graphs_of_other_libraries(convert) -> None:  # type: ignore[no-untyped-def]
    embedder = GraphEmbedder(ModelConfig.named("gnn", **SMALL)).eval()
    matcher = GraphMatcher(ModelConfig.named("gmn", **SMALL)).eval()
    graphs = [TREE, TREE.permuted([3, 5, 0, 1, 6, 4, 2]), Graph(3, [(0, 1), (1, 2)])]
    others = [convert(graph) for graph in graphs]
    assert np.array_equal(embedder.encode(others), embedder.encode(graphs))
    assert np.array_equal(embedder.scores(others, others), embedder.scores(graphs, graphs))
    pairs, other_pairs = [graphs[:2], graphs[1:]], [others[:2], others[1:]]
    assert np.array_equal(matcher.predict(other_pairs), matcher.predict(pairs))
    assert matcher.rank(others[0], iter(others)) == matcher.rank(graphs[0], graphs)
    with pytest.raises(GraphError, match="graph 1 is a str"):
        embedder.encode([TREE, "x"])  # type: ignore[list-item]


def test_attributes_of_networkx_graphs() -> None:
    """Named once, in training, and known by the model from then on."""
    graphs, labels = molecules(30)
    others = [to_networkx(graph) for graph in graphs]
    for graph in others:
        graph.graph.clear()
        for node in graph:
            graph.nodes[node]["element"] = graph.nodes[node].pop("label")
    embedder = GraphEmbedder(ModelConfig.named("gnn-strong", **SMALL))
    embedder.fit(others, labels, attributes={"node_labels": "element"}, steps=2, progress=False)
    assert embedder.attribute_names.node_labels == "element"
    assert np.array_equal(embedder.encode(others[:3]), embedder.encode(graphs[:3]))
    with pytest.raises(ConfigError, match="unknown attributes option 'atoms'"):
        embedder.fit(others, labels, attributes={"atoms": "element"})
