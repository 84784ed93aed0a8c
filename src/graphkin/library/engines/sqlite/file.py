"""The SQLite file of a library: its tables, how it is opened, and what its errors mean.

Every write is one transaction in a write-ahead log that is flushed before it counts, so that
the end of a process at any moment leaves all of a write or nothing.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import uuid
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from graphkin._support.files import (
    locked,
    remove_companions,
    remove_with_companions,
    replacing,
    storing,
    sync_folder,
)
from graphkin.errors import ConfigError, FormatError, StorageError

APPLICATION_ID = int.from_bytes(b"gkin")
FIRST_VERSION = 1
WAIT_SECONDS = 5.0
"""For another process that is writing."""

# Ids of entries and texts are never given again (AUTOINCREMENT), so that what another process
# remembers of one cannot come to mean another. Foreign keys are declared for `verify` to
# check; enforcing them would look through all entries for each graph that is removed.
# Signals have a table of their own, because they are ten times the rest of an entry, which is
# read without them. The column `signals` of an entry, and `words` of a graph, are the CRC-32 of
# what the table has for it, or NULL where it has nothing.
SIGNALS = """
CREATE TABLE signals (
    id INTEGER PRIMARY KEY REFERENCES entries (id),
    content BLOB NOT NULL
)"""
WORDS = """
CREATE TABLE words (
    graph INTEGER PRIMARY KEY REFERENCES graphs (id),
    content BLOB NOT NULL
)"""
CALL_GRAPHS = """
CREATE TABLE call_graphs (
    file_hash PRIMARY KEY NOT NULL,
    checksum INTEGER NOT NULL,
    content BLOB NOT NULL
)"""
SCHEMA = f"""
CREATE TABLE facts (name TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE documents (name TEXT PRIMARY KEY, checksum INTEGER NOT NULL, content BLOB NOT NULL);
CREATE TABLE texts (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    kind INTEGER NOT NULL,
    value NOT NULL,
    UNIQUE (kind, value)
);
CREATE TABLE graphs (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    hash BLOB NOT NULL UNIQUE,
    content BLOB NOT NULL,
    words INTEGER
);
CREATE TABLE entries (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    key BLOB NOT NULL UNIQUE,
    graph INTEGER NOT NULL REFERENCES graphs (id),
    nodes INTEGER NOT NULL,
    binary INTEGER NOT NULL REFERENCES texts (id),
    architecture INTEGER NOT NULL REFERENCES texts (id),
    compiler INTEGER NOT NULL REFERENCES texts (id),
    build INTEGER NOT NULL REFERENCES texts (id),
    file_hash INTEGER NOT NULL REFERENCES texts (id),
    tags INTEGER NOT NULL REFERENCES texts (id),
    address INTEGER,
    size INTEGER,
    function NOT NULL,
    vector BLOB NOT NULL,
    checksum INTEGER NOT NULL,
    signals INTEGER
);
{SIGNALS};
{WORDS};
{CALL_GRAPHS};
CREATE TABLE finished (
    file_hash NOT NULL,
    settings NOT NULL,
    PRIMARY KEY (file_hash, settings)
) WITHOUT ROWID;
"""


def _add_signals_and_words(connection: sqlite3.Connection) -> None:
    connection.execute("ALTER TABLE graphs ADD COLUMN words INTEGER")
    connection.execute("ALTER TABLE entries ADD COLUMN signals INTEGER")
    connection.execute(SIGNALS)
    connection.execute(WORDS)


def _add_call_graphs(connection: sqlite3.Connection) -> None:
    connection.execute(CALL_GRAPHS)


MIGRATIONS: list[Callable[[sqlite3.Connection], object]] = [
    _add_signals_and_words,
    _add_call_graphs,
]
"""Each turns a library into one of the next version: the first one those of ``FIRST_VERSION``.
What changes ``SCHEMA`` adds one here, in the same commit."""

FULL = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_SHMOPEN, sqlite3.SQLITE_IOERR_SHMSIZE)
READ_ONLY = (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY)
UNREADABLE = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR)
BUSY = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


class SqliteFile:
    """One connection; calls of several threads take turns.

    Args:
        path: an existing library.
        to_write: to fail where nothing can be written, instead of only reading.
    """

    def __init__(self, path: Path, *, to_write: bool = False) -> None:
        self.path = path
        self.lock = threading.RLock()
        self._is_writing = False
        self._connection, self._disk_was_full = _connect(path, to_write)
        with self.explained("open"):
            _check_header(path, self._connection)
            _migrate(path, self._connection)

    @classmethod
    def create(
        cls, path: Path, facts: Mapping[str, str | int], documents: Mapping[str, bytes]
    ) -> SqliteFile:
        """Makes a new file; it appears whole, or not at all."""
        with _alone_in(path):
            if path.exists():
                raise StorageError(f"{path} exists already; open it, or choose another name")
            with replacing(path) as temporary, _explained(path, "create"):
                _fill(temporary, facts, documents)
                # A log that a removed library left would be taken for that of the new one: it
                # must be gone for good, after a power cut too, before the name means the new one.
                remove_companions(path)
                sync_folder(path.parent)
        try:
            return cls(path, to_write=True)
        except StorageError:
            # Nobody was told of it yet: to open it takes some room on the disk, too.
            remove_with_companions(path)
            raise

    def explained(self, action: str) -> Any:
        """A context that turns errors of SQLite into those of graphkin."""
        return _explained(self.path, action)

    def execute(self, statement: str, values: Any = ()) -> sqlite3.Cursor:
        return self._connection.execute(statement, values)

    def executemany(self, statement: str, values: Any) -> sqlite3.Cursor:
        return self._connection.executemany(statement, values)

    def value(self, statement: str, values: Any = ()) -> Any:
        """The only value of the only row, or None where there is no row."""
        row = self.execute(statement, values).fetchone()
        return None if row is None else row[0]

    def facts(self) -> dict[str, Any]:
        return dict(self.execute("SELECT name, value FROM facts").fetchall())

    def epoch(self) -> int:
        """How often something was taken away or changed: what was read before then may be so."""
        epoch = self.value("SELECT value FROM facts WHERE name = 'epoch'")
        if not isinstance(epoch, int):
            raise FormatError(f"{self.path} is damaged: its epoch is {epoch!r}")
        return epoch

    def begin_epoch(self) -> int:
        self.execute("UPDATE facts SET value = value + 1 WHERE name = 'epoch'")
        return self.epoch()

    def changes_by_others(self) -> int:
        """A number that is another after another connection wrote."""
        return int(self.value("PRAGMA data_version"))

    @contextmanager
    def reading(self, action: str = "read") -> Iterator[None]:
        """One state of the library, whatever others write meanwhile."""
        with self.lock, self.explained(action):
            if self._connection.in_transaction:
                yield
                return
            self.execute("BEGIN")
            try:
                yield
            finally:
                self._end("ROLLBACK")

    @contextmanager
    def writing(self, action: str) -> Iterator[None]:
        """All of it, or nothing; as part of a larger write, all of that."""
        with self.lock, self.explained(action):
            if self._is_writing:
                yield
                return
            if self._disk_was_full:
                raise StorageError(
                    f"cannot {action} {self.path}: its disk was full when it was opened; make "
                    "room, and open it again"
                )
            self.execute("BEGIN IMMEDIATE")
            self._is_writing = True
            try:
                yield
                self.execute("COMMIT")
            except BaseException:
                self._end("ROLLBACK")
                raise
            finally:
                self._is_writing = False

    def _end(self, how: str) -> None:
        # SQLite itself rolls back after some errors; and what matters is the first error.
        with suppress(sqlite3.Error):
            if self._connection.in_transaction:
                self.execute(how)

    def close(self) -> None:
        with self.lock, self.explained("close"):
            self._connection.close()


@contextmanager
def _alone_in(path: Path) -> Iterator[None]:
    """Keeps others from creating a library meanwhile, whose log would be removed."""
    with storing(f"write {path}"):
        path.parent.mkdir(parents=True, exist_ok=True)
    busy = f"cannot create {path}: another process creates a library there; try again after that"
    with locked(path.parent, busy, wait=WAIT_SECONDS):
        yield


def _fill(path: Path, facts: Mapping[str, str | int], documents: Mapping[str, bytes]) -> None:
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {_current_version()}")
        connection.execute("BEGIN")
        for statement in SCHEMA.split(";"):
            connection.execute(statement)
        own = {"uuid": uuid.uuid4().hex, "epoch": 0, **facts}
        connection.executemany("INSERT INTO facts VALUES (?, ?)", own.items())
        connection.executemany(
            "INSERT INTO documents VALUES (?, ?, ?)",
            ((name, zlib.crc32(content), content) for name, content in documents.items()),
        )
        connection.execute("COMMIT")
        # The file is moved without its log; closing would say nothing of a disk that is full.
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    finally:
        connection.close()


def exists(path: Path) -> bool:
    """Whether something is at a path; a folder cannot be meant."""
    if path.is_dir():
        raise ConfigError(f"{path} is a folder; a library is a file, such as library.kin")
    return os.path.lexists(path)


def _connect(path: Path, to_write: bool) -> tuple[sqlite3.Connection, bool]:
    """A connection, and whether it can only read because the disk is full."""
    if not exists(path) or not path.is_file():
        raise FormatError(
            f"there is no library {path}; check the path, or create it with `graphkin index`"
        )
    with _explained(path, "open"):
        try:
            return _connected(path, "mode=rw"), False
        except sqlite3.OperationalError as error:
            code = error.sqlite_errorcode
            is_full = code in FULL
            if to_write or not (is_full or code & 0xFF in READ_ONLY):
                raise
    # Where nothing may be written SQLite cannot coordinate with writers, and then reads only
    # if it is told that there are none. What a writer left in its log would be missed.
    log = Path(f"{path}-wal")
    if log.exists() and log.stat().st_size:
        why = "its disk is full" if is_full else "its folder cannot be written"
        raise StorageError(
            f"{path} has writes waiting in {log.name}, and {why}; "
            "open it once where that is not so, or copy both files to such a place"
        )
    if is_full:
        _remove_half_made(path)
    with _explained(path, "open"):
        return _connected(path, "immutable=1"), is_full


def _remove_half_made(path: Path) -> None:
    """Removes what SQLite made beside a file before the disk was full, unless it is in use.

    A connection that keeps all others out needs no -shm, and takes its empty log along.
    """
    with suppress(sqlite3.Error, OSError):
        connection = _connected(path, "mode=rw", exclusive=True)
        try:
            os.unlink(f"{path}-shm")
        finally:
            connection.close()


def _connected(path: Path, mode: str, *, exclusive: bool = False) -> sqlite3.Connection:
    connection = sqlite3.connect(
        f"{path.absolute().as_uri()}?{mode}",
        uri=True,
        timeout=WAIT_SECONDS,
        isolation_level=None,
        check_same_thread=False,
    )
    try:
        if exclusive:
            connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA cache_size = -65536")
        # Keys are random, so that a batch touches many pages: copy them back less often.
        connection.execute("PRAGMA wal_autocheckpoint = 4000")
        connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    except BaseException:
        connection.close()
        raise
    return connection


def _check_header(path: Path, connection: sqlite3.Connection) -> None:
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if application != APPLICATION_ID:
        connection.close()
        raise FormatError(f"{path} is a SQLite file, but not a library of graphkin; check the path")
    if not FIRST_VERSION <= version <= _current_version():
        connection.close()
        raise FormatError(
            f"{path} is a library of version {version}, this graphkin reads versions "
            f"{FIRST_VERSION} to {_current_version()}; use the graphkin that wrote it"
        )


def _current_version() -> int:
    return FIRST_VERSION + len(MIGRATIONS)


def _migrate(path: Path, connection: sqlite3.Connection) -> None:
    """Brings a library of an earlier version up to this one, as a whole or not at all."""
    newest = _current_version()
    if connection.execute("PRAGMA user_version").fetchone()[0] == newest:
        return
    try:
        connection.execute("BEGIN IMMEDIATE")
        # Another process may have done it while this one waited.
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        for migrate in MIGRATIONS[version - FIRST_VERSION :]:
            migrate(connection)
        connection.execute(f"PRAGMA user_version = {newest}")
        connection.execute("UPDATE facts SET value = value + 1 WHERE name = 'epoch'")
        connection.execute("COMMIT")
    except BaseException as error:
        connection.close()  # what was not committed is rolled back
        if getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_READONLY:
            raise StorageError(
                f"{path} is a library of an earlier version, and it cannot be written to bring it "
                f"up to version {newest}; open a copy in a folder that can be written"
            ) from error
        raise


@contextmanager
def _explained(path: Path, action: str) -> Iterator[None]:
    try:
        yield
    except sqlite3.ProgrammingError:
        raise
    except UnicodeDecodeError as error:
        # SQLite quotes what it cannot make sense of, and Python then fails at the message.
        raise FormatError(
            f"{path} is damaged: SQLite cannot read it; restore it from a copy"
        ) from error
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) & 0xFF
        if code == sqlite3.SQLITE_NOTADB:
            raise FormatError(f"{path} is not a library of graphkin: {error}") from error
        if code in UNREADABLE:
            raise FormatError(f"{path} is damaged: {error}. Restore it from a copy") from error
        if code in BUSY:
            raise StorageError(
                f"cannot {action} {path}: another process is writing to it; try again after that"
            ) from error
        raise StorageError(
            f"cannot {action} {path}: {error}; what was there before is intact"
        ) from error
