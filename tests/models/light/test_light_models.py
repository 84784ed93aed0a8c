"""Models without torch give what the same models of torch give, and refuse what these refuse."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Mapping

import numpy as np
import pytest
import safetensors.numpy
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from graphkin.errors import FormatError, GraphError, ModelError
from graphkin.graphs import Graph, TokenBags, WordBags, packing
from graphkin.graphs.vocabulary import Vocabulary
from graphkin.graphs.words import KINDS, word_hash
from graphkin.models import GraphEmbedder, GraphMatcher, ModelConfig
from graphkin.models.answering import (
    answering_embedder,
    answering_matcher,
    attention_between,
)
from graphkin.models.light import LightEmbedder, LightMatcher
from graphkin.models.light import matcher as matcher_module
from graphkin.models.node_matching import AttentionMaps, PartnerMaps
from graphkin.models.saving import CONFIG_FILE, MOST, WEIGHTS_FILE
from graphkin.models.words import WordStatistics

TOKENS = 7
WORDS = [word_hash(kind, text) for kind in KINDS for text in ("a", "b", "c", "d")]
RARITY = WordStatistics(
    np.array(WORDS[::2], np.uint64), np.linspace(1, 4, len(WORDS[::2])).astype(np.float32), 5.0
)
SHARED = {
    "propagation": "residual",
    "shared": False,
    "steps": 3,
    "node_dim": 8,
    "graph_dim": 8,
    "readout": "pooled",
    "reverse_messages": "separate",
    "node_input": "tokens",
    "node_input_size": TOKENS,
    "token_counts": "log",
    "word_dim": 64,
    "words_known": len(RARITY.hashes),
}
EMBEDDERS = {
    "all": {"node_degrees": True, "offset_dim": 64, "code_bits": 64, "words_learned": 5},
    "code of offsets": {"offset_dim": 64, "code_bits": 64, "code_offsets": True},
    "no offsets": {"code_bits": 64},
    "no steps": {"code_bits": 64, "steps": 0},
}
PRECISION = 1e-5


def trained_embedder(**options: object) -> GraphEmbedder:
    """An embedder whose every weight is drawn, those that begin at 0 as well."""
    config = ModelConfig.from_dict({**SHARED, "similarity": "cosine", **options})
    embedder = GraphEmbedder(config)
    embedder.fit_words(RARITY)
    draw(embedder)
    return embedder.eval()


def trained_matcher() -> GraphMatcher:
    config = ModelConfig.from_dict(
        {**SHARED, "similarity": "late", "matching": True, "node_degrees": True}
    )
    matcher = GraphMatcher(config)
    matcher.fit_words(RARITY)
    draw(matcher)
    return matcher.eval()


def draw(model: torch.nn.Module) -> None:
    generator = torch.Generator().manual_seed(1)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.4, generator=generator)


@st.composite
def functions(draw: st.DrawFn) -> Graph:
    """Directed graphs with tokens and words; nodes may have none of either, and no edges."""
    count = draw(st.integers(1, 12))
    ends = st.integers(0, count - 1)
    bags = draw(st.lists(st.lists(st.integers(0, TOKENS - 1), max_size=5), **size(count)))
    words = draw(st.lists(st.lists(st.sampled_from(WORDS), max_size=3), **size(count)))
    hashes = np.array([word for bag in words for word in bag], dtype=np.uint64)
    return Graph(
        count,
        draw(st.lists(st.tuples(ends, ends), max_size=24)),
        directed=True,
        node_tokens=TokenBags.from_lists(bags),
        node_words=WordBags(hashes, np.cumsum([0, *map(len, words)])),
    )


def size(count: int) -> dict[str, int]:
    return {"min_size": count, "max_size": count}


@pytest.mark.parametrize("options", EMBEDDERS.values(), ids=EMBEDDERS)
@given(graphs=st.lists(functions(), min_size=1, max_size=6))
@settings(deadline=None, max_examples=25)
def test_vectors_and_codes(options: dict[str, object], graphs: list[Graph]) -> None:
    slow = trained_embedder(**options)
    light = answering_embedder(slow.to_files(), "files")
    assert isinstance(light, LightEmbedder)
    vectors = slow.encode(graphs)
    np.testing.assert_allclose(light.encode(graphs), vectors, atol=PRECISION)
    np.testing.assert_array_equal(light.codes_of(vectors), slow.codes_of(vectors))
    unrounded = light.unrounded_codes(vectors), slow.unrounded_codes(vectors)
    np.testing.assert_allclose(*unrounded, rtol=1e-4, atol=1e-4)
    for name in ("graph", "words"):
        np.testing.assert_array_equal(light.part(vectors, name), slow.part(vectors, name))
    hashes = np.array(WORDS, np.uint64)
    np.testing.assert_array_equal(light.words.rarity_of(hashes), slow.words.rarity_of(hashes))


@given(st.lists(st.tuples(functions(), functions()), min_size=1, max_size=6))
@settings(deadline=None, max_examples=40)
def test_scores_and_attention(pairs: list[tuple[Graph, Graph]]) -> None:
    slow = trained_matcher()
    light = answering_matcher(slow.to_files(), "files")
    assert isinstance(light, LightMatcher)
    first = pairs[0][0]
    pairs += [(first, right) for _, right in pairs]
    scores = slow.similarities(pairs)
    np.testing.assert_allclose(light.similarities(pairs), scores, rtol=1e-4, atol=PRECISION)
    for ours, theirs in zip(light.explain_many(pairs), slow.explain_many(pairs), strict=True):
        assert ours.score == pytest.approx(theirs.score, rel=1e-4, abs=PRECISION)
        np.testing.assert_allclose(ours.left_to_right, theirs.left_to_right, atol=PRECISION)
        np.testing.assert_allclose(ours.right_to_left, theirs.right_to_left, atol=PRECISION)
    graphs = [pair[0] for pair in pairs]
    for ours, theirs in zip(light.node_states(graphs), slow.node_states(graphs), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=PRECISION)
    assert light.match(*pairs[0])
    assert light.predict(pairs).shape == (len(pairs),)


@pytest.mark.parametrize("limit", ["NODES_AT_ONCE", "NODES_IN_CACHE"])
def test_scores_do_not_depend_on_what_is_compared_together(
    limit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    light = answering_matcher(trained_matcher().to_files(), "files")
    graphs = [chain(nodes) for nodes in range(1, 12)]
    pairs = [(left, right) for left in graphs for right in graphs]
    expected = light.similarities(pairs)
    monkeypatch.setattr(matcher_module, limit, 30)
    np.testing.assert_allclose(light.similarities(pairs), expected, rtol=1e-5, atol=1e-6)


def test_scores_do_not_depend_on_where_graphs_lie_in_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """To the last bit: what is computed together, and in which order, follows from the pairs."""
    light = answering_matcher(trained_matcher().to_files(), "files")
    monkeypatch.setattr(matcher_module, "NODES_AT_ONCE", 30)
    sizes = range(1, 12)
    rising = {nodes: chain(nodes) for nodes in sizes}
    falling = {nodes: chain(nodes) for nodes in reversed(sizes)}
    batches = [
        list(
            matcher_module._batches([(own[left], own[right]) for left in sizes for right in sizes])
        )
        for own in (rising, falling)
    ]
    assert batches[0] == batches[1]
    assert len(batches[0]) > 1
    scores = [
        light.similarities([(own[left], own[right]) for left in sizes for right in sizes])
        for own in (rising, falling)
    ]
    np.testing.assert_array_equal(*scores)


def test_scores_do_not_depend_on_what_was_asked_before() -> None:
    """To the last bit, although what was compared is kept for whoever explains it."""
    files = trained_matcher().to_files()
    graphs = [chain(nodes) for nodes in range(1, 40)]
    asked, fresh = (answering_matcher(files, "files") for _ in range(2))
    asked.similarities([(graphs[5], graph) for graph in graphs])
    pairs = [(graphs[5], graphs[20]), (graphs[6], graphs[5])]
    np.testing.assert_array_equal(asked.similarities(pairs), fresh.similarities(pairs))


def test_what_is_kept_of_graphs_is_not_taken_for_that_of_others() -> None:
    """Graphs come and go, and new ones lie in the memory of those that went."""
    files = trained_matcher().to_files()
    light, query = answering_matcher(files, "files"), chain(5)
    for nodes in [*range(1, 12)] * 2:
        pairs, new = [(query, chain(nodes))], answering_matcher(files, "files")
        expected = new.similarities(pairs)
        np.testing.assert_allclose(light.similarities(pairs), expected, rtol=1e-5, atol=1e-6)
        assert light.explain_many(pairs)[0].score == pytest.approx(float(expected[0]), abs=1e-5)


@pytest.mark.parametrize("heat", [2.0, 7.0], ids=["usual", "extreme"])
@pytest.mark.parametrize("cells", [1, 50, 1 << 20], ids=["rows", "slices", "whole"])
def test_large_pairs_are_scored_in_slices_as_small_ones_at_once(
    heat: float, cells: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Chains repeat their tokens and words, so that many scores of a row are equal."""
    slow = trained_matcher()
    torch.nn.init.constant_(slow.late.heat, heat)
    light = answering_matcher(slow.to_files(), "files")
    graphs = [chain(nodes) for nodes in (1, 6, 20, 33)]
    pairs = [(left, right) for left in graphs for right in graphs]
    expected = [maps.score for maps in slow.explain_many(pairs)]
    monkeypatch.setattr(packing, "CELLS_AT_ONCE", cells)
    monkeypatch.setattr(matcher_module, "CELLS_AT_ONCE", cells)
    np.testing.assert_allclose(light.similarities(pairs), expected, rtol=1e-5, atol=PRECISION)


def test_pairs_on_both_sides_of_the_bound_are_scored_as_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    light = answering_matcher(trained_matcher().to_files(), "files")
    pairs = [(chain(1024), chain(nodes)) for nodes in (1023, 1024, 1025, 1500)]
    scores = light.similarities(pairs)
    monkeypatch.setattr(matcher_module, "CELLS_AT_ONCE", 1 << 30)
    np.testing.assert_allclose(scores, light.similarities(pairs), rtol=1e-5, atol=PRECISION)


def test_memory_of_large_pairs_grows_with_nodes() -> None:
    """All scores of this pair are 144 MB, and a softmax of them as much again."""
    light = answering_matcher(trained_matcher().to_files(), "files")
    left, right = chain(6_000), chain(6_001)
    tracemalloc.start()
    try:
        (score,) = light.similarities([(left, right)])
        maps = attention_between(light, left, right)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert maps.score == pytest.approx(score, rel=1e-5)
    assert isinstance(maps, PartnerMaps)
    assert maps.right_to_left[0].shape == (6_001, 6_000)
    assert peak < 64 << 20


@pytest.mark.parametrize("kind", ["matcher", "embedder"])
@pytest.mark.parametrize("answers", ["light", "torch"])
def test_partners_are_the_largest_attention(
    kind: str, answers: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow: GraphMatcher | GraphEmbedder
    if kind == "matcher":
        slow, read = trained_matcher(), answering_matcher
    else:
        slow, read = trained_embedder(**EMBEDDERS["all"]), answering_embedder
    model = slow if answers == "torch" else read(slow.to_files(), "files")
    monkeypatch.setattr(packing, "CELLS_AT_ONCE", 40)
    for left, right in ((chain(9), chain(13)), (chain(1), chain(5)), (chain(6), chain(6))):
        maps = attention_between(model, left, right)
        assert isinstance(maps, AttentionMaps)
        partners = model.partners(left, right)
        assert partners.score == pytest.approx(maps.score, rel=1e-5, abs=PRECISION)
        for side, whole in (
            (partners.left_to_right, maps.left_to_right),
            (partners.right_to_left, maps.right_to_left),
        ):
            assert side[0].shape == whole[0].shape
            np.testing.assert_allclose(side[0].weights, whole[0].max(axis=1), atol=PRECISION)
            paid = whole[0][np.arange(len(whole[0])), side[0].nodes]
            np.testing.assert_allclose(paid, side[0].weights, atol=PRECISION)


def test_an_embedder_explains_as_one_of_torch_does() -> None:
    slow = trained_embedder(**EMBEDDERS["all"])
    light = answering_embedder(slow.to_files(), "files")
    ours, theirs = (model.explain(chain(4), chain(6)) for model in (light, slow))
    assert ours.score == pytest.approx(theirs.score, abs=PRECISION)
    np.testing.assert_allclose(ours.left_to_right[0], theirs.left_to_right[0], atol=PRECISION)
    np.testing.assert_allclose(ours.right_to_left[0], theirs.right_to_left[0], atol=PRECISION)


def chain(nodes: int) -> Graph:
    bags = [[number % TOKENS, 0] for number in range(nodes)]
    words = np.array([WORDS[number % len(WORDS)] for number in range(nodes)], np.uint64)
    return Graph(
        nodes,
        [(number, number + 1) for number in range(nodes - 1)],
        directed=True,
        node_tokens=TokenBags.from_lists(bags),
        node_words=WordBags(words, np.arange(nodes + 1)),
    )


@pytest.mark.parametrize(
    "graph",
    [
        Graph(2, [(0, 1)], directed=True),
        Graph(2, [(0, 1)], directed=True, node_tokens=[[0], [1]]),
        Graph(2, [(0, 1)], node_tokens=[[0], [1]], node_words=chain(2).node_words),
        Graph(1, [], directed=True, node_tokens=[[TOKENS]], node_words=chain(1).node_words),
    ],
    ids=["no tokens", "no words", "undirected", "unknown token"],
)
def test_graphs_that_a_model_cannot_read(graph: Graph) -> None:
    slow = trained_embedder(code_bits=64)
    for model in (slow, answering_embedder(slow.to_files(), "files")):
        with pytest.raises(GraphError):
            model.encode([graph])


def test_other_models_answer_by_torch() -> None:
    for embedder in (GraphEmbedder("gnn"), trained_embedder(code_bits=0)):
        assert isinstance(answering_embedder(embedder.to_files(), "files"), GraphEmbedder)
    matcher = GraphMatcher("gmn")
    assert isinstance(answering_matcher(matcher.to_files(), "files"), GraphMatcher)


def test_the_description_of_a_model_comes_with_it() -> None:
    slow = trained_embedder(code_bits=64)
    slow.vocabulary = Vocabulary(("add", "call", "load", "move", "return", "store"), "evidence")
    light = answering_embedder(slow.to_files(), "files")
    assert light.vocabulary == slow.vocabulary
    assert light.config == slow.config
    assert light.attribute_names == slow.attribute_names


def damaged(files: Mapping[str, bytes], name: str, array: np.ndarray | None) -> dict[str, bytes]:
    """With another array under a name, or without it."""
    arrays = safetensors.numpy.load(files[WEIGHTS_FILE])
    arrays.pop(name, None)
    if array is not None:
        arrays[name] = array
    return {**files, WEIGHTS_FILE: safetensors.numpy.save(arrays)}


BIAS = "network.nodes.bias"


@pytest.mark.parametrize(
    ("name", "array", "message"),
    [
        (BIAS, None, "files lacks the tensor 'network.nodes.bias'"),
        (BIAS, np.zeros(9, np.float32), r"has shape \(9,\), the configuration asks for \(8,\)"),
        (BIAS, np.zeros(8, np.float64), "is of float64, the model's is of float32"),
        (BIAS, np.full(8, np.nan, np.float32), "holds values that are not finite"),
        ("more", np.zeros(1, np.float32), "files holds an unknown tensor 'more'"),
    ],
)
def test_weights_that_do_not_fit(name: str, array: np.ndarray | None, message: str) -> None:
    files = trained_embedder(code_bits=64).to_files()
    with pytest.raises(ModelError, match=message):
        answering_embedder(damaged(files, name, array), "files")


def test_weights_that_are_no_safetensors() -> None:
    files = trained_embedder(code_bits=64).to_files() | {WEIGHTS_FILE: b"x" * 100}
    with pytest.raises(FormatError, match="damaged or not a safetensors file"):
        answering_embedder(files, "files")


@pytest.mark.parametrize("option", ["steps", "word_dim", "offset_dim"])
def test_options_that_take_memory_and_no_weights_are_bounded(option: str) -> None:
    files = trained_embedder(**EMBEDDERS["all"]).to_files()
    document = json.loads(files[CONFIG_FILE])
    document["config"][option] = MOST[option] * 64
    with pytest.raises(FormatError, match=f"{option} is {MOST[option] * 64}, at most"):
        answering_embedder({**files, CONFIG_FILE: json.dumps(document).encode()}, "files")
