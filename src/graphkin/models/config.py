"""The configuration of a model: every option of the family, checked when it is made."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, ClassVar, Literal, Self

from graphkin._support.settings import build, check_at_least, check_types
from graphkin.errors import ConfigError

Propagation = Literal["message", "convolution", "residual"]
Similarity = Literal[
    "euclidean", "cosine", "hamming", "siamese", "alignment", "late", "edits", "joint"
]
Readout = Literal["gated", "nodes", "pooled", "mean", "max"]
AlignmentPool = Literal["sum", "mean"]
NodeUpdate = Literal["gru", "mlp", "rnn", "lstm"]
MessageAggregation = Literal["sum", "mean", "max", "attention"]
MessageNorm = Literal["none", "graph"]
AttentionSimilarity = Literal["euclidean", "dot", "cosine"]
ReverseMessages = Literal["none", "shared", "separate"]
TokenCounts = Literal["plain", "log"]
NodeInput = Literal["constant", "dense", "tokens"]
EdgeInput = Literal["constant", "dense", "types"]
Link = Literal["none", "exp", "sigmoid", "distance", "root"]
StateNorm = Literal["none", "layer"]
EdgeEncoding = Literal["identity", "mlp"]


@dataclass(frozen=True)
class ModelConfig:
    """A model of the family: encoder, T propagation steps, aggregator, similarity.

    The defaults are the paper's. :meth:`named` gives its models by name.
    """

    matching: bool = False
    """Cross-graph attention in every propagation step (GMN)."""
    propagation: Propagation = "message"
    """Message passing, graph convolution (Kipf & Welling), or ``residual`` steps, which add to a
    node what it makes of itself and of the means of its neighbours."""
    similarity: Similarity = "euclidean"
    """How two graph vectors are compared; ``siamese`` is a 2-layer MLP on both. ``alignment``, for
    matchers, compares nodes instead: how far each lies from what it looks at in the other graph.
    ``late``, for matchers too, compares nodes that were encoded without a look at the other graph.
    ``edits``, for matchers too, assigns the nodes of graphs that were encoded so to each other: the
    distance is what the edits cost that the assignment asks for, and a learned correction.
    ``joint`` adds the distance of an embedder's vectors to an alignment, both trained before:
    :meth:`~graphkin.GraphMatcher.joined` makes such matchers."""
    alignment_pool: AlignmentPool = "sum"
    """Whether an alignment counts the nodes that do not fit, or takes their share of the graph. The
    cost of ``edits`` is counted, or divided by the mean number of nodes of the two graphs."""
    alignment_sharpness: float = 1.0
    """Factor on the attention scores of an alignment. Above 1 a node is compared with fewer others;
    what leaks to the rest would grow with the size of the graph."""
    alignment_rounds: int = 3
    """How often the assignment of ``edits`` is made again so that edges agree with it."""
    steps: int = 5
    """T, the number of propagation steps. 0 gives a Deep Set, which ignores edges."""
    shared: bool = True
    """Whether all propagation steps share their parameters."""
    node_dim: int = 32
    """D, the width of a node state."""
    graph_dim: int = 128
    """The width of a graph vector, and the number of bits of a Hamming code."""
    readout: Readout = "gated"
    """How nodes become a graph vector: an MLP of their gated sum, as in the paper, or with
    ``nodes`` the sum of an MLP of each: graphs differ by the sum of what differs in them. With
    ``pooled`` an MLP of gated sum, mean and maximum side by side; with ``mean`` or ``max`` an MLP
    of that alone."""
    message_dim: int = 64
    """The width of a message and of the hidden layer of its MLP; the paper's 2D."""
    node_update: NodeUpdate = "gru"
    """f_node: how a node takes in its messages."""
    message_aggregation: MessageAggregation = "sum"
    """How the messages to a node become one."""
    message_norm: MessageNorm = "none"
    """``graph`` brings every column of the aggregated messages to mean 0 and variance 1 over the
    nodes of a graph: what tells its nodes apart counts, not how large or dense it is."""
    message_scale: float = 0.1
    """Factor on the Glorot initialisation of the message MLP."""
    reverse_messages: ReverseMessages = "none"
    """Messages against the direction of edges too, for directed graphs."""
    attention_similarity: AttentionSimilarity = "euclidean"
    """s_h: which nodes of the other graph a node looks at."""
    attention_projections: bool = False
    """Separate query, key and value projections for cross-graph attention."""
    node_input: NodeInput = "constant"
    """What a node carries: nothing, features, or a bag of tokens."""
    node_input_size: int = 1
    """Columns of dense node features, or the size of the token vocabulary."""
    token_counts: TokenCounts = "plain"
    """Whether a token that a node has n times counts n times, or log(1 + n) times."""
    node_degrees: bool = False
    """Whether a node also carries how many edges lead to it and away from it; for residual steps,
    whose means over neighbours do not tell."""
    embedder_norm: MessageNorm = "none"
    """``message_norm`` of the embedder in a joint matcher."""
    edge_input: EdgeInput = "constant"
    """What an edge carries: nothing, features, or a type."""
    edge_input_size: int = 1
    """Columns of dense edge features, or the number of edge types."""
    word_dim: int = 0
    """The width of what a graph's hashed words add to its vector; 0 for models without words."""
    offset_dim: int = 0
    """The same for field offsets, which say nothing between 32 and 64 bits: a part of its own."""
    words_known: int = 0
    """Words whose rarity is known."""
    words_learned: int = 0
    """Words, the most frequent, that have a direction and a weight of their own."""
    code_bits: int = 0
    """Bits of a code that is learned beside the vector; 0 where the vector's signs are the code."""
    code_offsets: bool = False
    """Whether offsets take part in a learned code: they help where pointers are of one width."""
    link: Link = "none"
    """What ``predict`` gives, for models of target values: with d the distance behind a score,
    ``exp`` is exp(-d), ``distance`` is d, ``root`` its root, which for Euclidean similarity is the
    Euclidean distance, and ``sigmoid`` a logistic function of the score whose slope and offset are
    learned; ``none`` is the score itself."""
    target_scale: float = 1.0
    """Factor on what the link gives: about the size of the targets."""
    feature_scaling: bool = False
    """Whether dense features of nodes are standardised first, by mean and deviation of the training
    graphs, which are saved with the weights."""
    dropout: float = 0.0
    """Share of the components of node states that training drops ahead of the readout."""
    state_norm: StateNorm = "none"
    """``layer`` brings the state of every node to mean 0 and variance 1 after each propagation
    step, with a learned scale and shift."""
    residual: bool = False
    """Whether a propagation step adds to the state of a node, in place of replacing it."""
    message_layers: int = 1
    """Hidden layers of the message MLP."""
    edge_encoder: EdgeEncoding = "identity"
    """Edge input as it is, as in the paper, or through an MLP with one hidden layer."""

    explicit: ClassVar[frozenset[str]] = frozenset()
    """Of an instance: the options that its maker named. Training on one's own graphs decides some
    of the others by the data. Where all are named, as in a copy, those that are not the default."""

    def __new__(cls, *values: Any, **options: Any) -> Self:
        # The fields do not tell an option that was named from one with that default.
        config = super().__new__(cls)
        known = fields(cls)
        named = {known[place].name: value for place, value in enumerate(values[: len(known)])}
        named |= options
        if len(named) == len(known):
            named = {f.name: f for f in known if named.get(f.name, f.default) != f.default}
        object.__setattr__(config, "explicit", frozenset(named))
        return config

    def __post_init__(self) -> None:
        check_types(self)
        check_at_least(self, 1, "node_dim", "graph_dim", "message_dim")
        check_at_least(self, 1, "node_input_size", "edge_input_size")
        check_at_least(self, 0, "steps", "words_known", "words_learned", "dropout")
        check_at_least(self, 1, "alignment_rounds")
        check_at_least(self, 1, "message_layers")
        if self.dropout >= 1:
            raise ConfigError(f"dropout must lie in [0, 1), got {self.dropout}")
        if self.dropout and (self.aligns or self.encodes_apart):
            raise ConfigError(f"similarity={self.similarity!r} has no readout to drop states at")
        own = (self.state_norm, self.residual, self.message_layers, self.edge_encoder)
        if self.propagation != "message" and own != ("none", False, 1, "identity"):
            raise ConfigError(
                "state_norm, residual, message_layers and edge_encoder are of message passing; set "
                "propagation='message'"
            )
        for name in ("word_dim", "offset_dim", "code_bits"):
            if getattr(self, name) < 0 or getattr(self, name) % 64:
                raise ConfigError(f"{name} must be a multiple of 64, got {getattr(self, name)}")
        if self.code_offsets and not (self.code_bits and self.offset_dim):
            raise ConfigError("code_offsets is for models with code_bits and offset_dim")
        if self.offset_dim and not self.word_dim:
            raise ConfigError("offsets are a kind of words; set word_dim as well")
        if self.words_learned > self.words_known:
            raise ConfigError(
                f"words_learned is {self.words_learned}, of {self.words_known} words that are known"
            )
        if self.word_dim and self.similarity not in ("cosine", "late"):
            raise ConfigError("words are for embedders of cosine similarity and late matchers")
        if (self.code_bits or self.offset_dim) and self.similarity != "cosine":
            raise ConfigError("learned codes and offsets are for embedders of cosine similarity")
        for name in ("message_scale", "alignment_sharpness", "target_scale"):
            if not 0 < getattr(self, name) < math.inf:
                raise ConfigError(f"{name} must be above 0, got {getattr(self, name)}")
        if self.similarity == "hamming" and self.graph_dim % 8:
            raise ConfigError(f"Hamming codes need graph_dim in whole bytes, got {self.graph_dim}")
        if self.similarity == "late":
            if not self.matching or self.propagation != "residual":
                raise ConfigError(
                    "a late matcher has residual steps; set matching=True, propagation='residual'"
                )
        elif self.similarity == "edits":
            if not self.matching:
                raise ConfigError("similarity='edits' compares nodes; set matching=True")
        elif self.matching and self.propagation != "message":
            raise ConfigError("matching works on message passing; set propagation='message'")
        if self.feature_scaling and self.node_input != "dense":
            raise ConfigError("feature_scaling is of dense features; set node_input='dense'")
        if self.matching and self.similarity == "siamese":
            raise ConfigError("a Siamese head compares embeddings; set matching=False")
        if self.aligns and not (self.matching and self.steps):
            raise ConfigError(
                "an alignment compares nodes through cross-graph attention; it needs matching=True "
                "and at least 1 step"
            )
        if self.propagation != "message" and self.message_norm != "none":
            steps = {"convolution": "graph convolution has", "residual": "residual steps have"}
            raise ConfigError(f"{steps[self.propagation]} no messages to normalise")
        if self.node_degrees and self.propagation != "residual":
            raise ConfigError("node_degrees are for residual steps; set propagation='residual'")
        if self.propagation == "convolution" and self.reverse_messages == "separate":
            raise ConfigError("graph convolution has no separate weights for reversed edges")
        if self.propagation == "residual" and self.reverse_messages == "shared":
            raise ConfigError(
                "residual steps have separate weights for reversed edges; set reverse_messages to "
                "'separate' or 'none'"
            )

    @property
    def vector_dim(self) -> int:
        """The width of a whole vector: graph, words and offsets."""
        return self.graph_dim + self.word_dim + self.offset_dim

    @property
    def aligns(self) -> bool:
        """Whether nodes are compared, alone or beside graph vectors."""
        return self.similarity in ("alignment", "joint")

    @property
    def encodes_apart(self) -> bool:
        """Whether a matcher compares nodes that have not looked at the other graph."""
        return self.matching and self.similarity in ("late", "edits")

    @property
    def attends(self) -> bool:
        """Whether nodes look at the other graph in every propagation step."""
        return self.matching and not self.encodes_apart

    @property
    def is_strong(self) -> bool:
        """Whether it is one of our variants of the paper's models: they normalise messages."""
        return self.message_norm == "graph"

    @property
    def predicts_distances(self) -> bool:
        """Whether ``predict`` gives distances, 0 for equal graphs, and not similarities."""
        return self.link in ("distance", "root")

    def embedding(self) -> ModelConfig:
        """Of the embedder in a matcher with a joint similarity."""
        return replace(self, matching=False, similarity="cosine", message_norm=self.embedder_norm)

    @classmethod
    def named(cls, name: str, **overrides: Any) -> ModelConfig:
        """A model by its name, with options changed.

        gnn, gmn, gcn, siamese-gnn, siamese-gcn and deepset are the paper's; gnn-strong, gmn-strong
        and late are ours: see ``docs/training.md``.
        """
        if name not in MODEL_NAMES:
            raise ConfigError(f"unknown model {name!r}; choose one of {', '.join(MODEL_NAMES)}")
        config = cls.from_dict({**MODEL_NAMES[name], **overrides})
        object.__setattr__(config, "explicit", frozenset(overrides))
        return config

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> ModelConfig:
        """Builds a config; an unknown key is refused by name."""
        return build(cls, values, "model")

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


MODEL_NAMES: dict[str, dict[str, Any]] = {
    "gnn": {},
    "gmn": {"matching": True},
    "gcn": {"propagation": "convolution"},
    "siamese-gnn": {"similarity": "siamese"},
    "siamese-gcn": {"propagation": "convolution", "similarity": "siamese"},
    "deepset": {"steps": 0},
    "late": {"matching": True, "propagation": "residual", "similarity": "late"},
    "gnn-strong": {"message_norm": "graph", "similarity": "cosine"},
    "gmn-strong": {"matching": True, "message_norm": "graph", "similarity": "alignment"},
}
STRONG = "-strong"
"""How the names of our own variants of the paper's models end."""

INHERITED = (
    "propagation",
    "shared",
    "node_dim",
    "graph_dim",
    "readout",
    "message_dim",
    "node_update",
    "message_aggregation",
    "message_norm",
    "reverse_messages",
    "node_input",
    "node_input_size",
    "feature_scaling",
    "state_norm",
    "residual",
    "message_layers",
    "edge_encoder",
    "token_counts",
    "node_degrees",
    "edge_input",
    "edge_input_size",
)
"""Options that a model has in common with one whose weights it takes over: with others the same
weights would compute something else."""
