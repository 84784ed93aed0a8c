"""Pairs of functions of two binaries that may be the same, and what is known of each pair alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from graphkin.binaries.function import is_unnamed
from graphkin.library.candidates import score_pairs
from graphkin.library.diff.side import Side
from graphkin.library.models import SearchModel
from graphkin.library.pairing import Floats
from graphkin.library.ranking import COUNTS
from graphkin.library.signals import CALLS, OWN, word_cosines

MOST_ALIKE = 15
"""Functions of the other side that each is paired with."""
MATCHED = 5
"""Of which the matcher sees the first."""
ROWS_AT_ONCE = 2_000
NOT_MATCHED = -6.0
"""Score of a pair that the matcher has not seen: lower than most that it has."""
PROBABLE = 0.5
"""From here on what is around a pair is paired as well."""
MOST_RELATED = 64
"""Pairs of the callees, or of the callers, of two functions; of more, nothing is learned."""
TELLING, OTHER_WORDS, OTHER_SHAPE = 10.0, 0.1, 0.35
"""Two functions that both say much, next to nothing alike, in graphs that are not alike either,
are different ones, whatever lies around them: one may have taken the place of the other. Of
26,478 true pairs 20 are so."""
PAIRS_AT_ONCE = 100_000
SMALL = 5
"""Blocks from which on a graph tells something."""


@dataclass(frozen=True, eq=False)
class Pairs:
    """P pairs of a function of the left side and one of the right."""

    left: Side
    right: Side
    rows: NDArray[np.int64]
    """(P,) of the left side."""
    columns: NDArray[np.int64]
    """(P,) of the right side."""

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def keys(self) -> NDArray[np.int64]:
        """(P,) a number of its own for each, rising."""
        return self.rows * len(self.right) + self.columns

    def margins(self, values: Floats) -> tuple[Floats, Floats]:
        """(P,) by how much each value is above the best other of its row, and of its column.

        Where there is no other, it is 1 above.
        """
        return (
            _margins(values, self.rows, len(self.left)),
            _margins(values, self.columns, len(self.right)),
        )

    def ranks(self, values: Floats) -> NDArray[np.int64]:
        """(P,) how many of its row, or of its column if those are fewer, are above each."""
        ranks = []
        for owners in (self.rows, self.columns):
            order = np.lexsort((-values, owners))
            starts = np.flatnonzero(np.diff(owners[order], prepend=-1))
            lengths = np.diff(starts, append=len(order))
            own = np.empty(len(order), np.int64)
            own[order] = np.arange(len(order)) - np.repeat(starts, lengths)
            ranks.append(own)
        return np.minimum(*ranks)


class Paired(NamedTuple):
    """Two functions that are taken for the same."""

    row: int
    column: int
    probability: float
    alone: float
    """What the probability would be without the surroundings."""


def _margins(values: Floats, owners: NDArray[np.int64], count: int) -> Floats:
    best, second = np.full((2, count), -np.inf)
    np.maximum.at(best, owners, values)
    is_best = values >= best[owners]
    np.maximum.at(second, owners[~is_best], values[~is_best])
    is_tied = np.bincount(owners[is_best], minlength=count) > 1
    second = np.where(is_tied, best, np.where(np.isfinite(second), second, best - 1))
    margins: Floats = np.where(is_best, values - second[owners], values - best[owners])
    return margins


def same_names(left: Side, right: Side) -> dict[int, int]:
    """The function of the right side that has the name of one of the left, if each has it once."""
    places = []
    for side in (left, right):
        own: dict[str, list[int]] = {}
        for row, function in enumerate(side.functions):
            if not is_unnamed(function.name):
                own.setdefault(function.name, []).append(row)
        places.append(own)
    return {
        rows[0]: places[1][name][0]
        for name, rows in places[0].items()
        if len(rows) == 1 and len(places[1].get(name, ())) == 1
    }


def contradicted(
    least_strength: NDArray[Any], words: NDArray[Any], graph: NDArray[Any]
) -> NDArray[np.bool_]:
    """(P,) pairs of functions that are different ones.

    Args:
        least_strength: (P,) of what each of two functions says, the lower one, as log1p.
        words: (P,) cosines of what they say.
        graph: (P,) cosines of their graphs.
    """
    are_others: NDArray[np.bool_] = (
        (least_strength >= np.log1p(TELLING)) & (words < OTHER_WORDS) & (graph < OTHER_SHAPE)
    )
    return are_others


def likely_pairs(
    model: SearchModel, left: Side, right: Side, also: Mapping[int, int] = MappingProxyType({})
) -> Pairs:
    """The most alike of the other side for each function of both, by their signals.

    Functions of identical code are pairs as well, whatever their surroundings, and those of
    ``also``: rows of the left side, with their columns.
    """
    ours, theirs = _weighted(model, left), _weighted(model, right)
    if _differ_in_width(left, right):
        ours, theirs = (side[:, : -model.embedder.config.offset_dim] for side in (ours, theirs))
    own_counts, other_counts = _counts(model, left), _counts(model, right)
    count, width = min(MOST_ALIKE, len(right)), len(right)
    named = [row * width + column for row, column in also.items()]
    keys = [_identical(left, right), np.array(named, dtype=np.int64)]
    best = np.zeros((0, width), np.float32)
    owners = np.zeros((0, width), np.int64)
    for start in range(0, len(left), ROWS_AT_ONCE):
        totals = ours[start : start + ROWS_AT_ONCE] @ theirs.T
        for own, other in zip(own_counts, other_counts, strict=True):
            totals -= np.abs(own[start : start + ROWS_AT_ONCE, None] - other)
        rows = np.arange(start, start + len(totals))
        chosen = np.argpartition(totals, width - count, axis=1)[:, width - count :]
        keys.append((rows[:, None] * width + chosen).ravel())
        # The best rows of each column so far, beside those of this part.
        kept = min(MOST_ALIKE, len(totals))
        places = np.argpartition(totals, len(totals) - kept, axis=0)[len(totals) - kept :]
        best = np.concatenate([best, np.take_along_axis(totals, places, axis=0)])
        owners = np.concatenate([owners, rows[places]])
        if len(best) > MOST_ALIKE:
            places = np.argpartition(best, len(best) - MOST_ALIKE, axis=0)[-MOST_ALIKE:]
            best = np.take_along_axis(best, places, axis=0)
            owners = np.take_along_axis(owners, places, axis=0)
    keys.append((owners * width + np.arange(width)).ravel())
    return _pairs_of(left, right, np.concatenate(keys))


def with_related(pairs: Pairs, probabilities: Floats) -> Pairs:
    """More pairs: callees, callers and neighbours of those that are probably the same."""
    left, right = pairs.left, pairs.right
    callers = [_lists(side.callees.T.tocsr()) for side in (left, right)]
    keys = [pairs.keys]
    for number in np.flatnonzero(probabilities >= PROBABLE):
        row, column = int(pairs.rows[number]), int(pairs.columns[number])
        related: list[tuple[Sequence[int], Sequence[int]]] = [
            (left.calls[row], right.calls[column]),
            (callers[0][row], callers[1][column]),
            *[
                ((row + step,), (column + step,))
                for step in (-1, 1)
                if 0 <= row + step < len(left) and 0 <= column + step < len(right)
            ],
        ]
        keys += [
            np.add.outer(np.array(own) * len(right), np.array(others)).ravel()
            for own, others in related
            if 0 < len(own) * len(others) <= MOST_RELATED
        ]
    return _pairs_of(left, right, np.concatenate(keys))


def own_features(
    model: SearchModel, pairs: Pairs, known: tuple[Pairs, dict[str, Floats]] | None = None
) -> dict[str, Floats]:
    """What is known of each pair without the others, but for how far it is above them.

    Args:
        model: what compares functions.
        pairs: P of them.
        known: some of the pairs, and the features that they have already.
    """
    if known is None:
        features = _plain_features(model, pairs)
        is_new = np.ones(len(pairs), dtype=bool)
    else:
        is_new = ~np.isin(pairs.keys, known[0].keys, assume_unique=True)
        fresh = Pairs(pairs.left, pairs.right, pairs.rows[is_new], pairs.columns[is_new])
        features = {}
        for name, values in _plain_features(model, fresh).items():
            features[name] = np.empty(len(pairs))
            features[name][is_new], features[name][~is_new] = values, known[1][name]
    is_asked = is_new & (pairs.ranks(features["total"]) < MATCHED) & ~_settled(pairs)
    matched = _matched(model, pairs, is_asked)
    for name, values in matched.items():
        if known is not None:
            values[~is_new] = known[1][name]
        features[name] = values
    for name in ("total", "score"):
        rows, columns = pairs.margins(features[name])
        features |= {f"{name}_by_row": rows, f"{name}_by_column": columns}
    return features


def _plain_features(model: SearchModel, pairs: Pairs) -> dict[str, Floats]:
    """What follows from the signals of two functions."""

    def of_both(name: str) -> tuple[NDArray[Any], NDArray[Any]]:
        return (
            pairs.left.signals[name][pairs.rows],
            pairs.right.signals[name][pairs.columns],
        )

    differ_in_width = _differ_in_width(pairs.left, pairs.right)
    features = {name: _products(pairs, name) for name in OWN + CALLS}
    if differ_in_width:
        features["offsets"] = np.zeros(len(pairs))
    weights = _order(model)
    total = np.zeros(len(pairs))
    for name in OWN + CALLS:
        total += weights[name] * features[name]
    for name in (*COUNTS, "edges", "operations"):
        features[name] = _ratio(*of_both(name))
    for name in COUNTS:
        total -= weights[name] * features[name]
    strengths: list[Floats] = [np.log1p(strength) for strength in of_both("strength")]
    blocks = pairs.left.blocks[pairs.rows], pairs.right.blocks[pairs.columns]
    least_strength: Floats = np.minimum(*strengths)
    strengths_apart: Floats = np.abs(strengths[0] - strengths[1])
    ours, theirs = (np.array(side.graph_hashes, dtype=object) for side in (pairs.left, pairs.right))
    return features | {
        "total": total,
        "blocks": _ratio(*blocks),
        "strength": strengths[0],
        "least_strength": least_strength,
        "strengths": strengths_apart,
        "words_against": least_strength * (1 - features["words"]),
        "shape_against": np.log2(1.0 + np.minimum(*blocks)) * (1 - features["graph"]),
        "size": _ratio(blocks[0] - 1, np.zeros(len(pairs))),
        "small": (np.minimum(*blocks) < SMALL).astype(np.float64),
        "widths_differ": np.full(len(pairs), float(differ_in_width)),
        "equal": (ours[pairs.rows] == theirs[pairs.columns]).astype(np.float64),
        "has_callees": _both(*of_both("callees_scale")),
        "has_callers": _both(*of_both("callers_scale")),
    }


def _settled(pairs: Pairs) -> NDArray[np.bool_]:
    """(P,) pairs of a function whose code one of the other side has, and no third."""
    counts = [Counter(form.digest for form in side.code) for side in (pairs.left, pairs.right)]
    settled = {digest for digest, count in counts[0].items() if count == counts[1][digest] == 1}
    ours, theirs = (
        np.array([form.digest in settled for form in side.code], dtype=bool)
        for side in (pairs.left, pairs.right)
    )
    is_settled: NDArray[np.bool_] = ours[pairs.rows] | theirs[pairs.columns]
    return is_settled


def _matched(model: SearchModel, pairs: Pairs, is_asked: NDArray[np.bool_]) -> dict[str, Floats]:
    """Scores of the matcher and exact cosines of words, of some pairs."""
    score, words = np.full(len(pairs), NOT_MATCHED), np.zeros(len(pairs))
    numbers = np.flatnonzero(is_asked)
    left, right = pairs.left, pairs.right
    if model.matcher is not None:
        score[numbers] = score_pairs(
            model.matcher,
            [
                (left.graphs[row], left.graph_hashes[row], right.graphs[at], right.graph_hashes[at])
                for row, at in zip(
                    pairs.rows[numbers].tolist(), pairs.columns[numbers].tolist(), strict=True
                )
            ],
        )
    starts = np.flatnonzero(np.diff(pairs.rows[numbers], prepend=-1))
    for own in np.split(numbers, starts[1:]):
        if len(own):
            others = [right.graphs[column] for column in pairs.columns[own].tolist()]
            words[own] = word_cosines(model.embedder, left.graphs[pairs.rows[own[0]]], others)
    return {"score": score, "exact_words": words, "seen": is_asked.astype(np.float64)}


def _pairs_of(left: Side, right: Side, keys: NDArray[np.int64]) -> Pairs:
    rows, columns = np.divmod(np.unique(keys), max(len(right), 1))
    return Pairs(left, right, rows, columns)


def _identical(left: Side, right: Side) -> NDArray[np.int64]:
    """Keys of the pairs whose code is identical, but for code that too many have."""
    owners: dict[bytes, tuple[list[int], list[int]]] = {}
    for number, side in enumerate((left, right)):
        for row, form in enumerate(side.code):
            owners.setdefault(form.digest, ([], []))[number].append(row)
    keys = [
        row * len(right) + column
        for rows, columns in owners.values()
        if len(rows) * len(columns) <= MOST_RELATED
        for row in rows
        for column in columns
    ]
    return np.array(keys, dtype=np.int64)


def _weighted(model: SearchModel, side: Side) -> NDArray[np.float32]:
    """(N, D) vectors whose products are the totals of the ranking, but for the counts; offsets
    are last."""
    weights = _order(model)
    names = ("graph", "words", *CALLS, "offsets")
    parts = [
        side.signals[name].astype(np.float32)
        * (side.signals[f"{name}_scale"] * np.sqrt(weights[name]))[:, None]
        for name in names
    ]
    return np.concatenate(parts, axis=1)


def _counts(model: SearchModel, side: Side) -> list[NDArray[np.float32]]:
    weights = _order(model)
    return [
        (weights[name] * np.log2(1.0 + side.signals[name])).astype(np.float32) for name in COUNTS
    ]


def _order(model: SearchModel) -> dict[str, float]:
    assert model.ranking is not None, "a side is made by a model with a ranking"
    fitted_with = {} if model.pairing is None else model.pairing.order
    return fitted_with or model.ranking.order


def _differ_in_width(left: Side, right: Side) -> bool:
    return bool(left.signals["narrow"].any() != right.signals["narrow"].any())


def _products(pairs: Pairs, name: str) -> Floats:
    """(P,) of a part of the vectors."""
    products = np.empty(len(pairs))
    for start in range(0, len(pairs), PAIRS_AT_ONCE):
        part = slice(start, start + PAIRS_AT_ONCE)
        ours = pairs.left.signals[name][pairs.rows[part]].astype(np.float32)
        theirs = pairs.right.signals[name][pairs.columns[part]].astype(np.float32)
        products[part] = np.einsum("pd,pd->p", ours, theirs)
    products *= pairs.left.signals[f"{name}_scale"][pairs.rows]
    products *= pairs.right.signals[f"{name}_scale"][pairs.columns]
    return products


def _ratio(left: NDArray[Any], right: NDArray[Any]) -> Floats:
    """(P,) how many times larger one number is than the other, as log2."""
    ratios: Floats = np.abs(np.log2(1.0 + left) - np.log2(1.0 + right))
    return ratios


def _both(left: NDArray[Any], right: NDArray[Any]) -> Floats:
    """(P,) 1 where both are above 0."""
    return ((left > 0) & (right > 0)).astype(np.float64)


def _lists(matrix: sparse.csr_array) -> list[list[int]]:
    """The columns of each row."""
    return [own.tolist() for own in np.split(matrix.indices, matrix.indptr[1:-1])]
