"""The first thing that a newcomer runs: a matching network learns edit distance in a minute."""

from __future__ import annotations

import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from graphkin.baselines.wl import WLKernel
from graphkin.evaluation import evaluate
from graphkin.models import GraphMatcher, ModelConfig, build_model
from graphkin.plots import plot_attention
from graphkin.progress import TrainingProgress
from graphkin.tasks.edits import EditTask
from graphkin.training import TrainConfig, train

STEPS = 2_500
TASK = EditTask(nodes=(20, 20), p=(0.2, 0.2), positive_edits=1, negative_edits=4)
PICTURED = EditTask(nodes=(10, 10), p=(0.3, 0.3), evaluation_size=2)
"""Smaller graphs than it is trained on, for a picture in which single lines can be told apart."""


@dataclass(frozen=True)
class DemoResult:
    """Pair AUC and triplet accuracy of both, on the same test set."""

    gmn: dict[str, float]
    wl: dict[str, float]
    steps: int
    seconds: float
    picture: str
    data: str

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    def to_text(self) -> str:
        edits = f"{TASK.positive_edits} edge substituted against {TASK.negative_edits}"
        rows = [
            f"Edit distance of random graphs ({TASK.nodes[0]} nodes, p = {TASK.p[0]}): {edits}",
            "",
            f"{'':<34}{'pair AUC':>10}{'triplets':>10}",
            _row(f"GMN, trained for {self.seconds:.0f} s", self.gmn),
            _row("WL kernel, best of 0..5 iterations", self.wl),
            "",
            "The GMN learns from nothing, and goes on learning for hours: see `graphkin train`.",
            f"attention over the steps: {self.picture}",
        ]
        return "\n".join(rows)


def _row(name: str, metrics: dict[str, float]) -> str:
    auc, triplets = 100 * metrics["pair_auc"], 100 * metrics["triplet_accuracy"]
    return f"{name:<34}{auc:>10.1f}{triplets:>10.1f}"


def run_demo(output: Path, steps: int | None = None) -> DemoResult:
    """Trains, evaluates beside the WL kernel, and draws the attention of one pair."""
    torch.set_num_threads(1)
    config = TrainConfig(
        steps=steps or STEPS, batch_size=20, learning_rate=1e-3, evaluate_every=500
    )
    model = build_model(ModelConfig.named("gmn"), config.seed)
    with tempfile.TemporaryDirectory() as run:
        with TrainingProgress(config.steps) as progress:
            result = train(model, TASK, config, run, on_report=progress)
        matcher = GraphMatcher.from_pretrained(Path(run) / "model")
    test = TASK.evaluation_set("test")
    kernels = [evaluate(WLKernel(iterations), test) for iterations in range(6)]
    best = max(kernels, key=lambda metrics: metrics["pair_auc"])
    left, right = PICTURED.evaluation_set("test").pairs[0]
    output.mkdir(parents=True, exist_ok=True)
    picture = output / "attention.png"
    maps = matcher.explain(left, right)
    title = "Attention between two graphs that differ by one edge"
    plot_attention(left, right, maps, picture, steps=(0, 1, 3, 5), title=title)
    return DemoResult(
        gmn=evaluate(matcher, test),
        wl=best,
        steps=result.step,
        seconds=result.seconds,
        picture=str(picture),
        data=test.digest,
    )
