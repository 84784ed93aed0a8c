"""Makes a made-up library larger, by copies of its functions that are written by SQL.

    python benchmarks/multiply.py LIBRARY --functions 10000000

A library of ten million functions takes hours to make through the engine, which makes an object of
each row and checks it. This copies the rows of a library that ``benchmarks/cascade.py --keep`` has
made: other keys, names and graph hashes, codes in which a quarter of the bits differ, words that
only one round of copies shares, and the signals as they are. Checksums are those of the new rows,
so that a search reads them as it reads any others; the next to open the library makes its side
file. Nothing is flushed to the disk: a library whose making was interrupted is good for nothing.
"""

from __future__ import annotations

import argparse
import hashlib
import sqlite3
from pathlib import Path

import numpy as np

from graphkin._support.progress import counter
from graphkin.library.engines.sqlite.rows import ENTRY_COLUMNS, content_checksum, entry_checksum

AT_ONCE = 20_000
FLIPPED = 0.25
"""Share of the bits of a code in which a copy differs."""
PATTERNS = 4096
"""Of such bits, which are used in turn."""
PRAGMAS = {
    "synchronous": "OFF",
    "cache_size": -1_500_000,
    "wal_autocheckpoint": 100_000,
    "temp_store": "MEMORY",
}
NEW = {
    "key": "new_key(key, :round)",
    "graph": "graph + :offset",
    "vector": "new_code(vector, id)",
    "function": "function || '_' || :round",
}
COLUMNS = ", ".join(ENTRY_COLUMNS)
# The limit keeps SQLite from working out each new value twice.
COPIES = f"""
SELECT id + :offset AS id, {", ".join(f"{NEW.get(name, name)} AS {name}" for name in ENTRY_COLUMNS)}
FROM entries WHERE id > :first AND id <= :last LIMIT -1 OFFSET 0
"""
STATEMENTS = (
    (
        "INSERT INTO words SELECT graph + :offset, new_words(content, :round) FROM words "
        "WHERE graph > :first AND graph <= :last"
    ),
    (
        "INSERT INTO graphs (id, hash, content, words) SELECT id + :offset, randomblob(32), "
        "content, (SELECT content_sum(content) FROM words WHERE graph = graphs.id + :offset) "
        "FROM graphs WHERE id > :first AND id <= :last"
    ),
    (
        "INSERT INTO signals SELECT id + :offset, content FROM signals "
        "WHERE id > :first AND id <= :last"
    ),
    (
        f"INSERT INTO entries (id, {COLUMNS}, checksum) SELECT id, {COLUMNS}, entry_sum({COLUMNS}) "
        f"FROM ({COPIES})"
    ),
)


def connect(path: Path) -> sqlite3.Connection:
    """The file of a library, with what its copies are made by."""
    bits = np.random.default_rng(0).random((PATTERNS, 256)) < FLIPPED
    patterns = [int.from_bytes(row.tobytes()) for row in np.packbits(bits, axis=1)]

    def new_key(key: bytes, number: int) -> bytes:
        return hashlib.blake2b(key, digest_size=16, salt=number.to_bytes(2)).digest()

    def new_code(code: bytes, number: int) -> bytes:
        return (int.from_bytes(code) ^ patterns[number * 31 % PATTERNS]).to_bytes(len(code))

    def new_words(content: bytes, number: int) -> bytes:
        return np.sort(np.frombuffer(content, "<u8") ^ np.uint64(number << 8)).tobytes()

    def entry_sum(*values: object) -> int:
        return entry_checksum(values)

    connection = sqlite3.connect(path, isolation_level=None)
    for name, value in PRAGMAS.items():
        connection.execute(f"PRAGMA {name} = {value}")
    connection.create_function("new_key", 2, new_key)
    connection.create_function("new_code", 2, new_code)
    connection.create_function("new_words", 2, new_words)
    connection.create_function("entry_sum", len(ENTRY_COLUMNS), entry_sum)
    connection.create_function("content_sum", 1, lambda content: content_checksum(content or b""))
    return connection


def multiply(path: Path, functions: int) -> None:
    """Adds copies of all functions, round by round, until there are so many."""
    connection = connect(path)
    base = connection.execute("SELECT max(id) FROM entries").fetchone()[0]
    done = base
    with counter("copying functions") as progress:
        while done < functions:
            first = done % base
            last = min(first + AT_ONCE, base, first + functions - done)
            part = {"round": done // base, "offset": done - first, "first": first, "last": last}
            connection.execute("BEGIN IMMEDIATE")
            for statement in STATEMENTS:
                named = {name: value for name, value in part.items() if f":{name}" in statement}
                connection.execute(statement, named)
            connection.execute("COMMIT")
            done += last - first
            progress(done, functions)
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("library", type=Path)
    parser.add_argument("--functions", type=int, default=10_000_000)
    options = parser.parse_args()
    multiply(options.library, options.functions)


if __name__ == "__main__":
    main()
