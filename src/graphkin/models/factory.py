"""An embedder or a matcher, whichever a configuration or a folder asks for."""

from __future__ import annotations

from pathlib import Path

import torch

from graphkin.models.config import ModelConfig
from graphkin.models.embedder import GraphEmbedder
from graphkin.models.matcher import GraphMatcher
from graphkin.models.model import GraphModel
from graphkin.models.saving import saved_class


def build_model(config: ModelConfig, seed: int = 0) -> GraphModel:
    """A new embedder or matcher, whichever the config asks for, with weights drawn by ``seed``."""
    with torch.random.fork_rng(devices=()):
        torch.manual_seed(seed)
        return GraphMatcher(config) if config.matching else GraphEmbedder(config)


def load_model(folder: str | Path) -> GraphModel:
    """The model in a folder, whichever class it is; a run's folder stands for its best weights."""
    folder = Path(folder)
    nested = folder / "model"
    home = nested if nested.is_dir() else folder
    kind = GraphMatcher if saved_class(home) == "GraphMatcher" else GraphEmbedder
    return kind.from_pretrained(home)
