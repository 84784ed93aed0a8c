"""Functions as records, and as graphs."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace

import pytest

from graphkin.binaries import Block, Function, ListSource, Skipped
from graphkin.errors import FormatError, GraphError
from graphkin.graphs.vocabulary import Vocabulary

LOOP = Function(
    name="count",
    address=0x1000,
    size=12,
    blocks=(
        Block(0x1000, 4, ("xor", "nop")),
        Block(0x1004, 6, ("add", "cmp", "jne")),
        Block(0x100A, 2, ("ret",)),
    ),
    edges=((0, 1), (1, 1), (1, 2)),
    architecture="x86-64",
    format="elf",
    file_hash="00" * 32,
    binary="libx.so",
)


def test_a_function_becomes_a_directed_graph_with_mnemonics_as_tokens() -> None:
    vocabulary = Vocabulary(("add", "cmp", "jne", "ret", "xor"))
    graph = LOOP.to_graph(vocabulary)
    assert (graph.num_nodes, graph.directed) == (3, True)
    assert graph.edges.tolist() == [[0, 1], [1, 1], [1, 2]]
    assert graph.node_tokens is not None
    bags = [graph.node_tokens.bag(node) for node in range(3)]
    assert bags == [[5, 0], [1, 2, 3], [4]]  # nop is unknown to the vocabulary


def test_a_function_of_one_block_has_no_edges() -> None:
    single = replace(LOOP, blocks=LOOP.blocks[:1], edges=())
    assert single.to_graph(Vocabulary(())).edges.shape == (0, 2)


def test_a_function_without_blocks_is_refused_by_name() -> None:
    with pytest.raises(GraphError, match=r"count of libx\.so"):
        replace(LOOP, blocks=(), edges=()).to_graph(Vocabulary(()))


@pytest.mark.parametrize(
    ("name", "base"),
    [
        ("decode", "decode"),
        ("decode.part.0", "decode"),
        ("decode.isra.0.constprop.1", "decode"),
        ("decode.part.0.cold", "decode"),
        ("a.b", "a.b"),
        (".cold", ".cold"),
    ],
)
def test_base_name_drops_what_the_compiler_appended(name: str, base: str) -> None:
    assert replace(LOOP, name=name).base_name == base


def test_vocabulary_from_counts_survives_json() -> None:
    counts = Counter(mov=5, add=2, jmp=2, rare=1)
    vocabulary = Vocabulary.from_counts(counts, min_count=2)
    assert vocabulary.words == ("mov", "add", "jmp")
    assert Vocabulary.from_json(json.loads(json.dumps(vocabulary.to_json()))) == vocabulary
    assert vocabulary.encode(["jmp", "rare", "mov"]).tolist() == [3, 0, 1]
    assert [vocabulary.decode(token) for token in (0, 1)] == ["<unknown>", "mov"]
    assert len(vocabulary) == 4
    assert len(Vocabulary.from_counts(counts, size=1)) == 2


@pytest.mark.parametrize("words", [{"mov": 1}, ["mov", 3], ["mov", "mov"], ["<unknown>"], None])
def test_a_vocabulary_that_is_none_is_refused(words: object) -> None:
    with pytest.raises(FormatError):
        Vocabulary.from_json(words)


def test_hand_fed_source() -> None:
    source = ListSource([LOOP])
    assert list(source.functions()) == [LOOP]
    assert source.skipped == []


def test_skipped_reads_as_a_sentence() -> None:
    assert str(Skipped("a.so", "f", "too large")) == "a.so:f skipped: too large"
    assert str(Skipped("a.so", "", "damaged")) == "a.so skipped: damaged"
    assert str(Skipped("a.so", "", "a.so is damaged")) == "a.so skipped: it is damaged"
