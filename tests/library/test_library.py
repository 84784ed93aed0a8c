"""The library as a person sees it: models kept, kin found, reranked and explained."""

from __future__ import annotations

import doctest
import hashlib
import json
import sqlite3
import tempfile
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch

from graphkin import AttentionMaps, Filter, Graph, GraphEmbedder, Library, ModelConfig
from graphkin.errors import ConfigError, FormatError, GraphError, ModelError, StorageError
from graphkin.library import library as library_module
from graphkin.library import search as search_module
from graphkin.library.code_distance import distances
from graphkin.library.engines.base import Nearest
from graphkin.library.engines.sqlite.engine import SqliteEngine
from graphkin.library.models import SearchModel, read_model_id
from graphkin.library.records import KnownFunction
from graphkin.models.calibration import pair_features
from graphkin.results.evidence import best_evidence, equal_pairs, matched_blocks
from tests.library.sample_models import WORDS, search_model


def graphs(count: int, seed: int = 0) -> list[Graph]:
    """Random graphs with tokens, of 3 to 12 nodes."""
    rng = np.random.default_rng(seed)
    made = []
    for _ in range(count):
        nodes = int(rng.integers(3, 13))
        edges = [(i, i + 1) for i in range(nodes - 1)]
        edges += [tuple(rng.integers(0, nodes, 2).tolist()) for _ in range(nodes // 2)]
        bags = [rng.integers(0, len(WORDS) + 1, rng.integers(1, 6)).tolist() for _ in range(nodes)]
        made.append(Graph(nodes, edges, directed=True, node_tokens=bags))
    return made


GRAPHS = graphs(40)
NAMES = [{"function": f"f{number}", "binary": f"lib{number % 3}.so"} for number in range(40)]


@pytest.fixture(scope="module", params=["hamming", "euclidean", "cosine"])
def model(request: pytest.FixtureRequest) -> SearchModel:
    return search_model(request.param)


@pytest.fixture(scope="module")
def hamming() -> SearchModel:
    return search_model()


@pytest.fixture
def library(hamming: SearchModel, tmp_path: Path) -> Iterator[Library]:
    with Library.create(tmp_path / "library.kin", hamming) as index:
        index.add(GRAPHS, NAMES)
        yield index


def test_the_example_in_the_documentation():
    assert doctest.testmod(library_module).failed == 0


def test_a_search_is_the_nearest_by_the_embedder(model: SearchModel, tmp_path: Path):
    with Library.create(tmp_path / "library.kin", model) as index:
        assert index.add(GRAPHS, NAMES) == len(index) == 40
        hits = index.search(GRAPHS[7], top_k=40)
    assert hits[0].function == "f7"
    assert hits[0].distance == pytest.approx(0, abs=1e-5)
    vectors = model.vectors(GRAPHS)
    expected = np.sort(distances(model.space, vectors[7], vectors))
    np.testing.assert_allclose([hit.distance for hit in hits], expected, rtol=1e-4, atol=1e-4)
    assert [hit.rank_by_distance for hit in hits] == list(range(1, 41))
    assert all(hit.score is None for hit in hits)


def test_reranked_hits_are_those_of_the_matcher(model: SearchModel, tmp_path: Path):
    assert model.matcher is not None
    assert model.calibration is not None
    with Library.create(tmp_path / "library.kin", model) as index:
        index.add(GRAPHS, NAMES)
        near = index.search(GRAPHS[3], top_k=15)
        hits = index.search(GRAPHS[3], top_k=5, rerank=15)
        ranked = index.rank(GRAPHS[3], [hit.id for hit in reversed(near)], top_k=5)
    positions = {hit.id: hit for hit in near}
    everything = []
    for hit in near:
        (score,) = model.matcher.predict([(GRAPHS[3], GRAPHS[int(hit.function[1:])])])
        largest = model.space.width if model.space.metric == "hamming" else 1.0
        equal = [hit.function == "f3"]
        features = pair_features([hit.distance], largest, GRAPHS[3].num_nodes, [hit.blocks], equal)
        everything.append((float(model.calibration.by_score(features, [score])[0]), hit.id, score))
    everything.sort(reverse=True)
    assert [hit.id for hit in hits] == [number for _, number, _ in everything[:5]]
    for hit, (rng, _, score) in zip(hits, everything, strict=False):
        assert hit.score == pytest.approx(score, rel=1e-3, abs=1e-4)
        assert hit.probability == pytest.approx(rng, rel=1e-2, abs=1e-4)
        assert hit.rank_by_distance == positions[hit.id].rank_by_distance
    assert [hit.id for hit in ranked] == [hit.id for hit in hits]


def test_many_queries_are_many_searches(library: Library, monkeypatch: pytest.MonkeyPatch):
    queries = graphs(6, seed=1)
    one_by_one = [library.search(query, 4, rerank=8) for query in queries]
    monkeypatch.setattr(search_module, "PAIRS_AT_ONCE", 20)
    seen: list[tuple[int, int]] = []
    hits_of_each = library.search_many(
        queries, 4, rerank=8, progress=lambda done, total: seen.append((done, total))
    )
    assert [[hit.id for hit in hits] for hits in hits_of_each] == [
        [hit.id for hit in hits] for hits in one_by_one
    ]
    assert seen == [(done, 6) for done in range(1, 7)]
    assert library.search_many([], 4) == []


def test_without_calibration_the_score_ranks(tmp_path: Path):
    model = search_model(calibrated=False)
    with Library.create(tmp_path / "library.kin", model) as index:
        index.add(GRAPHS, NAMES)
        hits = index.search(GRAPHS[0], 10, rerank=20)
    assert all(hit.probability is None for hit in hits)
    first, *others = hits
    assert first.function == NAMES[0]["function"], "a graph is most like itself, whatever the score"
    scores = [hit.score for hit in others]
    assert scores == sorted(scores, reverse=True)


def test_a_part_of_the_library(library: Library):
    hits = library.search(GRAPHS[0], 40, where=Filter(binary="lib1*"))
    assert {hit.binary for hit in hits} == {"lib1.so"}
    assert len(hits) == 13


def test_evidence_names_nodes_of_both_graphs(library: Library):
    (hit,) = library.search(GRAPHS[2], 1, rerank=5, evidence=True)
    assert hit.evidence is not None
    assert 0 <= hit.evidence.matched_share <= 1
    for pair in hit.evidence.pairs:
        assert 0 <= pair.left < GRAPHS[2].num_nodes
        assert 0 <= pair.right < hit.blocks
        assert 0.5 <= pair.weight <= 1


def test_matched_nodes_by_hand():
    left_to_right = np.array([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]], dtype=np.float32)
    right_to_left = np.array([[0.7, 0.1, 0.2], [0.1, 0.3, 0.6]], dtype=np.float32)
    actual = matched_blocks(left_to_right, right_to_left)
    # 1 looks at 1, which looks at 2; 2 looks at 0, which looks at 0.
    assert [(pair.left, pair.right) for pair in actual.pairs] == [(0, 0)]
    assert actual.pairs[0].weight == pytest.approx(0.7)
    assert actual.matched_share == pytest.approx(1 / 3)


def test_evidence_is_of_the_step_with_most_matches():
    faint = np.full((2, 2), 0.5, dtype=np.float32)
    sharp = np.array([[0.9, 0.1], [0.2, 0.8]], dtype=np.float32)
    maps = AttentionMaps([faint * 0.5, sharp, sharp], [faint * 0.5, sharp, sharp], 0.5)
    actual = best_evidence(maps)
    assert (actual.step, actual.matched_share) == (1, 1.0)


def test_blocks_of_equal_functions_are_all_matched_however_often_they_are_repeated():
    weights = np.array([[0.4, 0.4, 0.2], [0.4, 0.4, 0.2], [0.1, 0.1, 0.8]], dtype=np.float32)
    maps = AttentionMaps([weights], [weights], 0.5)
    assert best_evidence(maps).matched_share == pytest.approx(1 / 3)
    actual = best_evidence(maps, equal=True)
    assert (actual.matched_share, actual.equal) == (1, True)
    assert [pair[:2] for pair in actual.pairs] == [(2, 2)], "those that look firmly"
    assert [pair[:2] for pair in equal_pairs(weights, weights)] == [(0, 0), (1, 1), (2, 2)]


def test_a_hit_of_the_query_itself_has_all_its_blocks(library: Library):
    for graph in GRAPHS[:5]:
        hits = library.search(graph, 3, rerank=3, evidence=True)
        equal = [hit.evidence for hit in hits if hit.graph_hash == graph.digest()]
        others = [hit.evidence for hit in hits if hit.graph_hash != graph.digest()]
        assert equal
        assert all(evidence is not None and evidence.matched_share == 1 for evidence in equal)
        assert not any(evidence is not None and evidence.equal for evidence in others)


def test_what_is_there_is_not_added_again(library: Library):
    assert library.add(GRAPHS[:5], NAMES[:5]) == 0
    assert library.add(GRAPHS[:1], [{"function": "another"}]) == 1
    assert library.add([GRAPHS[0]] * 2, [KnownFunction("twice"), KnownFunction("twice")]) == 1
    assert len(library) == 42


def test_removal(library: Library):
    assert library.remove(Filter(binary="lib0.so")) == 14
    assert len(library) == 26
    library.compact()
    assert {hit.binary for hit in library.search(GRAPHS[0], 40)} == {"lib1.so", "lib2.so"}
    with pytest.raises(ConfigError, match="everything"):
        library.remove(Filter())
    assert library.verify().damage == []


def test_tags(library: Library):
    assert library.tag(Filter(binary="lib0.so"), {"cve": "X", "seen": "yes"}) == 14
    assert library.tag(Filter(function="f3"), {"cve": "Y"}) == 1
    (hit,) = library.search(GRAPHS[3], 1, where=Filter(tags={"cve": "*"}))
    assert (hit.function, hit.binary, hit.tags) == ("f3", "lib0.so", {"cve": "Y", "seen": "yes"})
    for where, tags, message in (
        (Filter(), {"cve": "X"}, "everything"),
        (Filter(function="f1"), {}, "no tags"),
        (Filter(function="f1"), {"cve": 1}, "text to text"),
    ):
        with pytest.raises(ConfigError, match=message):
            library.tag(where, tags)  # type: ignore[arg-type]


class Removing:
    """Removes the nearest by another engine, each time after something was found."""

    def __init__(self, library: Library, path: Path, times: int):
        self._nearest, self._path, self._left = library.engine.nearest, path, times

    def __call__(self, *arguments: object) -> Nearest:
        nearest = self._nearest(*arguments)  # type: ignore[arg-type]
        if self._left:
            self._left -= 1
            with SqliteEngine.open(self._path) as other:
                (stored,) = other.fetch([int(nearest.ids[0, 0])])
                assert other.remove(Filter(function=stored.entry.function)) == 1
        return nearest


@pytest.mark.parametrize("rerank", [0, 10])
def test_what_is_removed_while_it_is_found_is_not_found(
    library: Library, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rerank: int
):
    path = tmp_path / "library.kin"
    first, second, *_ = library.search(GRAPHS[5])
    monkeypatch.setattr(library.engine, "nearest", Removing(library, path, 1))
    hits = library.search(GRAPHS[5], 10, rerank=rerank)
    assert len(hits) == 10
    assert first.id not in [hit.id for hit in hits]
    assert second.id in [hit.id for hit in hits]
    # Beside one who goes on removing.
    monkeypatch.setattr(library.engine, "nearest", Removing(library, path, 20))
    assert len(library.search(GRAPHS[5], 10, rerank=rerank)) == 10


def test_a_library_carries_its_models(library: Library, tmp_path: Path, hamming: SearchModel):
    before = library.search(GRAPHS[9], 5, rerank=10)
    library.close()
    with Library.open(tmp_path / "library.kin") as index:
        assert index.model_id == hamming.model_id
        assert index.search(GRAPHS[9], 5, rerank=10) == before
        assert index.stats()["model"]["name"] == hamming.model_id.name


def test_another_model_is_refused(library: Library, tmp_path: Path, hamming: SearchModel):
    with Library.open(tmp_path / "library.kin", hamming) as index:
        assert len(index) == 40
    with pytest.raises(ModelError, match=r"test-0 .*not by test-1"):
        Library.open(tmp_path / "library.kin", search_model(seed=1))
    with pytest.raises(StorageError, match=r"library\.kin"):
        Library.create(tmp_path / "library.kin", hamming)


@pytest.mark.parametrize("with_model", [False, True])
def test_an_absent_library_is_an_error_at_once(
    tmp_path: Path, hamming: SearchModel, with_model: bool
):
    with pytest.raises(FormatError, match=r"there is no library .*typo\.kin; .*graphkin index"):
        Library.open(tmp_path / "typo.kin", hamming if with_model else None)
    assert list(tmp_path.iterdir()) == []


def test_a_library_of_a_bare_embedder(tmp_path: Path, hamming: SearchModel):
    """Anything that names a model makes a library, and opens only that of the same model."""
    hamming.embedder.save_pretrained(tmp_path / "model")
    with Library.create(tmp_path / "one.kin", hamming.embedder) as library:
        assert library.add(GRAPHS[:5]) == 5
        assert library.search(GRAPHS[0])[0].distance == 0
        assert library.embedder.config == hamming.embedder.config
        ids = [library.model_id.weights]
    for number, model in enumerate((tmp_path / "model", str(tmp_path / "model"), hamming)):
        with Library.create(tmp_path / f"{number}.kin", model) as library:
            ids.append(library.model_id.weights)
    assert set(ids) == {hamming.model_id.weights}
    for model in (hamming.embedder, hamming, tmp_path / "model"):
        Library.open(tmp_path / "one.kin", model).close()
    with pytest.raises(ModelError, match="make a new library"):
        Library.open(tmp_path / "one.kin", search_model(seed=1).embedder)


def test_a_closed_library_says_so(library: Library):
    library.close()
    with pytest.raises(StorageError, match="closed"):
        library.search(GRAPHS[0])
    with pytest.raises(StorageError, match="closed"):
        library.add(GRAPHS[:1], [{"function": "new"}])


def test_bad_arguments(library: Library):
    with pytest.raises(ConfigError, match="takes ids"):
        library.rank(GRAPHS[0], GRAPHS[:2])  # type: ignore[arg-type]
    with pytest.raises(
        ConfigError, match="top must be a number from 1 to 1,000,000, got 1000000000"
    ):
        library.search(GRAPHS[0], 10**14)
    with pytest.raises(ConfigError, match="top must be"):
        library.search(GRAPHS[0], 0)
    with pytest.raises(ConfigError, match="rerank"):
        library.search(GRAPHS[0], rerank=-1)
    with pytest.raises(GraphError, match="takes one graph"):
        library.search([GRAPHS[0]])  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="metadata for 1"):
        library.add(GRAPHS[:2], [{}])
    with pytest.raises(ConfigError, match="unknown key 'color'"):
        library.add(GRAPHS[:1], [{"color": "red"}])
    with pytest.raises(ConfigError, match="tags"):
        library.add(GRAPHS[:1], [{"tags": {"cve": 1}}])
    with pytest.raises(ConfigError, match="address"):
        library.add(GRAPHS[:1], [{"address": -1}])
    with pytest.raises(GraphError):
        library.add([Graph(3, [(0, 1)])])
    with pytest.raises(ConfigError, match="approximate"):
        Library.create("milvus://localhost/x", search_model(), approximate=True)


def test_without_a_matcher_nothing_is_reranked(tmp_path: Path):
    with Library.create(tmp_path / "library.kin", search_model(matcher=False)) as index:
        index.add(GRAPHS[:3])
        assert index.search(GRAPHS[0])[0].probability is None
        for call in (
            lambda: index.search(GRAPHS[0], rerank=3),
            lambda: index.search(GRAPHS[0], evidence=True),
            lambda: index.rank(GRAPHS[0], [1]),
        ):
            with pytest.raises(ModelError, match="no matcher"):
                call()


@pytest.mark.parametrize("name", ["absolute", "../above.txt", "embedder/../../above.txt"])
def test_a_hostile_library_writes_nothing(
    library: Library, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
):
    """The names of its documents are whatever its maker chose."""
    library.close()
    temporary = tmp_path / "temporary" / "deep"
    temporary.mkdir(parents=True)
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    victim = tmp_path / "victim.txt"
    victim.write_text("mine")
    document = str(victim) if name == "absolute" else name
    connection = sqlite3.connect(tmp_path / "library.kin")
    with connection:
        connection.execute(
            "INSERT INTO documents VALUES (?, ?, ?)", (document, zlib.crc32(b"theirs"), b"theirs")
        )
    connection.close()
    before = sorted(tmp_path.rglob("*"))
    with Library.open(tmp_path / "library.kin") as index:
        with pytest.raises(FormatError, match="which no model has"):
            index.search(GRAPHS[0])
        assert any("which no model has" in sentence for sentence in index.verify().damage)
    assert victim.read_text() == "mine"
    assert [path for path in sorted(tmp_path.rglob("*")) if path not in before] == []


def test_every_file_that_no_model_has_is_named(hamming: SearchModel):
    foreign = [f"../{number}.txt" for number in range(12)]
    with pytest.raises(FormatError, match="and 2 more, which no model has") as raised:
        SearchModel.from_files({**hamming.files, **dict.fromkeys(foreign, b"theirs")})
    assert sum(repr(name) in str(raised.value) for name in foreign) == 10


class TestSearchModel:
    def test_from_parts_and_files(self, hamming: SearchModel):
        again = SearchModel.from_files(hamming.files)
        assert again.model_id == hamming.model_id
        assert again.calibration == hamming.calibration
        np.testing.assert_array_equal(again.vectors(GRAPHS), hamming.vectors(GRAPHS))

    def test_other_weights_are_another_model(self, hamming: SearchModel):
        assert search_model(seed=1).model_id.weights != hamming.model_id.weights
        assert search_model().model_id == hamming.model_id

    def test_files_that_were_changed(self, hamming: SearchModel):
        changed = dict(hamming.files)
        changed["embedder/config.json"] = changed["embedder/config.json"].replace(b"gru", b"rnn")
        with pytest.raises(FormatError, match="not those that its id names"):
            SearchModel.from_files(changed)
        with pytest.raises(FormatError, match="damaged"):
            read_model_id({"pin.json": json.dumps({"name": "x"}).encode()})
        with pytest.raises(FormatError, match="damaged"):
            read_model_id({})

    def test_a_calibrated_embedder_is_the_same_model(self, hamming: SearchModel):
        """A calibration does not change a single code."""
        config = json.loads(hamming.files["embedder/config.json"])
        config["calibration"] = {"weights": [1.0], "bias": 0.5}
        changed = {**hamming.files, "embedder/config.json": json.dumps(config).encode()}
        assert read_model_id(changed) == hamming.model_id

    def test_an_id_of_the_first_libraries(self, hamming: SearchModel):
        """They named a model by the bytes of its files."""
        names = ("embedder/config.json", "embedder/model.safetensors")
        digests = (hashlib.sha256(hamming.files[name]).digest() for name in names)
        old = json.loads(hamming.files["pin.json"])
        old["weights"] = hashlib.sha256(b"".join(digests)).hexdigest()
        files = {**hamming.files, "pin.json": json.dumps(old).encode()}
        assert read_model_id(files) == hamming.model_id

    def test_a_folder_of_an_embedder_alone(self, tmp_path: Path):
        torch.manual_seed(0)
        embedder = GraphEmbedder(ModelConfig.named("gnn", similarity="hamming"))
        embedder.save_pretrained(tmp_path / "mine")
        model = SearchModel.load(tmp_path / "mine")
        assert model.model_id.name == "mine"
        assert model.matcher is None

    def test_what_cannot_be_searched(self, tmp_path: Path):
        with pytest.raises(ModelError, match="siamese"):
            SearchModel.of(GraphEmbedder(ModelConfig.named("siamese-gnn")))
        with pytest.raises(ModelError, match="neither a model folder"):
            SearchModel.load(tmp_path / "absent")

    def test_embedder_and_matcher_must_read_the_same_words(self, tmp_path: Path):
        one, other = search_model(), search_model(words=("nop", *WORDS[1:]))
        with pytest.raises(ModelError, match="tokens mean"):
            SearchModel.of(one.embedder, other.matcher)
