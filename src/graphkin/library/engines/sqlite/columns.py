"""Columns of numbers that grow together, filters as bits over their rows, and counts of them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import translate
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

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
from graphkin.library.records import BinarySummary, Filter

FEW = 4
"""Numbers for which comparing one after the other beats looking each row up in a table."""


class Columns:
    """Arrays of one length, by name.

    They may begin as arrays that are mapped from a file: those are left alone until rows are
    added, and then copied with room to grow.
    """

    def __init__(self, kinds: Mapping[str, DTypeLike]) -> None:
        self._arrays: dict[str, NDArray[Any]] = {
            name: np.zeros(0, kind) for name, kind in kinds.items()
        }
        self._rows = 0

    def __len__(self) -> int:
        return self._rows

    def __getitem__(self, name: str) -> NDArray[Any]:
        return self._arrays[name][: self._rows]

    def arrays(self) -> dict[str, NDArray[Any]]:
        return {name: self[name] for name in self._arrays}

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in self.arrays().values())

    def replace(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Takes arrays as they are for all columns."""
        self._arrays = {name: arrays[name] for name in self._arrays}
        self._rows = len(next(iter(self._arrays.values())))

    def replace_column(self, name: str, array: NDArray[Any]) -> None:
        """Takes an array as it is for the rows of one column."""
        self._arrays[name] = array

    def append(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Adds rows behind the last."""
        start = self._rows
        stop = start + len(next(iter(arrays.values())))
        for name, array in self._arrays.items():
            if stop > len(array):
                grown = np.empty(max(stop, stop + start // 2), array.dtype)
                grown[:start] = array[:start]
                self._arrays[name] = grown
            self._arrays[name][start:stop] = arrays[name]
        self._rows = stop


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


def rows_beside(columns: Columns, ids: Sequence[int], reach: int) -> NDArray[np.int64]:
    """Rows of entries, and of up to ``reach`` on either side of each that are of the same file,
    rising; ids that are not there are passed over."""
    known, files = columns["id"], columns["file_hash"]
    wanted = np.unique(np.asarray(ids, dtype=np.int64))
    rows = np.searchsorted(known, wanted)
    is_there = np.zeros(len(rows), dtype=bool)
    is_there[rows < len(known)] = known[rows[rows < len(known)]] == wanted[rows < len(known)]
    rows = rows[is_there]
    near = rows[:, None] + np.arange(-reach, reach + 1)
    inside = (near >= 0) & (near < len(known))
    near = np.clip(near, 0, max(len(known) - 1, 0))
    return np.unique(near[inside & (files[near] == files[rows][:, None])])


def count_binaries(columns: Columns, strings: InternedStrings) -> list[BinarySummary]:
    """Every binary, in no order; what its entries differ in is that of the first."""
    pairs = columns["binary"].astype(np.int64) << 32 | columns["file_hash"]
    _, firsts, groups, counts = np.unique(
        pairs, return_index=True, return_inverse=True, return_counts=True
    )
    tags = [
        count_texts(columns["tags"][rows], strings, "tags")
        for rows in np.split(np.argsort(groups, kind="stable"), np.cumsum(counts))[:-1]
    ]
    names = ("binary", "file_hash", "architecture", "compiler", "build")
    return [
        BinarySummary(
            **{name: strings.text(int(columns[name][first])) for name in names},
            functions=count,
            tags=dict(own.most_common()),
        )
        for first, count, own in zip(firsts.tolist(), counts.tolist(), tags, strict=True)
    ]


def count_texts(column: NDArray[np.int32], strings: InternedStrings, name: str) -> Counter[str]:
    """Entries by the text of a column, or by ``tag=value``."""
    entries: Counter[str] = Counter()
    numbers, counts = np.unique(column, return_counts=True)
    for number, count in zip(numbers.tolist(), counts.tolist(), strict=True):
        texts = [strings.text(number)]
        if name == "tags":
            texts = [f"{tag}={value}" for tag, value in strings.tags(number).items()]
        entries.update(dict.fromkeys(texts, count))
    return entries
