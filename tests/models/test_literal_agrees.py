"""The network that the benchmarks time us against computes exactly what ours computes."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from types import ModuleType

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from graphkin.graphs import Graph, PairBatch
from graphkin.models.config import ModelConfig
from graphkin.models.embedder import GraphEmbedder
from graphkin.models.matcher import GraphMatcher
from tests.paths import REPOSITORY

BENCHMARKS = REPOSITORY / "benchmarks"


def load_literal() -> ModuleType:
    spec = importlib.util.spec_from_file_location("literal", BENCHMARKS / "literal.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["literal"] = module
    spec.loader.exec_module(module)
    return module


literal = load_literal()


def random_graph(rng: np.random.Generator, nodes: int, p: float) -> Graph:
    larger, smaller = np.tril_indices(nodes, -1)
    present = rng.random(len(larger)) < p
    return Graph(nodes, np.stack([larger[present], smaller[present]], axis=1))


def uneven_batch() -> PairBatch:
    """Pairs of like and unlike size, one of them without edges, one of a single node."""
    rng = np.random.default_rng(0)
    sizes = [(20, 20), (20, 20), (1, 7), (50, 3), (6, 6), (33, 40)]
    pairs = [(random_graph(rng, n, 0.3), random_graph(rng, m, 0.5)) for n, m in sizes]
    pairs.append((Graph(5), Graph(4, [(0, 1), (2, 2)])))
    return PairBatch.pack(pairs)


def our_network(name: str) -> GraphEmbedder | GraphMatcher:
    """In double precision, with biases that are not zero."""
    config = ModelConfig.named(name)
    model = (GraphMatcher(config) if config.matching else GraphEmbedder(config)).double()
    generator = torch.Generator().manual_seed(1)
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.2, generator=generator)
    return model


def as_literal(
    model: GraphEmbedder | GraphMatcher, pick: Callable[[nn.Parameter], Tensor]
) -> dict[str, Tensor]:
    """Our parameters (or whatever ``pick`` takes of them) by their names in the literal network."""
    network = model.network
    step = network.steps[0]
    messages, update, aggregator = step.messages, step.update, network.aggregator
    update_inputs = [update.input_weight]
    if model.config.matching:
        update_inputs.append(update.match_weight)
    columns = {
        "node_encoder.weight": [network.nodes.weight],
        "node_encoder.bias": [network.nodes.bias],
        "message_net.0.weight": [messages.sender, messages.receiver, messages.edge],
        "message_net.0.bias": [messages.hidden_bias],
        "message_net.2.weight": [messages.output],
        "message_net.2.bias": [messages.output_bias],
        "node_update.weight_ih": update_inputs,
        "node_update.bias_ih": [update.input_bias],
        "node_update.weight_hh": [update.state_weight],
        "node_update.bias_hh": [update.state_bias],
        "gate_and_value.weight": [aggregator.nodes],
        "gate_and_value.bias": [aggregator.nodes_bias],
        "graph_net.0.weight": [aggregator.hidden],
        "graph_net.0.bias": [aggregator.hidden_bias],
        "graph_net.2.weight": [aggregator.output],
        "graph_net.2.bias": [aggregator.output_bias],
    }
    return {name: torch.cat([pick(p) for p in parts], dim=-1) for name, parts in columns.items()}


def literal_twin(model: GraphEmbedder | GraphMatcher) -> nn.Module:
    twin = literal.LiteralGraphNetwork(matching=model.config.matching).double()
    twin.load_state_dict(as_literal(model, lambda parameter: parameter.detach()))
    return twin


def literal_scores(twin: nn.Module, batch: PairBatch) -> Tensor:
    vectors = twin(literal.LiteralInputs.from_pairs(batch, dtype=torch.float64))
    return -literal.squared_distance(*literal.split_pairs(vectors))


@pytest.mark.parametrize("name", ["gnn", "gmn"])
def test_both_have_the_same_number_of_parameters(name: str) -> None:
    ours = our_network(name)
    assert count(ours) == count(literal_twin(ours))


def count(network: nn.Module) -> int:
    return sum(parameter.numel() for parameter in network.parameters())


@pytest.mark.parametrize("name", ["gnn", "gmn"])
def test_scores_and_gradients_agree(name: str) -> None:
    batch = uneven_batch()
    ours = our_network(name)
    theirs = literal_twin(ours)
    our_scores, their_scores = ours(batch).scores, literal_scores(theirs, batch)
    assert our_scores.abs().min() > 1e-3  # else any two networks would agree
    torch.testing.assert_close(our_scores, their_scores, rtol=1e-9, atol=1e-9)

    slopes = torch.linspace(-1.0, 1.0, batch.num_pairs, dtype=torch.float64)
    (our_scores * slopes).sum().backward()
    (their_scores * slopes).sum().backward()
    gradients = as_literal(ours, lambda parameter: parameter.grad)
    for parameter_name, parameter in theirs.named_parameters():
        torch.testing.assert_close(
            gradients[parameter_name],
            parameter.grad,
            rtol=1e-7,
            atol=1e-9,
            msg=lambda text, name=parameter_name: f"gradient of {name}: {text}",
        )


def test_a_partner_changes_the_literal_matching_network_only() -> None:
    chain, ring = Graph(3, [(0, 1), (1, 2)]), Graph(3, [(0, 1), (1, 2), (2, 0)])
    batch = PairBatch.pack([(chain, chain), (chain, ring)])
    inputs = literal.LiteralInputs.from_pairs(batch, dtype=torch.float64)
    embedding, matching = literal_twin(our_network("gnn")), literal_twin(our_network("gmn"))
    assert torch.allclose(embedding(inputs)[0], embedding(inputs)[2])
    assert not torch.allclose(matching(inputs)[0], matching(inputs)[2])
