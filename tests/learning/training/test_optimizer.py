"""The flat optimiser against torch's, step by step in double precision."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from graphkin.learning.training import TrainConfig
from graphkin.learning.training.optimizer import FlatOptimizer

RATES = [0.1, 0.05, 0.2, 0.01, 0.1, 0.1, 0.03, 0.0]


def network() -> nn.Module:
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.Linear(5, 2)).double()


def loss_of(module: nn.Module, step: int) -> Tensor:
    """Large at some steps and small at others, so that some gradients are clipped."""
    generator = torch.Generator().manual_seed(step)
    inputs = torch.randn(4, 3, generator=generator, dtype=torch.float64)
    output: Tensor = module(inputs)
    return output.square().sum() * 10.0 ** (step % 3 - 1)


def torch_steps(config: TrainConfig, *, clip: str) -> list[list[Tensor]]:
    """The parameters after each step with torch's own optimiser."""
    module = network()
    kind = torch.optim.Adam if config.optimizer == "adam" else torch.optim.AdamW
    reference = kind(module.parameters(), lr=1.0, weight_decay=config.weight_decay)
    history = []
    for step, rate in enumerate(RATES):
        reference.zero_grad()
        loss_of(module, step).backward()
        if clip == "torch":
            nn.utils.clip_grad_norm_(module.parameters(), config.clip)
        else:
            norm = math.sqrt(sum(float(p.grad.square().sum()) for p in module.parameters()))
            for parameter in module.parameters():
                parameter.grad.mul_(min(1.0, config.clip / norm))
        reference.param_groups[0]["lr"] = rate
        reference.step()
        history.append([parameter.detach().clone() for parameter in module.parameters()])
    return history


def flat_steps(config: TrainConfig) -> list[list[Tensor]]:
    module = network()
    optimizer = FlatOptimizer(module, config)
    history = []
    for step, rate in enumerate(RATES):
        optimizer.zero_grad()
        loss_of(module, step).backward()
        assert optimizer.step(rate)
        history.append([parameter.detach().clone() for parameter in module.parameters()])
    return history


def furthest(left: list[list[Tensor]], right: list[list[Tensor]]) -> float:
    return max(
        float((a - b).abs().max())
        for x, y in zip(left, right, strict=True)
        for a, b in zip(x, y, strict=True)
    )


@pytest.mark.parametrize("name", ["adam", "adamw"])
@pytest.mark.parametrize("decay", [0.0, 0.1])
@pytest.mark.parametrize("clip", [0.5, math.inf])
def test_each_step_is_that_of_torch(name: Any, decay: float, clip: float) -> None:
    config = TrainConfig(optimizer=name, weight_decay=decay, clip=clip)
    actual = flat_steps(config)
    assert furthest(actual, torch_steps(config, clip="exact")) < 1e-12
    # torch's clipping divides by the norm + 1e-6.
    assert furthest(actual, torch_steps(config, clip="torch")) < 1e-5


def test_clipping_bounds_the_norm_of_all_gradients_together() -> None:
    module = network()
    optimizer = FlatOptimizer(module, TrainConfig(clip=0.25))
    loss_of(module, 2).backward()
    before = [parameter.grad.clone() for parameter in module.parameters()]
    norm = math.sqrt(sum(float(grad.square().sum()) for grad in before))
    assert norm > 1
    optimizer.step(0.0)
    for parameter, grad in zip(module.parameters(), before, strict=True):
        assert torch.allclose(parameter.grad, grad * 0.25 / norm, rtol=1e-12)


def test_parameters_and_gradients_are_views_of_the_flat_arrays() -> None:
    module = network()
    names = {name: tensor.clone() for name, tensor in module.state_dict().items()}
    optimizer = FlatOptimizer(module, TrainConfig())
    assert all(torch.equal(names[name], tensor) for name, tensor in module.state_dict().items())
    optimizer.flat.fill_(2.0)
    optimizer.grad.fill_(3.0)
    assert all(bool((parameter == 2).all()) for parameter in module.parameters())
    assert all(bool((parameter.grad == 3).all()) for parameter in module.parameters())
    optimizer.zero_grad()
    assert all(bool((parameter.grad == 0).all()) for parameter in module.parameters())
    with torch.no_grad():
        next(module.parameters()).fill_(7.0)
    assert optimizer.flat[:15].tolist() == [7.0] * 15


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_a_gradient_that_is_no_number_changes_nothing(bad: float) -> None:
    module = network()
    optimizer = FlatOptimizer(module, TrainConfig())
    loss_of(module, 0).backward()
    assert optimizer.step(0.1)
    before = optimizer.flat.clone()
    state = {key: tensor.clone() for key, tensor in optimizer.state().items()}
    optimizer.grad[3] = bad
    assert not optimizer.step(0.1)
    assert torch.equal(optimizer.flat, before)
    assert all(torch.equal(state[key], tensor) for key, tensor in optimizer.state().items())


@pytest.mark.parametrize("name", ["adam", "adamw"])
@pytest.mark.parametrize("done", [0, 3])
def test_the_state_goes_on_where_it_was(name: Any, done: int) -> None:
    config = TrainConfig(optimizer=name, weight_decay=0.1, clip=0.5)
    first = network()
    optimizer = FlatOptimizer(first, config)
    for step in range(done):
        optimizer.zero_grad()
        loss_of(first, step).backward()
        optimizer.step(RATES[step])
    state = {key: tensor.clone() for key, tensor in optimizer.state().items()}
    second = network()
    second.load_state_dict(first.state_dict())
    resumed = FlatOptimizer(second, config)
    resumed.load_state(state)
    for step in range(done, len(RATES)):
        resumed.zero_grad()
        loss_of(second, step).backward()
        resumed.step(RATES[step])
    expected = flat_steps(config)[-1]
    assert all(torch.equal(a, b) for a, b in zip(second.parameters(), expected, strict=True))
