"""Hashed words: stable hashes, bags of nodes, and what a batch makes of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from graphkin.errors import GraphError
from graphkin.graphs import Graph, GraphBatch, WordBags
from graphkin.graphs.store import GraphStore
from graphkin.graphs.words import KINDS, is_large, is_telling, kinds_of, word_hash


def worded(*bags: list[str]) -> Graph:
    hashes = np.array([word_hash("str", word) for bag in bags for word in bag], dtype=np.uint64)
    return Graph(len(bags), node_words=WordBags(hashes, np.cumsum([0, *map(len, bags)])))


def test_hashes_are_the_same_everywhere() -> None:
    """Libraries and models store them: a change would break every one of them."""
    assert word_hash("str", "malloc failed") == 0x0986D50A46EE35B6
    assert word_hash("imp", "malloc") != word_hash("str", "malloc")
    hashes = np.array([word_hash(kind, "x") for kind in KINDS], dtype=np.uint64)
    assert kinds_of(hashes).tolist() == list(range(len(KINDS)))


def test_a_batch_counts_the_words_of_each_graph() -> None:
    words = GraphBatch.pack([worded(["a", "b"], ["a"]), worded([]), worded(["b"])]).words
    assert words is not None
    assert words.offsets.tolist() == [0, 2, 2, 3]
    of = dict(zip(words.hashes[:2].tolist(), words.counts[:2].tolist(), strict=True))
    assert of == {word_hash("str", "a"): 2.0, word_hash("str", "b"): 1.0}
    assert words.hashes[2] == word_hash("str", "b")


def test_a_batch_lists_the_words_of_each_node() -> None:
    words = GraphBatch.pack([worded(["a", "b"], ["a", "a"]), worded([])]).node_words
    assert words is not None
    assert words.offsets.tolist() == [0, 2, 4, 4]
    assert words.hashes.tolist() == [word_hash("str", word) for word in "abaa"]
    assert words.counts.tolist() == [1.0] * 4


@pytest.mark.parametrize(
    ("kinds", "telling"),
    [
        ([], False),
        (["off"] * 9, False),
        (["imp"], False),
        (["num"], False),
        (["imp", "num"], True),
        (["num", "num"], True),
        (["str"], True),
        (["flt"], True),
        (["dat"], True),
    ],
)
def test_small_graphs_that_say_enough_are_large(kinds: list[str], telling: bool) -> None:
    assert is_telling(kinds) == telling
    hashes = np.array([word_hash(kind, "x") for kind in kinds], dtype=np.uint64)
    graph = Graph(2, node_words=WordBags(hashes, np.array([0, 0, len(kinds)])))
    assert is_large(graph, 3) == telling
    assert is_large(graph, 2)
    assert not is_large(Graph(2), 3)


def test_graphs_with_and_without_words_do_not_mix() -> None:
    with pytest.raises(GraphError, match="has_words"):
        GraphBatch.pack([worded(["a"]), Graph(1)])


def test_words_that_do_not_fit_the_nodes() -> None:
    with pytest.raises(GraphError, match="2 bags for 3 nodes"):
        Graph(3, node_words=WordBags(np.zeros(1, np.uint64), np.array([0, 1, 1])))


def test_a_store_without_words_has_the_digest_that_it_always_had(tmp_path: Path) -> None:
    store = GraphStore.create(tmp_path / "plain")
    store.append([Graph(2, [(0, 1)])], ["edge"])
    assert store.digest() == ("d213b62b5046640641e1a50f78173229e138db32fc8e9d686c4df8f86aef0359")


def test_who_asks_for_many_nodes_means_it() -> None:
    said = WordBags(np.array([word_hash("str", "hello")], np.uint64), np.array([0, 1, 1]))
    graph = Graph(2, node_words=said)
    assert is_large(graph, 5)
    assert not is_large(graph, 6)
