"""Options beyond the paper's: each against a literal version, and all of them on the invariants."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn import functional

from graphkin.errors import ConfigError
from graphkin.graphs import Graph, GraphBatch, PairBatch
from graphkin.learning.datasets import ClassDataset
from graphkin.learning.recipes import assemble
from graphkin.models import GraphEmbedder, GraphMatcher, ModelConfig, build_model, load_model
from tests.graph_samples import circles
from tests.models.samples import SMALL

RNG = np.random.default_rng(0)
VARIANTS: list[dict[str, Any]] = [
    {"state_norm": "layer"},
    {"residual": True},
    {"message_layers": 3},
    {"message_layers": 2, "message_aggregation": "mean"},
    {"message_layers": 2, "message_norm": "graph"},
    {"edge_encoder": "mlp"},
    {"readout": "mean"},
    {"readout": "max"},
    {"dropout": 0.5},
    {"residual": True, "state_norm": "layer", "message_layers": 2, "edge_encoder": "mlp"},
]


def sample(nodes: int = 6, edges: int = 9) -> Graph:
    return Graph(
        nodes,
        RNG.integers(0, nodes, (edges, 2)),
        node_features=RNG.normal(size=(nodes, 3)),
        edge_features=RNG.normal(size=(edges, 2)),
    )


def config(name: str, **options: Any) -> ModelConfig:
    inputs = {"node_input": "dense", "node_input_size": 3}
    inputs |= {"edge_input": "dense", "edge_input_size": 2}
    return ModelConfig.named(name, **SMALL, **inputs, **options)


@pytest.mark.parametrize("options", VARIANTS)
def test_nothing_depends_on_the_order_of_nodes(options: dict[str, Any], tmp_path: Path) -> None:
    for name in ("gnn", "gmn"):
        model = build_model(config(name, **options)).eval()
        left, right = sample(), sample(5, 4)
        moved = left.permuted([3, 0, 5, 1, 4, 2])
        scores = model.predict([(left, right), (moved, right), (right, left)])
        assert np.allclose(scores, scores[0], rtol=1e-4, atol=1e-5)
        model.save_pretrained(tmp_path / name)
        again = load_model(tmp_path / name).predict([(left, right), (moved, right), (right, left)])
        assert np.array_equal(again, scores)
        output = model.train()(PairBatch.pack([(left, right)]))
        output.scores.sum().backward()
        assert all(p.grad is not None for p in model.parameters())


def test_further_layers_of_the_message_network() -> None:
    model = build_model(config("gnn", message_layers=2))
    graph = sample()
    batch = GraphBatch.pack([graph])
    step = model.network.steps[0]
    net = step.messages  # type: ignore[union-attr]
    with torch.no_grad():
        h = model.network.nodes(batch)
        edges = model.network.edges(batch)
        expected = torch.zeros(graph.num_nodes, SMALL["message_dim"])
        for row, (a, b) in enumerate(graph.edges.tolist()):
            for source, target in {(a, b), (b, a)}:
                hidden = net.receiver @ h[target] + net.sender @ h[source]
                hidden = (hidden + net.edge @ edges.vectors[row] + net.hidden_bias).relu()
                hidden = (net.further[0] @ hidden + net.further_biases[0]).relu()
                expected[target] += net.output @ hidden + net.output_bias
        actual = net(h, batch, batch.incoming, edges)
    assert torch.allclose(actual, expected, atol=1e-6)


def test_residual_steps_with_a_norm() -> None:
    plain = build_model(config("gnn"))
    model = build_model(config("gnn", residual=True, state_norm="layer"))
    batch = GraphBatch.pack([sample()])
    with torch.no_grad():
        h, edges = plain.network.nodes(batch), plain.network.edges(batch)
        updated, _ = plain.network.steps[0](h, None, batch, edges, ())
        ours, _ = model.network.steps[0](h, None, batch, edges, ())
        own = dict(model.network.steps[0].named_parameters())
        for name, tensor in plain.network.steps[0].named_parameters():
            assert torch.equal(own[name], tensor)
    assert torch.allclose(ours, functional.layer_norm(h + updated, h.shape[1:]), atol=1e-6)


@pytest.mark.parametrize(("readout", "pool"), [("mean", torch.mean), ("max", torch.amax)])
def test_readouts(readout: Any, pool: Any) -> None:
    model = GraphEmbedder(config("gnn", readout=readout))
    graphs = [sample(), sample(3, 2)]
    layer = model.network.aggregator
    with torch.no_grad():
        for graph, states in zip(graphs, model.encode_nodes(graphs), strict=True):
            pooled = pool(torch.from_numpy(states), 0)
            hidden = (layer.hidden @ pooled + layer.hidden_bias).relu()
            expected = layer.output @ hidden + layer.output_bias
            assert np.allclose(model.encode([graph])[0], expected.numpy(), atol=1e-5)


def test_an_edge_encoder_of_its_own() -> None:
    model = build_model(config("gnn", edge_encoder="mlp"))
    encoder, graph = model.network.edges, sample()
    with torch.no_grad():
        vectors = encoder(GraphBatch.pack([graph])).vectors
        hidden = (
            encoder.hidden @ torch.from_numpy(graph.edge_features[0].copy()) + encoder.hidden_bias
        ).relu()
        expected = encoder.output @ hidden + encoder.output_bias
    assert torch.allclose(vectors[0], expected, atol=1e-6)
    assert vectors.shape == (9, SMALL["node_dim"])


def test_dropout_is_of_training_alone(tmp_path: Path) -> None:
    model = GraphEmbedder(config("gnn", dropout=0.5))
    batch = PairBatch.pack([(sample(), sample())])
    with torch.no_grad():
        assert not torch.equal(model.train()(batch).left, model(batch).left)
        assert torch.equal(model.eval()(batch).left, model(batch).left)
    dataset = ClassDataset(*circles(40), evaluation_size=10)

    def run(name: str) -> Any:
        options = {**SMALL, "dropout": 0.3}
        training = {"steps": 6, "evaluate_every": 6, "batch_size": 4}
        made = assemble("gnn", dataset, recipe="paper", model_options=options, training=training)
        torch.manual_seed(len(name))
        made.train(tmp_path / name)
        return made.model.encode(dataset.graphs[:3])

    # What is dropped follows from the seed and the step, whatever was drawn before.
    assert np.array_equal(run("first"), run("the second"))


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"dropout": 1.0}, "dropout must lie in"),
        ({"message_layers": 0}, "message_layers must be at least 1"),
        ({"propagation": "convolution", "residual": True}, "are of message passing"),
        ({"matching": True, "similarity": "alignment", "dropout": 0.1}, "no readout"),
    ],
)
def test_what_is_refused(options: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        ModelConfig(**options)


def test_ones_own_encoder() -> None:
    """Any module with the same input and output may take the place of a part."""

    class Encoder(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = torch.nn.Parameter(torch.randn(4, 3))

        def forward(self, batch: GraphBatch) -> torch.Tensor:
            assert batch.node_features is not None
            return functional.linear(batch.node_features, self.weight).tanh()

    matcher = GraphMatcher(config("gmn"))
    matcher.network.nodes = Encoder()  # type: ignore[assignment]
    assert np.isfinite(matcher.predict([(sample(), sample())])).all()
