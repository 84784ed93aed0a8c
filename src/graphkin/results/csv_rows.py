"""Results for spreadsheets: one row for each hit.

A spreadsheet runs a cell that begins like a formula, and names in a binary are chosen by whoever
made it. So a text that begins with one of ``= + - @`` gets an apostrophe in front, and so does
one that begins with an apostrophe: a program that reads the file takes one leading apostrophe
away and has every name as it was. Numbers are never changed. Control characters are written
``\\x1b``, so that a row is always one line; JSON Lines keep them as they are.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Sequence

from graphkin.results.document import Hit, Query, SearchResult
from graphkin.results.text import address_text, number_text, printable

COLUMNS = (
    "query_binary", "query_function", "query_address", "query_nodes",
    "rank", "rank_before", "probability", "score", "distance", "matched_share",
    "binary", "function", "address", "nodes", "architecture", "compiler", "build", "tags",
)  # fmt: skip
FORMULA = "=+-@\uff1d\uff0b\uff0d\uff20"
"""Letters that begin a formula; some programs read the wide ones of East Asia alike."""
DIGITS = 6


def csv_rows(results: Iterable[SearchResult]) -> Iterator[str]:
    """Lines with their ends: the names of the columns, then a row for each hit.

    Addresses are hexadecimal, tags ``key=value`` with ``;`` between, and what is not known is
    empty. A query without hits has no row.
    """
    yield _line(COLUMNS)
    for result in results:
        for rank, hit in enumerate(result.hits, start=1):
            yield _line(_cells(result.query, hit, rank))


def _cells(query: Query, hit: Hit, rank: int) -> list[str]:
    entry = hit.entry
    return [
        cell(query.binary),
        cell(query.function),
        address_text(query.address),
        str(query.nodes),
        str(rank),
        str(hit.rank_before),
        number_text(hit.probability, DIGITS),
        number_text(hit.score, DIGITS),
        f"{hit.distance:.9g}",
        "" if hit.evidence is None else number_text(hit.evidence.matched_share, DIGITS),
        cell(entry.binary),
        cell(entry.function),
        address_text(entry.address),
        str(hit.nodes),
        cell(entry.architecture),
        cell(entry.compiler),
        cell(entry.build),
        cell(";".join(f"{key}={value}" for key, value in sorted(entry.tags.items()))),
    ]


def cell(text: str) -> str:
    """A text that no spreadsheet takes for a formula."""
    text = printable(text)
    start = text.lstrip()[:1]
    return f"'{text}" if start and start in FORMULA + "'" else text


def _line(cells: Sequence[str]) -> str:
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="\n").writerow(cells)
    return buffer.getvalue()
