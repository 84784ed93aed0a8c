"""What the rest of a file says of a hit: code of one origin lies together.

A hit gains where other functions of the file hit the same component, and more where its
neighbours hit neighbours of its own, or where what it calls, or what calls it, hits what is so
linked in the library. The gain was fitted on projects that no model saw, joined in
pieces into files that hold unknown code as well; see ``experiments/fit_context.py``. A function
that stands alone keeps its probability: a copy of one vulnerable function need not have company.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

from graphkin.binaries.call_graph import CallGraph
from graphkin.binaries.function import file_path
from graphkin.library.ranking import LIKELY, TOO_SMALL
from graphkin.results.document import FunctionResult, Hit, Kin

NEIGHBOURS = 4
"""Functions before and behind that count as neighbours, among those that were looked up."""
NEAR = 3000
"""Bytes between neighbours in a binary of the library."""
MANY = 20
"""Functions of one component, from which on more of them add nothing."""
COMMON = 4
"""Components with the same function, above which it tells nothing of where a file is from: what
every compiler adds to every file."""
BOUND = 1e-3
"""Probabilities count as no nearer to 0 or 1."""


class Context(NamedTuple):
    """What the rest of a file says of one candidate."""

    near: float
    """The probability of the best neighbour that lies near it in the same binary, or that calls it
    or is called by it in both files."""
    company: float
    """How many other functions hit the same component: 0 for none, 1 for many."""


@dataclass(frozen=True)
class ContextWeights:
    """What is added to the log-odds of a candidate."""

    near: float = 1.5
    company: float = 0.73
    sharpened: float = 0.5
    """Times the log-odds: in company, what was likely before is more so."""

    def probability(self, own: float, context: Context) -> float:
        """The probability of a candidate in its context; never less than its own."""
        bounded = min(max(own, BOUND), 1 - BOUND)
        odds = math.log(bounded / (1 - bounded))
        gain = self.near * context.near
        gain += (self.company + self.sharpened * odds) * context.company
        return own if gain <= 0 else max(own, 1 / (1 + math.exp(-odds - gain)))


WEIGHTS = ContextWeights()


def file_of(kin: Kin) -> str:
    """What tells the files of a library apart; members of an archive are of one file."""
    return kin.file_hash or kin.binary


class KnownCalls:
    """Who calls whom, in a scanned file and in the files of a library.

    Args:
        addresses: of the functions that were looked up, rising.
        callees: addresses that each calls.
        call_graph: that of a file of the library, by its hash.
    """

    def __init__(
        self,
        addresses: Sequence[int],
        callees: Sequence[Sequence[int]],
        call_graph: Callable[[str], CallGraph | None],
    ) -> None:
        numbers = {address: number for number, address in enumerate(addresses)}
        self._linked: dict[int, list[tuple[int, bool]]] = defaultdict(list)
        for number, own in enumerate(callees):
            for callee in {numbers[address] for address in own if address in numbers} - {number}:
                self._linked[number].append((callee, True))
                self._linked[callee].append((number, False))
        self._call_graph = cache(call_graph)

    def linked(self, number: int) -> list[tuple[int, bool]]:
        """The callees and callers of a function, and whether each is a callee."""
        return self._linked[number]

    def are_linked(self, caller: Kin, callee: Kin) -> bool:
        """Whether one function of a library calls the other."""
        if not caller.file_hash or caller.file_hash != callee.file_hash:
            return False
        graph = self._call_graph(caller.file_hash)
        if graph is None:
            return False
        source, target = (graph.numbers.get(_place(item), -1) for item in (caller, callee))
        return (source, target) in graph.related


def _place(item: Kin) -> tuple[str, int]:
    """The part of a file, and the address there."""
    return item.binary.removeprefix(file_path(item.binary)), item.address or 0


class FileContext:
    """All functions of one file with their candidates.

    Args:
        kin: of each function, in the order of their addresses.
        components: the component of each file of the library, by :func:`file_of`.
        calls: who calls whom, where it is known.
    """

    def __init__(
        self,
        kin: Sequence[Sequence[Kin]],
        components: Mapping[str, str],
        calls: KnownCalls | None = None,
    ) -> None:
        self._kin = kin
        self._components = components
        self._calls = calls
        self._best = [None if self.is_common(own) else own[0] for own in kin]
        self._totals: dict[str, float] = defaultdict(float)
        for best in self._best:
            if best is not None:
                self._totals[self.component(best)] += best.probability

    def component(self, kin: Kin) -> str:
        return self._components[file_of(kin)]

    def is_common(self, own: Sequence[Kin]) -> bool:
        """Whether a function tells nothing: it has no candidates, is in too many components, or is
        of the compiler."""
        if not own or own[0].is_runtime:
            return True
        return len({self.component(item) for item in own}) > COMMON

    def of(self, number: int, item: Kin) -> Context:
        """The context of one candidate of a function."""
        component, best = self.component(item), self._best[number]
        total = self._totals[component]
        if best is not None and self.component(best) == component:
            total -= best.probability
        near = max(self._near(number, item), self._linked(number, item))
        return Context(near, min(math.log1p(total) / math.log1p(MANY), 1.0))

    def _linked(self, number: int, item: Kin) -> float:
        """The probability of the best caller or callee that is one of the candidate's, too."""
        if self._calls is None:
            return 0.0
        linked = [
            other.probability
            for position, is_callee in self._calls.linked(number)
            if self._best[position] is not None
            for other in self._kin[position]
            if other.function == self._kin[position][0].function
            and self._calls.are_linked(*((item, other) if is_callee else (other, item)))
        ]
        return max(linked, default=0.0)

    def _near(self, number: int, item: Kin) -> float:
        start, end = max(0, number - NEIGHBOURS), number + NEIGHBOURS + 1
        near = [
            other.probability
            for position, own in enumerate(self._kin[start:end], start)
            if position != number and self._best[position] is not None
            for other in own
            if other.binary == item.binary
            and abs((other.address or 0) - (item.address or 0)) < NEAR
            and other.function == own[0].function
        ]
        return max(near, default=0.0)


def in_context(
    results: Sequence[FunctionResult],
    components: Mapping[str, str],
    min_probability: float = 0.0,
    *,
    callees: Sequence[Sequence[int]] = (),
    call_graph: Callable[[str], CallGraph | None] = lambda _: None,
) -> list[FunctionResult]:
    """The functions of one file with probabilities that their context had a part in.

    Args:
        results: of one file, in any order.
        components: see :class:`FileContext`.
        min_probability: hits that are less probable are left out.
        callees: of each function, the addresses of those that it calls, where that is known.
        call_graph: that of a file of the library, by its hash.
    """
    order = sorted(range(len(results)), key=lambda number: results[number].query.address or 0)
    calls = None
    if callees:
        addresses = [results[number].query.address or 0 for number in order]
        calls = KnownCalls(addresses, [callees[number] for number in order], call_graph)
    context = FileContext([results[number].kin for number in order], components, calls)
    changed = {
        number: _changed(results[number], position, context, min_probability)
        for position, number in enumerate(order)
    }
    return [changed[number] for number in range(len(results))]


def _changed(
    result: FunctionResult, position: int, context: FileContext, min_probability: float
) -> FunctionResult:
    if context.is_common(result.kin):
        return _with_hits(result, result.hits, min_probability)
    values = [
        WEIGHTS.probability(item.probability, context.of(position, item)) for item in result.kin
    ]
    own = [item.probability for item in result.kin]
    if values == own:
        return _with_hits(result, result.hits, min_probability)
    # Different functions exclude each other, in context as without.
    share = 1 / max(1.0, _sum_of_best(result.kin, values))
    kin = [
        item._replace(probability=value * share)
        for item, value in zip(result.kin, values, strict=True)
    ]
    by_id = {item.id: item.probability for item in kin}
    hits = [_with_probability(hit, by_id.get(hit.id, hit.probability)) for hit in result.hits]
    kin.sort(key=lambda item: -item.probability)
    hits.sort(key=lambda hit: -(hit.probability or 0.0))
    return _with_hits(result.model_copy(update={"kin": tuple(kin)}), tuple(hits), min_probability)


def _sum_of_best(kin: Sequence[Kin], values: Sequence[float]) -> float:
    """The probabilities of different functions together."""
    best: dict[str, float] = {}
    for item, value in zip(kin, values, strict=True):
        best[item.function] = max(value, best.get(item.function, 0.0))
    return sum(best.values())


def _with_probability(hit: Hit, probability: float | None) -> Hit:
    is_likely = probability is not None and probability >= LIKELY
    note = None if is_likely and hit.note == TOO_SMALL else hit.note
    return hit.model_copy(update={"probability": probability, "note": note})


def _with_hits(
    result: FunctionResult, hits: Sequence[Hit], min_probability: float
) -> FunctionResult:
    """The hits that are probable enough, numbered anew."""
    kept = [hit for hit in hits if hit.probability is None or hit.probability >= min_probability]
    left_out = [hit.probability for hit in hits if hit not in kept and hit.probability is not None]
    if result.best_left_out is not None:
        left_out.append(result.best_left_out)
    ranked = [hit.model_copy(update={"rank": rank}) for rank, hit in enumerate(kept, start=1)]
    return result.model_copy(
        update={"hits": tuple(ranked), "best_left_out": max(left_out, default=None)}
    )
