"""The configuration: the paper's defaults, and what is refused."""

from __future__ import annotations

import copy
import json
import math
from dataclasses import FrozenInstanceError, fields, replace
from typing import Any, get_args

import pytest

from graphkin.errors import ConfigError, ModelError
from graphkin.models import GraphEmbedder, GraphMatcher, ModelConfig
from graphkin.models import config as config_module
from graphkin.models.config import MODEL_NAMES


def test_defaults_are_those_of_the_paper() -> None:
    config = ModelConfig()
    assert (config.node_dim, config.message_dim, config.graph_dim, config.steps) == (32, 64, 128, 5)
    assert (config.node_update, config.message_aggregation) == ("gru", "sum")
    assert (config.similarity, config.attention_similarity) == ("euclidean", "euclidean")
    assert (config.node_input, config.edge_input) == ("constant", "constant")
    assert config.message_scale == 0.1
    assert config.shared
    assert not config.matching
    assert not config.attention_projections


@pytest.mark.parametrize(
    ("name", "differing"),
    [
        ("gnn", {}),
        ("gmn", {"matching": True}),
        ("gcn", {"propagation": "convolution"}),
        ("siamese-gnn", {"similarity": "siamese"}),
        ("siamese-gcn", {"propagation": "convolution", "similarity": "siamese"}),
        ("deepset", {"steps": 0}),
    ],
)
def test_named_models(name: str, differing: dict[str, Any]) -> None:
    assert ModelConfig.named(name) == ModelConfig(**differing)
    assert ModelConfig.named(name, node_dim=8).node_dim == 8
    assert name in MODEL_NAMES


def test_an_override_wins_over_the_name() -> None:
    assert ModelConfig.named("gmn", matching=False) == ModelConfig()


def test_an_unknown_name_is_refused_with_those_that_exist() -> None:
    with pytest.raises(ConfigError, match=r"unknown model 'gin'; choose one of gnn, gmn, gcn"):
        ModelConfig.named("gin")


def test_an_unknown_key_is_refused_by_name() -> None:
    with pytest.raises(ConfigError, match=r"'node_size'.*known: .*node_dim"):
        ModelConfig.from_dict({"node_size": 32})
    with pytest.raises(ConfigError, match="'node_size'"):
        ModelConfig.named("gnn", node_size=32)


CHOICES = {
    "propagation": config_module.Propagation,
    "similarity": config_module.Similarity,
    "node_update": config_module.NodeUpdate,
    "message_aggregation": config_module.MessageAggregation,
    "reverse_messages": config_module.ReverseMessages,
    "attention_similarity": config_module.AttentionSimilarity,
    "node_input": config_module.NodeInput,
    "edge_input": config_module.EdgeInput,
}


@pytest.mark.parametrize("name", CHOICES)
def test_every_choice_is_taken_and_others_are_refused(name: str) -> None:
    for value in get_args(CHOICES[name]):
        options = {name: value, "matching": value in ("alignment", "joint", "late", "edits")}
        if value == "late":
            options["propagation"] = "residual"
        assert getattr(ModelConfig(**options), name) == value
    for value in ("GRU ", "", None, 3, ["sum"]):
        with pytest.raises(ConfigError, match=f"{name} must be one of"):
            ModelConfig(**{name: value})


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"steps": -1}, "steps must be at least 0, got -1"),
        ({"steps": 2.0}, "steps must be of type int, got 2.0"),
        ({"steps": "5"}, "steps must be of type int, got '5'"),
        ({"steps": True}, "steps must be of type int, got True"),
        ({"steps": None}, "steps must be of type int, got None"),
        ({"node_dim": 0}, "node_dim must be at least 1, got 0"),
        ({"graph_dim": 0}, "graph_dim must be at least 1, got 0"),
        ({"message_dim": -3}, "message_dim must be at least 1, got -3"),
        ({"node_input_size": 0}, "node_input_size must be at least 1, got 0"),
        ({"edge_input_size": 0}, "edge_input_size must be at least 1, got 0"),
        ({"message_scale": 0}, "message_scale must be above 0, got 0"),
        ({"message_scale": -0.1}, "message_scale must be above 0, got -0.1"),
        ({"message_scale": math.nan}, "message_scale must be above 0, got nan"),
        ({"message_scale": math.inf}, "message_scale must be"),
        ({"message_scale": "0.1"}, "message_scale must be of type float, got '0.1'"),
        ({"alignment_sharpness": 0}, "alignment_sharpness must be above 0, got 0"),
        ({"matching": 1}, "matching must be of type bool, got 1"),
        ({"shared": "yes"}, "shared must be of type bool, got 'yes'"),
        ({"attention_projections": None}, "attention_projections must be of type bool, got None"),
        ({"similarity": "hamming", "graph_dim": 12}, "whole bytes, got 12"),
        ({"matching": True, "propagation": "convolution"}, "set propagation='message'"),
        ({"matching": True, "similarity": "siamese"}, "set matching=False"),
        ({"similarity": "alignment"}, "needs matching=True and at least 1 step"),
        ({"similarity": "joint"}, "needs matching=True and at least 1 step"),
        (
            {"similarity": "alignment", "matching": True, "steps": 0},
            "needs matching=True and at least 1 step",
        ),
        (
            {"propagation": "convolution", "message_norm": "graph"},
            "graph convolution has no messages to normalise",
        ),
        (
            {"propagation": "convolution", "reverse_messages": "separate"},
            "no separate weights for reversed edges",
        ),
    ],
    ids=str,
)
def test_refused(values: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        ModelConfig.from_dict(values)


def test_an_integer_will_do_for_a_float() -> None:
    assert ModelConfig(message_scale=1).message_scale == 1


def test_a_config_survives_json() -> None:
    config = ModelConfig.named("gmn", node_update="lstm", node_input="tokens", node_input_size=9)
    assert ModelConfig.from_dict(json.loads(json.dumps(config.to_dict()))) == config
    assert set(config.to_dict()) == {field.name for field in fields(ModelConfig)}


def test_a_config_cannot_be_changed() -> None:
    config = ModelConfig()
    with pytest.raises(FrozenInstanceError):
        config.steps = 3  # type: ignore[misc]


def test_each_class_takes_its_own_configs() -> None:
    with pytest.raises(ModelError, match="makes a GraphMatcher"):
        GraphEmbedder(ModelConfig.named("gmn"))
    with pytest.raises(ModelError, match="makes a GraphEmbedder"):
        GraphMatcher(ModelConfig.named("gnn"))


def test_the_message_mlp_starts_small() -> None:
    """Glorot x 0.1: uniform within 0.1 sqrt(6 / (fan in + fan out)) over the whole layer."""
    messages = GraphEmbedder(ModelConfig.named("gnn")).network.steps[0].messages
    first = 0.1 * math.sqrt(6 / (2 * 32 + 1 + 64))
    for weight in (messages.receiver, messages.sender, messages.edge):
        assert 0.8 * first < float(weight.detach().abs().max()) <= first
    second = 0.1 * math.sqrt(6 / (64 + 64))
    assert 0.9 * second < float(messages.output.detach().abs().max()) <= second
    assert not messages.hidden_bias.any()
    assert not messages.output_bias.any()


def test_other_weights_start_at_full_scale() -> None:
    model = GraphMatcher(ModelConfig.named("gmn"))
    update, aggregator = model.network.steps[0].update, model.network.aggregator
    inputs = math.sqrt(6 / (64 + 32 + 96))  # messages and matching vector are one input
    for weight in (update.input_weight, update.match_weight):
        assert 0.9 * inputs < float(weight.detach().abs().max()) <= inputs
    assert float(update.state_weight.detach().abs().max()) <= math.sqrt(6 / (32 + 96))
    # Gate and value are two layers that happen to lie in one array.
    gate = math.sqrt(6 / (32 + 128))
    assert 0.9 * gate < float(aggregator.nodes.detach().abs().max()) <= gate


@pytest.mark.parametrize(("shared", "sets"), [(True, 1), (False, 5)])
def test_shared_steps_have_one_set_of_parameters(shared: bool, sets: int) -> None:
    assert len(GraphEmbedder(ModelConfig(shared=shared)).network.steps) == sets
    deep_set = GraphEmbedder(ModelConfig(shared=shared, steps=0))
    assert len(deep_set.network.steps) == 0


def test_a_config_knows_what_was_named() -> None:
    assert ModelConfig(reverse_messages="none").explicit == {"reverse_messages"}
    strong = ModelConfig.named("gmn-strong", link="none")
    assert strong.explicit == {"link"}
    assert copy.deepcopy(strong).explicit == {"link"}
    # A copy names all options: those count that are not the default.
    assert "reverse_messages" not in replace(strong, node_dim=8).explicit
    assert {"node_dim", "similarity"} <= replace(strong, node_dim=8).explicit
