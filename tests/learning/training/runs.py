"""Short training runs, what they leave on disk, and ways to end them early."""

from __future__ import annotations

import json
import os
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from safetensors import safe_open
from torch import Tensor, nn

from graphkin.graphs import PairBatch
from graphkin.learning.task import EvaluationSet
from graphkin.learning.training import StepReport, TrainConfig, train
from graphkin.models import GraphEmbedder, GraphMatcher, ModelConfig
from graphkin.research.tasks.edits import EditTask

TASK = EditTask(nodes=(6, 9), p=(0.4, 0.5), positive_edits=1, negative_edits=3, evaluation_size=10)
SIZES = {"node_dim": 8, "message_dim": 8, "graph_dim": 8, "steps": 2, "message_scale": 1.0}
CONFIG = TrainConfig(steps=30, batch_size=4, report_every=10, evaluate_every=30, learning_rate=0.02)


class Crash(Exception):
    """Ends a run the hard way: nothing is saved on the way out."""


def make_model(name: str = "gnn", seed: int = 0) -> GraphEmbedder | GraphMatcher:
    torch.manual_seed(seed)
    config = ModelConfig.named(name, **SIZES)
    return GraphMatcher(config) if config.matching else GraphEmbedder(config)


def weights(module: nn.Module) -> dict[str, Tensor]:
    """A copy of the weights."""
    return {name: tensor.detach().clone() for name, tensor in module.state_dict().items()}


def same(left: dict[str, Tensor], right: dict[str, Tensor]) -> bool:
    """Whether two sets of tensors are equal to the last bit."""
    return left.keys() == right.keys() and all(torch.equal(left[key], right[key]) for key in left)


def checkpoint_weights(folder: Path) -> dict[str, Tensor]:
    """The weights in a run's checkpoint."""
    tensors = safetensors.torch.load_file(folder / "checkpoint.safetensors")
    prefix = "model."
    return {k.removeprefix(prefix): t for k, t in tensors.items() if k.startswith(prefix)}


def checkpoint_document(folder: Path) -> dict[str, Any]:
    """State and specification in a run's checkpoint."""
    with safe_open(folder / "checkpoint.safetensors", framework="pt") as file:
        document: dict[str, Any] = json.loads(file.metadata()["run"])
    return document


def log_lines(folder: Path) -> list[dict[str, Any]]:
    """The log without what depends on the clock."""
    lines = [json.loads(line) for line in (folder / "log.jsonl").read_bytes().splitlines()]
    return [{key: line[key] for key in line if key != "steps_per_second"} for line in lines]


@dataclass(frozen=True)
class InterruptedTask:
    """The task of a run that gets Ctrl-C while batch ``at`` is made, a few steps before its use."""

    task: EditTask
    at: int
    signal: int = signal.SIGINT

    def batch(self, step: int, *arguments: Any, **options: Any) -> PairBatch:
        if step == self.at:
            os.kill(os.getpid(), self.signal)
        return self.task.batch(step, *arguments, **options)

    def evaluation_set(self, split: Any) -> EvaluationSet:
        return self.task.evaluation_set(split)

    def describe(self) -> dict[str, Any]:
        return self.task.describe()


def crash_at(step: int) -> Any:
    """Something to call at reports that ends the run at one of them."""

    def on_report(report: StepReport) -> None:
        if report.step == step:
            raise Crash

    return on_report


def finished(name: str, config: TrainConfig, folder: Path, **options: Any) -> dict[str, Tensor]:
    """The weights at the end of a run that nothing interrupts."""
    model = make_model(name)
    train(model, TASK, config, folder, **options)
    return weights(model)
