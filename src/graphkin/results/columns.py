"""Tables for people at a terminal: columns as wide as there is room for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from rich.cells import cell_len

from graphkin.results.text import padded, printable, shortened, telling_ends

GAP = "  "
LEAST_NAME = 6
"""Columns that a name keeps, however narrow the table."""
WIDTH = 100
"""Columns of a table, unless others are asked for."""


@dataclass(frozen=True)
class Column:
    """One column of a table."""

    title: str
    cells: Sequence[str]
    right: bool = False
    """Numbers stand at the right."""
    share: int = 0
    """Of the room that is left, where the table is too wide; 0 for what is never cut."""
    are_paths: bool = False
    """Where they are too long, folders are left out first that tell nothing apart."""


def table_lines(columns: Sequence[Column], width: int) -> list[str]:
    """The titles, then the rows; names are cut so that all of it fits."""
    widths = _widths(columns, width)
    columns = [
        replace(column, cells=telling_ends(column.cells))
        if column.are_paths and any(cell_len(printable(cell)) > room for cell in column.cells)
        else column
        for column, room in zip(columns, widths, strict=True)
    ]
    rows = zip(*(column.cells for column in columns), strict=True)
    lines = []
    for row in ([column.title for column in columns], *rows):
        cells = [
            padded(shortened(text, room), room, right=column.right)
            for column, text, room in zip(columns, row, widths, strict=True)
        ]
        lines.append(GAP.join(cells).rstrip())
    return lines


def _widths(columns: Sequence[Column], width: int) -> list[int]:
    """Columns of numbers as wide as they are; names share the rest, short ones taking less."""
    widths = [
        max(cell_len(printable(text)) for text in (column.title, *column.cells))
        for column in columns
    ]
    fixed = sum(size for size, column in zip(widths, columns, strict=True) if not column.share)
    room = width - fixed - len(GAP) * (len(columns) - 1)
    names = [number for number, column in enumerate(columns) if column.share]
    names.sort(key=lambda number: widths[number] / columns[number].share)
    shares = sum(columns[number].share for number in names)
    for number in names:
        own = room * columns[number].share // shares
        widths[number] = min(widths[number], max(own, LEAST_NAME))
        room -= widths[number]
        shares -= columns[number].share
    return widths
