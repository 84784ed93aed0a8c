"""Late interaction as its users meet it: repeated graphs, an embedder to start from, attention."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from graphkin.errors import GraphError
from graphkin.graphs import Graph, PairBatch, packing
from graphkin.models import GraphEmbedder, GraphMatcher, ModelConfig, late
from graphkin.models.late import LateInteraction
from tests.models.encoding_once import check_graphs_are_encoded_once
from tests.models.samples import SMALL, make_model, random_graph

OPTIONS = {
    **SMALL,
    "node_input": "tokens",
    "node_input_size": 5,
    "node_degrees": True,
    "word_dim": 64,
    "words_known": 9,
}
LATE = ModelConfig.named("late", **OPTIONS)
EMBEDDER = ModelConfig(
    propagation="residual", similarity="cosine", readout="pooled", **OPTIONS, words_learned=4
)


RARITY = ("words.hashes", "words.rarity", "words.unseen")


def late_matcher(seed: int = 0) -> GraphMatcher:
    model = make_model(LATE, seed=seed, double=False)
    assert isinstance(model, GraphMatcher)
    return model


def some_graphs(sizes: list[int]) -> list[Graph]:
    rng = np.random.default_rng(0)
    return [random_graph(rng, LATE, size, 2 * size, directed=True) for size in sizes]


def test_graphs_of_many_pairs_are_encoded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    check_graphs_are_encoded_once(late_matcher(), some_graphs([1, 2, 9, 40]), monkeypatch, 1e-5)


def test_pairs_of_distinct_graphs_are_those_of_copies() -> None:
    model, graphs = late_matcher(), some_graphs([3, 5, 2])
    pairs = [(graphs[0], graphs[1]), (graphs[2], graphs[0]), (graphs[1], graphs[1])]
    copies, distinct = PairBatch.pack(pairs), PairBatch.pack_distinct(pairs, [1, -1, 1])
    assert (copies.graphs.num_graphs, distinct.graphs.num_graphs) == (6, 3)
    assert distinct.labels is not None
    assert distinct.labels.tolist() == [1, -1, 1]
    with torch.no_grad():
        outputs = vars(model(copies)), vars(model(distinct))
    for name, ours in outputs[0].items():
        torch.testing.assert_close(ours, outputs[1][name])
    with pytest.raises(GraphError, match="exactly one pair"):
        _ = distinct.groups


def test_it_starts_from_an_embedder() -> None:
    """Encoder, steps and rarity come over; what it compares with stays its own."""
    embedder, model = make_model(EMBEDDER, seed=1, double=False), late_matcher(seed=2)
    assert isinstance(embedder, GraphEmbedder)
    embedder.words.unseen.fill_(7.0)
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    model.start_from(embedder)
    trained = embedder.state_dict()
    for name, tensor in model.state_dict().items():
        comes_over = name.startswith("network.") or name in RARITY
        assert torch.equal(tensor, trained[name] if comes_over else before[name]), name
    assert not torch.equal(before["network.nodes.tokens"], trained["network.nodes.tokens"])
    assert {name for name in trained if name.startswith("network.steps")} <= set(before)


@pytest.mark.parametrize("cells", [1, 30, 90])
def test_large_pairs_are_compared_in_slices_as_small_ones_at_once(
    cells: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = late_matcher()
    graphs = some_graphs([1, 3, 9, 10, 30])
    # A block is of one pair, as large blocks are.
    monkeypatch.setattr(packing, "BLOCK_CELLS", 1)
    pairs = [(left, right) for left in graphs for right in graphs]
    expected = model.predict(pairs)
    monkeypatch.setattr(packing, "CELLS_AT_ONCE", cells)
    monkeypatch.setattr(late, "CELLS_AT_ONCE", cells)
    most = 0
    scores_of = LateInteraction._scores

    def counted(*arguments: Any) -> torch.Tensor:
        nonlocal most
        scores = scores_of(*arguments)
        most = max(most, scores.numel())
        return scores

    monkeypatch.setattr(LateInteraction, "_scores", counted)
    np.testing.assert_allclose(model.predict(pairs), expected, rtol=1e-5, atol=1e-5)
    assert 0 < most <= max(cells, 30)


def test_attention_is_shown_once_and_both_ways() -> None:
    model = late_matcher()
    left, right = some_graphs([3, 7])
    maps, swapped = model.explain(left, right), model.explain(right, left)
    assert maps.left_to_right[0].shape == (3, 7)
    assert maps.right_to_left[0].shape == (7, 3)
    for weights in (*maps.left_to_right, *maps.right_to_left):
        np.testing.assert_allclose(weights.sum(axis=1), 1, atol=1e-5)
    np.testing.assert_allclose(maps.left_to_right[0], swapped.right_to_left[0], atol=1e-5)
    assert maps.score == pytest.approx(float(model.predict([(left, right)])[0]), abs=1e-5)


def test_many_pairs_are_explained_as_each_by_itself() -> None:
    model = late_matcher()
    graphs = some_graphs([3, 7, 5, 12])
    pairs = [(graphs[0], other) for other in graphs[1:]] + [(graphs[3], graphs[1])]
    for pair, maps in zip(pairs, model.explain_many(pairs), strict=True):
        alone = model.explain(*pair)
        np.testing.assert_allclose(maps.left_to_right[0], alone.left_to_right[0], atol=1e-5)
        np.testing.assert_allclose(maps.right_to_left[0], alone.right_to_left[0], atol=1e-5)
        assert maps.score == pytest.approx(alone.score, rel=1e-4)


def test_graphs_without_words_are_refused() -> None:
    mute = Graph(2, [(0, 1)], directed=True, node_tokens=[[0], [1]])
    with pytest.raises(GraphError, match="made without it"):
        late_matcher().predict([(mute, mute)])


def test_states_of_nodes_are_those_of_the_graph_alone() -> None:
    graphs = some_graphs([1, 9])
    model = late_matcher()
    states = model.node_states(graphs)
    assert [len(own) for own in states] == [1, 9]
    np.testing.assert_allclose(model.node_states(graphs[1:])[0], states[1], rtol=1e-5)
    attending = make_model(ModelConfig.named("gmn", **SMALL), double=False)
    assert isinstance(attending, GraphMatcher)
    assert [own.shape for own in attending.node_states(graphs)] == [(1, 0), (9, 0)]
