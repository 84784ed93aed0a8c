"""The bag of words against a slow, literal version of its equation."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from graphkin.errors import GraphError, ModelError
from graphkin.graphs import Graph, GraphBatch, WordBags
from graphkin.graphs.words import KIND_SHIFT, KINDS, word_hash
from graphkin.models import GraphEmbedder, ModelConfig, build_model
from graphkin.models.similarity import similarity_matrix
from graphkin.models.words import WordBag, WordStatistics, signs
from tests.models.literal import word_signs

DIM = 128
WORDS = [word_hash(kind, text) for kind in KINDS for text in ("a", "b", "c")]
KNOWN = WordStatistics(
    np.array(WORDS[:9], dtype=np.uint64), np.linspace(1, 3, 9).astype(np.float32), 5.0
)


def graph_of(*bags: list[int]) -> Graph:
    hashes = np.array([word for bag in bags for word in bag], dtype=np.uint64)
    return Graph(len(bags), node_words=WordBags(hashes, np.cumsum([0, *map(len, bags)])))


def trained_bag(kinds: tuple[str, ...] = KINDS) -> WordBag:
    bag = WordBag(DIM, known=9, learned=4, kinds=kinds)
    bag.fit(KNOWN)
    torch.manual_seed(0)
    for parameter in bag.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    return bag


def literal(bag: WordBag, graph: Graph, kinds: tuple[str, ...]) -> torch.Tensor:
    total = torch.zeros(DIM)
    known = KNOWN.hashes.tolist()
    words = [] if graph.node_words is None else graph.node_words.hashes.tolist()
    for word in sorted(set(words)):
        kind = word >> KIND_SHIFT
        if KINDS[kind] not in kinds:
            continue
        rarity = float(KNOWN.rarity[known.index(word)]) if word in known else KNOWN.unseen
        direction = torch.tensor(word_signs(word, DIM)) / math.sqrt(DIM)
        scale = bag.kind_scale[kind]
        if word in known[: bag.learned]:
            row = known.index(word) + 1
            direction, scale = direction + bag.directions[row], scale + bag.word_scale[row]
        total = total + (1 + math.log(words.count(word))) * rarity * scale.exp() * direction
    return total / total.norm() if total.norm() else total


@settings(deadline=None, max_examples=30)
@given(st.lists(st.lists(st.sampled_from(WORDS), max_size=6), min_size=1, max_size=4))
@pytest.mark.parametrize("kinds", [KINDS, ("str", "num"), ("off",)])
def test_values_and_gradients(kinds: tuple[str, ...], bags: list[list[int]]) -> None:
    bag = trained_bag(kinds)
    graphs = [graph_of(*bags), graph_of(bags[0]), graph_of([])]
    words = GraphBatch.pack(graphs).words
    assert words is not None
    slow = torch.stack([literal(bag, graph, kinds) for graph in graphs])
    torch.testing.assert_close(bag(words), slow, atol=1e-5, rtol=1e-5)
    direction = torch.linspace(-1, 1, DIM)
    gradients = []
    for out in (bag(words), slow):
        bag.zero_grad()
        if out.requires_grad:
            (out @ direction).sum().backward()
        gradients.append([torch.zeros(0) if p.grad is None else p.grad for p in bag.parameters()])
    for fast_grad, slow_grad in zip(*gradients, strict=True):
        if fast_grad.numel() and slow_grad.numel():
            torch.testing.assert_close(fast_grad, slow_grad, atol=1e-4, rtol=1e-4)


def test_words_that_nobody_met_have_directions_of_their_own() -> None:
    hashes = np.array([word_hash("str", f"message {n}") for n in range(200)], dtype=np.uint64)
    vectors = signs(torch.from_numpy(hashes.view(np.int64)), 256).float() / 16
    cosines = vectors @ vectors.T - torch.eye(200)
    assert cosines.abs().max() < 0.4
    assert cosines.mean().abs() < 0.01


def test_rare_words_count_more() -> None:
    graphs = [graph_of([WORDS[0]])] * 50 + [graph_of([WORDS[0], WORDS[1]])]
    counted = WordStatistics.count(graphs, known=2, copies=1)
    assert counted.hashes.tolist() == WORDS[:2]
    assert counted.rarity[0] == pytest.approx(math.log(1 + 51 / 52))
    assert counted.rarity[1] == pytest.approx(math.log(1 + 51 / 2))
    assert counted.unseen == pytest.approx(math.log(52))


CONFIG = ModelConfig(
    similarity="cosine",
    node_dim=8,
    graph_dim=16,
    message_dim=8,
    steps=2,
    word_dim=64,
    offset_dim=64,
    words_known=9,
    words_learned=4,
    code_bits=128,
)
SAYING = [graph_of([WORDS[0]], [WORDS[17]]), graph_of([WORDS[0], WORDS[7]], [], []), graph_of([])]


def embedder() -> GraphEmbedder:
    model = build_model(CONFIG)
    assert isinstance(model, GraphEmbedder)
    model.fit_words(KNOWN)
    return model.eval()


def test_a_vector_is_graph_words_and_offsets_side_by_side(tmp_path: Path) -> None:
    model = embedder()
    model.part_weights.copy_(torch.tensor([1.0, 4.0, 0.25]))
    vectors = model.encode(SAYING)
    assert vectors.shape == (3, 16 + 64 + 64)
    lengths = [np.linalg.norm(model.part(vectors, name), axis=1) for name in ("graph", "words")]
    np.testing.assert_allclose(lengths, [[1, 1, 1], [2, 2, 0]], atol=1e-5)
    offsets = np.linalg.norm(model.part(vectors, "offsets"), axis=1)
    np.testing.assert_allclose(offsets, [0.5, 0, 0], atol=1e-5)
    codes = model.codes(SAYING)
    assert codes.shape == (3, 16)
    without_offsets = vectors.copy()
    model.part(without_offsets, "offsets")[:] = 9
    assert (model.codes_of(without_offsets) == codes).all()
    model.save_pretrained(tmp_path / "model")
    read = GraphEmbedder.from_pretrained(tmp_path / "model")
    assert (read.encode(SAYING) == vectors).all()
    with pytest.raises(ModelError, match="no part 'edges'"):
        model.part(vectors, "edges")


def test_graphs_that_say_nothing_because_nobody_listened_are_refused() -> None:
    with pytest.raises(GraphError, match="made without it"):
        embedder().encode([Graph(2, [(0, 1)])])


def test_each_part_learns_by_itself() -> None:
    """A loss on one part leaves the other alone, and a code teaches no vector."""
    model = embedder()
    for position, own in enumerate((("network",), ("words",), ("code",))):
        model.zero_grad()
        lesson, similarity = model.lessons(model.vectors(GraphBatch.pack(SAYING[:2])))[position]
        similarity_matrix(lesson, similarity)[0, 1].backward()
        moved = {
            name.partition(".")[0]
            for name, parameter in model.named_parameters()
            if parameter.grad is not None and parameter.grad.abs().max() > 0
        }
        assert moved == set(own)
