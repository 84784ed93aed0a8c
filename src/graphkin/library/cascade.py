"""The stages of a search that compares signals: candidates, order, match, probability.

Candidates are the nearest codes, and functions that share a rare word. Their signals, vectors of
what they are, say, call and are called by, put them in an order; the best are matched block by
block; one regression over all of it gives each a probability.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from operator import attrgetter

import numpy as np
from numpy.typing import NDArray

from graphkin.binaries.function import base_name
from graphkin.graphs import Graph
from graphkin.library.candidates import Candidate, EncodedQuery, score_candidates
from graphkin.library.code_distance import distances as distances_between
from graphkin.library.engines.base import Engine
from graphkin.library.models import SearchModel
from graphkin.library.ranking import (
    TOO_SMALL,
    Candidates,
    MatchedGraphs,
    Ranking,
    is_small,
)
from graphkin.library.records import SearchOptions, Stored
from graphkin.library.signals import compared_graphs, rare_words

NEAREST_CODES = 500
"""Functions whose signals are compared, by the distance of their codes."""
SHARING_WORDS = 50
"""And by rare words that they share with the query."""
COMPETING = 20
"""Functions that share a probability, at least: as many as the ranking was fitted with."""
UNNAMED = re.compile(r"(sub|fcn|fun|func|loc)_[0-9a-f]+$", re.IGNORECASE)
"""What tools call a function whose name nobody knows."""


def search_signals(
    model: SearchModel, engine: Engine, queries: Sequence[EncodedQuery], options: SearchOptions
) -> tuple[list[list[Candidate]], dict[int, Graph]]:
    """Candidates of each query, the most probable first, and the graphs that were read, by id."""
    vectors = np.stack([query.vector for query in queries])
    nearest = engine.nearest(vectors, max(NEAREST_CODES, options.candidates), options.where)
    considered = [
        _ordered(model, engine, query, ids[ids >= 0], distances[ids >= 0], options)
        for query, ids, distances in zip(queries, nearest.ids, nearest.distances, strict=True)
    ]
    graphs: dict[int, Graph] = {}
    count = max(options.rerank, options.top if options.evidence else 0)
    if count:
        ids_read = sorted({item.stored.id for own, _ in considered for item in own[:count]})
        graphs = dict(zip(ids_read, engine.graphs(ids_read), strict=True))
    if not options.rerank:
        return [own for own, _ in considered], graphs
    return _matched(model, queries, considered, graphs, options.rerank), graphs


def rank_signals(
    model: SearchModel, engine: Engine, query: EncodedQuery, ids: Sequence[int]
) -> tuple[list[Candidate], dict[int, Graph]]:
    """Functions of the library, by id, in the order of their probability."""
    numbers = np.array(ids, dtype=np.int64)
    distances = distances_between(engine.space, query.vector, engine.vectors(ids))
    order = np.argsort(distances, kind="stable")
    considered = _probable(model, engine, query, numbers[order], distances[order], len(ids))
    graphs = dict(zip(ids, engine.graphs(ids), strict=True))
    return _matched(model, [query], [considered], graphs, len(ids))[0], graphs


def _ordered(
    model: SearchModel,
    engine: Engine,
    query: EncodedQuery,
    ids: NDArray[np.int64],
    distances: NDArray[np.float32],
    options: SearchOptions,
) -> tuple[list[Candidate], Candidates]:
    """The candidates whose signals are most like the query's, before they are matched."""
    words, weights = rare_words(model.embedder, query.graph)
    if len(words):
        sharing = engine.sharing(words, weights, SHARING_WORDS, options.where)
        added = np.array([number for number, _ in sharing], dtype=np.int64)
        added = added[~np.isin(added, ids)]
        if len(added):
            own = distances_between(engine.space, query.vector, engine.vectors(added.tolist()))
            ids, distances = np.concatenate([ids, added]), np.concatenate([distances, own])
    return _probable(model, engine, query, ids, distances, max(options.candidates, COMPETING))


def _probable(
    model: SearchModel,
    engine: Engine,
    query: EncodedQuery,
    ids: NDArray[np.int64],
    distances: NDArray[np.float32],
    count: int,
) -> tuple[list[Candidate], Candidates]:
    """The best ``count`` by their signals, the most probable first, and what was compared."""
    ranking, signals = _ranked(model, query)
    if not len(ids):
        return [], Candidates(model.signals_from([]), np.zeros(0, np.int64), np.zeros(0, bool), [])
    records = model.signals_from(engine.signals(ids.tolist()))
    rows = np.argsort(-ranking.totals(signals, records), kind="stable")[:count]
    stored = engine.fetch(ids[rows].tolist())
    own = query.graph.digest()
    candidates = Candidates(
        records[rows],
        np.array([item.nodes for item in stored]),
        np.array([item.graph_hash == own for item in stored]),
        [identity(item) for item in stored],
    )
    blocks = query.graph.num_nodes
    probabilities = ranking.probabilities(signals, blocks, candidates)
    by_distance = np.argsort(np.argsort(distances, kind="stable"), kind="stable")
    ranked = [
        Candidate(
            item,
            float(distances[row]),
            int(by_distance[row]) + 1,
            float(probability),
            note=_note(signals, blocks, float(probability)),
        )
        for item, row, probability in zip(stored, rows, probabilities, strict=True)
    ]
    order = sorted(range(len(ranked)), key=lambda at: ranked[at].order)
    return [ranked[at] for at in order], candidates.chosen(order)


def _matched(
    model: SearchModel,
    queries: Sequence[EncodedQuery],
    considered: Sequence[tuple[list[Candidate], Candidates]],
    graphs: dict[int, Graph],
    count: int,
) -> list[list[Candidate]]:
    """The best ``count`` of each query in the order of all signals, the others behind them."""
    assert model.matcher is not None, "a model without was refused"
    best = [own[:count] for own, _ in considered]
    scores = score_candidates(model.matcher, queries, best, graphs)
    return [
        _with_scores(model, query, *own, own_scores, graphs)
        for query, own, own_scores in zip(queries, considered, scores, strict=True)
    ]


def _with_scores(
    model: SearchModel,
    query: EncodedQuery,
    ranked: list[Candidate],
    candidates: Candidates,
    scores: NDArray[np.float32],
    graphs: dict[int, Graph],
) -> list[Candidate]:
    """The candidates that were matched, in their new order, and the others behind them."""
    ranking, signals = _ranked(model, query)
    count = len(scores)
    if not count:
        return ranked
    blocks = query.graph.num_nodes
    others = [graphs[item.stored.id] for item in ranked[:count]]
    seen = MatchedGraphs(scores, compared_graphs(model.embedder, query.graph, others))
    best = candidates.chosen(range(count))
    probabilities = ranking.probabilities(signals, blocks, best, seen)
    matched = [
        replace(
            item,
            score=float(score),
            probability=float(value),
            note=_note(signals, blocks, float(value)),
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
    return stored.graph_hash if not name or UNNAMED.match(name) else name


def _note(query: np.void, blocks: int, probability: float) -> str | None:
    """Why a hit is not more probable, where the query itself is the reason."""
    return TOO_SMALL if probability < 0.5 and is_small(query, blocks) else None
