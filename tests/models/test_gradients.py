"""Gradients as optimisers handle them: accumulated, scaled in place, and parameters changed."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from graphkin.graphs import PairBatch
from graphkin.models import GraphEmbedder, GraphMatcher, ModelConfig
from tests.models.samples import SMALL, make_model, random_pairs

Model = GraphEmbedder | GraphMatcher

DENSE: dict[str, Any] = {
    "node_input": "dense",
    "node_input_size": 3,
    "edge_input": "dense",
    "edge_input_size": 2,
}
MODELS: dict[str, dict[str, Any]] = {
    "gnn": {},
    "gnn of features": DENSE,
    "gnn of unshared steps": {"shared": False},
    "gnn with lstm": {"node_update": "lstm", "message_aggregation": "mean"},
    "gmn": {"matching": True},
    "gmn of features": {**DENSE, "matching": True},
    "gmn with projections": {"matching": True, "attention_projections": True},
    "gcn": {"propagation": "convolution"},
    "siamese": {"similarity": "siamese"},
}


@pytest.fixture(params=MODELS)
def model(request: pytest.FixtureRequest) -> Model:
    return make_model(ModelConfig.from_dict({**SMALL, **MODELS[request.param]}))


def loss(model: Model, seed: int = 0) -> Tensor:
    return model(PairBatch.pack(random_pairs(model.config, seed=seed))).scores.sum()


def fresh(model: Model, seed: int = 0) -> dict[str, Tensor]:
    """Gradients of one batch, each in memory of its own."""
    names, parameters = zip(*model.named_parameters(), strict=True)
    gradients = torch.autograd.grad(loss(model, seed), parameters, materialize_grads=True)
    return {name: g.clone() for name, g in zip(names, gradients, strict=True)}


def assert_gradients(model: Model, expected: dict[str, Tensor]) -> None:
    for name, parameter in model.named_parameters():
        got = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
        torch.testing.assert_close(
            got,
            expected[name],
            rtol=1e-9,
            atol=1e-9,
            msg=lambda text, name=name: f"gradient of {name}: {text}",
        )


def test_two_backward_passes_add_up(model: Model) -> None:
    first, second = fresh(model, 1), fresh(model, 2)
    loss(model, 1).backward()
    loss(model, 2).backward()
    assert_gradients(model, {name: first[name] + second[name] for name in first})


def test_clipping_scales_every_gradient_once(model: Model) -> None:
    expected = fresh(model)
    total = torch.stack([g.square().sum() for g in expected.values()]).sum().sqrt()
    loss(model).backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), float(total) / 8)
    for name, gradient in expected.items():
        expected[name] = gradient / 8
    for name, parameter in model.named_parameters():
        if parameter.grad is not None:
            torch.testing.assert_close(parameter.grad, expected[name], rtol=1e-5, atol=1e-9)


def test_gradients_set_to_zero_stay_usable(model: Model) -> None:
    expected = fresh(model)
    loss(model, 3).backward()
    model.zero_grad(set_to_none=False)
    loss(model).backward()
    assert_gradients(model, expected)


def test_a_parameter_changed_before_the_backward_pass_gives_no_wrong_gradient(
    model: Model,
) -> None:
    """Torch refuses where it would need the old value; a right gradient is just as good."""
    expected = fresh(model)
    names, parameters = zip(*model.named_parameters(), strict=True)
    wrong: dict[str, list[str]] = {}
    for changed, parameter in model.named_parameters():
        value, kept = loss(model), parameter.detach().clone()
        with torch.no_grad():
            parameter.add_(0.5)
        try:
            actual = torch.autograd.grad(value, parameters, materialize_grads=True)
        except RuntimeError as error:
            if "inplace" not in str(error):
                raise
            actual = tuple(expected.values())
        with torch.no_grad():
            parameter.copy_(kept)
        pairs = zip(names, actual, strict=True)
        differing = [n for n, g in pairs if not torch.allclose(g, expected[n], rtol=1e-9)]
        if differing:
            wrong[changed] = differing
    assert wrong == {}
