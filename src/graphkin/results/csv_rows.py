"""Results for spreadsheets: one row for each hit.

A spreadsheet runs a cell that begins like a formula, and names in a binary are chosen by whoever
made it. So a text that begins with one of ``= + - @`` gets an apostrophe in front, and so does
one that begins with an apostrophe: a program that reads the file takes one leading apostrophe
away and has every name as it was. Numbers are never changed. Control characters are written
``\\x1b``, so that a row is always one line; JSON keeps them as they are.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Sequence

from graphkin.results.document import FunctionRef, FunctionResult, Hit
from graphkin.results.text import address_text, number_text, printable
from graphkin.results.word_text import word_text

COLUMNS = (
    "query_binary", "query_function", "query_address", "query_blocks",
    "rank", "rank_by_distance", "probability", "score", "distance", "matched_share",
    "binary", "function", "address", "blocks", "architecture", "compiler", "build", "tags",
    "query_demangled", "demangled", "shared", "note", "patched",
)  # fmt: skip
FORMULA = "=+-@\uff1d\uff0b\uff0d\uff20"
"""Letters that begin a formula; some programs read the wide ones of East Asia alike."""
DIGITS = 6


def csv_rows(results: Iterable[FunctionResult]) -> Iterator[str]:
    """Lines with their ends: the names of the columns, then a row for each hit.

    ``query_demangled`` and ``demangled`` are how C++ and Rust sources spell a name, where that is
    not the name itself. ``shared`` is what both say, with ``;`` between and strings in quotes; JSON
    has it whole. Addresses are hexadecimal, tags ``key=value`` with ``;`` between, and what is not
    known is empty. ``patched`` says which of two known versions the query is. A query without hits
    has no row.
    """
    yield csv_line(COLUMNS)
    for result in results:
        for hit in result.hits:
            yield csv_line([*_cells(result.query, hit), cell(_patched(result))])


def _patched(result: FunctionResult) -> str:
    """``CVE-...=fixed``, ``=vulnerable`` or ``=cannot tell``, with ``;`` between."""
    return ";".join(f"{item.identifier}={item.verdict}" for item in result.patches)


def _cells(query: FunctionRef, hit: Hit) -> list[str]:
    return [
        cell(query.binary),
        cell(query.function),
        address_text(query.address),
        str(query.blocks),
        str(hit.rank),
        str(hit.rank_by_distance),
        number_text(hit.probability, DIGITS),
        number_text(hit.score, DIGITS),
        "" if hit.distance is None else f"{hit.distance:.9g}",
        "" if hit.evidence is None else number_text(hit.evidence.matched_share, DIGITS),
        cell(hit.binary),
        cell(hit.function),
        address_text(hit.address),
        str(hit.blocks),
        cell(hit.architecture),
        cell(hit.compiler),
        cell(hit.build),
        cell(";".join(f"{key}={value}" for key, value in sorted(hit.tags.items()))),
        cell(query.demangled or ""),
        cell(hit.demangled or ""),
        cell("; ".join(map(word_text, hit.shared))),
        cell(hit.note or ""),
    ]


def cell(text: str) -> str:
    """A text that no spreadsheet takes for a formula."""
    text = printable(text)
    start = text.lstrip()[:1]
    return f"'{text}" if start and start in FORMULA + "'" else text


def csv_line(cells: Sequence[str]) -> str:
    """A row of a spreadsheet, with its line end."""
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="\n").writerow(cells)
    return buffer.getvalue()
