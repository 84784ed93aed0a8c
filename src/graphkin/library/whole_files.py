"""Whole files looked up in a library: hits in their context, and the components of each file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

from graphkin.library.components import find_components, library_components
from graphkin.library.context import in_context
from graphkin.library.library import Library
from graphkin.library.patches import PatchJudge
from graphkin.library.records import SearchOptions
from graphkin.library.scan import Query, look_up
from graphkin.results.document import Component, FunctionResult

if TYPE_CHECKING:
    from graphkin._support.progress import Progress

LIFTED_FROM = 0.2
"""Hits that are less probable by themselves are not lifted above one half by any context."""


class ScannedFiles(NamedTuple):
    """What is known of some files."""

    results: tuple[FunctionResult, ...]
    """In the order of the queries."""
    components: tuple[Component, ...]


def look_up_files(
    library: Library,
    queries: Sequence[Query],
    options: SearchOptions,
    *,
    progress: Progress | None = None,
) -> ScannedFiles:
    """The results of all functions of some files, and the components in each file."""
    own = list(look_up(library, queries, before_context(library, options), progress=progress))
    return completed(library, queries, own, options)


def before_context(library: Library, options: SearchOptions) -> SearchOptions:
    """How functions are looked up that :func:`completed` sees then: with the hits that their
    context may lift."""
    if not _has_context(library, options):
        return options
    return replace(options, min_probability=min(options.min_probability, LIFTED_FROM))


def completed(
    library: Library,
    queries: Sequence[Query],
    own: Sequence[FunctionResult],
    options: SearchOptions,
) -> ScannedFiles:
    """The results of all functions of some files in their context, with verdicts on patches, and
    the components in each file."""
    callees = [query.callees for query in queries]
    scanned = _with_components(library, own, options, callees)
    judge = PatchJudge(library.model, library.engine)
    judged = map(judge.judged, queries, scanned.results)
    return scanned._replace(results=tuple(judged))


def _has_context(library: Library, options: SearchOptions) -> bool:
    """Whether hits of a file tell something of each other."""
    return library.model.ranking is not None and options.without.isdisjoint({"ranking", "context"})


def _with_components(
    library: Library,
    own: Sequence[FunctionResult],
    options: SearchOptions,
    callees: Sequence[Sequence[int]],
) -> ScannedFiles:
    """Results, of each file together, in their context, and the components in each file.

    ``callees`` are the addresses that each function calls.

    Both build on probabilities that different functions share. Those of a model without a ranking
    do not: its results stay as they are, and nothing is said of components.
    """
    if library.model.ranking is None or "ranking" in options.without:
        return ScannedFiles(tuple(own), ())
    known = library_components(library.engine, (item for result in own for item in result.kin))
    results: list[FunctionResult] = []
    components: list[Component] = []
    start = 0
    for _, of_file in groupby(own, key=lambda result: result.query.binary):
        group = list(of_file)
        lifted: Sequence[FunctionResult] = group
        if _has_context(library, options):
            lifted = in_context(
                group,
                known.names,
                options.min_probability,
                callees=callees[start : start + len(group)],
                call_graph=library.engine.call_graph,
            )
        start += len(group)
        results += lifted
        components += find_components(lifted, known)
    return ScannedFiles(tuple(results), tuple(components))
