"""Filters as bits over the rows in memory."""

from __future__ import annotations

import re
from collections.abc import Iterator
from fnmatch import translate
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from graphkin.library.engines.sqlite.columns import Columns
from graphkin.library.engines.sqlite.file import SqliteFile
from graphkin.library.engines.sqlite.interned import (
    INTERNED,
    WILDCARDS,
    InternedStrings,
    from_sql,
    to_sql,
)
from graphkin.library.engines.sqlite.nearest import Chosen
from graphkin.library.engines.sqlite.rows import signed
from graphkin.library.records import Filter

FEW = 4
"""Numbers for which comparing one after the other beats looking each row up in a table."""


def matching(file: SqliteFile, strings: InternedStrings, columns: Columns, where: Filter) -> Chosen:
    """(R,) whether each row matches; a pattern is tried once for each text, not for each row."""
    conditions = list(_conditions(file, strings, columns, where))
    return reduce(np.logical_and, conditions) if conditions else np.ones(len(columns), bool)


def _conditions(
    file: SqliteFile, strings: InternedStrings, columns: Columns, where: Filter
) -> Iterator[Chosen]:
    for name in INTERNED:
        pattern = None if name == "tags" else getattr(where, name)
        if pattern is not None:
            yield _any_of(columns[name], strings.matching(name, pattern))
    if where.tags:
        yield _any_of(columns["tags"], strings.tagged(where.tags))
    if where.min_blocks > 0:
        yield columns["nodes"] >= where.min_blocks
    if where.max_blocks is not None:
        yield columns["nodes"] <= where.max_blocks
    if where.function is not None:
        yield _named(file, columns["id"], where.function)
    if where.address is not None:
        yield _at(file, columns["id"], where.address)


def _any_of(column: NDArray[np.int32], numbers: list[int]) -> Chosen:
    if not numbers:
        return np.zeros(len(column), dtype=bool)
    if len(numbers) <= FEW:
        return reduce(np.logical_or, [column == number for number in numbers])
    table = np.zeros(max(*numbers, int(column.max(initial=0))) + 1, dtype=bool)
    table[numbers] = True
    return table[column]


def _named(file: SqliteFile, ids: NDArray[np.int64], pattern: str) -> Chosen:
    """Names of functions are not in memory: SQLite goes through all entries for them."""
    if WILDCARDS.isdisjoint(pattern):
        entries = file.execute("SELECT id FROM entries WHERE function = ?", (to_sql(pattern),))
        named = [number for (number,) in entries]
    else:
        matches = re.compile(translate(pattern)).match
        entries = file.execute("SELECT id, function FROM entries")
        named = [number for number, name in entries if matches(from_sql(name))]
    return _numbered(ids, named)


def _at(file: SqliteFile, ids: NDArray[np.int64], address: int) -> Chosen:
    """Addresses are not in memory either."""
    if not 0 <= address < 2**64:
        return np.zeros(len(ids), dtype=bool)
    entries = file.execute("SELECT id FROM entries WHERE address = ?", (signed(address),))
    return _numbered(ids, [number for (number,) in entries])


def _numbered(ids: NDArray[np.int64], numbers: list[int]) -> Chosen:
    return np.isin(ids, np.array(numbers, dtype=np.int64))
