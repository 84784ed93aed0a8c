"""A run is made of a model's name, a task, its recipe, a model to start from, and options."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from graphkin.errors import ConfigError
from graphkin.graphs.vocabulary import Vocabulary
from graphkin.learning.recipes import assemble
from graphkin.learning.task import Recipe
from graphkin.models import ModelConfig, build_model, load_model
from graphkin.research.tasks.edits import EditTask

SMALL = {"node_dim": 8, "message_dim": 8, "graph_dim": 8, "steps": 2}
WORDS = Vocabulary(("mov", "ret"))


class TokenTask(EditTask):
    """A task with a recipe and words."""

    def recipe(self, model: str, kind: str = "paper") -> Recipe:
        options: dict[str, Any] = {"node_input": "tokens", "node_input_size": 3, "node_dim": 16}
        return Recipe(options, {"steps": 7, "margin": 0.5}, WORDS)


def test_options_go_over_the_start_and_that_over_the_recipe() -> None:
    task = TokenTask()
    first = assemble("gnn", task, model_options={"graph_dim": 16, "message_norm": "graph"})
    assert first.model.config == ModelConfig(
        node_input="tokens", node_input_size=3, node_dim=16, graph_dim=16, message_norm="graph"
    )
    assert (first.config.steps, first.config.margin, first.task) == (7, 0.5, task)
    assert first.model.vocabulary == WORDS
    options = {"similarity": "cosine"}
    second = assemble(
        "gmn", task, start=first.model, model_options=options, training={"steps": 9, "seed": 4}
    )
    assert second.model.config.matching
    assert (second.config.steps, second.config.margin, second.config.seed) == (9, 0.5, 4)
    assert second.model.config.similarity == "cosine"
    assert (second.model.config.graph_dim, second.model.config.message_norm) == (16, "graph")
    ours, theirs = (run.model.network.nodes.weight for run in (second, first))
    assert torch.equal(ours, theirs)


def test_first_weights_are_those_of_the_seed() -> None:
    run = assemble("gnn", EditTask(), model_options=SMALL, training={"seed": 3})
    expected = build_model(ModelConfig.named("gnn", **SMALL), 3).state_dict()
    assert all(torch.equal(expected[name], own) for name, own in run.model.state_dict().items())


def test_a_run_trains(tmp_path: Path) -> None:
    task = EditTask(nodes=(6, 8), p=(0.5, 0.5), evaluation_size=10)
    run = assemble("gmn", task, model_options=SMALL, training={"steps": 2, "batch_size": 4})
    result = run.train(tmp_path)
    assert result.step == 2
    record = load_model(tmp_path).trained_on
    assert record == run.model.trained_on
    assert record is not None
    assert record["step"] == 2


def test_what_is_refused() -> None:
    with pytest.raises(ConfigError, match="unknown recipe 'weak'; choose one of paper, strong"):
        assemble("gnn", EditTask(), recipe="weak")
    with pytest.raises(ConfigError, match="unknown model 'gnm'"):
        assemble("gnm", EditTask())
    with pytest.raises(ConfigError, match="unknown training option 'step'"):
        assemble("gnn", EditTask(), training={"step": 2})
