"""Two functions side by side: how alike they are, and which block matches which."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from graphkin.binaries.function import Function
from graphkin.errors import ModelError
from graphkin.library.models import SearchModel
from graphkin.library.probability import distances, probabilities
from graphkin.results.document import Comparison
from graphkin.results.evidence import best_evidence
from graphkin.results.function import ref_of

if TYPE_CHECKING:
    from graphkin.graphs import Graph
    from graphkin.models import AttentionMaps


@dataclass(frozen=True, eq=False)
class ComparedFunctions:
    """A comparison, and what it was made from: too large for the document, needed to draw it."""

    document: Comparison
    functions: tuple[Function, Function]
    graphs: tuple[Graph, Graph]
    maps: AttentionMaps


def compare(
    model: SearchModel,
    left: Function,
    right: Function,
    references: tuple[str | None, str | None] = (None, None),
) -> ComparedFunctions:
    """Compares two functions by codes and by matching."""
    if model.matcher is None:
        raise ModelError(f"the model {model.model_id} has no matcher to compare with")
    vocabulary = model.vocabulary
    graphs = (left.to_graph(vocabulary), right.to_graph(vocabulary))
    vectors = model.vectors(graphs)
    distance = distances(model.space, vectors[0], vectors[1:])
    maps = model.matcher.explain(*graphs)
    other = (graphs[1].num_nodes, graphs[1].digest())
    score = np.array([maps.score], dtype=np.float32)
    (probability,) = probabilities(model, graphs[0], [other], distance, score)
    document = Comparison(
        left=ref_of(left, references[0]),
        right=ref_of(right, references[1]),
        distance=float(distance[0]),
        score=maps.score,
        probability=probability,
        evidence=best_evidence(maps),
    )
    return ComparedFunctions(document, (left, right), graphs, maps)
