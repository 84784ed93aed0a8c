"""The results that are stored are those of the experiments as they stand."""

from __future__ import annotations

import json
from typing import Any

import pytest

from graphkin.research.reproduce.experiment import Experiment
from graphkin.research.reproduce.plan.experiments import all_experiments
from graphkin.research.reproduce.results import CHECKOUT

STORED = {path.stem: path for path in (CHECKOUT / "reproduce").glob("*-seed*.json")}
TRAINED = [
    experiment
    for experiment in all_experiments()
    if experiment.trained and experiment.name in STORED
]


def plain(value: Any) -> Any:
    """As JSON has it."""
    return json.loads(json.dumps(value))


def test_there_are_some() -> None:
    assert len(TRAINED) > 60


def test_every_stored_result_has_an_experiment() -> None:
    assert not STORED.keys() - {all_experiment.name for all_experiment in all_experiments()}


@pytest.mark.parametrize("experiment", TRAINED, ids=lambda experiment: experiment.name)
def test_a_stored_result_was_made_by_the_experiment_of_its_name(experiment: Experiment) -> None:
    """Where an experiment is changed, it has to be run again."""
    config = json.loads(STORED[experiment.name].read_text())["config"]
    said = {
        "model": experiment.model_options,
        "training": experiment.training,
        "task": experiment.task.options,
    }
    for table, options in said.items():
        actual = {name: config[table].get(name) for name in options}
        assert actual == plain(dict(options)), table
    for name in ("start", "join"):
        other = getattr(experiment, name)
        assert config.get(name) == (other and {"from": other.name})
