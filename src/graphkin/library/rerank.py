"""A second look at what was found: pairs are scored by the matcher, and the best explained."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from graphkin.graphs import Graph
from graphkin.results.document import BlockPair, Evidence

if TYPE_CHECKING:
    from graphkin._support.progress import Progress
    from graphkin.models import GraphMatcher

STRONGEST = 10
"""Pairs of nodes that evidence lists."""
LEAST_WEIGHT = 0.5
"""Attention that a node pays its partner, at least, for the two to count as matched."""

Pair = tuple[Graph, str, Graph, str]
"""Two graphs, each with its hash."""


class Attention(Protocol):
    """What a matcher explains: :class:`graphkin.models.matcher.AttentionMaps` fits."""

    @property
    def left_to_right(self) -> Sequence[NDArray[np.float32]]:
        """(n1, n2) for each step: row i says where node i of the left graph looks."""

    @property
    def right_to_left(self) -> Sequence[NDArray[np.float32]]:
        """(n2, n1) for each step: row j says where node j of the right graph looks."""


def score_pairs(
    matcher: GraphMatcher, pairs: Sequence[Pair], progress: Progress | None = None
) -> NDArray[np.float32]:
    """(P,) scores of the matcher; a pair of contents that occurs twice is computed once.

    Compilers make equal graphs of a function at several levels, so that a third of the candidates
    of a query may be copies of others.
    """
    distinct: dict[tuple[str, str], int] = {}
    graphs: list[tuple[Graph, Graph]] = []
    places = np.empty(len(pairs), dtype=np.int64)
    for row, (left, left_hash, right, right_hash) in enumerate(pairs):
        place = distinct.setdefault((left_hash, right_hash), len(graphs))
        if place == len(graphs):
            graphs.append((left, right))
        places[row] = place
    if not graphs:
        return np.zeros(0, dtype=np.float32)
    return matcher.predict(graphs, progress=progress)[places]


def evidence(matcher: GraphMatcher, left: Graph, right: Graph) -> Evidence:
    """Which nodes look at each other.

    Two nodes are matched where each is what the other looks at most, and both look firmly. Of the
    propagation steps, the one counts at which most nodes are: before, nodes know little of their
    surroundings, and later all know much of the whole graph.
    """
    return best_evidence(matcher.explain(left, right))


def best_evidence(maps: Attention) -> Evidence:
    """The evidence of the step at which most nodes are matched, the first of them."""
    both = zip(maps.left_to_right, maps.right_to_left, strict=True)
    found = [replace(matched_nodes(*pair), step=step) for step, pair in enumerate(both)]
    return max(found, key=lambda one: one.matched_share)


def matched_nodes(forth: NDArray[np.float32], back: NDArray[np.float32]) -> Evidence:
    """The evidence in attention (n1, n2) of the left graph, and (n2, n1) of the right one."""
    partners = forth.argmax(axis=1)
    rows = np.arange(len(forth))
    weights = np.minimum(forth[rows, partners], back[partners, rows])
    mutual = (back.argmax(axis=1)[partners] == rows) & (weights >= LEAST_WEIGHT)
    order = np.argsort(-weights, kind="stable")
    chosen = order[mutual[order]][:STRONGEST].tolist()
    pairs = [BlockPair(row, int(partners[row]), float(weights[row])) for row in chosen]
    return Evidence(float(mutual.mean()), tuple(pairs))
