"""Graphs, packed batches, converters and the corpus on disk."""

from graphkin.graphs.batch import GraphBatch, PairBatch
from graphkin.graphs.graph import Graph, TokenBags

__all__ = ["Graph", "GraphBatch", "PairBatch", "TokenBags"]
