"""A query on its way through a search, and what may become its hits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from graphkin.graphs import Graph
from graphkin.library.models import SearchModel
from graphkin.library.records import Stored, Vector
from graphkin.library.signals import Surroundings
from graphkin.results.document import EvidenceToken

if TYPE_CHECKING:
    from graphkin.models.answering import Matcher


@dataclass(frozen=True, eq=False)
class EncodedQuery:
    """A graph to look for, with all that is compared of it before graphs are read."""

    graph: Graph
    vector: Vector
    signals: np.void | None = None
    """Where the model has a ranking."""
    unrounded: NDArray[np.float32] | None = None
    """(bits,) numbers whose signs are the code, where they are known."""
    texts: Mapping[int, EvidenceToken] = field(default_factory=dict)
    """What it says, by the hash of the word: a library keeps hashes only."""
    beside: list[EncodedQuery] = field(default_factory=list, repr=False)
    """Functions that lie beside it in its file, where that is known."""


@dataclass(frozen=True)
class Candidate:
    """A graph of the library on its way to become a hit."""

    stored: Stored
    distance: float
    rank_by_distance: int
    probability: float | None
    score: float | None = None
    note: str | None = None
    """Why the probability is what it is, where that needs saying."""
    is_equal: bool = False
    """Whether its graph is the query's own, node by node."""

    @property
    def order(self) -> tuple[bool, float, float, int]:
        """The most probable come first; without a probability, the query's own graph, then those
        with the highest score: no matcher is sure to find a graph most like itself."""
        likeness = self.score if self.probability is None else self.probability
        is_behind = self.probability is None and not self.is_equal
        return (is_behind, -(likeness or 0.0), self.distance, self.stored.id)


def encode_queries(
    model: SearchModel,
    graphs: Sequence[Graph],
    architectures: Sequence[str] = (),
    surroundings: Sequence[Surroundings] | None = None,
    texts: Sequence[Mapping[int, EvidenceToken]] | None = None,
) -> list[EncodedQuery]:
    """Queries from graphs; the arguments are those of :meth:`SearchModel.encoded`."""
    graphs = model.embedder.read(graphs)
    encoded = model.encoded(graphs, architectures, surroundings)
    return [
        EncodedQuery(
            graph,
            encoded.vectors[row],
            None if encoded.signals is None else encoded.signals[row],
            None if encoded.unrounded is None else encoded.unrounded[row],
            {} if texts is None else texts[row],
        )
        for row, graph in enumerate(graphs)
    ]


def score_candidates(
    matcher: Matcher,
    queries: Sequence[EncodedQuery],
    candidates: Sequence[Sequence[Candidate]],
    graphs: Mapping[int, Graph],
) -> list[NDArray[np.float32]]:
    """(N,) scores of the matcher for the candidates of each query, whose graphs are given by id."""
    pairs = [
        (query.graph, query_hash, graphs[item.stored.id], item.stored.graph_hash)
        for query, query_hash, own in zip(
            queries, (query.graph.digest() for query in queries), candidates, strict=True
        )
        for item in own
    ]
    ends = np.cumsum([len(own) for own in candidates])[:-1]
    return np.split(score_pairs(matcher, pairs), ends)


def score_pairs(
    matcher: Matcher, pairs: Sequence[tuple[Graph, str, Graph, str]]
) -> NDArray[np.float32]:
    """(P,) scores of the matcher; a pair of contents that occurs twice is computed once.

    Compilers make equal graphs of a function at several levels, so that a third of the candidates
    of a query may be copies of others.

    Args:
        matcher: what scores.
        pairs: two graphs, each with its hash.
    """
    rows: dict[tuple[str, str], int] = {}
    distinct: list[tuple[Graph, Graph]] = []
    row_of = np.empty(len(pairs), dtype=np.int64)
    for number, (left, left_hash, right, right_hash) in enumerate(pairs):
        row = rows.setdefault((left_hash, right_hash), len(distinct))
        if row == len(distinct):
            distinct.append((left, right))
        row_of[number] = row
    if not distinct:
        return np.zeros(0, dtype=np.float32)
    return matcher.similarities(distinct)[row_of]
