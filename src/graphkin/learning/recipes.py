"""One way to a training run: a model's name, a task, its recipe and what is to differ from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from graphkin.learning.losses import TARGET_LOSSES
from graphkin.learning.task import Task
from graphkin.learning.training import TrainConfig, TrainingResult, train
from graphkin.models import GraphEmbedder, GraphMatcher, ModelConfig, build_model
from graphkin.models.config import INHERITED, MODEL_NAMES
from graphkin.models.model import GraphModel

TAKEN_OVER = ("similarity", "steps", *INHERITED)
"""Options of a trained model that one takes over which begins with its weights."""


@dataclass(frozen=True, eq=False)
class TrainingRun:
    """A model, the task that it learns, and the course of its training."""

    model: GraphModel
    task: Task
    config: TrainConfig

    def train(self, folder: str | Path, **options: Any) -> TrainingResult:
        """Trains the model in place, with the options of ``graphkin.learning.training.train``."""
        return train(self.model, self.task, self.config, folder, **options)


def assemble(
    model: str,
    task: Task,
    *,
    recipe: str = "paper",
    model_options: Mapping[str, Any] | None = None,
    training: Mapping[str, Any] | None = None,
    start: GraphModel | None = None,
) -> TrainingRun:
    """A new model, ready to be trained. Options go over those of ``start``, these over the recipe.

    Args:
        model: its name: gnn, gmn, gcn, siamese-gnn, siamese-gcn or deepset.
        task: what it learns; its graphs decide the inputs of the model.
        recipe: which recipe of the task gives settings for both.
        model_options: options of ModelConfig.
        training: options of TrainConfig.
        start: a trained model to begin with, of the same shape: weights and options.

    Example:
        >>> from graphkin.research.tasks.edits import EditTask
        >>> run = assemble("gmn", EditTask(), training={"steps": 100}, model_options={"steps": 3})
        >>> run.config.steps, run.model.config.steps
        (100, 3)
    """
    settings = task.recipe(model, recipe)
    options = dict(settings.model)
    if start is not None:
        decided = MODEL_NAMES.get(model, {})
        options |= {name: getattr(start.config, name) for name in TAKEN_OVER if name not in decided}
    model_config = ModelConfig.named(model, **options | dict(model_options or {}))
    config = course(settings.training, training or {}, matching=model_config.matching)
    built = build_model(model_config, config.seed)
    built.vocabulary = settings.vocabulary
    if settings.words is not None and isinstance(built, GraphEmbedder | GraphMatcher):
        built.fit_words(settings.words)
    if settings.feature_scale is not None and model_config.feature_scaling:
        mean, spread = map(torch.from_numpy, settings.feature_scale)
        built.network.nodes.fit_scale(mean, spread)
    if start is not None:
        built.start_from(start)
    return TrainingRun(built, task, config)


def course(recipe: Mapping[str, Any], named: Mapping[str, Any], *, matching: bool) -> TrainConfig:
    """The course of a training: what is named goes over the recipe.

    Where only the loss or only the mode is named, and the other of the recipe does not go with it,
    that becomes one which does.

    Args:
        recipe: options of TrainConfig.
        named: options of TrainConfig.
        matching: whether the model is a matcher, which has no vectors to compare a batch by.
    """
    options = {**recipe, **named}
    loss, mode = options.get("loss", "margin"), options.get("mode", "pairs")
    if "loss" not in named and "mode" in named and loss not in TARGET_LOSSES:
        if mode == "pairs" and loss == "contrastive":
            options["loss"] = "margin"
        if mode in ("kin", "lists"):
            options["loss"] = "contrastive"
    if "mode" not in named and "loss" in named:
        if loss == "contrastive" and mode == "pairs":
            options["mode"] = "lists" if matching else "kin"
        if loss != "contrastive" and mode in ("kin", "lists"):
            options["mode"] = "pairs"
    return TrainConfig.from_dict(options)
