"""What decides the course of a training run."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

from graphkin._support.settings import build, check_at_least, check_types
from graphkin.errors import ConfigError
from graphkin.learning.losses import TARGET_LOSSES, Loss
from graphkin.learning.task import Mode

Schedule = Literal["constant", "cosine", "onecycle"]
OptimizerName = Literal["adam", "adamw"]
Keep = Literal["best", "last"]
ADDED_SETTINGS: dict[str, Any] = {"huber_delta": 0.1, "patience": 0}
"""Settings that came after the first runs were stored, whose defaults are what those did."""


@dataclass(frozen=True)
class TrainConfig:
    """Everything that decides the course of a run, beside model and task."""

    steps: int = 20_000
    """Optimiser steps of the whole run."""
    batch_size: int = 50
    """Pairs, triplets or lists in a batch, over all processes."""
    mode: Mode = "pairs"
    """Labelled pairs; triplets; lists, which are triplets with several dissimilar graphs; or kin,
    similar pairs that are told from all others of a batch."""
    loss: Loss = "margin"
    """The paper's margin losses, its losses on Hamming similarity, or contrastive; for pairs with
    target values, the mean squared error or the Huber loss of what ``link`` of the model gives."""
    margin: float = 0.1
    """gamma of the margin losses; the paper's triplets use 1.0."""
    scale: float = 20.0
    """1 / temperature of the contrastive loss."""
    huber_delta: float = 0.1
    """Error beyond which the Huber loss is linear, in units of the model's ``target_scale``."""
    learning_rate: float = 2e-3
    """The highest of the schedule."""
    schedule: Schedule = "onecycle"
    """Constant, or a rise and a cosine fall: to 1% (cosine) or nearly to 0 (onecycle)."""
    warmup: float = 0.1
    """Share of the steps over which cosine and onecycle schedules rise."""
    optimizer: OptimizerName = "adam"
    """Adam, or AdamW, which keeps the decay out of the moments."""
    weight_decay: float = 0.0
    """Pull of the weights towards 0."""
    clip: float = 10.0
    """Largest global norm of the gradient."""
    regularizer: float = 1e-6
    """Weight of half the mean square of the graph vectors."""
    seed: int = 0
    """Decides the initial weights, where the command line makes the model."""
    evaluate_every: int = 1_000
    """Steps between evaluations on the validation set."""
    patience: int = 0
    """Evaluations without a better one after which training ends early; 0 for never."""
    keep: Keep = "best"
    """The weights in ``model/``: the best of all evaluations, or the last, where the measures of
    the validation set are not what the model is for."""
    report_every: int = 50
    """Steps between lines of the log."""
    bf16: bool = False
    """Matrix products in bfloat16 (autocast)."""
    compile: bool = False
    """Compile the model with torch.compile."""

    def __post_init__(self) -> None:
        check_types(self)
        check_at_least(self, 1, "steps", "batch_size", "evaluate_every", "report_every")
        check_at_least(
            self, 0, "margin", "scale", "learning_rate", "weight_decay", "clip", "regularizer"
        )
        check_at_least(self, 0, "patience", "huber_delta")
        if self.loss in TARGET_LOSSES and self.mode != "pairs":
            raise ConfigError(
                f"loss={self.loss!r} is of pairs with target values; it needs mode='pairs', got "
                f"mode={self.mode!r}"
            )
        if self.mode in ("kin", "lists") and self.loss != "contrastive":
            raise ConfigError(
                f"mode={self.mode!r} needs loss='contrastive', got loss={self.loss!r}"
            )
        if self.mode == "kin" and self.batch_size < 2:
            raise ConfigError(
                "mode='kin' tells each pair of a batch from the others, so that batch_size must be "
                f"at least 2, got {self.batch_size}"
            )
        if self.mode == "pairs" and self.loss == "contrastive":
            raise ConfigError("loss='contrastive' needs mode='kin', 'lists' or 'triplets'")
        if not 0 <= self.seed < 2**63:
            raise ConfigError(f"seed must lie in 0..2^63 - 1, got {self.seed}")
        if not math.isfinite(self.learning_rate):
            raise ConfigError(f"learning_rate must be finite, got {self.learning_rate}")
        if not 0 <= self.warmup < 1:
            raise ConfigError(f"warmup must lie in [0, 1), got {self.warmup}")

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> TrainConfig:
        return build(cls, values, "training")

    def learning_rate_at(self, step: int) -> float:
        """The learning rate of a step, from 0."""
        if self.schedule == "constant":
            return self.learning_rate
        rise = self.warmup * self.steps
        if step < rise:
            return self.learning_rate * (step + 1) / (rise + 1)
        done = (step - rise) / max(1.0, self.steps - rise)
        floor = 0.01 if self.schedule == "cosine" else 0.0001
        return self.learning_rate * (floor + (1 - floor) * (1 + math.cos(math.pi * done)) / 2)
