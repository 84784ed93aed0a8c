"""What is known of a pair by its surroundings: are callers, callees and neighbours pairs too?"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from graphkin.library.diff.pairs import Pairs
from graphkin.library.pairing import Floats

ROUNDS_OF_SHARING = 3
LEAST = 0.01
"""Pairs that are less probable say nothing of those around them."""
PAIRS_AT_ONCE = 50_000


def context_features(pairs: Pairs, probabilities: Floats) -> dict[str, Floats]:
    """How well the surroundings of each pair agree, as far as the probabilities tell."""
    shares = shared(pairs, probabilities)
    left, right = pairs.left, pairs.right
    features = agreement(pairs, shares, left.callees, right.callees, "callees")
    features |= agreement(pairs, shares, left.callees.T.tocsr(), right.callees.T.tocsr(), "callers")
    ahead, behind = left.following, left.following.T.tocsr()
    theirs_ahead, theirs_behind = right.following, right.following.T.tocsr()
    both_ahead = _sums(pairs, ahead @ shares, theirs_ahead)
    both_behind = _sums(pairs, behind @ shares, theirs_behind)
    crossed = _sums(pairs, ahead @ shares, theirs_behind)
    crossed += _sums(pairs, behind @ shares, theirs_ahead)
    return features | {
        "neighbours": np.log1p(both_ahead + both_behind),
        "neighbours_on_both_sides": np.log1p(np.minimum(both_ahead, both_behind)),
        "neighbours_crossed": np.log1p(crossed),
    }


def shared(pairs: Pairs, probabilities: Floats) -> sparse.csr_array:
    """(L, R) probabilities that add up to at most 1 in each row and column."""
    shares = np.where(probabilities < LEAST, 0.0, probabilities)
    for _ in range(ROUNDS_OF_SHARING):
        for owners, count in ((pairs.rows, len(pairs.left)), (pairs.columns, len(pairs.right))):
            sums = np.bincount(owners, shares, count)
            shares = shares / np.maximum(1, sums)[owners]
    kept = shares > 0
    cells = (pairs.rows[kept], pairs.columns[kept])
    return sparse.csr_array((shares[kept], cells), shape=(len(pairs.left), len(pairs.right)))


def agreement(
    pairs: Pairs,
    shares: sparse.csr_array,
    left: sparse.csr_array,
    right: sparse.csr_array,
    name: str,
) -> dict[str, Floats]:
    """How many of the relatives of a pair are pairs, of how many; a relative of few tells more.

    Args:
        pairs: P of them.
        shares: (L, R) how probable each is.
        left: (L, L) 1 where the column is a relative of the row.
        right: (R, R) likewise.
        name: of what the relatives are.
    """
    weights = [1 / np.log2(2 + relatives.sum(axis=0)) for relatives in (left, right)]
    ours, theirs = (
        relatives @ sparse.diags_array(np.sqrt(own))
        for relatives, own in zip((left, right), weights, strict=True)
    )
    agreed = _sums(pairs, ours @ shares, theirs)
    all_ours, all_theirs = left @ weights[0], right @ weights[1]
    known_ours = left @ (weights[0] * shares.sum(axis=1))
    known_theirs = right @ (weights[1] * shares.sum(axis=0))
    most = np.maximum(all_ours[pairs.rows], all_theirs[pairs.columns])
    known = np.minimum(known_ours[pairs.rows], known_theirs[pairs.columns])
    return {
        f"{name}_share": agreed / np.maximum(most, 1e-9),
        f"{name}_agree": np.log1p(agreed),
        f"{name}_differ": np.log1p(np.maximum(known - agreed, 0)),
    }


def _sums(pairs: Pairs, reached: sparse.csr_array, relatives: sparse.csr_array) -> Floats:
    """(P,) over the relatives of the right function, of what the left one reaches."""
    sums = np.empty(len(pairs))
    for start in range(0, len(pairs), PAIRS_AT_ONCE):
        part = slice(start, start + PAIRS_AT_ONCE)
        rows = reached[pairs.rows[part]]
        sums[part] = rows.multiply(relatives[pairs.columns[part]]).sum(axis=1)
    return sums
