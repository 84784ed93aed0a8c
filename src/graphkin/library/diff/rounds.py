"""Which function of one binary is which of the other: rounds of probabilities, then an assignment.

At last every function has at most one partner.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.csgraph import min_weight_full_bipartite_matching

from graphkin.binaries.function import is_unnamed
from graphkin.errors import ModelError
from graphkin.library.diff.context import context_features
from graphkin.library.diff.gaps import with_gaps
from graphkin.library.diff.inlining import Inlining
from graphkin.library.diff.order import order_features
from graphkin.library.diff.pairs import (
    Paired,
    Pairs,
    contradicted,
    likely_pairs,
    own_features,
    same_names,
    with_related,
)
from graphkin.library.diff.side import Side
from graphkin.library.models import SearchModel
from graphkin.library.pairing import Features, Floats, Round, names_of

LITTLE = 4.0
"""Margins of exponents, from which on more makes little difference."""
IDENTICAL = 0.995
"""Least probability of two functions of identical code, where no other has it."""
SAME_NAME = 0.999
"""Probability of two functions whose name both binaries have once."""
CONTRADICTED = 0.09
"""Too little for a pair of a diff."""
RENAMED = 0.9
"""Probability from which on two functions of different names are taken for the same."""
SURROUNDINGS = 0.5
"""A pair that is less probable by itself was found by its surroundings."""
DIGITS = 9
"""Of a probability: further ones depend on where in memory the features lie."""
LEAST_PROBABILITY = 0.05
"""Pairs that are less probable are never made."""


def pair(model: SearchModel, left: Side, right: Side, *, by_name: bool = True) -> list[Paired]:
    """The most probable pairs, each function in at most one, in the order of the left side.

    Args:
        model: what compares functions.
        left: the old binary.
        right: the new one.
        by_name: functions whose name both binaries have once are pairs; else names do not count.
    """
    if model.pairing is None:
        raise ModelError(
            f"the model {model.model_id} cannot pair the functions of two binaries; take one that "
            "can, such as functions"
        )
    if not len(left) or not len(right):
        return []
    first, *others = model.pairing.rounds
    names = same_names(left, right) if by_name else {}
    pairs = likely_pairs(model, left, right, names)
    features = own_features(model, pairs)
    alone = with_names(pairs, round_probabilities(pairs, features, first, 0), names)
    more = with_related(pairs, alone)
    if len(more) > len(pairs):
        pairs, features = more, own_features(model, more, (pairs, features))
        alone = with_names(pairs, round_probabilities(pairs, features, first, 0), names)
    probabilities = alone
    inlining = Inlining(model.embedder, left, right)
    for number, own in enumerate(others, start=1):
        known = features | context_features(pairs, probabilities)
        if own.is_late:
            known |= inlining.features(pairs, probabilities)
            known |= order_features(pairs, probabilities)
        probabilities = with_names(pairs, round_probabilities(pairs, known, own, number), names)
    if by_name:
        probabilities = with_other_names(pairs, probabilities)
    probabilities = np.round(probabilities, DIGITS)
    paired = [
        Paired(
            int(pairs.rows[number]),
            int(pairs.columns[number]),
            float(probabilities[number]),
            float(alone[number]),
        )
        for number in assigned(pairs, probabilities)
    ]
    return with_gaps(left, right, paired, by_name=by_name)


def round_probabilities(pairs: Pairs, features: Features, own: Round, number: int) -> Floats:
    """(P,) what one round makes of its features."""
    exponents = own.exponents(features, names_of(number, is_late=own.is_late))
    probabilities = own.competing(competing_features(pairs, exponents))
    are_others = contradicted(features["least_strength"], features["words"], features["graph"])
    probabilities = np.where(are_others, np.minimum(probabilities, CONTRADICTED), probabilities)
    return with_identical(pairs, probabilities)


def competing_features(pairs: Pairs, exponent: Floats) -> Floats:
    """(P, 6) over ``COMPETING_NAMES``."""
    by_row, by_column = pairs.margins(exponent)
    little = (np.clip(margin, -LITTLE, LITTLE) for margin in (by_row, by_column))
    return np.column_stack([exponent, by_row, by_column, np.minimum(by_row, by_column), *little])


def with_names(pairs: Pairs, probabilities: Floats, names: Mapping[int, int]) -> Floats:
    """Functions of one name are a pair, and in no other; others of two names need to be sure.

    Args:
        pairs: P of them.
        probabilities: (P,) without the names.
        names: the function of the right side that has the name of one of the left.
    """
    if not names:
        return probabilities
    expected = np.array([names.get(row, -1) for row in range(len(pairs.left))])
    is_taken = np.zeros(len(pairs.right), dtype=bool)
    is_taken[list(names.values())] = True
    is_pair = expected[pairs.rows] == pairs.columns
    is_other = (expected[pairs.rows] >= 0) | is_taken[pairs.columns]
    return np.where(is_pair, SAME_NAME, np.where(is_other, 0.0, probabilities))


def with_other_names(pairs: Pairs, probabilities: Floats) -> Floats:
    """Functions of two different names are no pair, unless that is sure: somebody renamed it."""
    ours, theirs = (
        np.array([not is_unnamed(function.name) for function in side.functions], dtype=bool)
        for side in (pairs.left, pairs.right)
    )
    names = [
        np.array([function.name for function in side.functions], dtype=object)
        for side in (pairs.left, pairs.right)
    ]
    is_renamed = ours[pairs.rows] & theirs[pairs.columns]
    is_renamed &= names[0][pairs.rows] != names[1][pairs.columns]
    is_doubtful = is_renamed & (probabilities < RENAMED)
    return np.where(is_doubtful, np.minimum(probabilities, CONTRADICTED), probabilities)


def with_identical(pairs: Pairs, probabilities: Floats) -> Floats:
    """Identical code is nearly certain; functions that share it share that as well."""
    digests = [
        np.array([form.digest for form in side.code], dtype=object)
        for side in (pairs.left, pairs.right)
    ]
    is_identical = digests[0][pairs.rows] == digests[1][pairs.columns]
    copies = [_copies(own) for own in digests]
    most = np.maximum(copies[0][pairs.rows], copies[1][pairs.columns])
    return np.where(is_identical, np.maximum(probabilities, IDENTICAL / most), probabilities)


def _copies(digests: NDArray[Any]) -> NDArray[np.int64]:
    """(N,) how many have the digest of each."""
    counts: dict[bytes, int] = {}
    for digest in digests:
        counts[digest] = counts.get(digest, 0) + 1
    return np.array([counts[digest] for digest in digests], dtype=np.int64)


def assigned(pairs: Pairs, probabilities: Floats) -> NDArray[np.int64]:
    """Numbers of the pairs that are together most probable, each function in at most one."""
    numbers = np.flatnonzero(probabilities >= LEAST_PROBABILITY)
    if not len(numbers):
        return numbers
    chosen = probabilities[numbers]
    odds = np.log(chosen / np.maximum(1 - chosen, 1e-9))
    least = np.log(LEAST_PROBABILITY / (1 - LEAST_PROBABILITY))
    # A column of its own for each row that stays without a partner; costs must not be 0.
    count, width = len(pairs.left), len(pairs.right)
    rows = np.concatenate([pairs.rows[numbers], np.arange(count)])
    columns = np.concatenate([pairs.columns[numbers], width + np.arange(count)])
    costs = 1 + np.concatenate([odds.max() - odds, np.full(count, odds.max() - least)])
    matrix = sparse.csr_array((costs, (rows, columns)), shape=(count, width + count))
    own_rows, own_columns = min_weight_full_bipartite_matching(matrix)
    partners = np.full(count, -1)
    partners[own_rows] = own_columns
    is_assigned: NDArray[np.bool_] = partners[pairs.rows[numbers]] == pairs.columns[numbers]
    return numbers[is_assigned]
