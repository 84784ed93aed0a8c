"""A search: candidates of each query from the library, the best of them as hits, with evidence.

A model with a ranking compares signals (:mod:`graphkin.library.cascade`); one without, as earlier
libraries carry, goes by the distance of codes and the score of a matcher. Each chunk of queries
goes through all stages once; graphs that the matcher scores are read once, and serve for the
evidence too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from operator import attrgetter

import numpy as np
from numpy.typing import NDArray

from graphkin.binaries.function import is_unnamed
from graphkin.binaries.runtime_code import is_runtime_code
from graphkin.errors import ModelError
from graphkin.graphs import Graph
from graphkin.library.candidates import Candidate, EncodedQuery, score_candidates
from graphkin.library.cascade import COMPETING, identity, rank_signals, search_signals
from graphkin.library.code_distance import distances as distances_between
from graphkin.library.code_distance import probabilities
from graphkin.library.engines.base import Engine, UnknownIdError
from graphkin.library.models import SearchModel
from graphkin.library.records import Hits, SearchOptions
from graphkin.library.signals import shared_words
from graphkin.results.document import Evidence, EvidenceToken, Hit, Kin
from graphkin.results.evidence import best_evidence, node_evidence
from graphkin.results.grouping import CVE_TAG, FIXED_TAG

ATTEMPTS = 3
"""Times that a search begins anew because others removed what it was about to read."""
PAIRS_AT_ONCE = 5_000
"""Pairs whose graphs are in memory together while they are scored."""
EVIDENCE_WEIGHTS = 4_000_000
"""Attention weights that are in memory together; a pair with more has no evidence."""
LEAST_PROBABLE = 0.02
"""Candidates that are less probable tell nothing of the file that the query is in."""
SHARED_WORDS = 12
"""Words that query and hit share, the rarest, that a hit lists."""
RUNTIME_NOTE = "compiler runtime code, the same in files of any origin"


def search(
    model: SearchModel, engine: Engine, queries: Sequence[EncodedQuery], options: SearchOptions
) -> Iterator[Hits]:
    """The hits of each query, best first, chunk by chunk."""
    _check_matcher(model, options)
    chunk = max(1, PAIRS_AT_ONCE // options.candidates)
    for start in range(0, len(queries), chunk):
        part = queries[start : start + chunk]
        yield from _search_changing(model, engine, part, options)


def _search_changing(
    model: SearchModel, engine: Engine, queries: Sequence[EncodedQuery], options: SearchOptions
) -> list[Hits]:
    """The hits of some queries, although another process may remove what is found before it is
    read. Where one goes on removing, the last attempt sees one state; only the last, because
    other threads have to wait for it."""
    for _ in range(ATTEMPTS - 1):
        with suppress(UnknownIdError):
            return _search_chunk(model, engine, queries, options)
    with engine.one_state():
        return _search_chunk(model, engine, queries, options)


def _check_matcher(model: SearchModel, options: SearchOptions) -> None:
    if model.matcher is None and (options.rerank or options.evidence):
        raise ModelError(
            f"the library's model {model.model_id} has no matcher to rerank or explain with; "
            "use rerank 0 and no evidence"
        )


def rank(
    model: SearchModel,
    engine: Engine,
    query: EncodedQuery,
    ids: Sequence[int],
    options: SearchOptions,
) -> Hits:
    """Graphs of the library, by id, in the order of the matcher."""
    _check_matcher(model, options)
    if not len(ids):
        return Hits((), None)
    if model.ranking is not None:
        ranked, graphs = rank_signals(model, engine, query, ids)
        return _hits(model, [query], [ranked], graphs, options)[0]
    distances = distances_between(engine.space, query.vector, engine.vectors(ids))
    order = np.argsort(distances, kind="stable")
    candidates = _candidates(
        model, engine, query.graph, [ids[row] for row in order.tolist()], distances[order]
    )
    graphs = _graphs(engine, [candidates])
    (reranked,) = _reranked(model, [query], [candidates], graphs)
    return _hits(model, [query], [reranked], graphs, options)[0]


def _search_chunk(
    model: SearchModel, engine: Engine, queries: Sequence[EncodedQuery], options: SearchOptions
) -> list[Hits]:
    is_ranked = model.ranking is not None and "ranking" not in options.without
    look_up = search_signals if is_ranked else _search_codes
    candidates, graphs = look_up(model, engine, queries, options)
    return _hits(model, queries, candidates, graphs, options)


def _search_codes(
    model: SearchModel, engine: Engine, queries: Sequence[EncodedQuery], options: SearchOptions
) -> tuple[list[list[Candidate]], dict[int, Graph]]:
    """Candidates of each query, the best first, and the graphs that were read, by id."""
    vectors = np.stack([query.vector for query in queries])
    count = max(options.candidates, COMPETING if options.has_tags else 0)
    nearest = engine.nearest(vectors, count, options.competing)
    candidates = [
        _candidates(model, engine, query.graph, ids[ids >= 0].tolist(), distances[ids >= 0])
        for query, ids, distances in zip(queries, nearest.ids, nearest.distances, strict=True)
    ]
    graphs: dict[int, Graph] = {}
    if options.rerank:
        graphs = _graphs(engine, candidates)
        candidates = _reranked(model, queries, candidates, graphs)
    elif options.evidence:
        graphs = _graphs(engine, [_shown(nearby, options) for nearby in candidates])
    return candidates, graphs


def _candidates(
    model: SearchModel,
    engine: Engine,
    query: Graph,
    ids: Sequence[int],
    distances: NDArray[np.float32],
) -> list[Candidate]:
    """In the order of distance, with the probability that the distance alone gives."""
    stored = engine.fetch(ids)
    others = [(item.nodes, item.graph_hash) for item in stored]
    by_distance = probabilities(model, query, others, distances)
    own = query.digest()
    return [
        Candidate(
            item,
            float(distance),
            rank_by_distance,
            probability,
            is_equal=item.graph_hash == own,
        )
        for rank_by_distance, (item, distance, probability) in enumerate(
            zip(stored, distances.tolist(), by_distance, strict=True), start=1
        )
    ]


def _graphs(engine: Engine, candidates: Sequence[Sequence[Candidate]]) -> dict[int, Graph]:
    """The graphs of all candidates, by id; each is read once."""
    ids = sorted({candidate.stored.id for nearby in candidates for candidate in nearby})
    return dict(zip(ids, engine.graphs(ids), strict=True))


def _reranked(
    model: SearchModel,
    queries: Sequence[EncodedQuery],
    candidates: Sequence[list[Candidate]],
    graphs: dict[int, Graph],
) -> list[list[Candidate]]:
    """Candidates with the matcher's scores, the most probable first."""
    assert model.matcher is not None, "_check_matcher refuses a model without"
    scores = score_candidates(model.matcher, queries, candidates, graphs)
    ranked = []
    for query, nearby, own in zip(queries, candidates, scores, strict=True):
        distances = np.array([candidate.distance for candidate in nearby], dtype=np.float32)
        others = [(candidate.stored.nodes, candidate.stored.graph_hash) for candidate in nearby]
        by_score = probabilities(model, query.graph, others, distances, own)
        scored = [
            replace(candidate, score=float(score), probability=probability)
            for candidate, score, probability in zip(nearby, own, by_score, strict=True)
        ]
        ranked.append(sorted(scored, key=attrgetter("order")))
    return ranked


def _hits(
    model: SearchModel,
    queries: Sequence[EncodedQuery],
    candidates: Sequence[Sequence[Candidate]],
    graphs: dict[int, Graph],
    options: SearchOptions,
) -> list[Hits]:
    """The best candidates of each query as documents, with evidence where it is asked for."""
    candidates = [_with_runtime_notes(own) for own in candidates]
    best = [_shown(own, options) for own in candidates]
    kept = [[item for item in own if _is_probable(item, options)] for own in best]
    left_out = [[item for item in own if not _is_probable(item, options)] for own in best]
    evidence = _evidence_of_best(model, queries, kept, graphs, options)
    return [
        Hits(
            tuple(
                hit_of(
                    candidate,
                    rank_,
                    explained.get(candidate.stored.graph_hash),
                    _shared(model, query, graphs.get(candidate.stored.id)),
                    model.value(candidate.distance, candidate.score),
                )
                for rank_, candidate in enumerate(own, start=1)
            ),
            max((item.probability or 0.0 for item in rest), default=None),
            tuple(_kin(item) for item in everything if (item.probability or 0) >= LEAST_PROBABLE),
        )
        for query, everything, own, rest, explained in zip(
            queries, candidates, kept, left_out, evidence, strict=True
        )
    ]


def _kin(candidate: Candidate) -> Kin:
    entry = candidate.stored.entry
    return Kin(
        candidate.stored.id,
        identity(candidate.stored),
        entry.binary,
        entry.file_hash,
        entry.address,
        candidate.probability or 0.0,
        candidate.distance,
        candidate.note == RUNTIME_NOTE,
    )


def _with_runtime_notes(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Candidates with a note on those that are code of the compiler, by their names.

    One without a name is, too, if its graph is that of one with such a name.
    """
    runtime = {
        item.stored.graph_hash for item in candidates if is_runtime_code(item.stored.entry.function)
    }
    return [
        replace(item, note=RUNTIME_NOTE)
        if item.stored.graph_hash in runtime
        and (is_unnamed(name := item.stored.entry.function) or is_runtime_code(name))
        else item
        for item in candidates
    ]


def _shown(candidates: Sequence[Candidate], options: SearchOptions) -> list[Candidate]:
    """The best of those that have the tags that are asked for.

    That a file was tagged as vulnerable says nothing of what the compiler added to it.
    """
    tags = set() if options.where is None else set(options.where.tags)
    shown = [item for item in candidates if options.shows(item.stored)]
    if tags & {CVE_TAG, FIXED_TAG}:
        shown = [item for item in shown if item.note != RUNTIME_NOTE]
    return shown[: options.top]


def _is_probable(candidate: Candidate, options: SearchOptions) -> bool:
    probability = candidate.probability
    return probability is None or probability >= options.min_probability


def _evidence_of_best(
    model: SearchModel,
    queries: Sequence[EncodedQuery],
    hits: Sequence[Sequence[Candidate]],
    graphs: dict[int, Graph],
    options: SearchOptions,
) -> list[dict[str, Evidence]]:
    """Which blocks match, for each query by the hash of the graph: copies are explained once.

    Graphs that are too large to keep their attention have none.
    """
    evidence: list[dict[str, Evidence]] = [{} for _ in queries]
    if not options.evidence or model.matcher is None:
        return evidence
    pairs: dict[tuple[int, str], tuple[Graph, Graph]] = {}
    digests = [query.graph.digest() for query in queries]
    for number, (query, own) in enumerate(zip(queries, hits, strict=True)):
        for candidate in own[: options.evidence_top]:
            graph = graphs[candidate.stored.id]
            if query.graph.num_nodes * graph.num_nodes <= EVIDENCE_WEIGHTS:
                pairs[number, candidate.stored.graph_hash] = query.graph, graph
    sizes = [left.num_nodes * right.num_nodes for left, right in pairs.values()]
    keys, chunks = list(pairs), np.cumsum(sizes) // EVIDENCE_WEIGHTS
    for chunk in np.unique(chunks):
        part = [keys[row] for row in np.flatnonzero(chunks == chunk)]
        maps = model.matcher.explain_many([pairs[key] for key in part])
        for (number, content), own_maps in zip(part, maps, strict=True):
            evidence[number][content] = (
                best_evidence(own_maps, equal=content == digests[number])
                if model.reads_functions
                else node_evidence(own_maps)
            )
    return evidence


def _shared(
    model: SearchModel, query: EncodedQuery, graph: Graph | None
) -> tuple[EvidenceToken, ...]:
    """What query and hit both say, the rarest first, as far as the query's texts are known."""
    if graph is None or not query.texts or not model.embedder.config.word_dim:
        return ()
    words = shared_words(model.embedder, query.graph, graph)
    return tuple(query.texts[word] for word in words if word in query.texts)[:SHARED_WORDS]


def hit_of(
    candidate: Candidate,
    rank_: int,
    evidence: Evidence | None,
    shared: tuple[EvidenceToken, ...] = (),
    value: float | None = None,
) -> Hit:
    """A candidate as the document of a hit."""
    stored = candidate.stored
    document = stored.to_document()
    if candidate.note == RUNTIME_NOTE:
        tags = document["tags"].items()
        document["tags"] = {key: text for key, text in tags if key not in (CVE_TAG, FIXED_TAG)}
    return Hit(
        **document,
        rank=rank_,
        rank_by_distance=candidate.rank_by_distance,
        distance=candidate.distance,
        score=candidate.score,
        probability=candidate.probability,
        value=value,
        evidence=evidence,
        shared=shared,
        note=candidate.note,
        graph_hash=stored.graph_hash,
    )
