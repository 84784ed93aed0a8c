"""What a library asks of a trained model, and who answers: numpy where it can, else torch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from graphkin.graphs.converters.attributes import AttributeNames
from graphkin.graphs.graph import Graph, WordArray
from graphkin.graphs.vocabulary import Vocabulary
from graphkin.models.calibration import Logistic
from graphkin.models.config import ModelConfig
from graphkin.models.light.embedder import LightEmbedder
from graphkin.models.light.matcher import LightMatcher
from graphkin.models.light.weights import Weights
from graphkin.models.node_matching import MOST_WEIGHTS, AttentionMaps, PartnerMaps
from graphkin.models.saving import described


class RareWords(Protocol):
    """Knows how rare words are."""

    def rarity_of(self, hashes: WordArray) -> NDArray[np.float32]:
        """(M,)"""


class Answering(Protocol):
    """A trained model."""

    @property
    def config(self) -> ModelConfig:
        """Its options."""

    @property
    def vocabulary(self) -> Vocabulary | None:
        """What the tokens of nodes stand for."""

    @property
    def trained_on(self) -> dict[str, Any] | None:
        """What training recorded."""

    @property
    def calibration(self) -> Logistic | None:
        """From a score to the probability that a pair is similar."""

    @property
    def attribute_names(self) -> AttributeNames:
        """Which attributes of graph files and NetworkX graphs it was trained on."""

    def read(self, graphs: Iterable[Graph]) -> list[Graph]:
        """Graphs as the model takes them."""

    def explain(self, left: Graph, right: Graph) -> AttentionMaps:
        """Where the nodes of each graph look in the other."""

    def partners(self, left: Graph, right: Graph) -> PartnerMaps:
        """Where each node of either graph looks most in the other."""

    def linked(self, scores: NDArray[np.float32]) -> NDArray[np.float32]:
        """Scores as values in the unit of targets, where the model was trained on some."""


class Embedder(Answering, Protocol):
    """A graph becomes a vector or a code; see :class:`graphkin.GraphEmbedder`."""

    @property
    def words(self) -> RareWords:
        """Of a model that reads what functions say."""

    def encode(self, graphs: Iterable[Graph]) -> NDArray[np.float32]:
        """(N, V) vectors."""

    def codes(self, graphs: Iterable[Graph]) -> NDArray[np.uint8]:
        """(N, B / 8) codes."""

    def codes_of(self, vectors: NDArray[np.float32]) -> NDArray[np.uint8]:
        """(N, B / 8) the codes of vectors."""

    def unrounded_codes(self, vectors: NDArray[np.float32]) -> NDArray[np.float32]:
        """(N, bits) numbers whose signs are the codes of vectors: the larger, the surer the bit."""

    def part(self, vectors: NDArray[np.float32], name: str) -> NDArray[np.float32]:
        """The columns of one part of vectors."""


class Matcher(Answering, Protocol):
    """Two graphs are compared; see :class:`graphkin.GraphMatcher`."""

    def similarities(self, pairs: Iterable[Sequence[Graph]]) -> NDArray[np.float32]:
        """(P,) higher is more alike."""

    def predict(self, pairs: Iterable[Sequence[Graph]]) -> NDArray[np.float32]:
        """(P,) similarities, or values in the unit of targets."""

    def explain_many(self, pairs: Sequence[tuple[Graph, Graph]]) -> list[AttentionMaps]:
        """What :meth:`explain` gives, of many pairs."""

    def node_states(self, graphs: Sequence[Graph]) -> list[NDArray[np.float32]]:
        """(N, W) of each graph; W is 0 where states depend on the other graph."""


def attention_between(model: Answering, left: Graph, right: Graph) -> AttentionMaps | PartnerMaps:
    """Where the nodes of each graph look in the other; of large graphs, only where most."""
    if left.num_nodes * right.num_nodes <= MOST_WEIGHTS:
        return model.explain(left, right)
    return model.partners(left, right)


def answering_embedder(files: Mapping[str, bytes], origin: str) -> Embedder:
    """The embedder of files that ``to_files`` made; ``origin`` names them in errors."""
    description = described(files, "GraphEmbedder", origin)
    if LightEmbedder.can_be(description.config):
        return LightEmbedder(description, Weights.read(files, origin))
    from graphkin.models.embedder import GraphEmbedder

    return GraphEmbedder.from_files(files, origin)


def answering_matcher(files: Mapping[str, bytes], origin: str) -> Matcher:
    """The matcher of files that ``to_files`` made; ``origin`` names them in errors."""
    description = described(files, "GraphMatcher", origin)
    if LightMatcher.can_be(description.config):
        return LightMatcher(description, Weights.read(files, origin))
    from graphkin.models.matcher import GraphMatcher

    return GraphMatcher.from_files(files, origin)
