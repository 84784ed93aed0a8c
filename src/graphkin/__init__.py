"""graphkin learns how similar graphs are, and finds a graph's kin."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphkin._support.lazy_names import lazily

if TYPE_CHECKING:
    from graphkin.graphs import Graph, GraphBatch, PairBatch, TokenBags
    from graphkin.library.compare import compare
    from graphkin.library.compare_graphs import compare_graphs
    from graphkin.library.diff.diff import diff
    from graphkin.library.library import Library
    from graphkin.library.naming import names
    from graphkin.library.records import Filter
    from graphkin.library.report import search
    from graphkin.library.scan import scan
    from graphkin.models import AttentionMaps, GraphEmbedder, GraphMatcher, ModelConfig, load_model

__version__ = "0.1.0"

_HOMES = {
    "AttentionMaps": "graphkin.models",
    "Filter": "graphkin.library.records",
    "Graph": "graphkin.graphs",
    "GraphBatch": "graphkin.graphs",
    "GraphEmbedder": "graphkin.models",
    "GraphMatcher": "graphkin.models",
    "Library": "graphkin.library.library",
    "ModelConfig": "graphkin.models",
    "PairBatch": "graphkin.graphs",
    "TokenBags": "graphkin.graphs",
    "compare": "graphkin.library.compare",
    "compare_graphs": "graphkin.library.compare_graphs",
    "diff": "graphkin.library.diff.diff",
    "load_model": "graphkin.models",
    "names": "graphkin.library.naming",
    "scan": "graphkin.library.scan",
    "search": "graphkin.library.report",
}

__all__ = [
    "AttentionMaps",
    "Filter",
    "Graph",
    "GraphBatch",
    "GraphEmbedder",
    "GraphMatcher",
    "Library",
    "ModelConfig",
    "PairBatch",
    "TokenBags",
    "compare",
    "compare_graphs",
    "diff",
    "load_model",
    "names",
    "scan",
    "search",
]


def __dir__() -> list[str]:
    return [*__all__, "__version__"]


__getattr__ = lazily(__name__, _HOMES)
