"""The cost of an assignment as its users meet it: a true edit cost, and graphs encoded once."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from graphkin.errors import ConfigError
from graphkin.graphs import Graph, PairBatch
from graphkin.models import GraphEmbedder, GraphMatcher, ModelConfig
from graphkin.models.edits import balanced
from tests.models.encoding_once import check_graphs_are_encoded_once
from tests.models.samples import SMALL, make_model, random_graph

OPTIONS = {**SMALL, "node_input": "tokens", "node_input_size": 5}
EDITS = ModelConfig.named("gmn", similarity="edits", **OPTIONS)


def edit_matcher(seed: int = 0, **options: object) -> GraphMatcher:
    config = ModelConfig.named("gmn", **{**OPTIONS, "similarity": "edits", **options})
    model = make_model(config, seed=seed, double=False)
    assert isinstance(model, GraphMatcher)
    return model


def some_graphs(sizes: list[int]) -> list[Graph]:
    rng = np.random.default_rng(0)
    return [random_graph(rng, EDITS, size, 2 * size, directed=False) for size in sizes]


def test_a_certain_assignment_costs_the_edits() -> None:
    """Where labels alone decide which node is which, the distance is the cost of the edits."""
    model = GraphMatcher(ModelConfig.named("gmn", **{**OPTIONS, "similarity": "edits"}))
    edits = model.edits
    with torch.no_grad():
        model.network.nodes.tokens.copy_(100 * torch.eye(5, 4))
        model.network.nodes.weight.copy_(torch.eye(4))
        edits.kind.normal_(generator=torch.Generator().manual_seed(0))
        edits.mismatch.fill_(50.0)
        edits.state.zero_()
        edits.removal.zero_()
        edits.removal_bias.fill_(-25.0)
        edits.output[0, 2:] = 0
    path = Graph(4, [(0, 1), (1, 2), (2, 3)], node_tokens=[[0], [1], [2], [3]])
    ring = Graph(4, [(1, 0), (2, 1), (3, 2), (3, 0)], node_tokens=[[0], [1], [2], [3]])
    shorter = Graph(3, [(0, 1), (1, 2)], node_tokens=[[2], [1], [0]])
    relabelled = Graph(4, [(3, 2), (2, 1), (1, 0)], node_tokens=[[4], [2], [1], [0]])
    pairs = [(path, path), (path, ring), (path, shorter), (shorter, ring), (path, relabelled)]
    distances = -model.similarities(pairs)
    np.testing.assert_allclose(distances, [0, 1, 2, 3, 1], atol=1e-3)


def test_rows_and_columns_come_to_one() -> None:
    scores = torch.randn(3, 6, 6, generator=torch.Generator().manual_seed(0))
    p = balanced(scores)
    for dim in (1, 2):
        torch.testing.assert_close(p.sum(dim), torch.ones(3, 6), atol=0.05, rtol=0)
    torch.testing.assert_close(balanced(scores.transpose(1, 2)), p.transpose(1, 2))
    assert balanced(1e4 * scores).isfinite().all()


def test_graphs_of_many_pairs_are_encoded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    check_graphs_are_encoded_once(edit_matcher(), some_graphs([1, 2, 9, 40]), monkeypatch, 1e-3)


def test_pairs_of_distinct_graphs_are_those_of_copies() -> None:
    model, graphs = edit_matcher(), some_graphs([3, 5, 2])
    pairs = [(graphs[0], graphs[1]), (graphs[2], graphs[0]), (graphs[1], graphs[1])]
    with torch.no_grad():
        outputs = vars(model(PairBatch.pack(pairs))), vars(model(PairBatch.pack_distinct(pairs)))
    for name, ours in outputs[0].items():
        torch.testing.assert_close(ours, outputs[1][name], rtol=1e-4, atol=1e-4)


def test_it_starts_from_an_embedder() -> None:
    """Encoder and steps come over; what it compares with stays its own."""
    embedder = make_model(ModelConfig.named("gnn", **OPTIONS), seed=1, double=False)
    assert isinstance(embedder, GraphEmbedder)
    model = edit_matcher(seed=2)
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    model.start_from(embedder)
    for name, tensor in model.state_dict().items():
        comes_over = name.startswith("network.")
        expected = embedder.state_dict()[name] if comes_over else before[name]
        assert torch.equal(tensor, expected), name


def test_the_assignment_is_shown_both_ways() -> None:
    model, (left, right) = edit_matcher(), some_graphs([3, 7])
    maps, swapped = model.explain(left, right), model.explain(right, left)
    assert [m[0].shape for m in (maps.left_to_right, maps.right_to_left)] == [(3, 7), (7, 3)]
    for weights in (*maps.left_to_right, *maps.right_to_left):
        np.testing.assert_allclose(weights.sum(axis=1), 1, atol=1e-4)
    np.testing.assert_allclose(maps.left_to_right[0], swapped.right_to_left[0], atol=1e-4)
    assert maps.score == pytest.approx(float(model.predict([(left, right)])[0]), rel=1e-3)
    assert len(model.match(left, right)) == 3


def test_a_mean_is_of_the_nodes_of_both() -> None:
    counted, shared = edit_matcher(), edit_matcher(alignment_pool="mean")
    graphs = some_graphs([3, 7, 5])
    pairs = [(graphs[0], graphs[1]), (graphs[1], graphs[2])]
    expected = counted.predict(pairs) / [5, 6]
    np.testing.assert_allclose(shared.predict(pairs), expected, rtol=1e-4)


def test_embedders_have_no_assignment() -> None:
    with pytest.raises(ConfigError, match="compares nodes; set matching=True"):
        ModelConfig(similarity="edits")
    with pytest.raises(ConfigError, match="alignment_rounds must be at least 1, got 0"):
        ModelConfig(alignment_rounds=0)
