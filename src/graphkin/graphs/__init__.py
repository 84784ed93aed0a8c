"""Graphs, packed batches, converters and the corpus on disk."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from graphkin.graphs.graph import Graph, TokenBags, WordBags

if TYPE_CHECKING:
    from graphkin.graphs.batch import GraphBatch, PairBatch

__all__ = ["Graph", "GraphBatch", "PairBatch", "TokenBags", "WordBags"]


def __getattr__(name: str) -> Any:
    """Imports batches on first use: reading binaries needs graphs, but not torch."""
    if name not in ("GraphBatch", "PairBatch"):
        raise AttributeError(f"module 'graphkin.graphs' has no attribute {name!r}")
    from graphkin.graphs import batch

    return getattr(batch, name)
