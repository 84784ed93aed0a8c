"""Tags for entries that are in a library already."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from graphkin.errors import FormatError
from graphkin.library.engines.sqlite.file import SqliteFile
from graphkin.library.engines.sqlite.nearest import Chosen
from graphkin.library.engines.sqlite.rows import ENTRY_COLUMNS, GIVEN, entry_checksum, given
from graphkin.library.engines.sqlite.texts import KINDS, Texts, tags_text

TAGS = KINDS.index("tags")
PAGE = 1000
"""Entries that are in memory as a whole at a time."""


def with_tags(
    texts: Texts, column: NDArray[np.int32], chosen: Chosen, tags: Mapping[str, str]
) -> NDArray[np.int32]:
    """(R,) the column of tags once the chosen rows have some tags more; part of a write."""
    held, places = np.unique(column[chosen], return_inverse=True)
    wanted = [(TAGS, tags_text({**texts.tags(number), **tags})) for number in held.tolist()]
    numbers = texts.intern(dict.fromkeys(wanted))
    found = column.copy()
    found[chosen] = np.array([numbers[text] for text in wanted], dtype=np.int32)[places]
    return found


def write_tags(file: SqliteFile, ids: NDArray[np.int64], tags: NDArray[np.int32]) -> None:
    """Gives each entry the tags of a number, as part of a write."""
    numbers = dict(zip(ids.tolist(), tags.tolist(), strict=True))
    every = list(numbers)
    for start in range(0, len(every), PAGE):
        page = every[start : start + PAGE]
        columns = ", ".join(ENTRY_COLUMNS)
        rows = file.execute(
            f"SELECT id, checksum, {columns} FROM entries WHERE id IN {GIVEN}", (given(page),)
        ).fetchall()
        file.executemany(
            "UPDATE entries SET tags = ?, checksum = ? WHERE id = ?",
            [
                (numbers[number], _new_checksum(number, checksum, values, numbers[number]), number)
                for number, checksum, *values in rows
            ],
        )


def _new_checksum(number: int, checksum: int, values: list[object], tags: int) -> int:
    """The checksum of an entry with other tags; a new one must not hide damage."""
    if entry_checksum(values) != checksum:
        raise FormatError(f"entry {number} is damaged; verify lists all damage. Remove it first")
    return entry_checksum(
        [
            tags if name == "tags" else value
            for name, value in zip(ENTRY_COLUMNS, values, strict=True)
        ]
    )
