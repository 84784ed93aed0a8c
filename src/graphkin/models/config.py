"""The configuration of a model: every option of the family, checked when it is made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, get_args, get_type_hints

from graphkin.errors import ConfigError
from graphkin.models.options import (
    AttentionSimilarity,
    EdgeInput,
    MessageAggregation,
    NodeInput,
    NodeUpdate,
    Propagation,
    ReverseMessages,
    Similarity,
)


@dataclass(frozen=True)
class ModelConfig:
    """A model of the family: encoder, T propagation steps, aggregator, similarity.

    The defaults are the paper's. :meth:`named` gives its five models by name.
    """

    matching: bool = False
    """Cross-graph attention in every propagation step (GMN)."""
    propagation: Propagation = "message"
    """Message passing, or graph convolution (Kipf & Welling)."""
    similarity: Similarity = "euclidean"
    """How two graph vectors are compared; ``siamese`` is a 2-layer MLP on both."""
    steps: int = 5
    """T, the number of propagation steps. 0 gives a Deep Set, which ignores edges."""
    shared: bool = True
    """Whether all propagation steps share their parameters."""
    node_dim: int = 32
    """D, the width of a node state."""
    graph_dim: int = 128
    """The width of a graph vector, and the number of bits of a Hamming code."""
    message_dim: int = 64
    """The width of a message and of the hidden layer of its MLP; the paper's 2D."""
    node_update: NodeUpdate = "gru"
    message_aggregation: MessageAggregation = "sum"
    message_scale: float = 0.1
    """Factor on the Glorot initialisation of the message MLP."""
    reverse_messages: ReverseMessages = "none"
    """Messages against the direction of edges too, for directed graphs."""
    attention_similarity: AttentionSimilarity = "euclidean"
    attention_projections: bool = False
    """Separate query, key and value projections for cross-graph attention."""
    node_input: NodeInput = "constant"
    node_input_size: int = 1
    """Columns of dense node features, or the size of the token vocabulary."""
    edge_input: EdgeInput = "constant"
    edge_input_size: int = 1
    """Columns of dense edge features, or the number of edge types."""

    def __post_init__(self) -> None:
        for name, hint in get_type_hints(type(self)).items():
            _check_value(name, getattr(self, name), hint)
        positive = ("node_dim", "graph_dim", "message_dim", "node_input_size", "edge_input_size")
        for name in positive:
            if getattr(self, name) < 1:
                raise ConfigError(f"{name} must be at least 1, got {getattr(self, name)}")
        if self.steps < 0:
            raise ConfigError(f"steps must be at least 0, got {self.steps}")
        if not self.message_scale > 0:
            raise ConfigError(f"message_scale must be above 0, got {self.message_scale}")
        if self.similarity == "hamming" and self.graph_dim % 8:
            raise ConfigError(f"Hamming codes need graph_dim in whole bytes, got {self.graph_dim}")
        if self.matching and self.propagation == "convolution":
            raise ConfigError("matching works on message passing; set propagation='message'")
        if self.matching and self.similarity == "siamese":
            raise ConfigError("a Siamese head compares embeddings; set matching=False")
        if self.propagation == "convolution" and self.reverse_messages == "separate":
            raise ConfigError("graph convolution has no separate weights for reversed edges")

    @classmethod
    def named(cls, name: str, **overrides: Any) -> ModelConfig:
        """One of gnn, gmn, gcn, siamese-gnn, siamese-gcn or deepset, with any option changed."""
        if name not in MODEL_NAMES:
            raise ConfigError(f"unknown model {name!r}; choose one of {', '.join(MODEL_NAMES)}")
        return cls.from_dict({**MODEL_NAMES[name], **overrides})

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> ModelConfig:
        """Builds a config; an unknown key is refused by name."""
        known = [field.name for field in fields(cls)]
        for key in values:
            if key not in known:
                raise ConfigError(f"unknown model option {key!r}; known: {', '.join(known)}")
        return cls(**values)

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


MODEL_NAMES: dict[str, dict[str, Any]] = {
    "gnn": {},
    "gmn": {"matching": True},
    "gcn": {"propagation": "convolution"},
    "siamese-gnn": {"similarity": "siamese"},
    "siamese-gcn": {"propagation": "convolution", "similarity": "siamese"},
    "deepset": {"steps": 0},
}


def _check_value(name: str, value: Any, hint: Any) -> None:
    choices = get_args(hint)
    if choices:
        if value not in choices:
            raise ConfigError(f"{name} must be one of {', '.join(choices)}; got {value!r}")
        return
    accepted = (int, float) if hint is float else hint
    if not isinstance(value, accepted) or (isinstance(value, bool) and hint is not bool):
        raise ConfigError(f"{name} must be of type {hint.__name__}, got {value!r}")
