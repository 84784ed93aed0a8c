"""The model family: embedding and matching networks, their options, saving and loading."""

from __future__ import annotations

from pathlib import Path

from graphkin.models.base import GraphModel
from graphkin.models.config import ModelConfig
from graphkin.models.embedder import GraphEmbedder
from graphkin.models.matcher import AttentionMaps, GraphMatcher
from graphkin.models.pretrained import saved_class

__all__ = ["AttentionMaps", "GraphEmbedder", "GraphMatcher", "ModelConfig", "load_model"]


def load_model(folder: Path) -> GraphModel:
    """The model in a folder, whichever class it is; a run's folder stands for its best weights."""
    nested = folder / "model"
    home = nested if nested.is_dir() else folder
    kind = GraphMatcher if saved_class(home) == "GraphMatcher" else GraphEmbedder
    return kind.from_pretrained(home)
