"""What a training configuration takes, and the learning rates that it gives."""

from __future__ import annotations

import dataclasses
import math
from itertools import pairwise
from typing import Any

import pytest

from graphkin.errors import ConfigError
from graphkin.learning.training import TrainConfig


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("steps", 0),
        ("steps", -5),
        ("steps", 10.0),
        ("steps", "10"),
        ("steps", True),
        ("batch_size", 0),
        ("batch_size", None),
        ("mode", "quadruplets"),
        ("mode", 2),
        ("loss", "hinge"),
        ("margin", -0.1),
        ("margin", math.nan),
        ("margin", "0.1"),
        ("learning_rate", -1e-3),
        ("learning_rate", math.nan),
        ("learning_rate", math.inf),
        ("learning_rate", True),
        ("schedule", "linear"),
        ("warmup", -0.1),
        ("warmup", 1.0),
        ("warmup", math.nan),
        ("optimizer", "sgd"),
        ("weight_decay", -1.0),
        ("clip", -1.0),
        ("clip", math.nan),
        ("regularizer", -1e-6),
        ("seed", 1.5),
        ("seed", -1),
        ("seed", 2**63),
        ("evaluate_every", 0),
        ("report_every", 0),
        ("bf16", 1),
        ("compile", "yes"),
    ],
)
def test_bad_values_are_refused_by_name(key: str, value: Any) -> None:
    with pytest.raises(ConfigError, match=key) as caught:
        TrainConfig(**{key: value})
    assert str(value).strip("'") in str(caught.value)


def test_whole_numbers_serve_as_real_ones() -> None:
    config = TrainConfig(margin=1, learning_rate=1, clip=0, weight_decay=0, warmup=0)
    assert config.margin == 1
    assert config.learning_rate_at(0) == 1


def test_an_unknown_key_is_refused_by_name() -> None:
    with pytest.raises(ConfigError, match="unknown training option 'learning_rat'; known: steps"):
        TrainConfig.from_dict({"steps": 5, "learning_rat": 0.1})


def test_a_table_of_values() -> None:
    values = {"steps": 5, "mode": "triplets", "bf16": True, "margin": 0.25}
    config = TrainConfig.from_dict(values)
    assert config == TrainConfig(steps=5, mode="triplets", bf16=True, margin=0.25)
    assert TrainConfig.from_dict(dataclasses.asdict(config)) == config


def test_a_configuration_does_not_change() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        TrainConfig().steps = 5


def rates(config: TrainConfig) -> list[float]:
    return [config.learning_rate_at(step) for step in range(config.steps)]


def test_constant_schedule() -> None:
    config = TrainConfig(steps=20, learning_rate=0.3, schedule="constant", warmup=0.5)
    assert rates(config) == [0.3] * 20


@pytest.mark.parametrize("schedule", ["cosine", "onecycle"])
@pytest.mark.parametrize("warmup", [0.0, 0.1, 0.33, 0.9])
@pytest.mark.parametrize("steps", [1, 2, 7, 200])
def test_schedules_rise_and_fall(schedule: Any, warmup: float, steps: int) -> None:
    config = TrainConfig(steps=steps, learning_rate=0.3, schedule=schedule, warmup=warmup)
    course = rates(config)
    assert all(0 < rate <= 0.3 for rate in course)
    rise = math.ceil(warmup * steps)
    assert all(a < b for a, b in pairwise(course[:rise]))
    assert all(a > b for a, b in pairwise(course[rise:]))


@pytest.mark.parametrize(("schedule", "floor"), [("cosine", 0.01), ("onecycle", 0.0001)])
def test_shape_of_the_schedules(schedule: Any, floor: float) -> None:
    config = TrainConfig(steps=1000, learning_rate=2.0, schedule=schedule, warmup=0.2)
    course = rates(config)
    # A straight line up to step 200, where the top is; then half a cosine down to the floor.
    assert course[:200] == pytest.approx([2.0 * (step + 1) / 201 for step in range(200)])
    assert course[200] == 2.0
    assert max(course) == course[200]
    assert course[600] == pytest.approx(2.0 * (1 + floor) / 2)
    assert course[-1] == pytest.approx(2.0 * floor, abs=2e-5)


def test_a_rate_depends_on_the_step_alone() -> None:
    config = TrainConfig(steps=50)
    forward = rates(config)
    backward = [TrainConfig(steps=50).learning_rate_at(step) for step in reversed(range(50))]
    assert forward == backward[::-1]
