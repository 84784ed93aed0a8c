"""From signals to an order and a probability: all that a search knows of a pair, in one regression.

The probability of a hit says how likely it is that both are the same function, among all that the
library holds, and not none of them: a small function that many others equal is not certain,
whatever its distance.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from graphkin.errors import FormatError
from graphkin.library.odds import Odds, best_of_each, probabilities_of
from graphkin.library.signals import AROUND, CALLS, OWN, ComparedGraphs, Floats, Records, cosines

FORMAT = "graphkin ranking"
VERSIONS = {2: CALLS, 3: AROUND}
"""What rankings know of the functions around one; files of earlier versions are read as well."""
COUNTS = ("callee_count", "caller_count")
ALONE = (
    *OWN,
    "total",
    "margin",
    "blocks",
    "edges",
    "operations",
    "callee_count",
    "strength",
    "least_strength",
    "size",
    "widths_differ",
    "equal",
    "density",
    "density_there",
    "more_blocks",
    "more_operations",
)
"""Features of a pair: products of vectors; their weighted sum, and by how much it is above that of
the best other function; logarithms of ratios of blocks, edges and operations, and of the numbers of
callees; how much the query says, and the one of the two that says less; the logarithm of the
query's blocks; whether pointers differ in width; whether the graphs are equal. How two builds of a
function were made decides how alike they are; so operations in a block, on both sides, and ratios
with their signs are among the features."""
MATCHED = ("exact_words", "score", "score_margin", "operations_apart", "on_stack", "on_stack_there")
"""Of candidates that the matcher has seen: the exact cosine of what both say, the matcher's score,
and by how much it is above that of the best other function; how far the kinds of operations are
apart, and the share of them on either side that load from the stack or store there, most of all
without optimization."""
UNIQUE_EQUAL = 0.99
"""Least probability of a function that is equal to the query, where no other name has it."""
SMALL_BLOCKS, SMALL_STRENGTH = 8, 10.0
"""A function with fewer blocks, which says less, is too small to be told from others like it."""
LEVEL = 0.03
"""Totals that are no further apart are level: nothing tells such candidates apart."""
ENOUGH_OTHERS = 500
"""Functions of a library that show how many others a small one is like. Where there are fewer, that
nothing else is level with a hit tells nothing."""
MOST_AMONG_FEW = 0.4
"""The most that a hit of such a function has there: about how often its best hit among thousands of
functions is right, at best; see experiments/README.md."""
AGREEING = 0.7
"""Product of what two functions call, are called by or lie beside, from which on their places in
their files are evidence."""
TOO_SMALL = "too small to tell"
LIKELY = 0.5
"""A hit that is at least so probable needs no such note."""


def ordered_by(around: Sequence[str] = AROUND) -> tuple[str, ...]:
    """What candidates are ordered by: products of vectors, and how far the numbers of callees and
    callers are apart."""
    return (*OWN, *around, *COUNTS)


def variants(around: Sequence[str] = AROUND) -> dict[str, tuple[str, ...]]:
    """The features of each variant, which is what is known of a pair: of functions alone or in
    their files, before or after the matcher saw them; and of two functions that are compared by
    themselves, without any others.

    In files there are products of what both call, are called by and lie beside, the ratio of the
    numbers of callers, and whether both have any.
    """
    in_files = (*around, "caller_count", *(f"has_{name}" for name in around))
    return {
        "alone": ALONE,
        "matched": ALONE + MATCHED,
        "alone in files": ALONE + in_files,
        "matched in files": ALONE + in_files + MATCHED,
        "pair": tuple(name for name in ALONE + MATCHED if not name.endswith("margin")),
    }


class MatchedGraphs(NamedTuple):
    """What is known of candidates whose graphs were read and compared with the query's."""

    scores: Floats
    """(N,) of the matcher."""
    graphs: ComparedGraphs


class Candidates(NamedTuple):
    """Functions of a library that may be the same as a query."""

    records: Records
    """(N,) their signals."""
    blocks: NDArray[np.int64]
    """(N,)"""
    equal: NDArray[np.bool_]
    """(N,) whether the graph is exactly that of the query."""
    identities: Sequence[str]
    """Of which source function each is, as far as the library can tell: builds of one function
    do not compete."""
    compared: int = ENOUGH_OTHERS
    """How many functions of the library they are the best of."""

    def chosen(self, rows: Sequence[int]) -> Candidates:
        """Some of them, in that order."""
        numbers = np.array(rows, dtype=np.int64)
        identities = [self.identities[row] for row in rows]
        return Candidates(
            self.records[numbers],
            self.blocks[numbers],
            self.equal[numbers],
            identities,
            self.compared,
        )


class PairProbability(NamedTuple):
    """How likely two functions are the same."""

    probability: float
    note: str | None
    """Of :func:`note_of`."""


@dataclass(frozen=True)
class Ranking:
    """How candidates are ordered, and how probable they are; see ``ranking.json`` of a model."""

    order: dict[str, float]
    """Weights over :func:`ordered_by`, to order candidates before they are matched."""
    regressions: dict[str, Odds]
    """By the name of a variant; see :func:`variants`."""
    fitted_on: dict[str, Any]
    """Projects, queries and pools of the fit."""

    @property
    def around(self) -> tuple[str, ...]:
        """Which of ``AROUND`` it compares."""
        return tuple(name for name in AROUND if name in self.order)

    def totals(self, query: np.void, records: Records) -> Floats:
        """(N,) how alike candidates are by their vectors, to order them."""
        total = np.zeros(len(records), np.float32)
        widths_differ = records["narrow"] != query["narrow"]
        in_files = records["in_file"] & query["in_file"]
        for name, weight in self.order.items():
            if name in COUNTS:
                total -= weight * in_files * _ratio(query[name], records[name])
            elif name == "offsets":
                total += weight * np.where(widths_differ, 0, cosines(query, records, name))
            else:
                total += weight * cosines(query, records, name)
        return total

    def features(
        self,
        query: np.void,
        blocks: int,
        candidates: Candidates,
        seen: MatchedGraphs | None = None,
    ) -> dict[str, NDArray[np.float64]]:
        """(N,) each feature that can be known.

        Args:
            query: its signals.
            blocks: of the query.
            candidates: all that were considered; margins are among them.
            seen: what their graphs tell, where they were read.
        """
        records = candidates.records
        widths_differ = records["narrow"] != query["narrow"]
        own = {name: cosines(query, records, name).astype(np.float64) for name in OWN + self.around}
        own["offsets"] = np.where(widths_differ, 0, own["offsets"])
        total = self.totals(query, records).astype(np.float64)
        density, operations = _density(query["operations"], np.array(blocks)), records["operations"]
        features = own | {
            "total": total,
            "margin": _margins(total, candidates.identities),
            "blocks": _ratio(blocks, candidates.blocks),
            "edges": _ratio(query["edges"], records["edges"]),
            "operations": _ratio(query["operations"], records["operations"]),
            **{name: _ratio(query[name], records[name]) for name in COUNTS},
            **{f"has_{name}": _both_have(query, records, name) for name in self.around},
            "strength": np.full(len(records), np.log1p(query["strength"])),
            "least_strength": np.log1p(np.minimum(query["strength"], records["strength"])),
            "size": np.full(len(records), np.log2(max(blocks, 1))),
            "widths_differ": widths_differ.astype(np.float64),
            "equal": candidates.equal.astype(np.float64),
            "density": np.full(len(records), density),
            "density_there": _density(operations, candidates.blocks),
            "more_blocks": _times_more(blocks, candidates.blocks),
            "more_operations": _times_more(query["operations"], operations),
        }
        if seen is not None:
            scores, graphs = seen.scores.astype(np.float64), seen.graphs
            features |= {
                "exact_words": graphs.exact_words.astype(np.float64),
                "score": scores,
                "score_margin": _margins(scores, candidates.identities),
                "operations_apart": graphs.operations_apart.astype(np.float64),
                "on_stack": np.full(len(records), float(graphs.on_stack)),
                "on_stack_there": graphs.on_stack_there.astype(np.float64),
            }
        return features

    def probabilities(
        self,
        query: np.void,
        blocks: int,
        candidates: Candidates,
        seen: MatchedGraphs | None = None,
    ) -> NDArray[np.float64]:
        """(N,) how likely each candidate is the same function as the query; see :meth:`features`.

        Over different functions they add up to at most 1.
        """
        features = self.features(query, blocks, candidates, seen)
        in_files = (candidates.records["in_file"] & query["in_file"]).astype(bool)
        odds, names = np.zeros(len(candidates.records)), variants(self.around)
        for chosen, ending in ((~in_files, ""), (in_files, " in files")):
            variant = ("alone" if seen is None else "matched") + ending
            columns = [features[name][chosen] for name in names[variant]]
            if chosen.any():
                odds[chosen] = self.regressions[variant](np.column_stack(columns))
        probabilities = probabilities_of(odds, candidates.identities)
        probabilities = _with_equal(probabilities, candidates)
        if is_small(query, blocks):
            probabilities = np.minimum(probabilities, self._most_of_small(features, candidates))
        return _shared(probabilities, candidates)

    def _most_of_small(
        self, features: dict[str, NDArray[np.float64]], candidates: Candidates
    ) -> NDArray[np.float64]:
        """(N,) the most that a hit of a small query can have; see :func:`is_small`."""
        most = 1 / _level(features["total"], candidates)
        if candidates.compared < ENOUGH_OTHERS:
            agreement = np.max([features[name] for name in self.around], axis=0)
            most = np.minimum(most, np.where(agreement < AGREEING, MOST_AMONG_FEW, 1))
        return most

    def pair_probability(
        self, query: np.void, blocks: int, other: Candidates, seen: MatchedGraphs
    ) -> PairProbability:
        """How likely two functions are the same, of which nobody knows what else there is.

        Neither is the query, so that it is enough for either to be small.
        """
        features = self.features(query, blocks, other, seen)
        columns = [features[name] for name in variants(self.around)["pair"]]
        odds = self.regressions["pair"](np.column_stack(columns))
        probabilities = _with_equal(probabilities_of(odds, other.identities), other)
        small = is_small(query, blocks) or is_small(other.records[0], int(other.blocks[0]))
        if small:
            alone = other._replace(compared=1)
            probabilities = np.minimum(probabilities, self._most_of_small(features, alone))
        return PairProbability(float(probabilities[0]), note_of(float(probabilities[0]), small))

    def to_json(self) -> str:
        version = next(number for number, around in VERSIONS.items() if around == self.around)
        return json.dumps({"format": FORMAT, "version": version, **asdict(self)}, indent=1)

    @classmethod
    def from_json(cls, text: str | bytes) -> Ranking:
        """Reads what :meth:`to_json` wrote."""
        try:
            values = json.loads(text)
            around = VERSIONS.get(values.get("version"))
            if values.get("format") != FORMAT or around is None:
                raise FormatError(
                    "this is not a ranking that this graphkin reads: "
                    f"{values.get('format')!r}, version {values.get('version')!r}"
                )
            order = {name: float(values["order"][name]) for name in ordered_by(around)}
            if not np.isfinite(list(order.values())).all():
                raise FormatError(f"a ranking needs finite weights, got {order}")
            regressions = {
                variant: Odds.from_json(values["regressions"][variant], len(names))
                for variant, names in variants(around).items()
            }
            return cls(order, regressions, dict(values["fitted_on"]))
        except FormatError:
            raise
        except (ValueError, TypeError, LookupError, AttributeError, OverflowError) as error:
            raise FormatError(f"a ranking is damaged: {error!r}") from error


def is_small(query: np.void, blocks: int) -> bool:
    """Whether a function is so small, and says so little, that others may well equal it."""
    return bool(blocks < SMALL_BLOCKS and query["strength"] < SMALL_STRENGTH)


def note_of(probability: float, small: bool) -> str | None:
    """Why a hit is not more probable, where it is because a function is small."""
    return TOO_SMALL if small and probability < LIKELY else None


def _both_have(query: np.void, records: Records, name: str) -> NDArray[np.float64]:
    """(N,) 1 where the query and a candidate both have such a vector."""
    both: NDArray[np.float64] = 1.0 * (query[f"{name}_scale"] > 0) * (records[f"{name}_scale"] > 0)
    return both


def _times_more(ours: Any, theirs: NDArray[Any]) -> NDArray[np.float64]:
    """(N,) how many times larger one number is than the others, as log2."""
    logarithms: NDArray[np.float64] = np.log2(1.0 + float(ours)) - np.log2(1.0 + np.float64(theirs))
    return logarithms


def _ratio(ours: Any, theirs: NDArray[Any]) -> NDArray[np.float64]:
    """(N,) how many times larger one number is than the other, as log2."""
    return np.abs(_times_more(ours, theirs))


def _density(operations: Any, blocks: NDArray[np.int64]) -> NDArray[np.float64]:
    """Operations in a block, as log2."""
    density: NDArray[np.float64] = np.log2((1.0 + np.float64(operations)) / np.maximum(blocks, 1))
    return density


def _margins(values: NDArray[np.float64], identities: Sequence[str]) -> NDArray[np.float64]:
    """(N,) by how much each value is above the best of another function."""
    best = best_of_each(values, identities)
    first, second, *_ = [*sorted(best.values(), reverse=True), 0.0, 0.0]
    rivals = [second if best[identity] == first else first for identity in identities]
    margins: NDArray[np.float64] = values - np.array(rivals)
    return margins


def _with_equal(probabilities: NDArray[np.float64], candidates: Candidates) -> NDArray[np.float64]:
    """Equal code is nearly certain; if different functions have it, they share that."""
    least = np.where(candidates.equal, UNIQUE_EQUAL / max(1, len(_equal_names(candidates))), 0)
    return np.maximum(probabilities, least)


def _equal_names(candidates: Candidates) -> set[str]:
    """The functions of which a candidate has the code of the query."""
    pairs = zip(candidates.identities, candidates.equal, strict=True)
    return {name for name, equal in pairs if equal}


def _level(totals: NDArray[np.float64], candidates: Candidates) -> NDArray[np.float64]:
    """(N,) how many functions have a total that is level with that of each, or above."""
    ordered = np.sort(list(best_of_each(totals, candidates.identities).values()))
    above = len(ordered) - np.searchsorted(ordered, totals - LEVEL)
    return np.maximum(above, 1).astype(np.float64)


def _shared(probabilities: NDArray[np.float64], candidates: Candidates) -> NDArray[np.float64]:
    """Different functions exclude each other: their probabilities add up to at most 1.

    What those of equal code leave is for the others.
    """
    best = best_of_each(probabilities, candidates.identities)
    equal = _equal_names(candidates)
    taken = sum(best[name] for name in equal)
    others = sum(value for name, value in best.items() if name not in equal)
    left = max(0.0, 1 - taken)
    share = {True: 1 / max(1.0, taken), False: left / others if others > left else 1.0}
    shares = [share[name in equal] for name in candidates.identities]
    shared: NDArray[np.float64] = probabilities * np.array(shares)
    return shared
