"""The models that ship: they load by name, fit each other, and find kin in the samples."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import pytest

from graphkin import GraphEmbedder, GraphMatcher, Library
from graphkin.binaries import samples
from graphkin.binaries.backends.choose import open_source
from graphkin.errors import ModelError
from graphkin.graphs import Graph
from graphkin.library.models import SearchModel
from graphkin.models.saving import (
    PARTS,
    SHIPPED,
    load_model_files,
    model_card,
    saved_class,
    shipped_names,
)

MOST_BYTES = 4_000_000
TASKS = {"edits": "edits", "functions": "projects", "mnemonics": "functions"}
"""What each was trained on."""


def functions(file: Path, vocabulary: object) -> dict[str, Graph]:
    """Graphs by name, of functions with at least 5 blocks."""
    return {
        function.name: function.to_graph(vocabulary)  # type: ignore[arg-type]
        for function in open_source(file, with_evidence=True).functions()
        if len(function.blocks) >= 5
    }


@pytest.mark.parametrize("name", shipped_names())
def test_files_are_small_and_have_a_card(name: str) -> None:
    folder = SHIPPED / name
    card = (folder / "README.md").read_text()
    for word in ("Command", "Seed", "Data", "Scores", "Limits"):
        assert f"## {word}" in card or f"**{word}" in card, word
    for file in folder.rglob("*"):
        assert not file.is_file() or file.stat().st_size < MOST_BYTES


@pytest.mark.parametrize(("name", "part"), list(product(shipped_names(), PARTS.values())))
def test_weights_say_what_they_were_trained_on(name: str, part: str) -> None:
    """And their card is what is made of it."""
    folder = SHIPPED / name / part
    saved = load_model_files(folder, saved_class(folder))
    assert saved.trained_on is not None
    assert saved.trained_on["task"]["task"] == TASKS[name]
    assert (folder / "README.md").read_text() == model_card(saved)


def test_functions_load_by_name() -> None:
    model = SearchModel.load("functions")
    assert model.model_id.name == "functions"
    assert model.ranking is not None
    embedder = GraphEmbedder.from_pretrained("functions")
    matcher = GraphMatcher.from_pretrained("functions")
    assert embedder.vocabulary == matcher.vocabulary
    assert model.vocabulary.reads == "evidence"
    assert model.space.width == 256
    assert model.space.metric == "hamming"


def test_the_model_of_mnemonics_is_searched_by_codes() -> None:
    model = SearchModel.load("mnemonics")
    assert model.ranking is None
    assert model.calibration is not None
    assert model.vocabulary.reads == "mnemonics"
    assert model.space.width == 128


def test_a_name_that_does_not_ship() -> None:
    with pytest.raises(ModelError, match="ships with graphkin"):
        GraphEmbedder.from_pretrained("no-such-model")


def test_search_across_compilers_finds_most_functions(tmp_path: Path) -> None:
    """Far above chance on code of another kind than the models were trained on."""
    with Library.create(tmp_path / "library.kin") as index:
        vocabulary = index.embedder.vocabulary
        known = functions(samples.path("gcc-O2/libkinparse.so"), vocabulary)
        index.add(list(known.values()), [{"function": name} for name in known])
        queries = functions(samples.path("gcc-O1/libkinparse.so"), vocabulary)
        shared = [name for name in queries if name in known]
        hits_of_each = index.search_many([queries[name] for name in shared], 10, rerank=10)
    assert len(shared) > 30
    first = [hits[0].function == name for hits, name in zip(hits_of_each, shared, strict=True)]
    names = [{hit.function for hit in hits} for hits in hits_of_each]
    among = [name in those for name, those in zip(shared, names, strict=True)]
    assert np.mean(first) > 0.9
    assert np.mean(among) == 1


def test_what_the_design_promises(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    embedder = GraphEmbedder.from_pretrained("functions")
    matcher = GraphMatcher.from_pretrained("functions")
    graphs = list(functions(samples.path("gcc-O2/libkinproto.so"), embedder.vocabulary).values())
    query, *candidates = graphs
    metadata = [{"function": f"f{number}"} for number in range(len(graphs))]
    vectors = embedder.encode(graphs)
    assert vectors.shape == (len(graphs), 512)
    assert embedder.codes(graphs).shape == (len(graphs), 32)
    assert matcher.predict([(graphs[0], graphs[1])]).shape == (1,)
    assert len(matcher.rank(query, candidates, top_k=10)) == 10
    (looks,) = matcher.explain(graphs[0], graphs[1]).left_to_right
    assert looks.shape == (graphs[0].num_nodes, graphs[1].num_nodes)
    library = Library.create("library.kin")
    library.add(graphs, metadata)
    hits = library.search(query, top_k=10, rerank=100)
    assert hits[0].function == "f0"
    assert hits[0].probability >= 0.99
    library.close()


@pytest.mark.parametrize("name", ["functions", "mnemonics"])
def test_a_graph_alone_and_in_a_batch(name: str) -> None:
    """Sums are taken in another order: what differs is rounding, and no rank depends on it."""
    embedder = GraphEmbedder.from_pretrained(name)
    graphs = list(functions(samples.path("gcc-O2/libkinproto.so"), embedder.vocabulary).values())
    together = embedder.encode(graphs)
    alone = np.concatenate([embedder.encode([graph]) for graph in graphs])
    lengths = np.linalg.norm(together, axis=1)
    assert (np.linalg.norm(together - alone, axis=1) / lengths).max() < 1e-6
    codes = np.concatenate([embedder.codes([graph]) for graph in graphs])
    np.testing.assert_array_equal(embedder.codes(graphs), codes)
    ranks = [np.argsort(-(v / lengths[:, None]) @ together.T, axis=1) for v in (together, alone)]
    np.testing.assert_array_equal(ranks[0][:, :10], ranks[1][:, :10])
