"""What a search finds: hits in order, and why each of them is one."""

from __future__ import annotations

from dataclasses import dataclass, replace

from graphkin.results.known_function import KnownFunction


@dataclass(frozen=True)
class BlockPair:
    """A block of the query and the block of the hit that it matches."""

    left: int
    """Number of the query's block, from 0."""
    right: int
    """Number of the hit's block, from 0."""
    weight: float
    """How much each of the two attends to the other, from 0 to 1."""


@dataclass(frozen=True)
class Evidence:
    """Why the matcher takes two functions for the same."""

    matched_share: float
    """Share of the query's blocks that have a partner, from 0 to 1."""
    pairs: tuple[BlockPair, ...]
    """The strongest first."""
    step: int = 0
    """The propagation step after which this was seen."""


@dataclass(frozen=True)
class Hit:
    """A function of the library that resembles the query."""

    id: int
    entry: KnownFunction
    nodes: int
    """Basic blocks."""
    distance: float
    """Bits of the codes that differ, or the distance of the vectors."""
    rank_before: int
    """Place by distance alone, from 1."""
    score: float | None = None
    """Of the matcher; None where it was not asked."""
    probability: float | None = None
    """That both are the same code, from the score."""
    evidence: Evidence | None = None
    graph_hash: str = ""
    """Of its graph: hits of one hash are copies of each other."""


@dataclass(frozen=True)
class Query:
    """The function that was looked for."""

    binary: str
    """The file; a member of an archive is ``path(member)``."""
    function: str
    address: int | None
    nodes: int
    """Basic blocks."""


@dataclass(frozen=True)
class SearchResult:
    """One query function and what was found for it."""

    query: Query
    hits: tuple[Hit, ...]
    """The best first."""

    def above(self, probability: float) -> SearchResult:
        """The result without hits that are less probable; what has no probability stays."""
        kept = [
            hit for hit in self.hits if hit.probability is None or hit.probability >= probability
        ]
        return replace(self, hits=tuple(kept))
