"""Names for spreadsheets: one row for each."""

from __future__ import annotations

from collections.abc import Iterator

from graphkin.results.csv_rows import DIGITS, cell, csv_line
from graphkin.results.document import CarriedName, Names
from graphkin.results.text import address_text, number_text

COLUMNS = (
    "binary", "address", "function", "name", "probability",
    "origin_binary", "origin_address", "source_file", "demangled",
)  # fmt: skip


def csv_names(names: Names) -> Iterator[str]:
    """Lines with their ends; texts are written as in the rows of a scan."""
    yield csv_line(COLUMNS)
    for item in names.names:
        yield csv_line(_cells(item))


def _cells(item: CarriedName) -> list[str]:
    return [
        cell(item.target.binary),
        address_text(item.target.address),
        cell(item.target.function),
        cell(item.name),
        number_text(item.probability, DIGITS),
        cell(item.origin.binary),
        address_text(item.origin.address),
        cell(item.source_file or ""),
        cell(item.demangled or ""),
    ]
