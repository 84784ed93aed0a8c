"""The model family: embedding and matching networks, their options, saving and loading."""

from graphkin.models.config import ModelConfig
from graphkin.models.embedder import GraphEmbedder
from graphkin.models.factory import build_model, load_model
from graphkin.models.matcher import GraphMatcher
from graphkin.models.node_matching import AttentionMaps

__all__ = [
    "AttentionMaps",
    "GraphEmbedder",
    "GraphMatcher",
    "ModelConfig",
    "build_model",
    "load_model",
]
