"""The model family: embedding and matching networks, their options, saving and loading."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphkin._support.lazy_names import lazily
from graphkin.models.config import ModelConfig
from graphkin.models.node_matching import AttentionMaps

if TYPE_CHECKING:
    from graphkin.models.embedder import GraphEmbedder
    from graphkin.models.factory import build_model, load_model
    from graphkin.models.matcher import GraphMatcher

__all__ = [
    "AttentionMaps",
    "GraphEmbedder",
    "GraphMatcher",
    "ModelConfig",
    "build_model",
    "load_model",
]

__getattr__ = lazily(
    __name__,
    {
        "GraphEmbedder": "graphkin.models.embedder",
        "GraphMatcher": "graphkin.models.matcher",
        "build_model": "graphkin.models.factory",
        "load_model": "graphkin.models.factory",
    },
)
