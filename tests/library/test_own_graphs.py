"""One's own graphs in a library: added from files and lists, searched, compared."""

from __future__ import annotations

from pathlib import Path

import networkx as nx
import numpy as np
import pytest

from graphkin import Graph, GraphEmbedder, GraphMatcher, Library, ModelConfig, compare_graphs
from graphkin.errors import ConfigError, FormatError, ModelError
from graphkin.graphs.converters.attributes import AttributeNames
from graphkin.graphs.converters.from_networkx import to_networkx
from graphkin.graphs.converters.graphml import write_graphml
from graphkin.library.models import SearchModel
from graphkin.library.own_graphs import graph_queries, index_graphs, read_one
from graphkin.library.records import SearchOptions
from graphkin.library.scan import look_up
from tests.graph_samples import SMALL, edit_pairs, molecule_models, molecules, write_molecules


@pytest.fixture
def lines(tmp_path: Path) -> Path:
    return write_molecules(tmp_path / "molecules.jsonl")


@pytest.fixture
def library(tmp_path: Path) -> Library:
    embedder, matcher = molecule_models()
    return Library.create(tmp_path / "library.kin", SearchModel.of(embedder, matcher))


def test_files_are_added_once(library: Library, lines: Path, tmp_path: Path) -> None:
    first = index_graphs(library, [lines])
    assert (first.functions, first.added, first.known) == (12, 12, 0)
    again = index_graphs(library, [lines, tmp_path / "missing.jsonl"], tags={"set": "a"})
    assert (again.added, again.known, again.tagged) == (0, 12, 12)
    assert "missing.jsonl" in str(again.skipped[0])
    one = next(iter(library.engine.scan()))
    assert (one.entry.function, one.entry.binary) == ("m0", str(lines))
    assert dict(one.entry.tags) == {"label": "other", "set": "a"}
    assert one.kind == "graph"


def test_a_graph_finds_itself(library: Library, lines: Path) -> None:
    index_graphs(library, [lines])
    (query,) = graph_queries(library, [f"{lines}:m3"])
    (result,) = look_up(library, [query], SearchOptions(3, rerank=12, evidence=True))
    assert result.query.kind == result.hits[0].kind == "graph"
    assert result.hits[0].function == "m3"
    assert result.hits[0].tags["label"] == "nitro"
    evidence = result.hits[0].evidence
    assert evidence is not None
    assert evidence.matched_share == pytest.approx(1.0)


def test_labels_as_text_in_python(library: Library) -> None:
    """As people have them: text at nodes, NetworkX graphs, generators."""
    graphs, labels = molecules(6)
    entries = [{"function": f"m{n}", "tags": {"label": c}} for n, c in enumerate(labels)]
    assert library.add((graph for graph in graphs), entries) == 6
    assert library.search(graphs[2], 1)[0].function == "m2"
    assert library.search(to_networkx(graphs[4]), 1)[0].function == "m4"
    assert len(library.search_many((graph for graph in graphs[:3]), 2)) == 3


def test_targets_by_name(lines: Path) -> None:
    assert read_one(f"{lines}:m3").name == "m3"
    with pytest.raises(FormatError, match=r"no graph 'x'; it has m0, m1.* and 7 more"):
        read_one(f"{lines}:x")
    with pytest.raises(ConfigError, match=r"12 graphs; name one of them, such as .*:m0"):
        read_one(lines)


def test_attributes_that_nobody_named(library: Library, tmp_path: Path) -> None:
    """The reason is said, and which option helps."""
    graph = nx.path_graph(3)
    nx.set_node_attributes(graph, {0: "C", 1: "N", 2: "O"}, "element")
    nx.write_gml(graph, tmp_path / "g.gml")
    summary = index_graphs(library, [tmp_path / "g.gml"])
    assert "--node-labels" in summary.skipped[0].reason
    names = AttributeNames(node_labels="element")
    assert index_graphs(library, [tmp_path / "g.gml"], names=names).added == 1


def test_values_are_in_the_unit_of_targets(tmp_path: Path) -> None:
    """And the nearest comes first, though its value, a distance, is the least."""
    pairs, values = edit_pairs(200)
    embedder = GraphEmbedder(ModelConfig.named("gnn-strong", **SMALL))
    embedder.fit(pairs, values, steps=30, progress=False)
    matcher = GraphMatcher(ModelConfig.named("gmn-strong", **SMALL))
    matcher.fit(pairs, values, steps=30, progress=False)
    paths = [Graph(n, [(i, i + 1) for i in range(n - 1)]) for n in range(2, 14)]
    for rerank in (0, 12):
        with Library.create(
            tmp_path / f"{rerank}.kin", SearchModel.of(embedder, matcher)
        ) as library:
            library.add(paths, [{"function": str(path.num_nodes)} for path in paths])
            hits = library.search(paths[4], 12, rerank=rerank)
        model = matcher if rerank else embedder
        assert hits[0].function == "6"
        # Behind the graph itself.
        values_found = [hit.value or 0.0 for hit in hits[1:]]
        assert values_found == sorted(values_found)
        last = paths[int(hits[-1].function) - 2]
        assert hits[-1].value == pytest.approx(model.predict([(paths[4], last)])[0], rel=1e-3)


def test_models_of_graphs_and_of_functions() -> None:
    embedder, matcher = molecule_models()
    model = SearchModel.of(embedder, matcher)
    assert not model.reads_functions
    with pytest.raises(ModelError, match="reads graphs"):
        _ = model.vocabulary
    assert SearchModel.load("functions").reads_functions


def test_a_matcher_beside_an_embedder(tmp_path: Path) -> None:
    embedder, matcher = molecule_models()
    embedder.save_pretrained(tmp_path / "gnn")
    matcher.save_pretrained(tmp_path / "gmn")
    assert SearchModel.load(tmp_path / "gnn").matcher is None
    assert SearchModel.load(tmp_path / "gnn", tmp_path / "gmn").matcher is not None
    with pytest.raises(ModelError, match="is a matcher, which compares graphs in pairs"):
        SearchModel.load(tmp_path / "gmn")


def test_two_graphs_compared(tmp_path: Path) -> None:
    embedder, matcher = molecule_models()
    graphs, _ = molecules(4)
    order = np.random.default_rng(0).permutation(graphs[0].num_nodes)
    write_graphml(tmp_path / "a.graphml", graphs[0])
    write_graphml(tmp_path / "b.graphml", graphs[0].permuted(order))
    for models in ((embedder, None), (matcher, None), (embedder, matcher)):
        compared = compare_graphs(tmp_path / "a.graphml", tmp_path / "b.graphml", *models)
        document = compared.document
        assert (document.left.function, document.left.kind) == ("a.graphml", "graph")
        assert (document.distance is None) == (models[0] is matcher)
        if document.distance is not None:
            assert document.distance == pytest.approx(0, abs=1e-5)
        assert document.evidence.matched_share == pytest.approx(1.0)
        for pair in document.evidence.pairs:
            atoms = [side.node_texts for side in compared.sides]
            assert atoms[0][pair.left] == atoms[1][pair.right]
    assert compare_graphs(graphs[0], to_networkx(graphs[1]), embedder).document.score < 1


def test_labels_of_edges_are_read(tmp_path: Path) -> None:
    """Rings that differ in nothing but the labels of their edges."""
    kinds = ["single", "double"]
    graphs = [
        Graph(
            6,
            [(i, (i + 1) % 6) for i in range(6)],
            edge_labels=[kinds[number >> edge & 1] for edge in range(6)],
        )
        for number in range(64)
    ]
    embedder = GraphEmbedder(ModelConfig.named("gnn-strong", **SMALL))
    embedder.fit(graphs, [number & 1 for number in range(64)], steps=2, progress=False)
    vectors = embedder.encode(graphs[:2])
    assert np.abs(vectors[0] - vectors[1]).max() > 1e-4
    embedder.save_pretrained(tmp_path / "model")
    loaded = GraphEmbedder.from_pretrained(tmp_path / "model")
    assert loaded.vocabulary is not None
    assert set(loaded.vocabulary.edge_words or ()) == set(kinds)
    assert np.array_equal(loaded.encode(graphs[:2]), vectors)
