"""Graphs as people give them to a model, and as it takes them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from graphkin.errors import ModelError
from graphkin.graphs.collections import listed
from graphkin.graphs.converters.any_graph import as_graph
from graphkin.graphs.converters.attributes import AttributeNames
from graphkin.graphs.graph import Graph
from graphkin.graphs.vocabulary import Vocabulary


def read_graphs(
    graphs: Iterable[Graph], vocabulary: Vocabulary | None, names: AttributeNames
) -> list[Graph]:
    """Graphs as a model takes them: labels become tokens by its vocabulary.

    Args:
        graphs: of graphkin, NetworkX or PyG.
        vocabulary: of the model.
        names: which attributes of graphs of NetworkX the model was trained on.
    """
    known = [as_graph(graph, place, names) for place, graph in enumerate(listed(graphs))]
    if not any(graph.has_text for graph in known):
        return known
    if vocabulary is None or vocabulary.reads != "labels":
        raise ModelError(
            "the graphs have labels as text, and the model has no vocabulary of labels; take a "
            "model that was trained on such graphs"
        )
    return [vocabulary.read(graph) for graph in known]


def attribute_names(trained_on: Mapping[str, Any] | None) -> AttributeNames:
    """Which attributes of graph files and NetworkX graphs a model was trained on."""
    if trained_on is None:
        return AttributeNames()
    return AttributeNames(**trained_on["task"].get("attributes", {}))
