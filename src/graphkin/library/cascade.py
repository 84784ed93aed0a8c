"""The stages of a search that compares signals: candidates, order, match, probability.

Candidates are functions with the most similar codes, functions that share a rare word, and those
that lie beside what the query's own neighbours are most like. Their signals, vectors of what they
are, say, call and are called by, put them in an order; the best are matched block by block; one
regression over all of it gives each a probability.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from graphkin.binaries.function import base_name, is_unnamed
from graphkin.graphs import Graph
from graphkin.library.candidates import Candidate, EncodedQuery, score_candidates
from graphkin.library.code_distance import distances as distances_between
from graphkin.library.engines.base import Engine, Nearest
from graphkin.library.models import SearchModel
from graphkin.library.ranking import (
    Candidates,
    MatchedGraphs,
    Ranking,
    is_small,
    note_of,
)
from graphkin.library.records import SearchOptions, Stored
from graphkin.library.signals import compared_graphs, rare_words

NEAREST_CODES = 500
"""Functions whose signals are compared, by how much their codes are like the query's numbers before
they were rounded to a code."""
SHARING_WORDS = 50
"""And by rare words that they share with the query."""
NEIGHBOUR_CODES = 16
"""Functions with the most similar codes, of which one is most like a neighbour of the query; more
codes would not find more."""
BESIDE = 6
"""Functions on either side of that one which are compared with the query: more than a query has
neighbours, because some are too small to be looked up."""
NEAREST_TAGGED = 50
"""Functions with the tags that are shown, which are compared wherever they stand among all."""
COMPETING = 20
"""Functions that share a probability, at least: as many as the ranking was fitted with."""


NO_IDS = np.zeros(0, np.int64)


class Near(NamedTuple):
    """Functions of the library, and how far their codes are from that of a query."""

    ids: NDArray[np.int64]
    """(N,)"""
    distances: NDArray[np.float32]
    """(N,)"""
    shown: NDArray[np.int64]
    """(S,) those of the ids that have the tags that are shown, where that is asked for."""

    @classmethod
    def of(cls, nearest: Nearest, row: int) -> Near:
        """Those of one query."""
        is_there = nearest.ids[row] >= 0
        return cls(nearest.ids[row][is_there], nearest.distances[row][is_there], NO_IDS)

    def joined(self, other: Near, *, shown: bool) -> Near:
        """These, and those of the others that are not among them.

        Args:
            other: more functions.
            shown: whether they all have the tags that are shown.
        """
        new = ~np.isin(other.ids, self.ids)
        return Near(
            np.concatenate([self.ids, other.ids[new]]),
            np.concatenate([self.distances, other.distances[new]]),
            np.concatenate([self.shown, other.ids]) if shown else self.shown,
        )


class Considered(NamedTuple):
    """The candidates of a query before they are matched."""

    ranked: list[Candidate]
    """The most probable first."""
    candidates: Candidates
    """What was compared of each, in the same order."""
    shown: list[Candidate]
    """The best of those with the tags that are shown, where that is asked for."""

    def best(self, count: int) -> list[Candidate]:
        """The first ``count``, and those that are shown wherever they stand."""
        first = self.ranked[:count]
        return first + [item for item in self.shown if item not in first]

    def best_first(self, count: int) -> Considered:
        """The same in another order: those of :meth:`best`, then the others."""
        if not self.shown:
            return self
        numbers = {item.stored.id: number for number, item in enumerate(self.ranked)}
        first = [numbers[item.stored.id] for item in self.best(count)]
        order = first + [number for number in range(len(self.ranked)) if number not in set(first)]
        return Considered(
            [self.ranked[number] for number in order], self.candidates.chosen(order), self.shown
        )


def search_signals(
    model: SearchModel, engine: Engine, queries: Sequence[EncodedQuery], options: SearchOptions
) -> tuple[list[list[Candidate]], dict[int, Graph]]:
    """Candidates of each query, the most probable first, and the graphs that were read, by id."""
    nearest = _nearest(engine, queries, options)
    if "neighbours" not in options.without:
        nearest = _with_neighbours(model, engine, queries, nearest, options)
    considered = [
        _ordered(model, engine, query, near, options)
        for query, near in zip(queries, nearest, strict=True)
    ]
    graphs: dict[int, Graph] = {}
    count = max(options.rerank, options.top if options.evidence else 0)
    if count:
        ids_read = sorted({item.stored.id for own in considered for item in own.best(count)})
        graphs = dict(zip(ids_read, engine.graphs(ids_read), strict=True))
    if not options.rerank:
        return [own.ranked for own in considered], graphs
    return _matched(model, queries, considered, graphs, options.rerank), graphs


def rank_signals(
    model: SearchModel, engine: Engine, query: EncodedQuery, ids: Sequence[int]
) -> tuple[list[Candidate], dict[int, Graph]]:
    """Functions of the library, by id, in the order of their probability."""
    numbers = np.array(ids, dtype=np.int64)
    distances = distances_between(engine.space, query.vector, engine.vectors(ids))
    order = np.argsort(distances, kind="stable")
    near = Near(numbers[order], distances[order], NO_IDS)
    considered = _probable(model, engine, query, near, SearchOptions(max(len(ids), 1)))
    graphs = dict(zip(ids, engine.graphs(ids), strict=True))
    return _matched(model, [query], [considered], graphs, len(ids))[0], graphs


def _nearest(
    engine: Engine, queries: Sequence[EncodedQuery], options: SearchOptions
) -> Iterator[Near]:
    """The nearest codes of all that competes, and of what is shown."""
    vectors, unrounded = _stacked(queries)
    count = max(NEAREST_CODES, options.candidates)
    everything = engine.nearest(vectors, count, options.competing, unrounded)
    shown = None
    if options.has_tags:
        tagged = max(NEAREST_TAGGED, options.top)
        shown = engine.nearest(vectors, tagged, options.where, unrounded)
    for row in range(len(queries)):
        near = Near.of(everything, row)
        yield near if shown is None else near.joined(Near.of(shown, row), shown=True)


def _stacked(
    queries: Sequence[EncodedQuery],
) -> tuple[NDArray[Any], NDArray[np.float32] | None]:
    """(Q, columns) codes, and (Q, bits) the numbers that they were rounded from, where all have
    them."""
    known = [query.unrounded for query in queries if query.unrounded is not None]
    unrounded = np.stack(known) if len(known) == len(queries) else None
    return np.stack([query.vector for query in queries]), unrounded


def _with_neighbours(
    model: SearchModel,
    engine: Engine,
    queries: Sequence[EncodedQuery],
    nearest: Iterable[Near],
    options: SearchOptions,
) -> Iterator[Near]:
    """The nearest of each query, and what lies beside those that its neighbours are most like.

    What was written together is linked together: a function that is hardly like its other build
    lies among others that are.
    """
    neighbours = list({id(other): other for query in queries for other in query.beside}.values())
    most_like = _most_like(model, engine, neighbours, options) if neighbours else {}
    for query, near in zip(queries, nearest, strict=True):
        known = [most_like[id(other)] for other in query.beside if id(other) in most_like]
        added = engine.beside(known, BESIDE, options.competing) if known else NO_IDS
        added = added[~np.isin(added, near.ids)]
        if len(added):
            distances = distances_between(
                engine.space, query.vector, engine.vectors(added.tolist())
            )
            near = near.joined(Near(added, distances, NO_IDS), shown=False)
        yield near


def _most_like(
    model: SearchModel, engine: Engine, queries: Sequence[EncodedQuery], options: SearchOptions
) -> dict[int, int]:
    """By the identity of each query, the id of the function that is most like it by its signals,
    among a few with similar codes."""
    vectors, unrounded = _stacked(queries)
    nearest = engine.nearest(vectors, NEIGHBOUR_CODES, options.competing, unrounded)
    most_like: dict[int, int] = {}
    for row, query in enumerate(queries):
        ids = Near.of(nearest, row).ids
        if len(ids):
            ranking, signals = _ranked(model, query)
            records = model.signals_from(engine.signals(ids.tolist()))
            most_like[id(query)] = int(ids[np.argmax(ranking.totals(signals, records))])
    return most_like


def _ordered(
    model: SearchModel, engine: Engine, query: EncodedQuery, near: Near, options: SearchOptions
) -> Considered:
    """The candidates whose signals are most like the query's, before they are matched."""
    words, weights = rare_words(model.embedder, query.graph)
    if len(words) and "words" not in options.without:
        for shown in (False, True) if options.has_tags else (False,):
            where = options.where if shown else options.competing
            sharing = engine.sharing(words, weights, SHARING_WORDS, where)
            added = [number for number, _ in sharing]
            if added:
                distances = distances_between(engine.space, query.vector, engine.vectors(added))
                near = near.joined(Near(np.array(added), distances, NO_IDS), shown=shown)
    return _probable(model, engine, query, near, options)


def _probable(
    model: SearchModel, engine: Engine, query: EncodedQuery, near: Near, options: SearchOptions
) -> Considered:
    """The best by their signals, the most probable first, and what was compared."""
    ranking, signals = _ranked(model, query)
    ids, distances, shown = near
    if not len(ids):
        nothing = Candidates(model.signals_from([]), np.zeros(0, np.int64), np.zeros(0, bool), [])
        return Considered([], nothing, [])
    records = model.signals_from(engine.signals(ids.tolist()))
    by_signals = np.argsort(-ranking.totals(signals, records), kind="stable")
    count = max(options.candidates, COMPETING)
    rows = by_signals[:count]
    if options.has_tags:
        behind = by_signals[count:]
        rows = np.concatenate([rows, behind[np.isin(ids[behind], shown)][: options.top]])
    stored = engine.fetch(ids[rows].tolist())
    own = query.graph.digest()
    candidates = Candidates(
        records[rows],
        np.array([item.nodes for item in stored]),
        np.array([item.graph_hash == own for item in stored]),
        [identity(item) for item in stored],
        len(ids),
    )
    blocks = query.graph.num_nodes
    probabilities = ranking.probabilities(signals, blocks, candidates)
    small = is_small(signals, blocks)
    by_distance = np.argsort(np.argsort(distances, kind="stable"), kind="stable")
    ranked = [
        Candidate(
            item,
            float(distances[row]),
            int(by_distance[row]) + 1,
            float(probability),
            note=note_of(float(probability), small),
        )
        for item, row, probability in zip(stored, rows, probabilities, strict=True)
    ]
    order = sorted(range(len(ranked)), key=lambda at: ranked[at].order)
    ranked = [ranked[at] for at in order]
    shown_best = [item for item in ranked if options.shows(item.stored)][: options.top]
    return Considered(ranked, candidates.chosen(order), shown_best if options.has_tags else [])


def _matched(
    model: SearchModel,
    queries: Sequence[EncodedQuery],
    considered: Sequence[Considered],
    graphs: dict[int, Graph],
    count: int,
) -> list[list[Candidate]]:
    """The best ``count`` of each query in the order of all signals, the others behind them."""
    assert model.matcher is not None, "a model without was refused"
    best = [own.best(count) for own in considered]
    scores = score_candidates(model.matcher, queries, best, graphs)
    return [
        _with_scores(model, query, own.best_first(count), own_scores, graphs)
        for query, own, own_scores in zip(queries, considered, scores, strict=True)
    ]


def _with_scores(
    model: SearchModel,
    query: EncodedQuery,
    considered: Considered,
    scores: NDArray[np.float32],
    graphs: dict[int, Graph],
) -> list[Candidate]:
    """The candidates that were matched, in their new order, and the others behind them."""
    ranking, signals = _ranked(model, query)
    ranked, candidates = considered.ranked, considered.candidates
    count = len(scores)
    if not count:
        return ranked
    blocks = query.graph.num_nodes
    others = [graphs[item.stored.id] for item in ranked[:count]]
    seen = MatchedGraphs(scores, compared_graphs(model.embedder, query.graph, others))
    best = candidates.chosen(range(count))
    probabilities = ranking.probabilities(signals, blocks, best, seen)
    small = is_small(signals, blocks)
    matched = [
        replace(
            item,
            score=float(score),
            probability=float(value),
            note=note_of(float(value), small),
        )
        for item, score, value in zip(ranked, scores, probabilities, strict=False)
    ]
    # What was left behind the matched ones is less probable than any of them.
    least = min(item.probability or 0.0 for item in matched)
    rest = [
        replace(item, probability=min(item.probability or 0.0, least)) for item in ranked[count:]
    ]
    return sorted(matched, key=attrgetter("order")) + rest


def _ranked(model: SearchModel, query: EncodedQuery) -> tuple[Ranking, np.void]:
    assert model.ranking is not None, "models without are searched by codes"
    assert query.signals is not None, "a model with a ranking gives them"
    return model.ranking, query.signals


def identity(stored: Stored) -> str:
    """Of which source function an entry is: its name, or its graph where it has none."""
    name = base_name(stored.entry.function)
    return stored.graph_hash if is_unnamed(name) else name
