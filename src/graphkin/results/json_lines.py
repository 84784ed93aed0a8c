"""Results for programs: one JSON object a line, one line for each query function."""

from __future__ import annotations

import json
import math
from typing import Any

from graphkin.results.document import Evidence, Hit, SearchResult
from graphkin.results.text import encodable


def to_json_line(result: SearchResult) -> str:
    """One line of ASCII, without its end.

    What is not known is null. A byte of a name that is not UTF-8 is written ``\\xff``, because
    strict readers refuse lone surrogates.
    """
    return json.dumps(to_document(result), allow_nan=False)


def to_document(result: SearchResult) -> dict[str, Any]:
    """The object of a line; numbers in it are finite, and its texts have no lone surrogates."""
    query = result.query
    return {
        "query": {
            "binary": encodable(query.binary),
            "function": encodable(query.function),
            "address": query.address,
            "nodes": query.nodes,
        },
        "hits": [hit_document(hit, rank) for rank, hit in enumerate(result.hits, start=1)],
    }


def hit_document(hit: Hit, rank: int) -> dict[str, Any]:
    """A hit at its place, from 1."""
    entry = hit.entry
    return {
        "rank": rank,
        "rank_before": hit.rank_before,
        "binary": encodable(entry.binary),
        "function": encodable(entry.function),
        "address": entry.address,
        "distance": finite(hit.distance),
        "score": finite(hit.score),
        "probability": finite(hit.probability),
        "nodes": hit.nodes,
        "architecture": encodable(entry.architecture),
        "compiler": encodable(entry.compiler),
        "build": encodable(entry.build),
        "tags": {encodable(key): encodable(value) for key, value in entry.tags.items()},
        "evidence": None if hit.evidence is None else _evidence(hit.evidence),
    }


def _evidence(evidence: Evidence) -> dict[str, Any]:
    pairs = [[pair.left, pair.right, finite(pair.weight)] for pair in evidence.pairs]
    return {"matched_share": finite(evidence.matched_share), "pairs": pairs}


def finite(value: float | None) -> float | None:
    """JSON has neither infinity nor NaN."""
    return None if value is None or not math.isfinite(value) else value
