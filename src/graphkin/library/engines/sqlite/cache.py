"""What a search needs of every entry, in memory: its vector, and what filters ask for.

All of it is derived from the SQLite file. Reading a million entries from there takes seconds,
so a side file keeps the arrays, and only entries newer than it are read from SQLite. It is
written anew when a tenth of the entries, and at least ``SAVED_ROWS``, are not in it yet: small
additions never rewrite a large file, and opening never reads many entries one by one.
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
from graphkin.library.engines.sqlite.nearest import Chosen, VectorIndex, make_vector_index
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
SAVED_ROWS = 20_000
BATCH = 20_000
FORMAT = "graphkin scan 1"


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
        self._last_key = ""
        self._saved = 0
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
        self._clear(epoch)
        self.columns.replace(columns)
        self.vector_index.add(vectors)
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
        return len(self.columns) - self._saved >= max(SAVED_ROWS, self._saved // 10)

    def save(self) -> None:
        """Writes the side file, where that is possible."""
        arrays = {**self.columns.arrays(), "vectors": self.vector_index.vectors()}
        if write_snapshot(
            side_file(self._file.path), Snapshot(self._state(self._last_key), arrays)
        ):
            self._saved = len(self.columns)
            with suppress(OSError):
                Path(f"{self._file.path}.scan").unlink()  # as side files were called at first

    def usable(self, snapshot: Snapshot | None) -> bool:
        """Whether a side file is of this library, and everything in it is there still.

        The last key tells a library apart that was restored from an older copy, and has grown
        another way since.
        """
        if snapshot is None or set(snapshot.arrays) != {*COLUMNS, "vectors"}:
            return False
        ids, vectors = snapshot.arrays["id"], snapshot.arrays["vectors"]
        kinds = {name: array.dtype for name, array in snapshot.arrays.items()}
        last = int(ids[-1]) if len(ids) else 0
        return (
            snapshot.state == self._state(self._key(last))
            and kinds == COLUMNS | {"vectors": np.dtype(self._space.dtype)}
            and vectors.shape == (len(ids), self._space.columns)
            and all(len(array) == len(ids) for array in snapshot.arrays.values())
        )

    def _state(self, last_key: str) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "library": self._library,
            "epoch": self._epoch,
            "last_key": last_key,
        }

    def _load(self) -> None:
        snapshot = read_snapshot(side_file(self._file.path))
        if snapshot is None or not self.usable(snapshot):
            return
        arrays = dict(snapshot.arrays)
        self.vector_index.add(arrays.pop("vectors"))
        self.columns.replace(arrays)
        self._saved = len(self.columns)
        self._note_last()

    def _read_new(self) -> None:
        ids = self.columns["id"]
        last = int(ids[-1]) if len(ids) else 0
        names = ", ".join(COLUMNS)
        entries = self._file.execute(
            f"SELECT {names}, vector FROM entries WHERE id > ? ORDER BY id", (last,)
        )
        while rows := entries.fetchmany(BATCH):
            *numbers, vectors = zip(*rows, strict=True)
            try:
                columns = dict(zip(COLUMNS, numbers, strict=True))
                self.columns.append({k: np.array(v, COLUMNS[k]) for k, v in columns.items()})
                self.vector_index.add(self._stacked(vectors))
            except (ValueError, TypeError, OverflowError) as error:
                self._clear(-1)
                raise FormatError(f"{self._file.path} is damaged: {error}") from error
        self._note_last()

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
