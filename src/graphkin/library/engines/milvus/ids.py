"""Which id a row has in a Milvus collection: it follows from the row's key.

So a row that is written twice, by a client that tries again or by two at a time, is there once.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

from graphkin.errors import StorageError
from graphkin.library.engines.milvus.client import PAGE, Collection, runs


def places(key: bytes) -> tuple[int, int]:
    """The two ids that a row with a key may have.

    It has the first, unless a row with another key has that: among a billion rows this happens
    to one pair or none.
    """
    digest = hashlib.sha256(key).digest()
    first, second = (int.from_bytes(part, "big") >> 1 or 1 for part in (digest[:8], digest[8:16]))
    return first, second


def assign(rows: Collection, keys: Sequence[bytes]) -> list[tuple[int, bool]]:
    """The id of each of some different keys, and whether the key is held already."""
    both = [places(key) for key in keys]
    answer = rows.look_up([own for pair in both for own in pair], ["key"])
    taken = {own: row["key"] for own, row in answer.items()}
    found = []
    for key, pair in zip(keys, both, strict=True):
        held = next((own for own in pair if taken.get(own) == key.hex()), None)
        own = next((own for own in pair if own not in taken), None) if held is None else held
        if own is None:
            raise StorageError(f"the ids {pair} of the key {key.hex()} are taken by other keys")
        taken[own] = key.hex()
        found.append((own, held is not None))
    return found


def known_keys(rows: Collection, keys: Iterable[bytes]) -> set[bytes]:
    """Those of some keys that the collection holds."""
    found: set[bytes] = set()
    for chunk in runs(list(set(keys)), PAGE // 2):
        answer = rows.look_up([own for key in chunk for own in places(key)], ["key"])
        held = {row["key"] for row in answer.values()}
        found |= {key for key in chunk if key.hex() in held}
    return found
