"""A scan from the side of the library: of each known function, where it was found."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from graphkin.binaries.function import base_name
from graphkin.results.columns import GAP, WIDTH, Column, table_lines
from graphkin.results.document import FunctionRef, FunctionResult, Hit
from graphkin.results.grouping import UNTAGGED, likelihood, tag_title, vulnerabilities
from graphkin.results.text import address_text, distance_text, number_text, plural, shortened


class Match(NamedTuple):
    """A scanned function, and its likeliest hit among the builds of a known one."""

    query: FunctionRef
    hit: Hit


class KnownFunctionMatches(NamedTuple):
    """A function of the library, whatever its build, and what was found to be like it."""

    function: str
    tags: str
    matches: list[Match]
    """The likeliest first."""


def by_known_function(results: Iterable[FunctionResult]) -> list[KnownFunctionMatches]:
    """The known functions that were found, vulnerable ones first, then those with other tags."""
    matches: dict[tuple[str, str], list[Match]] = {}
    for result in results:
        best: dict[tuple[str, str], Hit] = {}
        for hit in sorted(result.hits, key=likelihood):
            best.setdefault((base_name(hit.shown), tag_title(hit)), hit)
        for key, hit in best.items():
            matches.setdefault(key, []).append(Match(result.query, hit))
    functions = [
        KnownFunctionMatches(function, tags, sorted(own, key=lambda match: likelihood(match.hit)))
        for (function, tags), own in matches.items()
    ]
    return sorted(functions, key=_order)


def _order(known: KnownFunctionMatches) -> tuple[int, tuple[float, float, float], str]:
    best = known.matches[0].hit
    kind = 0 if vulnerabilities(best) else 1 if best.tags else 2
    return kind, likelihood(best), known.function


def known_table(results: Sequence[FunctionResult], *, width: int = WIDTH) -> str:
    """For each known function that was found a title, and a line for each match."""
    lines: list[str] = []
    functions = by_known_function(results)
    for known in functions:
        tags = "" if known.tags == UNTAGGED else f"{GAP}{known.tags}"
        lines.append(shortened(f"{known.function}{tags}", width))
        rows = table_lines(_columns(known.matches), width - len(GAP))
        lines += [*(GAP + row for row in rows), ""]
    return "\n".join([*lines, f"{plural(len(functions), 'known function')} found"])


def _columns(matches: Sequence[Match]) -> list[Column]:
    queries, hits = [match.query for match in matches], [match.hit for match in matches]
    return [
        Column("prob.", [number_text(hit.probability, 3) for hit in hits], right=True),
        Column("dist.", [distance_text(hit.distance) for hit in hits], right=True),
        Column("function", [query.shown for query in queries], share=3),
        Column("address", [address_text(query.address) for query in queries], right=True),
        Column("in", [query.binary for query in queries], share=2, are_paths=True),
        Column("is like that of", [hit.binary for hit in hits], share=2, are_paths=True),
    ]
