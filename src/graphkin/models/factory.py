"""An embedder or a matcher, whichever a configuration or a folder asks for."""

from __future__ import annotations

from pathlib import Path

import torch

from graphkin.models.config import ModelConfig
from graphkin.models.embedder import GraphEmbedder
from graphkin.models.matcher import GraphMatcher
from graphkin.models.model import GraphModel
from graphkin.models.saving import model_folder, saved_class


def build_model(config: ModelConfig, seed: int = 0) -> GraphModel:
    """A new embedder or matcher, whichever the config asks for, with weights drawn by ``seed``."""
    with torch.random.fork_rng(devices=()):
        torch.manual_seed(seed)
        return GraphMatcher(config) if config.matching else GraphEmbedder(config)


def load_model(name: str | Path) -> GraphModel:
    """The model of a name, whichever class it is.

    Args:
        name: a model folder; a run, for its best weights; or a model that ships with the package:
            ``edits``, which is its matcher, or ``edits/embedder``.
    """
    folder = model_folder(name)
    kind = GraphMatcher if saved_class(folder) == "GraphMatcher" else GraphEmbedder
    return kind.from_pretrained(folder)
