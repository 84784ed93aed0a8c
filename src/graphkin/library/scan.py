"""Functions of a binary as queries to a library, and two functions side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from graphkin.binaries.backends.choose import Backend
from graphkin.binaries.function import Function, Skipped
from graphkin.binaries.targets import find_function, list_functions, parse_target
from graphkin.errors import ModelError
from graphkin.library.records import Filter
from graphkin.results.document import Evidence, Query, SearchResult

if TYPE_CHECKING:
    from graphkin._support.progress import Progress
    from graphkin.graphs import Graph
    from graphkin.graphs.vocabulary import Vocabulary
    from graphkin.library.library import Library
    from graphkin.library.models import SearchModel
    from graphkin.models import AttentionMaps


def functions_of(
    target: str, backend: Backend, min_blocks: int, skipped: list[Skipped]
) -> list[Function]:
    """The function that ``BINARY:FUNCTION`` names, whatever its size, or all of ``BINARY``.

    Args:
        target: what a person typed.
        backend: what reads the file.
        min_blocks: of all functions, those with fewer basic blocks are left out.
        skipped: is filled with what could not be read.
    """
    wanted = parse_target(target)
    if wanted.function is not None:
        return [find_function(wanted, backend)]
    found = list_functions(wanted, backend, skipped)
    return [function for function in found if len(function.blocks) >= min_blocks]


def search_functions(
    index: Library,
    functions: Sequence[Function],
    top_k: int,
    *,
    rerank: int,
    where: Filter | None = None,
    progress: Progress | None = None,
) -> list[SearchResult]:
    """The kin of every function, in the order given; see :meth:`Library.search_many`."""
    vocabulary = vocabulary_of(index.model)
    graphs = [function.to_graph(vocabulary) for function in functions]
    found = index.search_many(graphs, top_k, rerank=rerank, where=where, progress=progress)
    return [
        SearchResult(query_of(function), tuple(hits))
        for function, hits in zip(functions, found, strict=True)
    ]


def explained(
    index: Library,
    functions: Sequence[Function],
    results: Sequence[SearchResult],
    progress: Progress | None = None,
) -> list[SearchResult]:
    """Results whose hits say which blocks match."""
    vocabulary = vocabulary_of(index.model)
    found = []
    for function, result in zip(functions, results, strict=True):
        hits = index.explained(function.to_graph(vocabulary), result.hits) if result.hits else ()
        found.append(replace(result, hits=tuple(hits)))
        if progress is not None:
            progress(len(found), len(results))
    return found


def query_of(function: Function) -> Query:
    """What a result says of the function that was asked for."""
    return Query(function.binary, function.name, function.address, len(function.blocks))


def vocabulary_of(model: SearchModel) -> Vocabulary:
    """The mnemonics that a model knows; one without cannot read functions."""
    vocabulary = model.embedder.vocabulary
    if vocabulary is None:
        raise ModelError(f"the model {model.model_id} has no vocabulary of mnemonics for functions")
    return vocabulary


@dataclass(frozen=True, eq=False)
class Comparison:
    """What the models say of two functions."""

    left: Function
    right: Function
    distance: float
    """Of their codes or vectors."""
    score: float
    """The matcher's."""
    probability: float | None
    """That they are the same function, as if one had been found by the other in a library."""
    graphs: tuple[Graph, Graph]
    maps: AttentionMaps
    evidence: Evidence


def compare(model: SearchModel, left: Function, right: Function) -> Comparison:
    """Compares two functions by codes and by matching."""
    from graphkin.library.probability import distances, probabilities
    from graphkin.library.rerank import best_evidence

    if model.matcher is None:
        raise ModelError(f"the model {model.model_id} has no matcher to compare with")
    vocabulary = vocabulary_of(model)
    graphs = (left.to_graph(vocabulary), right.to_graph(vocabulary))
    vectors = model.vectors(graphs)
    apart = distances(model.space, vectors[0], vectors[1:])
    maps = model.matcher.explain(*graphs)
    other = (graphs[1].num_nodes, graphs[1].digest())
    scores = np.array([maps.score], dtype=np.float32)
    chance = probabilities(model, graphs[0], [other], apart, scores)
    matched = best_evidence(maps)
    return Comparison(left, right, float(apart[0]), maps.score, chance[0], graphs, maps, matched)
