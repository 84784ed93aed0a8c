"""What a search needs of every entry, in memory: its vector, what filters ask for, and lists of
the graphs of each word.

All of it is derived from the SQLite file. Reading a million entries from there takes seconds,
so a side file keeps the arrays, and only entries newer than it are read from SQLite. It is
written anew when a tenth of the entries, and at least ``SAVED_ROWS``, are not in it yet: small
additions never rewrite a large file, and opening never reads many entries one by one. One that
is damaged, or of another state of the library, is written anew as well.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphkin.errors import FormatError
from graphkin.library.engines.base import Space
from graphkin.library.engines.sqlite.columns import Columns, matching
from graphkin.library.engines.sqlite.file import SqliteFile
from graphkin.library.engines.sqlite.interned import InternedStrings
from graphkin.library.engines.sqlite.lists import KEY, VALUE, InvertedLists, Run
from graphkin.library.engines.sqlite.nearest import Chosen, VectorIndex, make_vector_index
from graphkin.library.engines.sqlite.rows import (
    ENTRY_COLUMNS,
    content_checksum,
    entry_checksum,
    not_as_stored,
)
from graphkin.library.engines.sqlite.snapshot import Snapshot, read_snapshot, write_snapshot
from graphkin.library.records import Filter

COLUMNS = {
    "id": np.int64,
    "graph": np.int64,
    "nodes": np.int32,
    "binary": np.int32,
    "architecture": np.int32,
    "compiler": np.int32,
    "build": np.int32,
    "file_hash": np.int32,
    "tags": np.int32,
}
LISTS = ("graphs_by_word", "rows_by_graph")
SAVED_ROWS = 20_000
BATCH = 20_000
FORMAT = "graphkin scan 2"


def side_file(path: Path) -> Path:
    """Where the arrays of a library are."""
    return Path(f"{path}.cache")


class ColumnCache:
    """The arrays of one library; ``refresh`` brings them up to date within a transaction."""

    def __init__(
        self,
        file: SqliteFile,
        strings: InternedStrings,
        space: Space,
        approximate: bool,
        *,
        from_side_file: bool = True,
    ) -> None:
        self._file, self._strings, self._space = file, strings, space
        self._approximate, self._from_side_file = approximate, from_side_file
        self._library = file.facts().get("uuid")
        self._clear(-1)

    def _clear(self, epoch: int) -> None:
        self._epoch = epoch
        self.columns = Columns(COLUMNS)
        self.vector_index: VectorIndex = make_vector_index(self._space, self._approximate)
        self.graphs_by_word = InvertedLists()
        self.rows_by_graph = InvertedLists()
        self._last_key = ""
        self._saved = 0
        self._is_unfit = False
        self._chosen: tuple[Filter, Chosen] | None = None

    def refresh(self) -> None:
        """Reads what is new, from the side file as far as that goes."""
        self._strings.refresh()
        epoch = self._file.epoch()
        if epoch != self._epoch:
            self._clear(epoch)
            if self._from_side_file:
                self._load()
        self._read_new()

    def keep(self, chosen: Chosen, epoch: int) -> None:
        """Lets go of all other rows, after a write that removed them began an epoch."""
        vectors = self.vector_index.vectors()[chosen]
        columns = {name: array[chosen] for name, array in self.columns.arrays().items()}
        words = self.graphs_by_word.whole()
        words = words.choose(np.isin(words.values, columns["graph"]))
        self._clear(epoch)
        self.columns.replace(columns)
        self.vector_index.add(vectors)
        self.graphs_by_word.replace(words)
        self._list_rows(0)
        self._note_last()

    def retag(self, tags: NDArray[np.int32], epoch: int) -> None:
        """Takes (R,) new tags, after a write that changed them began an epoch."""
        self.columns.replace_column("tags", tags)
        self._epoch = epoch
        self._saved = 0
        self._chosen = None

    def matching(self, where: Filter | None) -> Chosen | None:
        """(R,) the rows that match, or None for all."""
        if where is None or where.is_empty():
            return None
        rows = len(self.columns)
        if self._chosen is None or self._chosen[0] != where or len(self._chosen[1]) != rows:
            self._chosen = where, matching(self._file, self._strings, self.columns, where)
        return self._chosen[1]

    def worth_saving(self) -> bool:
        unsaved = len(self.columns) - self._saved
        return self._is_unfit or unsaved >= max(SAVED_ROWS, self._saved // 10)

    def save(self) -> None:
        """Writes the side file, where that is possible."""
        self._is_unfit = False
        if write_snapshot(
            side_file(self._file.path), Snapshot(self._state(self._last_key), self.arrays())
        ):
            self._saved = len(self.columns)
            with suppress(OSError):
                Path(f"{self._file.path}.scan").unlink()  # as side files were called at first

    def arrays(self, rows: int | None = None) -> dict[str, NDArray[Any]]:
        """All that a side file of the first rows keeps; of all rows by default."""
        arrays = {**self.columns.arrays(), "vectors": self.vector_index.vectors()}
        arrays = {name: array[:rows] for name, array in arrays.items()}
        last_graph = int(arrays["graph"].max(initial=0))
        for name, last in zip(LISTS, (last_graph, len(arrays["id"]) - 1), strict=True):
            run: Run = getattr(self, name).whole()
            run = run if rows is None else run.choose(run.values <= last)
            arrays |= dict(zip(_list_arrays(name), run, strict=True))
        return arrays

    def usable(self, snapshot: Snapshot | None) -> bool:
        """Whether a side file is of this library, and everything in it is there still.

        The last key tells a library apart that was restored from an older copy, and has grown
        another way since.
        """
        if snapshot is None:
            return False
        arrays = snapshot.arrays
        kinds = {**COLUMNS, "vectors": self._space.dtype}
        for name in LISTS:
            kinds |= dict(zip(_list_arrays(name), (KEY, VALUE), strict=True))
        if {name: array.dtype for name, array in arrays.items()} != kinds:
            return False
        ids = arrays["id"]
        last = int(ids[-1]) if len(ids) else 0
        keys, values = (arrays[name] for name in _list_arrays("graphs_by_word"))
        by_row = (*COLUMNS, *_list_arrays("rows_by_graph"))
        return (
            snapshot.state == self._state(self._key(last))
            and arrays["vectors"].shape == (len(ids), self._space.columns)
            and all(arrays[name].shape == ids.shape for name in by_row)
            and keys.shape == values.shape == (keys.size,)
        )

    def _state(self, last_key: str) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "library": self._library,
            "epoch": self._epoch,
            "last_key": last_key,
        }

    def _load(self) -> None:
        path = side_file(self._file.path)
        snapshot = read_snapshot(path)
        if snapshot is None or not self.usable(snapshot):
            self._is_unfit = path.exists()
            return
        arrays = dict(snapshot.arrays)
        self.vector_index.add(arrays.pop("vectors"))
        for name in LISTS:
            getattr(self, name).replace(Run(*(arrays.pop(part) for part in _list_arrays(name))))
        self.columns.replace(arrays)
        self._saved = len(self.columns)
        self._note_last()

    def _read_new(self) -> None:
        ids = self.columns["id"]
        last = int(ids[-1]) if len(ids) else 0
        last_graph = int(self.columns["graph"].max(initial=0))
        entries = self._file.execute(
            f"SELECT id, checksum, {', '.join(ENTRY_COLUMNS)} FROM entries WHERE id > ? "
            "ORDER BY id",
            (last,),
        )
        try:
            while rows := entries.fetchmany(BATCH):
                for number, checksum, *values in rows:
                    if number <= last or entry_checksum(values) != checksum:
                        raise not_as_stored(self._file, f"entry {number}")
                    last = number
                numbers, _, *stored = zip(*rows, strict=True)
                columns = {"id": numbers, **dict(zip(ENTRY_COLUMNS, stored, strict=True))}
                self.columns.append({k: np.array(columns[k], v) for k, v in COLUMNS.items()})
                self.vector_index.add(self._stacked(columns["vector"]))
            self._list_rows(len(ids))
            self._list_words(last_graph)
        except (FormatError, ValueError, TypeError, OverflowError) as error:
            self._clear(-1)
            if isinstance(error, FormatError):
                raise
            raise FormatError(f"{self._file.path} is damaged: {error}") from error
        self._note_last()

    def _list_rows(self, start: int) -> None:
        """Lists the rows from one on by their graphs."""
        graphs = self.columns["graph"][start:]
        self.rows_by_graph.add(graphs.astype(KEY), np.arange(start, len(self.columns), dtype=VALUE))

    def _list_words(self, last_graph: int) -> None:
        """Lists the graphs after one by their words."""
        every = self._file.execute(
            "SELECT graph, words.content, graphs.words FROM words LEFT JOIN graphs "
            "ON graphs.id = graph WHERE graph > ? ORDER BY graph",
            (last_graph,),
        )
        while rows := every.fetchmany(BATCH):
            for number, content, checksum in rows:
                if content_checksum(content) != checksum or len(content) % 8:
                    raise not_as_stored(self._file, f"the words of graph {number}", "are")
            numbers, contents, _ = zip(*rows, strict=True)
            counts = np.array([len(content) // 8 for content in contents])
            words = np.frombuffer(b"".join(contents), "<u8").astype(KEY, copy=False)
            self.graphs_by_word.add(words, np.repeat(np.array(numbers, VALUE), counts))

    def _stacked(self, vectors: tuple[bytes, ...]) -> NDArray[Any]:
        space = self._space
        joined = np.frombuffer(b"".join(vectors), np.dtype(space.dtype).newbyteorder("<"))
        return joined.astype(space.dtype, copy=False).reshape(len(vectors), space.columns)

    def _note_last(self) -> None:
        ids = self.columns["id"]
        self._last_key = self._key(int(ids[-1]) if len(ids) else 0)

    def _key(self, number: int) -> str:
        key = self._file.value("SELECT key FROM entries WHERE id = ?", (number,))
        return key.hex() if isinstance(key, bytes) else ""


def _list_arrays(name: str) -> tuple[str, str]:
    """The names of the two arrays of lists in a side file."""
    return f"{name}.keys", f"{name}.values"
