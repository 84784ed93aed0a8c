"""Two graphs of your own side by side: how alike they are, and which node is which."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from graphkin.errors import ModelError
from graphkin.graphs import Graph
from graphkin.graphs.converters.any_graph import as_graph
from graphkin.graphs.converters.attributes import AttributeNames
from graphkin.graphs.converters.named import NamedGraph
from graphkin.library.code_distance import distances
from graphkin.library.models import SearchModel, space_of
from graphkin.library.own_graphs import checked_inputs, graph_ref, read_one
from graphkin.models import GraphEmbedder, GraphMatcher, load_model
from graphkin.models.answering import Answering, Embedder, Matcher, attention_between
from graphkin.models.model import GraphModel
from graphkin.models.node_matching import AttentionMaps, PartnerMaps
from graphkin.results.document import Comparison
from graphkin.results.evidence import node_evidence
from graphkin.results.graph import ShownGraph


class GraphModels(NamedTuple):
    """What compares two graphs: an embedder, a matcher, or both."""

    embedder: Embedder | None
    matcher: Matcher | None

    @classmethod
    def of(cls, *models: str | Path | GraphModel | SearchModel | None) -> GraphModels:
        """Models by their folders or runs, in any order; each may be of either class."""
        embedder: Embedder | None = None
        matcher: Matcher | None = None
        for item in models:
            model = load_model(item) if isinstance(item, str | Path) else item
            if isinstance(model, SearchModel):
                embedder, matcher = model.embedder, model.matcher or matcher
            elif isinstance(model, GraphEmbedder):
                embedder = model
            elif isinstance(model, GraphMatcher):
                matcher = model
        if embedder is None and matcher is None:
            raise ModelError("name a model to compare by: an embedder, a matcher, or both")
        return cls(embedder, matcher)

    @property
    def judge(self) -> Answering:
        """What scores a pair: the matcher, where there is one."""
        model = self.matcher or self.embedder
        assert model is not None, "one of them is there"
        return model


@dataclass(frozen=True, eq=False)
class ComparedGraphs:
    """A comparison, and what it was made from: too large for the document, needed to draw it."""

    document: Comparison
    sides: tuple[ShownGraph, ShownGraph]
    maps: AttentionMaps | PartnerMaps


def compare_graphs(
    left: Any,
    right: Any,
    model: str | Path | GraphModel | SearchModel,
    matcher: str | Path | GraphMatcher | None = None,
    *,
    names: AttributeNames | None = None,
    references: tuple[str | None, str | None] = (None, None),
) -> ComparedGraphs:
    """Compares two graphs.

    Example::

        compared = graphkin.compare_graphs("a.graphml", "b.graphml", "runs/molecules")
        print(compared.document.score, compared.document.evidence.pairs)

    Args:
        left: a graph of graphkin, NetworkX or PyG; or a file, ``FILE:NAME`` where it holds several.
        right: likewise.
        model: an embedder or a matcher, or the folder or run of one.
        matcher: beside an embedder, whose vectors give the distance, what gives score and nodes.
        names: which attributes of files are the input; by default those of the training.
        references: what the HTTP API calls them.
    """
    models = GraphModels.of(model, matcher)
    judge = models.judge
    names = names or judge.attribute_names
    sides = _named(left, "left", names), _named(right, "right", names)
    checked_inputs(judge, list(sides))
    graphs = judge.read(side.graph for side in sides)
    maps = attention_between(judge, *graphs)
    score = np.array([maps.score], dtype=np.float32)
    has_link = judge.config.link != "none"
    document = Comparison(
        left=graph_ref(sides[0], references[0]),
        right=graph_ref(sides[1], references[1]),
        distance=None if models.embedder is None else _distance(models.embedder, graphs),
        score=maps.score,
        probability=_probability(judge, maps.score),
        value=float(judge.linked(score)[0]) if has_link else None,
        evidence=node_evidence(maps, most=None),
    )
    shown = [
        ShownGraph.of(side, read, judge.vocabulary)
        for side, read in zip(sides, graphs, strict=True)
    ]
    return ComparedGraphs(document, (shown[0], shown[1]), maps)


def _named(graph: Any, name: str, names: AttributeNames) -> NamedGraph:
    if isinstance(graph, NamedGraph):
        return graph
    if isinstance(graph, str | Path):
        return read_one(graph, names)
    return NamedGraph(name, as_graph(graph, 0, names))


def _distance(embedder: Embedder, graphs: list[Graph]) -> float:
    space = space_of(embedder)
    is_code = space.metric == "hamming"
    vectors: NDArray[Any] = embedder.codes(graphs) if is_code else embedder.encode(graphs)
    return float(distances(space, vectors[0], vectors[1:])[0])


def _probability(model: Answering, score: float) -> float | None:
    if model.calibration is None:
        return None
    return float(model.calibration(np.array([[score]], dtype=np.float64))[0])
