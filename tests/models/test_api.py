"""Embedders and matchers as their users meet them."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
import torch

from graphkin.errors import GraphError, ModelError
from graphkin.graphs import Graph, PairBatch
from graphkin.graphs import packing as packing_module
from graphkin.models import GraphEmbedder, GraphMatcher, ModelConfig, build_model
from graphkin.models import model as base_module
from graphkin.models.codes import hamming_distances
from graphkin.models.model import Ranked
from tests.models.literal import LiteralModel
from tests.models.samples import SMALL, make_model, random_graph, random_pairs

CHAIN = Graph(4, [(0, 1), (1, 2), (2, 3)])
RING = Graph(3, [(0, 1), (1, 2), (2, 0)])
DOT = Graph(1)
STAR = Graph(6, [(0, k) for k in range(1, 6)])
GRAPHS = [CHAIN, RING, DOT, STAR]


def embedder(name: str = "gnn", **options: Any) -> GraphEmbedder:
    model = make_model(ModelConfig.named(name, **{**SMALL, **options}), double=False)
    assert isinstance(model, GraphEmbedder)
    return model


def matcher(**options: Any) -> GraphMatcher:
    model = make_model(ModelConfig.named("gmn", **{**SMALL, **options}), double=False)
    assert isinstance(model, GraphMatcher)
    return model


def deep_set(**options: Any) -> GraphEmbedder:
    return embedder("deepset", **options, steps=0)


EMBEDDERS = ["gnn", "gcn", "siamese-gnn", "siamese-gcn"]


@pytest.mark.parametrize("name", EMBEDDERS)
def test_encode(name: str) -> None:
    model = embedder(name)
    vectors = model.encode(GRAPHS)
    assert vectors.shape == (4, 8)
    assert vectors.dtype == np.float32
    alone = np.concatenate([model.encode([graph]) for graph in GRAPHS])
    np.testing.assert_allclose(vectors, alone, rtol=1e-5, atol=1e-5)
    assert model.encode([]).shape == (0, 8)
    assert model.encode([]).dtype == np.float32


PREPARED: dict[str, dict[str, Any]] = {
    "gnn": {},
    "gmn": {"matching": True},
    "normalised": {"message_norm": "graph"},
    "both ways": {"reverse_messages": "shared"},
    "matcher of edge types": {
        "matching": True,
        "reverse_messages": "separate",
        "edge_input": "types",
        "edge_input_size": 2,
    },
    "convolution both ways": {"propagation": "convolution", "reverse_messages": "shared"},
}


@pytest.mark.parametrize("name", PREPARED)
def test_a_prepared_batch_holds_all_that_the_model_derives_from_it(name: str) -> None:
    model = make_model(ModelConfig.from_dict({**SMALL, **PREPARED[name]}), double=False)
    directed = model.config.reverse_messages != "none"
    batch = PairBatch.pack(random_pairs(model.config, directed=directed))
    assert model.prepare(batch) is batch
    before = {*vars(batch), *vars(batch.graphs)}
    model(batch)
    assert {*vars(batch), *vars(batch.graphs)} == before


def test_a_model_is_an_embedder_or_a_matcher() -> None:
    with pytest.raises(TypeError, match="abstract"):
        base_module.GraphModel(ModelConfig())  # type: ignore[abstract]


def test_the_paper_s_size_of_a_vector() -> None:
    assert GraphEmbedder(ModelConfig.named("gnn")).encode([RING]).shape == (1, 128)


def test_results_come_in_the_order_of_the_input(monkeypatch: pytest.MonkeyPatch) -> None:
    """Work is done in batches of similar size; nobody must notice."""
    rng = np.random.default_rng(0)
    config = ModelConfig()
    sizes = [9, 2, 7, 1, 8, 3, 3, 12]
    graphs = [random_graph(rng, config, n, 2 * n, directed=False) for n in sizes]
    pairs = list(zip(graphs, reversed(graphs), strict=True))
    one, two = embedder(), matcher()
    vectors, scores, matched = one.encode(graphs), one.predict(pairs), two.predict(pairs)
    monkeypatch.setattr(packing_module, "MAX_NODES_PER_BATCH", 10)
    close = {"rtol": 1e-4, "atol": 1e-4}
    np.testing.assert_allclose(one.encode(graphs), vectors, **close)
    np.testing.assert_allclose(one.predict(pairs), scores, **close)
    np.testing.assert_allclose(two.predict(pairs), matched, **close)
    monkeypatch.setattr(packing_module, "MAX_NODES_PER_BATCH", 1000)
    monkeypatch.setattr(packing_module, "MAX_GRAPHS_PER_BATCH", 2)
    np.testing.assert_allclose(one.encode(graphs), vectors, **close)
    np.testing.assert_allclose(two.predict(pairs), matched, **close)


def test_progress_reaches_the_total(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packing_module, "MAX_NODES_PER_BATCH", 4)
    told: list[tuple[int, int]] = []
    embedder().encode(GRAPHS, progress=lambda done, total: told.append((done, total)))
    assert [done for done, _ in told] == sorted({done for done, _ in told})
    assert told[-1] == (4, 4)
    told.clear()
    pairs = [(CHAIN, RING), (DOT, STAR)]
    matcher().predict(pairs, progress=lambda done, total: told.append((done, total)))
    assert told[-1] == (2, 2)


@pytest.mark.parametrize("name", EMBEDDERS)
def test_similarity_of_vectors_is_the_score_of_their_graphs(name: str) -> None:
    model = embedder(name)
    vectors = model.encode(GRAPHS)
    scores = model.similarity(vectors[:3], vectors)
    assert scores.shape == (3, 4)
    assert scores.dtype == np.float32
    pairs = [(a, b) for a in GRAPHS[:3] for b in GRAPHS]
    np.testing.assert_allclose(scores.ravel(), model.predict(pairs), rtol=1e-4, atol=1e-4)
    none = np.zeros((0, 8), dtype=np.float32)
    assert model.similarity(none, vectors).shape == (0, 4)
    assert model.similarity(vectors, none).shape == (4, 0)


def test_similarity_takes_vectors_of_the_model_s_width() -> None:
    model = embedder()
    good = np.zeros((2, 8), dtype=np.float32)
    for bad in (np.zeros((2, 7), np.float32), np.zeros(8, np.float32)):
        with pytest.raises(ModelError, match=r"shape \(N, 8\), got"):
            model.similarity(bad, good)
        with pytest.raises(ModelError, match=r"shape \(N, 8\), got"):
            model.similarity(good, bad)


@pytest.mark.parametrize("name", EMBEDDERS)
def test_similarity_takes_vectors_of_any_float_dtype(name: str) -> None:
    """A collection may have been kept in double or half precision."""
    model = embedder(name)
    vectors = model.encode(GRAPHS)
    expected = model.similarity(vectors, vectors)
    similarities = model.similarity(vectors.astype(np.float64), vectors.astype(np.float64))
    assert similarities.dtype == np.float32
    np.testing.assert_allclose(similarities, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", [*EMBEDDERS, "gmn"])
def test_a_model_in_double_precision_predicts(name: str) -> None:
    model = matcher() if name == "gmn" else embedder(name)
    pairs = [(CHAIN, RING), (RING, STAR)]
    expected = model.predict(pairs)
    scores = model.double().predict(pairs)
    assert scores.dtype == np.float32
    np.testing.assert_allclose(scores, expected, rtol=1e-3, atol=1e-4)


def test_codes_are_the_signs_of_the_vectors() -> None:
    model = embedder(similarity="hamming", graph_dim=16)
    vectors, codes = model.encode(GRAPHS), model.codes(GRAPHS)
    assert codes.shape == (4, 2)
    assert codes.dtype == np.uint8
    signs = vectors > 0
    expected = (signs[:, None, :] != signs[None, :, :]).sum(axis=2)
    np.testing.assert_array_equal(hamming_distances(codes, codes), expected)
    assert model.codes([]).shape == (0, 2)


def test_codes_are_for_hamming_models() -> None:
    with pytest.raises(ModelError, match="this one is euclidean"):
        embedder().codes(GRAPHS)


@pytest.mark.parametrize("model", [embedder(), embedder("siamese-gnn"), matcher()], ids=str)
def test_predict(model: GraphEmbedder | GraphMatcher) -> None:
    scores = model.predict([(CHAIN, RING), (RING, CHAIN), (STAR, STAR)])
    assert scores.shape == (3,)
    assert scores.dtype == np.float32
    assert scores[0] == pytest.approx(scores[1], rel=1e-4)
    empty = model.predict([])
    assert empty.shape == (0,)
    assert empty.dtype == np.float32


@pytest.mark.parametrize("model", [embedder(), matcher()], ids=["embedder", "matcher"])
@pytest.mark.parametrize("size", [0, 1, 3])
def test_a_pair_holds_two_graphs(model: GraphEmbedder | GraphMatcher, size: int) -> None:
    with pytest.raises(GraphError, match=f"pair 1 holds {size} graphs, not 2"):
        model.predict([(CHAIN, RING), (CHAIN, RING, DOT)[:size]])  # type: ignore[list-item]


def test_no_prediction_tracks_gradients() -> None:
    model = matcher()
    model.predict([(CHAIN, RING)])
    model.explain(CHAIN, RING)
    assert all(parameter.grad is None for parameter in model.parameters())


@pytest.mark.parametrize("model", [embedder(), matcher()], ids=["embedder", "matcher"])
def test_rank(model: GraphEmbedder | GraphMatcher) -> None:
    ranking = model.rank(RING, GRAPHS)
    assert [type(entry) for entry in ranking] == [Ranked] * 4
    assert ranking[0].index == 1
    scores = [entry.score for entry in ranking]
    assert scores == sorted(scores, reverse=True)
    expected = model.predict([(RING, graph) for graph in GRAPHS])
    for entry in ranking:
        assert entry.score == pytest.approx(float(expected[entry.index]))
    assert [entry.index for entry in model.rank(RING, GRAPHS, top_k=2)] == [
        entry.index for entry in ranking[:2]
    ]
    assert len(model.rank(RING, GRAPHS, top_k=99)) == 4
    assert model.rank(RING, []) == []
    for top_k in (0, -1):
        with pytest.raises(ModelError, match=f"top_k must be at least 1, got {top_k}"):
            model.rank(RING, GRAPHS, top_k=top_k)


def test_equal_candidates_keep_their_order() -> None:
    ranking = embedder().rank(RING, [CHAIN, RING, CHAIN, RING])
    assert [entry.index for entry in ranking] == [1, 3, 0, 2]


# Attention.

PAIRS = {"larger first": (CHAIN, RING), "smaller first": (RING, CHAIN), "equal": (STAR, STAR)}


@pytest.mark.parametrize("pair", PAIRS.values(), ids=PAIRS)
@pytest.mark.parametrize(
    "options",
    [{}, {"attention_similarity": "cosine"}, {"attention_projections": True, "shared": False}],
    ids=str,
)
def test_explain(pair: tuple[Graph, Graph], options: dict[str, Any]) -> None:
    left, right = pair
    model = make_model(ModelConfig.named("gmn", **SMALL, **options))
    assert isinstance(model, GraphMatcher)
    maps = model.explain(left, right)
    assert maps.steps == 2
    assert len(maps.left_to_right) == len(maps.right_to_left) == 3
    literal = LiteralModel(model)
    for t in range(3):
        there, back = maps.left_to_right[t], maps.right_to_left[t]
        assert there.shape == (left.num_nodes, right.num_nodes)
        assert back.shape == (right.num_nodes, left.num_nodes)
        np.testing.assert_allclose(there.sum(axis=1), 1.0, rtol=1e-5)
        np.testing.assert_allclose(back.sum(axis=1), 1.0, rtol=1e-5)
        x, y = literal.states(left, right, t)
        step = literal.step(min(t, 1))  # after the last step, the last step's view
        for actual, nodes, others in ((there, x, y), (back, y, x)):
            rows = [torch.stack(literal.attention(step, h, others)) for h in nodes]
            np.testing.assert_allclose(actual, torch.stack(rows).detach().numpy(), atol=1e-6)
    assert maps.score == pytest.approx(float(model.predict([pair])[0]), rel=1e-5)


def test_attention_maps_are_single_precision() -> None:
    for model in (matcher(), matcher().double()):
        maps = model.explain(CHAIN, RING)
        assert {m.dtype for m in maps.left_to_right + maps.right_to_left} == {np.dtype("f4")}


def test_nodes_look_at_their_likes() -> None:
    """Two graphs with the same two kinds of nodes, told apart by their features."""
    model = make_model(
        ModelConfig.named("gmn", **SMALL, node_input="dense", node_input_size=2), scale=2.0
    )
    assert isinstance(model, GraphMatcher)
    left = Graph(2, node_features=[[5.0, 0.0], [0.0, 5.0]])
    right = Graph(3, node_features=[[0.0, 5.0], [5.0, 0.0], [0.0, 5.0]])
    maps = model.explain(left, right)
    there, back = maps.left_to_right[0], maps.right_to_left[0]
    np.testing.assert_allclose(there, [[0, 1, 0], [0.5, 0, 0.5]], atol=1e-3)
    np.testing.assert_allclose(back, [[0, 1], [1, 0], [0, 1]], atol=1e-3)


def test_a_model_without_steps_has_nothing_to_explain() -> None:
    with pytest.raises(ModelError, match="0 propagation steps"):
        matcher(steps=0).explain(CHAIN, RING)


# Unrolling.


def test_unrolling_from_five_steps_to_nine() -> None:
    """A shared model of T=5 run for 9 steps is the model of T=9 with the same parameters."""
    for short, long in (
        (embedder(steps=5), embedder(steps=9)),
        (matcher(steps=5), matcher(steps=9)),
    ):
        long.load_state_dict(short.state_dict())
        pairs = [(CHAIN, RING), (STAR, DOT)]
        expected = long.predict(pairs)
        np.testing.assert_allclose(short.predict(pairs, steps=9), expected, rtol=1e-5)
        assert np.abs(short.predict(pairs) - expected).max() > 1e-3
    maps = matcher(steps=5).explain(CHAIN, RING, steps=9)
    assert len(maps.left_to_right) == len(maps.right_to_left) == 10
    vectors = embedder(steps=5).encode([RING], steps=9)
    np.testing.assert_allclose(vectors, embedder(steps=9).encode([RING]), rtol=1e-5)


def test_zero_steps_of_a_shared_model_ignore_edges() -> None:
    model = embedder()
    vectors = model.encode([CHAIN, Graph(4)], steps=0)
    np.testing.assert_array_equal(vectors[0], vectors[1])


@pytest.mark.parametrize("name", ["gnn", "gcn"])
def test_only_shared_parameters_unroll(name: str) -> None:
    model = embedder(name, shared=False)
    assert model.encode([RING], steps=2).shape == (1, 8)
    with pytest.raises(ModelError, match="exactly 2 steps, got steps=3"):
        model.encode([RING], steps=3)
    with pytest.raises(ModelError, match="exactly 0 steps, got steps=1"):
        deep_set().encode([RING], steps=1)
    with pytest.raises(ModelError, match="at least 0, got -1"):
        embedder(name).predict([(RING, CHAIN)], steps=-1)


# Input that does not fit.

FEATURES = Graph(2, [(0, 1)], node_features=[[1.0, 2.0], [3.0, 4.0]])
TOKENS = Graph(2, [(0, 1)], node_tokens=[[0, 2], []])
WEIGHTED = Graph(2, [(0, 1)], edge_features=[[0.5]])
TYPED = Graph(2, [(0, 1)], edge_types=[2])


@pytest.mark.parametrize(
    ("options", "graph", "message"),
    [
        ({}, FEATURES, "takes constant node input, the graphs have dense"),
        ({}, TOKENS, "takes constant node input, the graphs have tokens"),
        ({"node_input": "dense"}, RING, "takes dense node input, the graphs have constant"),
        ({"node_input": "tokens"}, FEATURES, "takes tokens node input, the graphs have dense"),
        ({"node_input": "dense", "node_input_size": 3}, FEATURES, "takes 3 node features, .* 2"),
        ({"node_input": "tokens", "node_input_size": 2}, TOKENS, "token id 2 .* vocabulary of 2"),
        ({}, WEIGHTED, "takes constant edge input, the graphs have dense"),
        ({}, TYPED, "takes constant edge input, the graphs have types"),
        ({"edge_input": "types"}, WEIGHTED, "takes types edge input, the graphs have dense"),
        ({"edge_input": "dense"}, RING, "takes dense edge input, the graphs have constant"),
        ({"edge_input": "dense", "edge_input_size": 2}, WEIGHTED, "takes 2 edge features, .* 1"),
        ({"edge_input": "types", "edge_input_size": 2}, TYPED, "edge type 2 .* 2 types"),
        ({"reverse_messages": "shared"}, RING, "reverse messages, which are for directed graphs"),
        ({"reverse_messages": "separate"}, RING, "reverse messages, which are for directed graphs"),
    ],
    ids=str,
)
def test_graphs_of_another_kind_are_refused(
    options: dict[str, Any], graph: Graph, message: str
) -> None:
    with pytest.raises(GraphError, match=message):
        embedder(**options).encode([graph])
    with pytest.raises(GraphError, match=message):
        matcher(**options).predict([(graph, graph)])
    with pytest.raises(GraphError, match=message):
        matcher(**options).explain(graph, graph)


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (FEATURES, "node_kind"),
        (TYPED, "edge_kind"),
        (Graph(2, [(0, 1)], directed=True), "directed"),
    ],
    ids=["nodes", "edges", "direction"],
)
def test_a_mixture_of_kinds_is_refused(other: Graph, message: str) -> None:
    with pytest.raises(GraphError, match=f"has {message} .*; a batch takes one kind"):
        embedder().encode([RING, other])
    with pytest.raises(GraphError, match=f"has {message} .*; a batch takes one kind"):
        matcher().predict([(RING, other)])


def test_the_last_id_of_a_vocabulary_is_taken() -> None:
    assert np.isfinite(embedder(node_input="tokens", node_input_size=3).encode([TOKENS])).all()
    assert np.isfinite(embedder(edge_input="types", edge_input_size=3).encode([TYPED])).all()


def test_nodes_without_tokens() -> None:
    model = embedder(node_input="tokens", node_input_size=3)
    silent = Graph(3, [(0, 1)], node_tokens=[[], [], []])
    assert np.isfinite(model.encode([silent])).all()
    assert np.isfinite(model.encode([silent, TOKENS])).all()


def test_convolution_and_deep_set_do_not_look_at_edge_input() -> None:
    for model in (embedder("gcn"), deep_set()):
        plain = model.encode([Graph(2, [(0, 1)])])
        np.testing.assert_allclose(model.encode([TYPED]), plain, rtol=1e-6)


def test_matching_needs_each_graph_in_one_pair() -> None:
    packed = PairBatch.pack([(CHAIN, RING)]).graphs
    twice = PairBatch(packed, torch.tensor([0, 0]), torch.tensor([1, 1]))
    with pytest.raises(GraphError, match="exactly one pair"):
        matcher()(twice)


# Torch around the models.


def test_a_copy_is_independent() -> None:
    model = matcher()
    before = model.predict([(CHAIN, RING)])
    twin = copy.deepcopy(model)
    for parameter in twin.parameters():
        torch.nn.init.zeros_(parameter)
    np.testing.assert_array_equal(model.predict([(CHAIN, RING)]), before)


AUTOCAST: dict[str, dict[str, Any]] = {
    "gnn": {},
    "gmn": {"matching": True},
    "gmn with cosine": {"matching": True, "attention_similarity": "cosine"},
    "gmn with projections": {"matching": True, "attention_projections": True},
    "gcn": {"propagation": "convolution"},
    "siamese": {"similarity": "siamese"},
    "hamming": {"similarity": "hamming"},
    "mean, mlp": {"message_aggregation": "mean", "node_update": "mlp"},
    "max, rnn": {"message_aggregation": "max", "node_update": "rnn"},
    "attention, lstm": {"message_aggregation": "attention", "node_update": "lstm"},
}


@pytest.mark.parametrize("name", AUTOCAST)
@pytest.mark.parametrize("where", ["outside", "inside"])
def test_bfloat16_autocast(name: str, where: str) -> None:
    """Close to single precision, with the backward pass inside the context or after it."""
    config = ModelConfig.from_dict({**SMALL, **AUTOCAST[name]})
    model = make_model(config, scale=0.3, double=False)
    batch = PairBatch.pack(random_pairs(config, "uneven"))
    exact = model(batch)
    exact.left.sum().backward()
    slopes = {n: p.grad.clone() for n, p in model.named_parameters() if p.grad is not None}
    model.zero_grad()
    with torch.autocast("cpu", torch.bfloat16):
        output = model(batch)
        if where == "inside":
            output.left.float().sum().backward()
    if where == "outside":
        output.left.float().sum().backward()
    scale = float(exact.left.detach().abs().max())
    torch.testing.assert_close(output.left.float(), exact.left, rtol=0.05, atol=0.05 * scale)
    got = [model.get_parameter(parameter_name).grad for parameter_name in slopes]
    assert {slope.dtype for slope in got if slope is not None} == {torch.float32}
    error = torch.cat([(a - b).flatten() for a, b in zip(got, slopes.values(), strict=True)])
    assert error.norm() < 0.15 * torch.cat([slope.flatten() for slope in slopes.values()]).norm()


@pytest.mark.parametrize("name", AUTOCAST)
def test_predictions_under_autocast_are_arrays_of_single_precision(name: str) -> None:
    config = ModelConfig.from_dict({**SMALL, **AUTOCAST[name]})
    model = make_model(config, scale=0.3, double=False)
    with torch.autocast("cpu", torch.bfloat16):
        assert model.predict([(CHAIN, RING)]).dtype == np.float32
        if isinstance(model, GraphMatcher):
            assert model.explain(CHAIN, RING).left_to_right[0].dtype == np.float32
        else:
            vectors = model.encode(GRAPHS)
            assert vectors.dtype == np.float32
            assert model.similarity(vectors, vectors).dtype == np.float32


@pytest.mark.parametrize("model", [embedder(steps=1), matcher(steps=1)], ids=["gnn", "gmn"])
def test_torch_compile(model: GraphEmbedder | GraphMatcher) -> None:
    """Traced without code generation, which is torch's own business and takes minutes."""
    batch = PairBatch.pack([(CHAIN, RING), (STAR, DOT)])
    expected = model(batch).scores
    expected_slopes = torch.autograd.grad(expected.sum(), list(model.parameters()))
    torch._dynamo.reset()
    output = torch.compile(model, backend="eager")(batch).scores
    torch.testing.assert_close(output, expected, rtol=1e-4, atol=1e-5)
    slopes = torch.autograd.grad(output.sum(), list(model.parameters()))
    for got, want in zip(slopes, expected_slopes, strict=True):
        torch.testing.assert_close(got, want, rtol=1e-3, atol=1e-4)


NOT_GRAPHS: list[tuple[str, Any]] = [
    ("one graph", Graph(2)),
    ("nothing", [None]),
    ("a pair among graphs", [(Graph(2), Graph(2))]),
]


@pytest.mark.parametrize(("what", "value"), NOT_GRAPHS)
def test_what_is_no_list_of_graphs_is_refused(what: str, value: Any) -> None:
    with pytest.raises(GraphError):
        GraphEmbedder(ModelConfig.named("gnn", **SMALL)).encode(value)


@pytest.mark.parametrize("value", [[Graph(2), Graph(2)], [(Graph(2), None)]])
@pytest.mark.parametrize("name", ["gnn", "gmn"])
def test_what_is_no_list_of_pairs_is_refused(name: str, value: Any) -> None:
    with pytest.raises(GraphError):
        build_model(ModelConfig.named(name, **SMALL)).predict(value)


def test_errors_name_the_graph_by_its_place_in_the_list() -> None:
    embedder = GraphEmbedder(ModelConfig.named("gnn", **SMALL))
    graphs = [*[Graph(2)] * 2000, Graph(1, directed=True)]
    with pytest.raises(GraphError, match="graph 2000 of the batch has directed True"):
        embedder.encode(graphs)


def test_rank_and_codes_unroll() -> None:
    ring, chain = Graph(4, [(0, 1), (1, 2), (2, 3), (3, 0)]), Graph(4, [(0, 1), (1, 2), (2, 3)])
    embedder = build_model(ModelConfig.named("gnn", similarity="hamming", **SMALL))
    assert isinstance(embedder, GraphEmbedder)
    (best,) = embedder.rank(ring, [chain], steps=9)
    assert best.score == pytest.approx(float(embedder.predict([(ring, chain)], steps=9)[0]))
    assert np.array_equal(embedder.codes([ring], steps=0), embedder.codes([chain], steps=0))
    with pytest.raises(ModelError, match="top_k"):
        embedder.rank(ring, [chain], top_k=1.5)  # type: ignore[arg-type]
