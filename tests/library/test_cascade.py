"""A search by signals, from files to hits, with a model that nobody trained."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphkin import Graph, Library
from graphkin.binaries import samples
from graphkin.errors import FormatError, ModelError
from graphkin.graphs import WordBags
from graphkin.graphs.words import word_hash
from graphkin.library import cascade
from graphkin.library.candidates import encode_queries
from graphkin.library.cascade import identity
from graphkin.library.compare import compare
from graphkin.library.engines.base import WIDER, Nearest
from graphkin.library.indexing.index import index_paths
from graphkin.library.models import SearchModel
from graphkin.library.records import Filter, KnownFunction, SearchOptions, Stored
from graphkin.library.scan import Query, look_up, read_queries
from graphkin.library.search import rank, search
from graphkin.library.signals import record_kind
from graphkin.results.document import FunctionResult
from tests.library.sample_models import RANKING, evidence_embedder, ranking_model

BUILDS = ("gcc-O0", "gcc-O2")
KNOWN = [
    samples.path(f"{build}/{name}")
    for build in BUILDS
    for name in ("libkinproto.so", "libkinbeat.so")
]
QUERY = samples.path("clang-O1/libkinproto.so")


@pytest.fixture(scope="module")
def model() -> SearchModel:
    return ranking_model()


@pytest.fixture(scope="module")
def path(model: SearchModel, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("cascade") / "library.kin"
    with Library.create(path, model) as library:
        index_paths(library, KNOWN)
    return path


@pytest.fixture(scope="module")
def library(path: Path) -> Iterator[Library]:
    with Library.open(path) as library:
        yield library


@pytest.fixture(scope="module")
def queries(library: Library) -> list[Query]:
    return list(read_queries(library, [str(QUERY)]))


def saying(*words: str, nodes: int = 1) -> Graph:
    """A chain of blocks, the first of which says some strings."""
    hashes = np.array([word_hash("str", word) for word in words], dtype=np.uint64)
    return Graph(
        nodes,
        [(node, node + 1) for node in range(nodes - 1)],
        directed=True,
        node_tokens=[[node % 7] for node in range(nodes)],
        node_words=WordBags(hashes, np.array([0, *[len(hashes)] * nodes])),
    )


# --- Hits -------------------------------------------------------------------------------------


@pytest.mark.parametrize("rerank", [0, 3, 20])
def test_hits_come_in_the_order_of_their_probability(
    library: Library, queries: list[Query], rerank: int
) -> None:
    options = SearchOptions(top=5, rerank=rerank, evidence=True)
    results = list(look_up(library, queries, options))
    right = 0
    for result in results:
        probabilities = [hit.probability or 0.0 for hit in result.hits]
        assert len(probabilities) == 5
        assert probabilities == sorted(probabilities, reverse=True)
        assert 0 <= probabilities[-1] <= probabilities[0] <= 1
        assert [hit.rank for hit in result.hits] == [1, 2, 3, 4, 5]
        assert sum(hit.score is not None for hit in result.hits) == min(rerank, 5)
        assert all(hit.evidence for hit in result.hits)
        right += result.hits[0].function == result.query.function
    assert right / len(results) > 0.6


def test_what_is_less_probable_is_left_out(library: Library, queries: list[Query]) -> None:
    everything = list(look_up(library, queries, SearchOptions(top=5)))
    likely = list(look_up(library, queries, SearchOptions(top=5, min_probability=0.5)))
    for whole, kept in zip(everything, likely, strict=True):
        assert kept.hits == tuple(hit for hit in whole.hits if (hit.probability or 0) >= 0.5)
    assert any(result.hits for result in likely)
    assert any(result.best_left_out for result in likely)


def test_shared_words_are_listed(library: Library, queries: list[Query]) -> None:
    listed = 0
    for query, result in zip(
        queries, look_up(library, queries, SearchOptions(top=3, rerank=5)), strict=True
    ):
        assert result.query == query.ref
        for hit in result.hits:
            (graph,) = library.engine.graphs([hit.id])
            assert graph.node_words is not None
            theirs = set(graph.node_words.hashes.tolist())
            both = [word for word in query.said if word_hash(*word) in theirs]
            expected = {word for word in both if word.kind != "off"}
            assert set(hit.shared) <= expected
            assert len(hit.shared) == min(len(expected), 12)
            listed += len(hit.shared)
    assert listed > 0


def test_hits_do_not_depend_on_how_many_queries_are_searched_together(
    library: Library, queries: list[Query]
) -> None:
    """Nor on those that were encoded beside them, where no file is known."""
    alone = [query._replace(encoded=None) for query in queries]
    options = SearchOptions(top=5, rerank=8)
    for own in (queries, alone):
        together = ids(look_up(library, own, options))
        assert together == ids(look_up(library, own, options, at_once=1))
        assert together == ids(look_up(library, own[::-1], options, at_once=4))[::-1]


def ids(results: Iterator[FunctionResult]) -> list[list[int]]:
    return [[hit.id for hit in result.hits] for result in results]


def test_given_functions_are_ranked(library: Library, queries: list[Query]) -> None:
    every = [item.id for item in library.engine.scan(Filter(binary="*gcc-O2*"))]
    best = library.rank(queries[0].graph, every, 3)
    assert best[0].function == queries[0].ref.function
    assert [hit.probability for hit in best] == sorted(
        (hit.probability for hit in best), reverse=True
    )
    assert all(hit.score is not None for hit in best)
    assert library.rank(queries[0].graph, []) == []


def test_an_empty_library_has_no_hits(model: SearchModel, tmp_path: Path) -> None:
    with Library.create(tmp_path / "empty.kin", model) as library:
        assert library.search(saying("a"), rerank=5) == []


# --- Candidates -------------------------------------------------------------------------------


def test_functions_that_share_a_rare_word_are_found_however_far_their_codes(
    model: SearchModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cascade, "NEAREST_CODES", 1)
    query = saying("only here", "b", "c", "d", nodes=9)
    target = saying("only here", "e", "f", "g", "h", "i", "j", nodes=2)
    decoys = [saying("k", f"decoy {number}", nodes=9) for number in range(5)]
    names = ["target", *(f"decoy {number}" for number in range(5))]
    by_words = replace(RANKING, order={**RANKING.order, "graph": 0.0})
    made_for_words = SearchModel.of(model.embedder, model.matcher, ranking=by_words)
    with Library.create(tmp_path / "library.kin", made_for_words) as library:
        library.add([target, *decoys], [{"function": name} for name in names])
        (best,) = library.search(query, 1)
        assert (best.function, best.rank_by_distance) == ("target", 2)
        monkeypatch.setattr(library.engine, "sharing", lambda *_: [])
        (nearest,) = library.search(query, 1)
        assert nearest.function.startswith("decoy")
        assert nearest.distance < best.distance


def test_a_sure_bit_counts_for_more_than_unsure_ones(library: Library) -> None:
    """Of the nearest codes, those are candidates that are most like the query's numbers."""
    engine = library.engine
    vectors = engine.vectors([item.id for item in engine.scan()])
    distances = np.bitwise_count(vectors ^ vectors[0]).sum(axis=1)
    near = np.argsort(distances, kind="stable")[:WIDER]
    other = near[distances[near] > 0][-1]
    bits = np.unpackbits(vectors[[0, other]], axis=1).astype(np.float32) * 2 - 1
    # The bits in which the two differ are as good as the other way round.
    numbers = np.where(bits[0] == bits[1], bits[0], 1e-3 * bits[0])[None]
    numbers[0, np.flatnonzero(bits[0] != bits[1])] *= -1
    assert engine.nearest(vectors[:1], 1).distances[0, 0] == 0
    assert engine.nearest(vectors[:1], 1, None, numbers).distances[0, 0] == distances[other]


def test_queries_are_compared_before_they_are_rounded(
    library: Library, queries: list[Query], monkeypatch: pytest.MonkeyPatch
) -> None:
    nearest, compared = library.engine.nearest, []

    def recorded(vectors: Any, count: int, where: Any = None, unrounded: Any = None) -> Nearest:
        compared.append((vectors, unrounded))
        return nearest(vectors, count, where, unrounded)

    monkeypatch.setattr(library.engine, "nearest", recorded)
    list(look_up(library, queries[:3], SearchOptions(top=1)))
    assert len(compared) == 2, "of the queries, and of those that lie beside them"
    for codes, unrounded in compared:
        assert (np.packbits(unrounded > 0, axis=1) == codes).all()
        assert np.abs(unrounded).std() > 0


def test_functions_beside_what_neighbours_are_like_are_candidates(
    library: Library, queries: list[Query], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever their codes are: here these are the opposite of what they should be, and no words
    are looked up."""
    monkeypatch.setattr(library.engine, "sharing", lambda *_: [])
    monkeypatch.setattr(cascade, "NEAREST_CODES", 2)

    def right(*, with_neighbours: bool) -> int:
        changed = []
        for query in queries:
            own = query.encoded
            assert own is not None
            assert own.unrounded is not None
            beside = own.beside if with_neighbours else []
            own = replace(own, vector=~own.vector, unrounded=-own.unrounded, beside=beside)
            changed.append(query._replace(encoded=own))
        results = look_up(library, changed, SearchOptions(top=1))
        return sum(result.hits[0].function == result.query.function for result in results)

    assert right(with_neighbours=True) > right(with_neighbours=False) + len(queries) // 2


def test_only_what_matches_is_found_beside(
    library: Library, queries: list[Query], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cascade, "NEAREST_CODES", 2)
    where = Filter(binary="*gcc-O0*", min_blocks=8)
    results = list(look_up(library, queries, SearchOptions(top=30, where=where)))
    assert max(len(result.hits) for result in results) > 2
    for hit in (hit for result in results for hit in result.hits):
        assert "gcc-O0" in hit.binary
        assert hit.blocks >= 8


def test_a_function_knows_those_beside_it(queries: list[Query]) -> None:
    in_order = sorted(queries, key=lambda query: query.ref.address or 0)
    encoded = [query.encoded for query in in_order]
    for at, own in enumerate(encoded):
        assert own is not None
        beside = [*encoded[max(0, at - 4) : at], *encoded[at + 1 : at + 5]]
        assert [id(other) for other in own.beside] == [id(other) for other in beside]


def test_a_part_of_the_library_is_searched(library: Library, queries: list[Query]) -> None:
    options = SearchOptions(top=30, where=Filter(binary="*gcc-O0*"))
    for result in look_up(library, queries, options):
        assert {"gcc-O0" in hit.binary for hit in result.hits} == {True}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("decode.part.0", "decode"),
        ("decode", "decode"),
        ("sub_4010", "hash"),
        ("FUN_0040", "hash"),
        ("", "hash"),
        ("subtract_a", "subtract_a"),
    ],
)
def test_a_function_without_a_name_is_its_graph(name: str, expected: str) -> None:
    assert identity(Stored(1, KnownFunction(function=name), 5, "hash")) == expected


# --- Files ------------------------------------------------------------------------------------


def test_what_calls_what_is_known_of_whole_files(
    library: Library, model: SearchModel, queries: list[Query], tmp_path: Path
) -> None:
    stored = [item.id for item in library.engine.scan()]
    assert model.signals_from(library.engine.signals(stored))["in_file"].all()
    for query in queries:
        assert query.encoded is not None
        assert query.encoded.signals is not None
        assert query.encoded.signals["in_file"]
    (encoded,) = encode_queries(model, [queries[0].graph], [queries[0].architecture])
    assert encoded.signals is not None
    assert not encoded.signals["in_file"]
    with Library.create(tmp_path / "one.kin", model) as other:
        index_paths(other, [f"{QUERY}:{queries[0].ref.function}"])
        assert not model.signals_from(other.engine.signals([1]))["in_file"].any()


def test_a_named_function_is_known_with_its_file(
    library: Library, queries: list[Query], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a search of the whole file knows it, unless reading all of that takes too long."""
    related = 0
    for query in queries:
        assert query.encoded is not None
        assert query.encoded.signals is not None
        (named,) = read_queries(library, [f"{QUERY}:{query.ref.address:#x}"])
        assert named.ref == query.ref
        assert named.encoded is not None
        assert named.encoded.signals is not None
        for name in record_kind(library.embedder).names or ():
            # Vectors of other batches differ in their last bits, and so may what is rounded.
            sides = named.encoded.signals, query.encoded.signals
            ours, theirs = (np.asarray(side[name], np.float64) for side in sides)
            assert ours == pytest.approx(theirs, rel=1e-4, abs=1.01 if ours.ndim else 1e-6)
        related += query.encoded.signals["caller_count"] > 0
        beside = [
            [other.graph.digest() for other in own.beside] for own in (named.encoded, query.encoded)
        ]
        assert beside[0] == beside[1]
    assert related
    monkeypatch.setattr("graphkin.library.scan.LARGEST_READ", QUERY.stat().st_size - 1)
    (alone,) = read_queries(library, [f"{QUERY}:{queries[0].ref.address:#x}"])
    assert alone.encoded is None


def test_small_functions_are_known_of_though_they_are_not_kept(
    library: Library, model: SearchModel, tmp_path: Path
) -> None:
    """The signals of a function do not depend on how small others may be to be kept."""
    with Library.create(tmp_path / "small.kin", model) as other:
        index_paths(other, KNOWN, min_blocks=1)
        assert len(other) > len(library)
        everything = signals_by_address(other)
        kept = signals_by_address(library)
    assert {key: everything[key] for key in kept} == kept
    records = model.signals_from(list(kept.values()))
    assert records["caller_count"].any()
    assert records["callees_scale"].any()


def signals_by_address(library: Library) -> dict[tuple[str, int | None], bytes]:
    stored = list(library.engine.scan())
    contents = library.engine.signals([item.id for item in stored])
    return {
        (item.entry.binary, item.entry.address): content
        for item, content in zip(stored, contents, strict=True)
    }


def test_scans_skip_small_functions_but_know_them(library: Library, queries: list[Query]) -> None:
    large = list(read_queries(library, [str(QUERY)], min_blocks=20))
    assert 0 < len(large) < len(queries), "some are small"
    own = {query.ref: query.encoded for query in queries}
    for query in large:
        assert query.encoded is not None
        assert query.encoded.signals == own[query.ref].signals  # type: ignore[union-attr]


# --- Models -----------------------------------------------------------------------------------


def test_a_library_without_signals_is_refused(
    model: SearchModel, queries: list[Query], tmp_path: Path
) -> None:
    without = SearchModel.of(model.embedder, model.matcher, name="test-plain")
    with Library.create(tmp_path / "plain.kin", without) as library:
        library.add([queries[0].graph], [{"function": "f"}])
        assert [hit.probability for hit in library.search(queries[0].graph, rerank=1)] == [None]
        encoded = encode_queries(model, [queries[0].graph])
        with pytest.raises(FormatError, match=r"have no signals.*graphkin index NEW\.kin"):
            list(search(model, library.engine, encoded, SearchOptions()))
        with pytest.raises(FormatError, match="have no signals"):
            rank(model, library.engine, encoded[0], [1], SearchOptions(rerank=1))


def test_a_ranking_without_a_matcher(queries: list[Query], tmp_path: Path) -> None:
    alone = SearchModel.of(evidence_embedder(), ranking=RANKING)
    with Library.create(tmp_path / "alone.kin", alone) as library:
        library.add([queries[0].graph], [{"function": "f"}])
        (hit,) = library.search(queries[0].graph)
        assert hit.probability == pytest.approx(1, abs=0.01)
        with pytest.raises(ModelError, match="no matcher"):
            library.search(queries[0].graph, rerank=5)


def test_the_library_keeps_the_ranking(library: Library) -> None:
    assert library.model.ranking == RANKING


def test_a_comparison_has_the_probability_of_the_ranking(model: SearchModel) -> None:
    name = samples.VULNERABLE[1]
    file, other = (samples.path(f"{build}/libkinbeat.so") for build in BUILDS)
    same = compare(f"{file}:{name}", f"{file}:{name}", model).document
    assert same.probability is not None
    assert same.probability >= 0.99
    built = compare(f"{file}:{name}", f"{other}:{name}", model).document
    assert built.probability is not None
    assert 0 < built.probability < same.probability


# --- Tags -------------------------------------------------------------------------------------


def test_tags_choose_what_is_shown_and_not_what_competes(
    path: Path, tmp_path: Path, queries: list[Query]
) -> None:
    copy = tmp_path / "library.kin"
    copy.write_bytes(path.read_bytes())
    with Library.open(copy) as library:
        tagged = {"process_heartbeat", "dns_expand_name"} & {
            item.entry.function for item in library.engine.scan()
        }
        for name in tagged:
            library.tag(Filter(function=name), {"cve": "X"})
        everything = list(look_up(library, queries, SearchOptions(top=20, rerank=20)))
        where = Filter(tags={"cve": "X"})
        shown = list(look_up(library, queries, SearchOptions(top=2, rerank=20, where=where)))
    assert tagged
    compared = 0
    for whole, part in zip(everything, shown, strict=True):
        assert {hit.function for hit in part.hits} <= tagged
        assert len(part.hits) == 2  # wherever they stand, they are compared
        best = [hit for hit in whole.hits if hit.function in tagged][:2]
        for hit, same in zip(part.hits, best, strict=False):
            if hit.id == same.id:
                assert hit.probability == pytest.approx(same.probability, abs=0.05)
                compared += 1
        if whole.hits[0].function not in tagged:
            assert (part.hits[0].probability or 0) <= (whole.hits[0].probability or 0) + 0.05
    assert compared > 5


def test_a_tagged_copy_is_found_behind_any_number_of_others(tmp_path: Path) -> None:
    texts = [f"message {number}" for number in range(600)]
    graphs = [saying(text, nodes=6) for text in texts]
    with Library.create(tmp_path / "library.kin", ranking_model()) as library:
        library.add(graphs, [{"function": f"f{number}"} for number in range(600)])
        library.tag(Filter(function="f77"), {"cve": "X"})
        where = Filter(tags={"cve": "*"})
        (hits,) = library.search_many([graphs[5]], 3, rerank=3, where=where)
        assert [hit.function for hit in hits] == ["f77"]
        (own,) = library.search_many([graphs[77]], 3, rerank=3, where=where)
        assert (own[0].probability or 0) > 0.9 > (hits[0].probability or 0)
