"""Two functions side by side: how alike they are, and which block matches which."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from graphkin.binaries.backends.choose import Backend
from graphkin.binaries.function import Function
from graphkin.binaries.inputs import find_target
from graphkin.binaries.reading import read_function
from graphkin.errors import ConfigError, ModelError
from graphkin.graphs.words import word_hash
from graphkin.library.code_distance import distances, probabilities
from graphkin.library.models import Encoded, SearchModel, search_model
from graphkin.library.processors import processor_warnings
from graphkin.library.ranking import Candidates, MatchedGraphs
from graphkin.library.signals import compared_graphs
from graphkin.models.answering import attention_between
from graphkin.results.document import Comparison, EvidenceToken
from graphkin.results.evidence import best_evidence
from graphkin.results.function import is_understood, ref_of, said_by
from graphkin.results.shared_words import Rarity, have_same_width, said_words

if TYPE_CHECKING:
    from graphkin.graphs import Graph
    from graphkin.models.node_matching import AttentionMaps, PartnerMaps


@dataclass(frozen=True, eq=False)
class ComparedFunctions:
    """A comparison, and what it was made from: too large for the document, needed to draw it."""

    document: Comparison
    functions: tuple[Function, Function]
    graphs: tuple[Graph, Graph]
    maps: AttentionMaps | PartnerMaps


def compare(
    left: str | Path,
    right: str | Path,
    model: str | Path | SearchModel = "functions",
    *,
    backend: Backend = "auto",
) -> ComparedFunctions:
    """Reads two functions and compares them.

    Example::

        compared = graphkin.compare("firmware.bin:0x4f10", "libssl.so:tls1_process_heartbeat")
        print(compared.document.probability)

    Args:
        left: ``BINARY:FUNCTION`` or ``BINARY:0x1234``.
        right: likewise.
        model: a model that ships with graphkin, or a folder.
        backend: what reads the files.

    Raises:
        ConfigError: where a side names no function, or one that is not there.
        FormatError: for a file that cannot be read.
    """
    sides = _function(str(left), backend), _function(str(right), backend)
    return compare_functions(search_model(model), *sides)


def _function(target: str, backend: Backend) -> Function:
    parsed = find_target(target)
    if parsed.function is None:
        raise ConfigError(f"name one function to compare: {target}:FUNCTION or {target}:0x1234")
    return read_function(parsed, backend)


def compare_functions(
    model: SearchModel,
    left: Function,
    right: Function,
    references: tuple[str | None, str | None] = (None, None),
    graphs: tuple[Graph, Graph] | None = None,
) -> ComparedFunctions:
    """Compares two functions by codes and by matching; their graphs may be known from a library."""
    if model.matcher is None:
        raise ModelError(f"the model {model.model_id} has no matcher to compare with")
    if graphs is None:
        graphs = left.to_graph(model.vocabulary), right.to_graph(model.vocabulary)
    encoded = model.encoded(graphs, (left.architecture, right.architecture))
    distance = distances(model.space, encoded.vectors[0], encoded.vectors[1:])
    maps = attention_between(model.matcher, *graphs)
    probability, note = _probability(model, graphs, encoded, distance, maps.score)
    document = Comparison(
        left=ref_of(left, references[0]),
        right=ref_of(right, references[1]),
        distance=float(distance[0]),
        score=maps.score,
        probability=probability,
        note=note,
        evidence=best_evidence(maps, equal=graphs[0].digest() == graphs[1].digest()),
        **_said(model, left, right),
        warnings=processor_warnings(model, [left.architecture, right.architecture]),
    )
    return ComparedFunctions(document, (left, right), graphs, maps)


def _probability(
    model: SearchModel,
    graphs: tuple[Graph, Graph],
    encoded: Encoded,
    distance: NDArray[np.float32],
    score: float,
) -> tuple[float | None, str | None]:
    """That two functions are the same, as if one had been found by the other in a library, and
    why it is not more probable."""
    left, right = graphs
    if model.ranking is None or encoded.signals is None:
        other, scores = (right.num_nodes, right.digest()), np.array([score], dtype=np.float32)
        return probabilities(model, left, [other], distance, scores)[0], None
    equal = np.array([left.digest() == right.digest()])
    candidate = Candidates(encoded.signals[1:], np.array([right.num_nodes]), equal, [""])
    scores = np.array([score], dtype=np.float32)
    seen = MatchedGraphs(scores, compared_graphs(model.embedder, left, [right]))
    return model.ranking.pair_probability(encoded.signals[0], left.num_nodes, candidate, seen)


def _said(model: SearchModel, left: Function, right: Function) -> dict[str, Any]:
    """What both say and what one says, by the names of the document; empty where nobody knows."""
    if not (is_understood(left) and is_understood(right)):
        return {}
    same_width = have_same_width(left.architecture, right.architecture)
    words = said_by(left), said_by(right)
    return said_words(*words, rarity_by(model), same_width=same_width)._asdict()


def rarity_by(model: SearchModel) -> Rarity | None:
    """How rare a model finds words; None for one that reads none."""
    if not model.embedder.config.word_dim:
        return None
    bag = model.embedder.words

    def rarity(word: EvidenceToken) -> float:
        return float(bag.rarity_of(np.array([word_hash(*word)], dtype=np.uint64))[0])

    return rarity
