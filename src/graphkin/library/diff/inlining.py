"""What is known of a pair where one of two compilers put functions inside others.

Where the old file has a function and one that it calls, the new one may have a single function that
does what both did: it says what both say, calls what both call, and is as long as both. Both look
like it; the pair is the one that calls. So a function is also compared together with those of its
callees that have no partner of their own, or none but the function that it is compared with.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from graphkin.library.diff.context import LEAST, PAIRS_AT_ONCE, agreement, shared
from graphkin.library.diff.pairs import Pairs
from graphkin.library.diff.side import Side
from graphkin.library.pairing import Floats
from graphkin.library.signals import counted_words
from graphkin.models.answering import Embedder

DEPTH = 3
"""Calls from a function to what was put into it, at most."""
LEAST_INLINED = 0.05
"""Functions that are less probable to be without a partner are not taken for inlined."""


class Inlining:
    """Two binaries in which each function may have others inside."""

    def __init__(self, embedder: Embedder, left: Side, right: Side) -> None:
        self._embedder = embedder
        self._left, self._right = left, right

    @cached_property
    def _said(self) -> tuple[sparse.csr_array, sparse.csr_array]:
        """(L, W) and (R, W) what each function says: how rare each word is, and how often said."""
        counted = [
            [counted_words(graph) for graph in side.graphs] for side in (self._left, self._right)
        ]
        none = np.zeros(0, np.uint64)
        everything = np.unique(
            np.concatenate([none, *(own for side in counted for own, _ in side)])
        )
        rarity = self._embedder.words.rarity_of(everything)
        left, right = (
            _words_matrix(side, everything, rarity.astype(np.float64)) for side in counted
        )
        return left, right

    def features(self, pairs: Pairs, probabilities: Floats) -> dict[str, Floats]:
        """How well each pair agrees if what has no partner is inside what calls it.

        Args:
            pairs: P of them.
            probabilities: (P,) of each, as far as they are known.
        """
        left, right = self._left, self._right
        shares = shared(pairs, probabilities)
        ours = _reached(left.callees, 1 - shares.sum(axis=1))
        theirs = _reached(right.callees, 1 - shares.sum(axis=0))
        claims = _Claims(pairs, np.where(probabilities < LEAST, 0.0, _at(shares, pairs)))
        features = self._words(pairs, claims, ours.inside, theirs.inside)
        features["inlined_operations"] = self._operations(pairs, claims, ours.inside, theirs.inside)
        features |= {
            "claimed_by_callers": claims.of_callers(),
            "claimed_by_callees": claims.of_callees(),
        }
        features |= agreement(pairs, shares, ours.calls, theirs.calls, "through_callees")
        features |= agreement(
            pairs, shares, ours.calls.T.tocsr(), theirs.calls.T.tocsr(), "through_callers"
        )
        return features

    def _words(
        self,
        pairs: Pairs,
        claims: _Claims,
        inside_ours: sparse.csr_array,
        inside_theirs: sparse.csr_array,
    ) -> dict[str, Floats]:
        """By what both say with what is inside: a callee without a partner, or whose partner is
        the other function, in the share that it is."""
        ours, theirs = self._said
        whole_ours = (ours + inside_ours @ ours).tocsr()
        whole_theirs = (theirs + inside_theirs @ theirs).tocsr()
        own, other = _squares(ours), _squares(theirs)
        products = _products(whole_ours, whole_theirs, pairs.rows, pairs.columns)
        products += claims.of_left_callees(_products_where(claims, ours, whole_theirs))
        products += claims.of_right_callees(_products_where(claims, whole_ours, theirs))
        # What a callee that is claimed has in common with the rest is left out: it is little.
        lengths = [
            _squares(whole_ours)[pairs.rows]
            + claims.of_left_callees(claims.shares * own[pairs.rows]),
            _squares(whole_theirs)[pairs.columns]
            + claims.of_right_callees(claims.shares * other[pairs.columns]),
        ]
        cosines = _cosines(products, *lengths)
        alone = _products(ours, theirs, pairs.rows, pairs.columns)
        least = np.sqrt(np.minimum(*lengths))
        return {
            "inlined_words": cosines,
            "inlined_gain": cosines - _cosines(alone, own[pairs.rows], other[pairs.columns]),
            "inlined_against": np.log1p(least) * (1 - cosines),
        }

    def _operations(
        self,
        pairs: Pairs,
        claims: _Claims,
        inside_ours: sparse.csr_array,
        inside_theirs: sparse.csr_array,
    ) -> Floats:
        """(P,) how many times longer one function is than the other, with what is inside."""
        ours, theirs = (
            side.signals["operations"].astype(np.float64) for side in (self._left, self._right)
        )
        whole_ours = (ours + inside_ours @ ours)[pairs.rows]
        whole_theirs = (theirs + inside_theirs @ theirs)[pairs.columns]
        whole_ours += claims.of_left_callees(ours[pairs.rows])
        whole_theirs += claims.of_right_callees(theirs[pairs.columns])
        ratios: Floats = np.abs(np.log2(1 + whole_ours) - np.log2(1 + whole_theirs))
        return ratios


class _Claims:
    """How far each of P pairs is taken for one, for those who call it."""

    def __init__(self, pairs: Pairs, shares: Floats) -> None:
        self.pairs = pairs
        self.shares = shares
        """(P,) the probability of each, of which rows and columns have 1 at most."""

    def _spread(self, values: Floats) -> sparse.csr_array:
        """(L, R) some values of each pair, in its share."""
        shape = len(self.pairs.left), len(self.pairs.right)
        kept = self.shares > 0
        cells = self.pairs.rows[kept], self.pairs.columns[kept]
        return sparse.csr_array(((values * self.shares)[kept], cells), shape=shape)

    def of_left_callees(self, values: Floats) -> Floats:
        """(P,) the sum over callees of the left function, each as a pair with the right one."""
        return _at(self.pairs.left.callees @ self._spread(values), self.pairs)

    def of_right_callees(self, values: Floats) -> Floats:
        """(P,) the sum over callees of the right function, each as a pair with the left one."""
        return _at(self._spread(values) @ self.pairs.right.callees.T.tocsr(), self.pairs)

    def of_callees(self) -> Floats:
        """(P,) how much callees of either are taken for pairs with the other."""
        ones = np.ones(len(self.shares))
        claimed: Floats = np.log1p(self.of_left_callees(ones))
        return claimed + np.log1p(self.of_right_callees(ones))

    def of_callers(self) -> Floats:
        """(P,) how much callers of either are taken for pairs with the other."""
        shares = self._spread(np.ones(len(self.shares)))
        left = self.pairs.left.callees.T.tocsr() @ shares
        right = shares @ self.pairs.right.callees
        claimed: Floats = np.log1p(_at(left, self.pairs))
        return claimed + np.log1p(_at(right, self.pairs))


class _Reached:
    """What the functions of a side reach through others that have no partner."""

    def __init__(self, calls: sparse.csr_array, inside: sparse.csr_array) -> None:
        self.calls = calls
        """(N, N) 1 where the row calls the column, less where others without a partner are
        between."""
        self.inside = inside
        """(N, N) how far the column may be inside the row."""


def _reached(callees: sparse.csr_array, without_partner: Floats) -> _Reached:
    share = np.clip(without_partner, 0, 1)
    inlined = sparse.diags_array(np.where(share < LEAST_INLINED, 0, share))
    step = calls = callees
    for _ in range(DEPTH - 1):
        step = _without_little((step @ inlined) @ callees)
        calls = calls + step
    calls = calls.tocsr()
    calls.data = np.minimum(calls.data, 1)
    calls.setdiag(0)
    calls.eliminate_zeros()
    return _Reached(calls, _without_little(calls @ inlined))


def _without_little(matrix: sparse.csr_array) -> sparse.csr_array:
    matrix = matrix.tocsr()
    matrix.data[matrix.data < LEAST_INLINED] = 0
    matrix.eliminate_zeros()
    return matrix


def _words_matrix(
    counted: list[tuple[NDArray[np.uint64], NDArray[np.int64]]],
    everything: NDArray[np.uint64],
    rarity: Floats,
) -> sparse.csr_array:
    """(N, W) over all words of both sides."""
    rows = np.repeat(np.arange(len(counted)), [len(words) for words, _ in counted])
    words = np.concatenate([everything[:0], *(words for words, _ in counted)])
    counts = np.concatenate([np.zeros(0, np.int64), *(counts for _, counts in counted)])
    columns = np.searchsorted(everything, words)
    values = (1 + np.log(counts)) * rarity[columns]
    return sparse.csr_array((values, (rows, columns)), shape=(len(counted), len(everything)))


def _at(matrix: sparse.csr_array, pairs: Pairs) -> Floats:
    """(P,) the values at some pairs."""
    values = matrix.tocsr()[np.array(pairs.rows), np.array(pairs.columns)]
    return np.asarray(values.toarray() if sparse.issparse(values) else values).ravel()


def _squares(matrix: sparse.csr_array) -> Floats:
    """(N,) the squared length of each row."""
    return np.asarray(matrix.multiply(matrix).sum(axis=1)).ravel()


def _products(
    left: sparse.csr_array,
    right: sparse.csr_array,
    rows: NDArray[np.int64],
    columns: NDArray[np.int64],
) -> Floats:
    """(P,) of a row of one matrix with one of the other."""
    products = np.empty(len(rows))
    for start in range(0, len(rows), PAIRS_AT_ONCE):
        part = slice(start, start + PAIRS_AT_ONCE)
        products[part] = left[rows[part]].multiply(right[columns[part]]).sum(axis=1)
    return products


def _products_where(claims: _Claims, left: sparse.csr_array, right: sparse.csr_array) -> Floats:
    """(P,) of those pairs that are taken for one at all; others count nothing."""
    products = np.zeros(len(claims.shares))
    kept = np.flatnonzero(claims.shares)
    rows, columns = claims.pairs.rows[kept], claims.pairs.columns[kept]
    products[kept] = _products(left, right, rows, columns)
    return products


def _cosines(products: Floats, left: Floats, right: Floats) -> Floats:
    """(P,) from products and squared lengths; 0 for what says nothing."""
    lengths = np.sqrt(left * right)
    cosines: Floats = np.where(lengths > 0, products / np.maximum(lengths, 1e-9), 0.0)
    return np.clip(cosines, 0, 1)
