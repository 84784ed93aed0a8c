"""Rows of a Milvus collection as they are written: their ids, and tags that are added later.

The id follows from the row's key, so that a row that is written twice, by a client that tries
again or by two at a time, is there once.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice

from graphkin.errors import StorageError
from graphkin.library.engines.milvus.client import PAGE, Collection, runs
from graphkin.library.engines.milvus.collection import (
    Values,
    read_entry,
    written_tags,
    written_vector,
)


def candidate_ids(key: bytes) -> tuple[int, int]:
    """The two ids that a row with a key may have.

    It has the first, unless a row with another key has that: among a billion rows this happens
    to one pair or none.
    """
    digest = hashlib.sha256(key).digest()
    first, second = (int.from_bytes(part, "big") >> 1 or 1 for part in (digest[:8], digest[8:16]))
    return first, second


def assign_ids(rows: Collection, keys: Sequence[bytes]) -> list[tuple[int, bool]]:
    """The id of each of some different keys, and whether the collection has the key already."""
    both = [candidate_ids(key) for key in keys]
    answer = rows.look_up([own for pair in both for own in pair], ["key"])
    taken = {own: row["key"] for own, row in answer.items()}
    assigned = []
    for key, pair in zip(keys, both, strict=True):
        known = next((own for own in pair if taken.get(own) == key.hex()), None)
        own = next((own for own in pair if own not in taken), None) if known is None else known
        if own is None:
            raise StorageError(f"the ids {pair} of the key {key.hex()} are taken by other keys")
        taken[own] = key.hex()
        assigned.append((own, known is not None))
    return assigned


def known_keys(rows: Collection, keys: Iterable[bytes]) -> set[bytes]:
    """Those of some keys that the collection holds."""
    known: set[bytes] = set()
    for chunk in runs(list(set(keys)), PAGE // 2):
        answer = rows.look_up([own for key in chunk for own in candidate_ids(key)], ["key"])
        present = {row["key"] for row in answer.values()}
        known |= {key for key in chunk if key.hex() in present}
    return known


def add_tags(rows: Collection, chosen: Iterator[Values], tags: Mapping[str, str]) -> int:
    """Writes rows, with all their fields and in the order of ids, anew with some tags more.

    Returns how many rows there were; one that has the tags already is not written.
    """
    count = 0
    while page := list(islice(chosen, PAGE)):
        count += len(page)
        rows.upsert([row for row in (_tagged(row, tags) for row in page) if row is not None])
    return count


def _tagged(row: Values, tags: Mapping[str, str]) -> Values | None:
    """A row with the tags, or None where it has them."""
    entry = read_entry(row)
    after = {**entry.tags, **tags}
    if after == entry.tags:
        return None
    written = written_tags(entry.function, after)
    return {**row, "tags": written, "vector": written_vector(row["vector"])}
