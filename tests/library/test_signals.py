"""Signals of functions: records of whole bytes, against the vectors that they were made of."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest

from graphkin.binaries import samples
from graphkin.binaries.reading import read_functions
from graphkin.binaries.targets import parse_target
from graphkin.graphs import Graph, WordBags
from graphkin.graphs.words import KINDS, word_hash
from graphkin.library.models import SearchModel
from graphkin.library.scan import Query, query_of
from graphkin.library.signals import (
    AROUND,
    CALLS,
    NEIGHBOURS,
    OWN,
    Floats,
    Records,
    Surroundings,
    compared_graphs,
    cosines,
    rare_words,
    rare_words_of,
    shared_words,
    signals_of,
    word_cosines,
)
from graphkin.models.words import WordStatistics
from tests.library.sample_models import EVIDENCE, evidence_embedder, ranking_model

FILE = samples.path("gcc-O1/libkinproto.so")


@pytest.fixture(scope="module")
def model() -> SearchModel:
    return ranking_model()


@pytest.fixture(scope="module")
def queries(model: SearchModel) -> list[Query]:
    functions = read_functions(parse_target(str(FILE)), min_blocks=1, with_evidence=True)
    return [query_of(function, model.vocabulary) for function in functions]


@pytest.fixture(scope="module")
def vectors(model: SearchModel, queries: list[Query]) -> Floats:
    return model.embedder.encode([query.graph for query in queries])


@pytest.fixture(scope="module")
def records(model: SearchModel, queries: list[Query], vectors: Floats) -> Records:
    graphs = [query.graph for query in queries]
    surroundings = [Surroundings(query.ref.address or 0, query.callees) for query in queries]
    return signals_of(model.embedder, graphs, vectors, [False] * len(graphs), surroundings)


def saying(*words: tuple[str, str]) -> Graph:
    hashes = np.array([word_hash(kind, text) for kind, text in words], dtype=np.uint64)
    bags = WordBags(hashes, np.array([0, len(hashes)]))
    return Graph(1, directed=True, node_tokens=[[0]], node_words=bags)


@pytest.mark.parametrize("name", OWN)
def test_cosines_of_records_are_those_of_vectors(
    model: SearchModel, vectors: Floats, records: Records, name: str
) -> None:
    part = model.embedder.part(vectors, name)
    for row, record in enumerate(records):
        np.testing.assert_allclose(cosines(record, records, name), part @ part[row], atol=0.01)


def test_records_survive_as_bytes(model: SearchModel, records: Records) -> None:
    contents = [record.tobytes() for record in records]
    assert (model.signals_from(contents) == records).all()


def test_what_functions_call_and_are_called_by(
    model: SearchModel, queries: list[Query], vectors: Floats, records: Records
) -> None:
    addresses = [query.ref.address for query in queries]
    own = np.concatenate([model.embedder.part(vectors, name) for name in ("graph", "words")], 1)
    related = {"callees": len(queries) * [()], "callers": len(queries) * [()]}
    for row, query in enumerate(queries):
        related["callees"][row] = tuple(
            addresses.index(address) for address in query.callees if address in addresses
        )
        related["callers"][row] = tuple(
            other for other, one in enumerate(queries) if query.ref.address in one.callees
        )
    for name in CALLS:
        assert any(related[name]), "the sample has calls"
        assert not all(related[name])
        for row, others in enumerate(related[name]):
            assert_is_sum_of(records[row], name, own, others)
    assert records["caller_count"].tolist() == [len(rows) for rows in related["callers"]]
    assert records["callee_count"].tolist() == [len(query.callees) for query in queries]
    assert records["in_file"].all()


def assert_is_sum_of(record: np.void, name: str, own: Floats, others: Sequence[int]) -> None:
    """Checks a vector of what is around a function against the sum of others' by a plain loop."""
    expected = np.zeros(own.shape[1])
    for other in others:
        expected += own[other]
    length = math.sqrt(float(expected @ expected)) or 1.0
    np.testing.assert_allclose(
        record[name] * record[f"{name}_scale"], expected / length, atol=0.005
    )
    assert (record[f"{name}_scale"] == 0) == (not others)


def test_what_lies_beside_functions(
    model: SearchModel, queries: list[Query], vectors: Floats, records: Records
) -> None:
    own = np.concatenate([model.embedder.part(vectors, name) for name in ("graph", "words")], 1)
    in_order = sorted(range(len(queries)), key=lambda row: queries[row].ref.address or 0)
    assert len(queries) > 2 * NEIGHBOURS + 1, "some functions are no neighbours"
    for place, row in enumerate(in_order):
        start, end = max(0, place - NEIGHBOURS), place + NEIGHBOURS + 1
        beside = [other for other in in_order[start:end] if other != row]
        assert_is_sum_of(records[row], "neighbours", own, beside)


def test_the_order_of_functions_does_not_decide_who_is_a_neighbour(
    model: SearchModel, queries: list[Query], vectors: Floats, records: Records
) -> None:
    graphs = [query.graph for query in queries][::-1]
    surroundings = [Surroundings(query.ref.address or 0, query.callees) for query in queries][::-1]
    narrow = [False] * len(graphs)
    reversed_ = signals_of(model.embedder, graphs, vectors[::-1], narrow, surroundings)
    np.testing.assert_array_equal(reversed_["neighbours"][::-1], records["neighbours"])


@pytest.mark.parametrize("count", [1, 2, NEIGHBOURS, NEIGHBOURS + 1])
def test_files_of_few_functions(model: SearchModel, queries: list[Query], count: int) -> None:
    few = queries[:count]
    graphs = [query.graph for query in few]
    vectors = model.embedder.encode(graphs)
    surroundings = [Surroundings(query.ref.address or 0, query.callees) for query in few]
    records = signals_of(model.embedder, graphs, vectors, [False] * count, surroundings)
    assert (records["neighbours_scale"] > 0).tolist() == [count > 1] * count


def test_functions_by_themselves_have_no_surroundings(
    model: SearchModel, queries: list[Query], vectors: Floats
) -> None:
    graphs = [query.graph for query in queries]
    alone = signals_of(model.embedder, graphs, vectors, [True] * len(graphs))
    assert not alone["in_file"].any()
    assert alone["narrow"].all()
    for name in AROUND:
        assert not cosines(alone[0], alone, name).any()


def test_offsets_say_nothing_of_strength_or_rarity(model: SearchModel) -> None:
    graphs = [saying(), saying(("off", "8")), saying(("str", "a"), ("str", "a"), ("imp", "b"))]
    vectors = model.embedder.encode(graphs)
    records = signals_of(model.embedder, graphs, vectors, [False] * 3)
    assert records["strength"].tolist() == [0, 0, 12]
    assert [len(rare_words(model.embedder, graph)[0]) for graph in graphs] == [0, 0, 2]
    assert shared_words(model.embedder, graphs[1], graphs[1]) == []
    assert records["operations"].tolist() == [1, 1, 1]


def test_frequent_words_are_not_looked_for() -> None:
    embedder = evidence_embedder()
    words = [word_hash(kind, "x") for kind in KINDS]
    bag = type(embedder.words)(256, len(words), 0)
    rarity = np.arange(3, 3 + len(words), dtype=np.float32)
    bag.fit(WordStatistics(np.array(words, dtype=np.uint64), rarity, 1.0))
    embedder.words = bag
    graph = saying(*((kind, "x") for kind in KINDS))
    hashes, weights = rare_words(embedder, graph)
    rare = {word: float(number) for word, number in zip(words[:-1], rarity, strict=False)}
    assert dict(zip(hashes.tolist(), weights.tolist(), strict=True)) == {
        word: number for word, number in rare.items() if number > 5
    }
    shared = shared_words(embedder, graph, graph)
    assert shared == sorted(rare, key=lambda word: -rare[word])


def test_rare_words_of_many_are_those_of_each(model: SearchModel) -> None:
    none = Graph(1, [], directed=True, node_tokens=[[1]])
    said = [[("str", "a"), ("imp", "b")], [("off", "8")], [("str", "c"), ("str", "a")]]
    graphs = [none, *(saying(*words) for words in said), none]
    each = [rare_words(model.embedder, graph)[0].tolist() for graph in graphs]
    assert [len(words) for words in each] == [0, 2, 0, 2, 0]
    assert [words.tolist() for words in rare_words_of(model.embedder, graphs)] == each
    assert rare_words_of(model.embedder, []) == []


def test_operations_of_graphs_are_compared(model: SearchModel) -> None:
    """By their shares, however many there are; those on the stack tell of no optimization."""
    stack, add, move = (EVIDENCE.encode([name])[0] for name in ("stack_load", "add", "move"))

    def doing(*tokens: int) -> Graph:
        none = WordBags(np.zeros(0, np.uint64), np.zeros(2, np.int64))
        return Graph(1, [], directed=True, node_tokens=[list(tokens)], node_words=none)

    others = [doing(stack, stack, add, add), doing(move), doing()]
    compared = compared_graphs(model.embedder, doing(stack, add), others)
    assert compared.operations_apart == pytest.approx([0, 1, 0.5])
    assert compared.on_stack == pytest.approx(0.5)
    assert compared.on_stack_there == pytest.approx([0.5, 0, 0])
    assert compared.exact_words.tolist() == [0, 0, 0]


def test_the_exact_cosine_of_words(model: SearchModel) -> None:
    left = saying(("str", "a"), ("str", "a"), ("imp", "b"))
    right = saying(("str", "a"), ("num", "7"), ("off", "8"))
    twice = 1 + math.log(2)
    expected = twice / math.sqrt(twice**2 + 1) / math.sqrt(2)
    cosines = word_cosines(model.embedder, left, [right, left, saying()])
    assert cosines == pytest.approx([expected, 1, 0])
