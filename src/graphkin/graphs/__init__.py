"""Graphs, packed batches, converters and the corpus on disk."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphkin._support.lazy_names import lazily
from graphkin.graphs.graph import Graph, TokenBags, WordBags

if TYPE_CHECKING:
    from graphkin.graphs.batch import GraphBatch, PairBatch

__all__ = ["Graph", "GraphBatch", "PairBatch", "TokenBags", "WordBags"]

BATCHES = "graphkin.graphs.batch"
__getattr__ = lazily(__name__, {"GraphBatch": BATCHES, "PairBatch": BATCHES})
