"""Tags for rows that are in a Milvus collection already."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice

from graphkin.library.engines.milvus.client import PAGE, Collection
from graphkin.library.engines.milvus.schema import Values, read_entry, written_tags, written_vector


def add_tags(rows: Collection, found: Iterator[Values], tags: Mapping[str, str]) -> int:
    """Writes rows, with all their fields and in the order of ids, anew with some tags more.

    Returns how many rows there were; one that has the tags already is not written.
    """
    count = 0
    while page := list(islice(found, PAGE)):
        count += len(page)
        rows.upsert([row for row in (_tagged(row, tags) for row in page) if row is not None])
    return count


def _tagged(row: Values, tags: Mapping[str, str]) -> Values | None:
    """A row with the tags, or None where it has them."""
    entry = read_entry(row)
    wanted = {**entry.tags, **tags}
    if wanted == entry.tags:
        return None
    written = written_tags(entry.function, wanted)
    return {**row, "tags": written, "vector": written_vector(row["vector"])}
