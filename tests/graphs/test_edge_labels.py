"""Labels of edges as text: kept by every format that has names, and types for a model."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from graphkin.errors import FormatError, GraphError
from graphkin.graphs import Graph, GraphBatch
from graphkin.graphs.converters.dot import read_dot, write_dot
from graphkin.graphs.converters.from_networkx import from_networkx, to_networkx
from graphkin.graphs.converters.graphml import read_graphml, write_graphml
from graphkin.graphs.converters.json_lines import read_json_lines, write_json_lines
from graphkin.graphs.converters.named import NamedGraph
from graphkin.graphs.encoding import dump_graph
from graphkin.graphs.vocabulary import UNKNOWN, Vocabulary

BONDS = ["single", "double", 'a "b"']
CHAIN = Graph(4, [(0, 1), (2, 1), (2, 3)], node_labels=["C", "C", "O", "N"], edge_labels=BONDS)


def through_json(path: Path, graph: Graph) -> Graph:
    write_json_lines(path, [NamedGraph("g", graph)])
    return read_json_lines(path)[0].graph


def through_graphml(path: Path, graph: Graph) -> Graph:
    write_graphml(path, graph)
    return read_graphml(path)


def through_dot(path: Path, graph: Graph) -> Graph:
    write_dot(path, graph)
    return read_dot(path)


@pytest.mark.parametrize("through", [through_json, through_graphml, through_dot])
def test_files_keep_them(through: Callable[[Path, Graph], Graph], tmp_path: Path) -> None:
    assert through(tmp_path / "g", CHAIN) == CHAIN


def test_networkx_and_pickle_keep_them() -> None:
    assert from_networkx(to_networkx(CHAIN)) == CHAIN
    assert pickle.loads(pickle.dumps(CHAIN)) == CHAIN
    assert CHAIN.permuted([3, 1, 0, 2]).edge_labels == tuple(BONDS)


def test_an_attribute_by_name() -> None:
    graph = to_networkx(Graph(3, [(0, 1), (1, 2)]))
    for (_, _, values), kind in zip(graph.edges(data=True), ["=", "-"], strict=True):
        values["bond"] = kind
    assert from_networkx(graph, edge_labels="bond").edge_labels == ("=", "-")
    with pytest.raises(GraphError, match="has no attribute 'order'"):
        from_networkx(graph, edge_labels="order")


def test_they_are_content() -> None:
    other = Graph(4, CHAIN.edges, node_labels=CHAIN.node_labels, edge_labels=["a", "b", "c"])
    assert other != CHAIN
    assert other.edge_kind == "labels"
    assert "labels edges" in repr(other)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"edge_labels": ["a"]}, "1 labels for 2 edges"),
        ({"edge_labels": "ab"}, "one text for each edge"),
        ({"edge_labels": [1, 2]}, "edge_types or edge_features"),
        ({"edge_labels": ["a", "b"], "edge_types": [0, 1]}, "not both"),
    ],
)
def test_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(GraphError, match=message):
        Graph(3, [(0, 1), (1, 2)], **arguments)


def test_a_vocabulary_makes_types() -> None:
    vocabulary = Vocabulary.of_labels([CHAIN, CHAIN.permuted([1, 0, 2, 3])])
    assert vocabulary.edge_words == ('a "b"', "double", "single")
    other = Graph(3, [(0, 1), (1, 2)], node_labels=["C", "P", "C"], edge_labels=["double", "~"])
    read = vocabulary.read(other)
    assert read.edge_types is not None
    assert read.edge_types.tolist() == [2, 0]
    assert vocabulary.edge_texts(read) == ["double", UNKNOWN]
    assert vocabulary.node_texts(read) == ["C", UNKNOWN, "C"]
    assert Vocabulary.from_json(vocabulary.to_json()) == vocabulary
    assert Vocabulary.from_json({"labels": ["C"]}).edge_types == 0


def test_labels_beside_features_are_known_again() -> None:
    graph = Graph(2, [(0, 1)], node_labels=["C", "O"], node_features=[[1.0], [2.0]])
    vocabulary = Vocabulary.of_labels([graph])
    assert vocabulary.node_texts(vocabulary.read(graph)) == ["C", "O"]


def test_without_a_vocabulary_of_edges() -> None:
    with pytest.raises(GraphError, match="those of the training had none"):
        Vocabulary(("C", "O", "N"), "labels").read(CHAIN)
    with pytest.raises(FormatError, match="no labels of edges"):
        Vocabulary(("add",), edge_words=("a",))
    with pytest.raises(GraphError, match="labels as text"):
        GraphBatch.pack([CHAIN])
    with pytest.raises(GraphError, match="labels as text"):
        dump_graph(Graph(2, [(0, 1)], edge_labels=["a"]))
