"""From attention between two graphs to the blocks that match."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from graphkin.models.node_matching import Partners, assigned
from graphkin.results.document import BlockPair, Evidence

STRONGEST = 10
"""Pairs of blocks that evidence lists."""
NEARLY = 0.95
"""Of the largest attention that a node pays: what gets that much counts as the most."""
LEAST_WEIGHT = 0.5
"""Attention that a block pays its partner, at least, for the two to count as matched."""


Looks = NDArray[np.float32] | Partners
"""Where the nodes of a graph look: (n, m) attention, or of large graphs only where most."""


class Attention(Protocol):
    """What a matcher explains: ``AttentionMaps`` and ``PartnerMaps`` fit."""

    @property
    def left_to_right(self) -> Sequence[Looks]:
        """(n1, n2) for each step: row i says where node i of the left graph looks."""

    @property
    def right_to_left(self) -> Sequence[Looks]:
        """(n2, n1) for each step: row j says where node j of the right graph looks."""


def mutual_pairs(left_to_right: Looks, right_to_left: Looks) -> list[BlockPair]:
    """Blocks that look at each other most, in the order of the left ones.

    The weight of a pair is the smaller of the two: both must look firmly.
    """
    ahead, back = (
        looks if isinstance(looks, Partners) else Partners.of([looks])
        for looks in (left_to_right, right_to_left)
    )
    is_mutual = back.nodes[ahead.nodes] == np.arange(len(ahead.nodes))
    weights = np.minimum(ahead.weights, back.weights[ahead.nodes])
    return [
        BlockPair(int(row), int(ahead.nodes[row]), float(weights[row]))
        for row in np.flatnonzero(is_mutual)
    ]


def matched_blocks(left_to_right: Looks, right_to_left: Looks, step: int = 0) -> Evidence:
    """The evidence in attention (n1, n2) of the left graph, and (n2, n1) of the right one.

    Two blocks are matched where each is what the other looks at most, and both look firmly.
    """
    matched = _firm(mutual_pairs(left_to_right, right_to_left))
    share = len(matched) / max(left_to_right.shape[0], 1)
    return Evidence(matched_share=share, pairs=_strongest(matched), step=step)


def equal_pairs(left_to_right: Looks, right_to_left: Looks) -> list[BlockPair]:
    """Each block of a function and itself, in another that is equal to it.

    Blocks that are repeated share the attention that they get, which is no reason for doubt here.
    """
    weights = np.minimum(_on_itself(left_to_right), _on_itself(right_to_left))
    return [BlockPair(number, number, float(weight)) for number, weight in enumerate(weights)]


def _on_itself(looks: Looks) -> NDArray[np.float32]:
    """The attention that each node pays the one of its own number, as far as that is known."""
    if not isinstance(looks, Partners):
        return looks.diagonal()
    is_own = looks.nodes == np.arange(len(looks.nodes))
    return np.where(is_own, looks.weights, np.float32(0))


def _firm(pairs: list[BlockPair]) -> list[BlockPair]:
    return [pair for pair in pairs if pair.weight >= LEAST_WEIGHT]


def _strongest(pairs: list[BlockPair]) -> tuple[BlockPair, ...]:
    return tuple(sorted(pairs, key=lambda pair: -pair.weight)[:STRONGEST])


def node_pairs(left_to_right: Looks, right_to_left: Looks) -> list[BlockPair]:
    """Nodes of two graphs that are partners, in the order of the left ones.

    Of the one-to-one assignment, those pairs in which each node is what the other looks at most.
    Nodes that nothing tells apart, such as the hydrogens of a methyl group, share the attention
    that they get, so that no least weight is asked for, and whoever is looked at nearly as much as
    the most counts as well. Of large graphs, whose assignment would take long, they are the nodes
    that look at each other most.
    """
    if isinstance(left_to_right, Partners) or isinstance(right_to_left, Partners):
        return mutual_pairs(left_to_right, right_to_left)
    most = left_to_right.max(axis=1), right_to_left.max(axis=1)
    return [
        BlockPair(*pair)
        for pair in assigned(left_to_right, right_to_left)
        if left_to_right[pair.left, pair.right] >= NEARLY * most[0][pair.left]
        and right_to_left[pair.right, pair.left] >= NEARLY * most[1][pair.right]
    ]


def node_evidence(maps: Attention, most: int | None = STRONGEST) -> Evidence:
    """The evidence in the last attention of two graphs, which is what ``match`` goes by.

    Args:
        maps: where their nodes look.
        most: pairs that it lists; None for all.
    """
    step = len(maps.left_to_right) - 1
    pairs = node_pairs(maps.left_to_right[step], maps.right_to_left[step])
    strongest = sorted(pairs, key=lambda pair: -pair.weight)
    share = len(pairs) / max(maps.left_to_right[step].shape[0], 1)
    return Evidence(matched_share=share, pairs=tuple(strongest[:most]), step=step)


def best_evidence(maps: Attention, *, equal: bool = False) -> Evidence:
    """The evidence of the propagation step at which most blocks are matched, the first of them.

    Before it, blocks know little of their surroundings; later, all know much of the whole graph.

    Args:
        maps: where the blocks of two functions look.
        equal: whether their graphs are equal; then all blocks are matched, whatever the attention.
    """
    if equal:
        pairs = equal_pairs(maps.left_to_right[0], maps.right_to_left[0])
        return Evidence(matched_share=1.0, pairs=_strongest(_firm(pairs)), equal=True)
    both_ways = zip(maps.left_to_right, maps.right_to_left, strict=True)
    steps = [matched_blocks(*maps_of_step, step) for step, maps_of_step in enumerate(both_ways)]
    return max(steps, key=lambda evidence: evidence.matched_share or 0.0)
