"""The embedded engine: one SQLite file is the truth, and faiss scans its vectors in memory.

Beside the library ``functions.kin`` lie SQLite's own ``-wal`` and ``-shm`` while it is open, and
the side file ``functions.kin.cache``, which may be deleted at any time.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any, Self, get_args

import numpy as np
from numpy.typing import NDArray

from graphkin.binaries.call_graph import CallGraph
from graphkin.errors import ConfigError, FormatError, GraphkinError
from graphkin.graphs import Graph
from graphkin.graphs.encoding import load_graph
from graphkin.library.engines.base import (
    COUNTED,
    WIDER,
    Engine,
    Metric,
    Nearest,
    Space,
    Verification,
    check_sharing,
    counts_document,
)
from graphkin.library.engines.sqlite.cache import ColumnCache, side_file
from graphkin.library.engines.sqlite.columns import count_binaries, count_texts, rows_beside
from graphkin.library.engines.sqlite.file import SqliteFile, exists
from graphkin.library.engines.sqlite.interned import INTERNED, InternedStrings, from_sql, to_sql
from graphkin.library.engines.sqlite.lists import sharing
from graphkin.library.engines.sqlite.nearest import most_alike
from graphkin.library.engines.sqlite.rows import (
    content_checksum,
    fetch_contents,
    fetch_rows,
    fetch_signals,
    fetch_vectors,
    fetch_words,
    in_order,
    insert_rows,
    known_keys,
    signals_length,
    with_tags,
    write_tags,
)
from graphkin.library.engines.sqlite.verify import verify_library
from graphkin.library.records import BinarySummary, Filter, Row, Stored, WordArray

PAGE = 1000
"""Entries that a scan reads at a time."""


class SqliteEngine(Engine):
    """A library in one file. Made by :meth:`create` or :meth:`open`.

    Searches are exact, and one thread's work for a single query. With ``approximate`` a
    library of 100,000 entries or more is searched by lists of similar vectors, which is
    faster and misses some of the nearest; ``verify`` measures how many. What is searched with
    a filter is always exact.

    Any number of processes may read while one writes; a second writer waits some seconds, and
    then fails with a StorageError. Where the folder cannot be written, or the disk is full, a
    library that was closed in order can be read, as long as nobody writes it elsewhere.
    """

    def __init__(self, file: SqliteFile) -> None:
        self._file = file
        with file.reading("open"):
            self.space, self.approximate = _traits(file)
            self._strings = InternedStrings(file)
            self._cache = ColumnCache(file, self._strings, self.space, self.approximate)
        self._seen: int | None = None
        self._wrote = False

    @classmethod
    def create(
        cls,
        url: str | os.PathLike[str],
        space: Space,
        documents: Mapping[str, bytes],
        *,
        approximate: bool = False,
        graphs_folder: str | Path | None = None,
    ) -> Self:
        """Makes an empty library in a new file, which holds its graphs too."""
        if space.metric == "hamming" and space.width % 8:
            raise ConfigError(f"codes must have a multiple of 8 bits, got {space.width}")
        facts = {"metric": space.metric, "width": space.width, "approximate": int(approximate)}
        return cls(SqliteFile.create(Path(url), facts, documents))

    @classmethod
    def open(cls, url: str | os.PathLike[str], *, graphs_folder: str | Path | None = None) -> Self:
        """Opens a library to read and to write."""
        file = SqliteFile(Path(url))
        try:
            return cls(file)
        except BaseException:
            file.close()
            raise

    @classmethod
    def exists(cls, url: str) -> bool:
        return exists(Path(url))

    @classmethod
    def shown_name(cls, url: str) -> str:
        return Path(url).name

    @classmethod
    def uploads_folder(cls, url: str) -> Path:
        return Path(f"{url}.files").absolute()

    @property
    def path(self) -> Path:
        return self._file.path

    def one_state(self) -> AbstractContextManager[None]:
        return self._file.reading()

    def one_write(self) -> AbstractContextManager[None]:
        return self._file.writing("add to")

    def documents(self) -> Mapping[str, bytes]:
        with self._file.reading():
            rows = self._file.execute("SELECT name, checksum, content FROM documents").fetchall()
        for name, checksum, content in rows:
            if not isinstance(content, bytes) or zlib.crc32(content) != checksum:
                raise FormatError(
                    f"{self.path} is damaged: its document {name!r} is not what was stored; "
                    "restore it from a copy"
                )
        return {name: content for name, _, content in rows}

    def add(self, rows: Sequence[Row]) -> int:
        with self._file.writing("add to"):
            self._changed()
            return insert_rows(self._file, self._strings, self.space, rows)

    def known(self, keys: Iterable[bytes]) -> set[bytes]:
        with self._file.reading():
            return known_keys(self._file, keys)

    def tag(self, where: Filter, tags: Mapping[str, str]) -> int:
        with self._file.lock:
            with self._file.writing("tag entries of"):
                self._changed()
                cache = self._cache
                cache.refresh()
                chosen = self._chosen(where)
                before = cache.columns["tags"]
                after = with_tags(self._strings, before, chosen, tags)
                changed = after != before
                if not changed.any():
                    return int(chosen.sum())
                write_tags(self._file, cache.columns["id"][changed], after[changed])
                epoch = self._file.begin_epoch()
            cache.retag(after, epoch)
        return int(chosen.sum())

    def _chosen(self, where: Filter) -> NDArray[np.bool_]:
        """(R,) the rows that match."""
        chosen = self._cache.matching(where)
        return np.ones(len(self._cache.columns), dtype=bool) if chosen is None else chosen

    def finish_files(self, files: Iterable[tuple[str, str]]) -> None:
        with self._file.writing("add to"):
            self._file.executemany(
                "INSERT OR IGNORE INTO finished VALUES (?, ?)",
                ((to_sql(file_hash), to_sql(settings)) for file_hash, settings in files),
            )

    def finished_files(self) -> set[tuple[str, str]]:
        with self._file.reading():
            pairs = self._file.execute("SELECT file_hash, settings FROM finished")
            return {(from_sql(file_hash), from_sql(settings)) for file_hash, settings in pairs}

    def keep_call_graphs(self, call_graphs: Mapping[str, bytes]) -> None:
        if not call_graphs:
            return
        with self._file.writing("add to"):
            self._file.executemany(
                "INSERT OR REPLACE INTO call_graphs VALUES (?, ?, ?)",
                (
                    (to_sql(file_hash), content_checksum(content), content)
                    for file_hash, content in call_graphs.items()
                ),
            )

    def call_graph(self, file_hash: str) -> CallGraph | None:
        with self._file.reading():
            content = self._file.value(
                "SELECT content FROM call_graphs WHERE file_hash = ?", (to_sql(file_hash),)
            )
        return None if content is None else CallGraph.from_bytes(content)

    def call_graph_files(self) -> list[str]:
        with self._file.reading():
            rows = self._file.execute("SELECT file_hash FROM call_graphs ORDER BY rowid")
            return [from_sql(file_hash) for (file_hash,) in rows]

    def remove(self, where: Filter) -> int:
        with self._file.lock:
            with self._file.writing("remove from"):
                self._changed()
                cache = self._cache
                cache.refresh()
                gone = self._chosen(where)
                if not gone.any():
                    return 0
                self._delete(gone)
                epoch = self._file.begin_epoch()
            cache.keep(~gone, epoch)
        return int(gone.sum())

    def _delete(self, gone: NDArray[np.bool_]) -> None:
        columns, file = self._cache.columns, self._file
        delete = "DELETE FROM {} WHERE {} = ?"
        ids = columns["id"][gone].tolist()
        for table in ("entries", "signals"):
            file.executemany(delete.format(table, "id"), ((number,) for number in ids))
        graphs = np.setdiff1d(columns["graph"][gone], columns["graph"][~gone]).tolist()
        for table, column in (("graphs", "id"), ("words", "graph")):
            file.executemany(delete.format(table, column), ((number,) for number in graphs))
        hashes = [
            self._strings.text(int(number)) for number in np.unique(columns["file_hash"][gone])
        ]
        file.executemany(delete.format("finished", "file_hash"), ((to_sql(h),) for h in hashes))
        whole = np.setdiff1d(columns["file_hash"][gone], columns["file_hash"][~gone]).tolist()
        file.executemany(
            delete.format("call_graphs", "file_hash"),
            ((to_sql(self._strings.text(number)),) for number in whole),
        )

    def nearest(
        self,
        vectors: NDArray[Any],
        count: int,
        where: Filter | None = None,
        unrounded: NDArray[np.float32] | None = None,
    ) -> Nearest:
        self.space.check(vectors)
        if count < 1:
            raise ConfigError(f"count must be at least 1, got {count}")
        with self._current():
            chosen = self._cache.matching(where)
            index = self._cache.vector_index
            if unrounded is None:
                rows, distances = index.nearest(vectors, count, chosen)
            else:
                near = index.nearest(vectors, WIDER * count, chosen)
                rows, distances = most_alike(near, index.vectors(), unrounded, count)
            ids = np.full(rows.shape, -1, dtype=np.int64)
            ids[rows >= 0] = self._cache.columns["id"][rows[rows >= 0]]
        return Nearest(ids, distances)

    def sharing(
        self,
        words: WordArray,
        weights: NDArray[np.float32],
        count: int,
        where: Filter | None = None,
    ) -> list[tuple[int, float]]:
        check_sharing(words, weights, count)
        with self._current():
            cache = self._cache
            chosen = cache.matching(where)
            rows, sums = sharing(
                cache.graphs_by_word, cache.rows_by_graph, words, weights, count, chosen
            )
            ids = cache.columns["id"][rows]
        return list(zip(ids.tolist(), sums.tolist(), strict=True))

    def beside(
        self, ids: Sequence[int], reach: int, where: Filter | None = None
    ) -> NDArray[np.int64]:
        with self._current():
            rows = rows_beside(self._cache.columns, ids, reach)
            chosen = self._cache.matching(where)
            rows = rows if chosen is None else rows[chosen[rows]]
            return self._cache.columns["id"][rows]

    def fetch(self, ids: Sequence[int]) -> list[Stored]:
        with self._file.reading():
            return in_order(fetch_rows(self._file, self._strings, ids), ids)

    def graphs(self, ids: Sequence[int]) -> list[Graph]:
        with self._file.reading():
            owners, contents = fetch_contents(self._file, ids)
        # Other threads need not wait for this.
        graphs = {number: load_graph(content) for number, content in contents.items()}
        return in_order({owner: graphs[number] for owner, number in owners.items()}, ids)

    def vectors(self, ids: Sequence[int]) -> NDArray[Any]:
        with self._file.reading():
            vectors = in_order(fetch_vectors(self._file, self.space, ids), ids)
        none = np.zeros((0, self.space.columns), self.space.dtype)
        return np.stack(vectors) if vectors else none

    def signals(self, ids: Sequence[int]) -> list[bytes]:
        with self._file.reading():
            return in_order(fetch_signals(self._file, ids), ids)

    def words(self, ids: Sequence[int]) -> list[WordArray]:
        with self._file.reading():
            return in_order(fetch_words(self._file, ids), ids)

    def scan(self, where: Filter | None = None, after: int = 0) -> Iterator[Stored]:
        with self._current():
            chosen = self._cache.matching(where)
            ids = self._cache.columns["id"]
            ids = ids[ids > after] if chosen is None else ids[chosen & (ids > after)]
            ids = ids.copy()
        for start in range(0, len(ids), PAGE):
            page = ids[start : start + PAGE].tolist()
            # What another process removed meanwhile is left out.
            with self._file.reading():
                stored = fetch_rows(self._file, self._strings, page)
            yield from (stored[number] for number in page if number in stored)

    def count(self, where: Filter | None = None) -> int:
        with self._current():
            chosen = self._cache.matching(where)
            return len(self._cache.columns) if chosen is None else int(chosen.sum())

    def stats(self) -> dict[str, Any]:
        with self._current():
            path, cache = self._file.path, self._cache
            columns = cache.columns
            counts = {name: count_texts(columns[name], self._strings, name) for name in COUNTED}
            with_signals = self._file.value("SELECT count(signals) FROM entries")
            return {
                "entries": len(columns),
                "graphs": len(np.unique(columns["graph"])),
                "binaries": len(counts["binary"]),
                "call_graphs": self._file.value("SELECT count(*) FROM call_graphs"),
                "bytes": {
                    "library": _size(path) + _size(Path(f"{path}-wal")),
                    "side_file": _size(side_file(path)),
                    "signals": with_signals * (signals_length(self._file) or 0),
                    "lists": cache.graphs_by_word.nbytes + cache.rows_by_graph.nbytes,
                    "vectors_in_memory": cache.vector_index.nbytes,
                    "filters_in_memory": columns.nbytes,
                },
                **counts_document(counts),
            }

    def binaries(self) -> list[BinarySummary]:
        with self._current():
            return count_binaries(self._cache.columns, self._strings)

    def verify(self) -> Verification:
        with self._file.lock:
            return verify_library(self._file, self.space, self._cache)

    def compact(self) -> None:
        with self._file.lock:
            with self._file.writing("compact"):
                self._changed()
                used = " UNION ".join(f"SELECT {kind} FROM entries" for kind in INTERNED)
                self._file.execute(f"DELETE FROM texts WHERE id NOT IN ({used})")
                self._file.begin_epoch()
            with self._file.explained("compact"):
                self._file.execute("VACUUM")
                self._file.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
            with self._current():
                self._cache.save()

    def close(self) -> None:
        # Who wrote much leaves a side file to the next who opens the library.
        if self._wrote:
            self._wrote = False
            with suppress(GraphkinError), self._current():
                pass
        self._file.close()

    def _changed(self) -> None:
        """As part of a write: what is in memory must be looked at again after it."""
        self._seen, self._wrote = None, True

    @contextmanager
    def _current(self) -> Iterator[None]:
        """One state of the library, with the cache brought up to it."""
        with self._file.reading():
            version = self._file.changes_by_others()
            if version != self._seen:
                self._cache.refresh()
                self._seen = version
                if self._cache.worth_saving():
                    self._cache.save()
            yield


def _traits(file: SqliteFile) -> tuple[Space, bool]:
    facts = file.facts()
    metric: Any = facts.get("metric")
    width = facts.get("width")
    if metric not in get_args(Metric) or not isinstance(width, int):
        raise FormatError(f"{file.path} is damaged: its vectors are {metric!r} of {width!r}")
    return Space(metric, width), bool(facts.get("approximate"))


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0
