"""Looks at everything in a library, and names what is damaged.

SQLite has no checksums of its own: it finds broken pages and indexes. Entries, signals, graphs,
words and documents have checksums; texts, keys and hashes are in an index too, which must agree.
"""

from __future__ import annotations

import re
import sqlite3
import zlib
from collections.abc import Callable, Iterator

import numpy as np

from graphkin.errors import FormatError, GraphkinError
from graphkin.graphs.encoding import load_graph
from graphkin.library.engines.base import Space, Verification
from graphkin.library.engines.sqlite.cache import ColumnCache, side_file
from graphkin.library.engines.sqlite.file import SCHEMA, SqliteFile
from graphkin.library.engines.sqlite.interned import INTERNED, InternedStrings, from_sql, parse_tags
from graphkin.library.engines.sqlite.nearest import ListIndex
from graphkin.library.engines.sqlite.rows import (
    ENTRY_COLUMNS,
    content_checksum,
    entry_checksum,
    signals_length,
)
from graphkin.library.engines.sqlite.snapshot import read_snapshot

LISTED = 20
"""Sentences for each kind of damage; a count stands for the others."""
QUERIES = 200
"""Of the library itself, to measure how many of the nearest an approximate search finds."""

Check = Callable[["_Library"], Iterator[str]]


class _Library:
    def __init__(self, file: SqliteFile, space: Space, cache: ColumnCache) -> None:
        self.file, self.space, self.cache = file, space, cache
        self.verification = Verification()


def verify_library(file: SqliteFile, space: Space, cache: ColumnCache) -> Verification:
    """Never raises for damage: what cannot even be read is reported as that."""
    library = _Library(file, space, cache)
    try:
        with file.reading("verify"):
            for what, check in CHECKS.items():
                _run(library, what, check)
    except FormatError as error:
        library.verification.damage.append(str(error))
    return library.verification


def _run(library: _Library, what: str, check: Check) -> None:
    damage, count = library.verification.damage, 0
    try:
        for sentence in check(library):
            count += 1
            if count <= LISTED:
                damage.append(sentence)
    except (sqlite3.Error, GraphkinError, ValueError, TypeError, OverflowError) as error:
        damage.append(f"{what} cannot be read to the end: {error}")
    if count > LISTED:
        damage.append(f"{what}: {count - LISTED} more of the same")


def _pages(library: _Library) -> Iterator[str]:
    for (sentence,) in library.file.execute("PRAGMA integrity_check"):
        if sentence != "ok":
            yield f"SQLite finds: {sentence}"


def _tables(library: _Library) -> Iterator[str]:
    rows = library.file.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
    present = {row[0] for row in rows}
    for table in re.findall(r"CREATE TABLE (\w+)", SCHEMA):
        if table not in present:
            yield f"the table {table} is missing"


def _references(library: _Library) -> Iterator[str]:
    for table, row, parent, _ in library.file.execute("PRAGMA foreign_key_check"):
        yield f"row {row} of {table} refers to a row of {parent} that is not there"


def _counters(library: _Library) -> Iterator[str]:
    counters = dict(library.file.execute("SELECT name, seq FROM sqlite_sequence").fetchall())
    for table in ("entries", "graphs", "texts"):
        last = library.file.value(f"SELECT max(id) FROM {table}") or 0
        if counters.get(table, 0) < last:
            yield f"ids of {table} up to {last} would be given again"


def _documents(library: _Library) -> Iterator[str]:
    for name, content, checksum in library.file.execute(
        "SELECT name, content, checksum FROM documents"
    ):
        if zlib.crc32(content) != checksum:
            yield f"document {name!r} is not what was stored"


def _texts(library: _Library) -> Iterator[str]:
    for number, kind, value in library.file.execute("SELECT id, kind, value FROM texts"):
        try:
            if kind not in range(len(INTERNED)):
                raise FormatError(f"its kind is {kind!r}")
            text = from_sql(value)
            if INTERNED[kind] == "tags":
                parse_tags(text)
        except FormatError as error:
            yield f"text {number}: {error}"


def _entries(library: _Library) -> Iterator[str]:
    space = library.space
    length = space.columns * np.dtype(space.dtype).itemsize
    rows = library.file.execute(f"SELECT id, checksum, {', '.join(ENTRY_COLUMNS)} FROM entries")
    for number, checksum, *values in rows:
        library.verification.entries += 1
        key, vector = values[0], values[ENTRY_COLUMNS.index("vector")]
        if entry_checksum(values) != checksum:
            yield f"entry {number} is not what was stored"
        elif len(key) != 16 or len(vector) != length:
            yield f"entry {number} has {len(vector)} bytes of vector, expected {length}"
        elif space.metric != "hamming" and not np.isfinite(np.frombuffer(vector, "<f4")).all():
            yield f"the vector of entry {number} is not finite"


def _signals(library: _Library) -> Iterator[str]:
    length = signals_length(library.file)
    rows = library.file.execute(
        "SELECT entries.id, entries.signals, content FROM entries LEFT JOIN signals USING (id)"
    )
    for number, checksum, content in rows:
        if content_checksum(content or b"") != checksum:
            yield f"the signals of entry {number} are not what was stored"
        elif content and len(content) != length:
            yield f"entry {number} has {len(content)} bytes of signals, expected {length}"


def _words(library: _Library) -> Iterator[str]:
    rows = library.file.execute(
        "SELECT graphs.id, words, words.content FROM graphs LEFT JOIN words "
        "ON words.graph = graphs.id"
    )
    for number, checksum, content in rows:
        if content_checksum(content or b"") != checksum:
            yield f"the words of graph {number} are not what was stored"


def _graphs(library: _Library) -> Iterator[str]:
    nodes: dict[int, int] = {}
    for number, digest, content in library.file.execute("SELECT id, hash, content FROM graphs"):
        try:
            graph = load_graph(content)
        except FormatError as error:
            yield f"graph {number}: {error}"
            continue
        nodes[number] = graph.num_nodes
        if graph.digest() != digest.hex():
            yield f"graph {number} is another than its hash {digest.hex()} says"
    used = set()
    for entry, number, count in library.file.execute("SELECT id, graph, nodes FROM entries"):
        used.add(number)
        if nodes.get(number, count) != count:
            yield f"entry {entry} counts {count} nodes, its graph has {nodes[number]}"
    for number in sorted(set(nodes) - used):
        yield f"graph {number} belongs to no entry"


def _call_graphs(library: _Library) -> Iterator[str]:
    rows = library.file.execute("SELECT file_hash, checksum, content FROM call_graphs")
    for file_hash, checksum, content in rows:
        if content_checksum(content) != checksum:
            yield f"the call graph of {from_sql(file_hash)} is not what was stored"


def _side_file(library: _Library) -> Iterator[str]:
    path = side_file(library.file.path)
    if library.verification.damage:
        return  # nothing can be made of entries that are damaged, so as to compare it
    snapshot = read_snapshot(path)
    fresh = ColumnCache(
        library.file, InternedStrings(library.file), library.space, False, from_side_file=False
    )
    fresh.refresh()
    usable = snapshot is not None and fresh.usable(snapshot)
    library.verification.notes["side_file"] = (
        "used" if usable else "stale" if path.exists() else "none"
    )
    if snapshot is None or not usable:
        return
    arrays = fresh.arrays(rows=len(snapshot.arrays["id"]))
    for name, array in snapshot.arrays.items():
        if not np.array_equal(array, arrays[name]):
            yield f"{path.name} differs from the library in {name!r}; delete it, to be made again"


def _recall(library: _Library) -> Iterator[str]:
    if library.verification.damage:
        return
    library.cache.refresh()
    vector_index = library.cache.vector_index
    if isinstance(vector_index, ListIndex) and len(vector_index):
        rows = np.linspace(0, len(vector_index) - 1, min(QUERIES, len(vector_index))).astype(
            np.int64
        )
        queries = np.array(vector_index.vectors()[rows])
        true = vector_index.exact.nearest(queries, 10).distances
        near = vector_index.nearest(queries, 10).distances
        library.verification.notes["recall@10"] = float(np.mean(near <= true[:, -1:] + 1e-6))
    yield from ()


CHECKS: dict[str, Check] = {
    "the file": _pages,
    "tables": _tables,
    "references": _references,
    "counters": _counters,
    "documents": _documents,
    "texts": _texts,
    "entries": _entries,
    "signals": _signals,
    "graphs": _graphs,
    "words": _words,
    "call graphs": _call_graphs,
    "the side file": _side_file,
    "the search": _recall,
}
