"""Gives back what removal left of a Milvus library's bundles, and looks for damage in them."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Collection as Many
from itertools import islice

from graphkin.errors import FormatError, GraphkinError, StorageError
from graphkin.graphs.encoding import load_graph
from graphkin.library.engines.milvus.bundles import BundleStore, Piece
from graphkin.library.engines.milvus.client import PAGE, Collection, literal, runs
from graphkin.library.engines.milvus.collection import (
    PIECE_FIELDS,
    ROW_FIELDS,
    Values,
    read_piece,
    written_vector,
)
from graphkin.library.engines.milvus.payloads import load_payload
from graphkin.library.engines.milvus.rows import candidate_ids

SMALL = 64 << 10
"""Bytes of a bundle that is worth merging with others: a few hundred graphs."""
LIVE = 0.5
"""Share of a bundle in use, below which it is packed anew."""
GRACE_SECONDS = 3600.0
"""Age that an unused bundle is deleted at; younger ones may belong to a writer at work."""
BUNDLES_AT_ONCE = 200
ROWS_AT_ONCE = 10_000
"""That share a new bundle, so that it is not small again."""


def repack(rows: Collection, store: BundleStore, documents: Many[str]) -> None:
    """Moves graphs out of bundles that are mostly unused, or small.

    The new bundle is whole before a row names it, and the old ones stay until :func:`sweep`.
    """
    used: Counter[str] = Counter()
    for row in rows.scan("", ["bundle", "size"], after=0):
        used[row["bundle"]] += row["size"]
    bundles = [item for item in store if used[item.name] and item.name not in documents]
    small = [item.name for item in bundles if item.size < SMALL]
    sparse = [item.name for item in bundles if used[item.name] < LIVE * item.size]
    chosen = sorted({*sparse, *(small if len(small) > 1 else ())})
    for chunk in runs(chosen, BUNDLES_AT_ONCE):
        names = f"bundle in [{', '.join(map(literal, chunk))}]"
        moving = list(rows.scan(names, ROW_FIELDS, after=0))
        for part in runs(moving, ROWS_AT_ONCE):
            _move(part, rows, store)


def _move(part: list[Values], rows: Collection, store: BundleStore) -> None:
    pieces = store.put(store.read([read_piece(row) for row in part]))
    rows.upsert(
        {**row, **piece._asdict(), "vector": written_vector(row["vector"])}
        for row, piece in zip(part, pieces, strict=True)
    )


def sweep(rows: Collection, store: BundleStore, documents: Many[str]) -> None:
    """Deletes bundles that nothing uses, and what killed writers left behind."""
    used = {row["bundle"] for row in rows.scan("", ["bundle"], after=0)} | set(documents)
    before = time.time() - GRACE_SECONDS
    for bundle in store:
        if bundle.name not in used and bundle.modified < before:
            store.discard(bundle.name)
    store.discard_leftovers(before)


def damage(rows: Collection, store: BundleStore) -> tuple[int, list[str]]:
    """How many rows were read, and what is wrong with them or their graphs."""
    sentences: list[str] = []
    read = 0
    every = rows.scan("", (*PIECE_FIELDS, "graph_hash", "nodes", "key"), after=0)
    while page := list(islice(every, PAGE)):
        read += len(page)
        contents = _contents([read_piece(row) for row in page], store)
        for row, content in zip(page, contents, strict=True):
            sentences += _row_damage(row, content)
    return read, sentences


def _contents(pieces: list[Piece], store: BundleStore) -> list[bytes | GraphkinError]:
    """Pieces, or what is wrong with each."""
    try:
        return list(store.read(pieces))
    except (FormatError, StorageError) as error:
        if len(pieces) == 1:
            return [error]
    half = len(pieces) // 2
    return _contents(pieces[:half], store) + _contents(pieces[half:], store)


def _row_damage(row: Values, content: bytes | GraphkinError) -> list[str]:
    if isinstance(content, GraphkinError):
        return [f"entry {row['id']}: {content}"]
    try:
        graph = load_graph(load_payload(content).graph)
    except FormatError as error:
        return [f"entry {row['id']}: {error}"]
    if graph.digest() != row["graph_hash"] or graph.num_nodes != row["nodes"]:
        return [f"entry {row['id']}: its graph is another than the one that was added"]
    if row["id"] not in candidate_ids(bytes.fromhex(row["key"])):
        return [f"entry {row['id']} does not have the id of its key"]
    return []
