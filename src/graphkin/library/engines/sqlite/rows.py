"""Entries with their tags, graphs and vectors of a library in the tables of SQLite."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from graphkin.errors import ConfigError, FormatError
from graphkin.graphs.encoding import dump_graph
from graphkin.library.engines.base import Space, UnknownIdError
from graphkin.library.engines.sqlite.file import SqliteFile
from graphkin.library.engines.sqlite.interned import (
    INTERNED,
    InternedStrings,
    dump_tags,
    from_sql,
    to_sql,
)
from graphkin.library.engines.sqlite.nearest import Chosen
from graphkin.library.records import (
    KnownFunction,
    Row,
    Stored,
    WordArray,
    word_bytes,
    words_of_bytes,
)

T = TypeVar("T")

# json_each hands SQLite a list of any length as one value.
LISTED = "(SELECT value FROM json_each(?))"

TAGS = INTERNED.index("tags")
PAGE = 1000
"""Entries that are in memory as a whole at a time."""
VALUES = 500
"""That one statement is given; SQLite takes some thousand."""

ENTRY_COLUMNS = (
    "key", "graph", "nodes", *INTERNED, "address", "size", "function", "vector", "signals",
)  # fmt: skip
VECTOR = ENTRY_COLUMNS.index("vector")
# The id of an entry is not in its checksum, but beside its key in an index, which is looked into.
FETCH = f"""
SELECT entries.id, keyed.id, entries.checksum,
{", ".join(f"entries.{name}" for name in ENTRY_COLUMNS)}, graphs.hash
FROM entries LEFT JOIN graphs ON graphs.id = entries.graph
LEFT JOIN entries AS keyed ON keyed.key = entries.key WHERE entries.id IN {LISTED}
"""


def signed(number: int | None) -> int | None:
    """A number of 64 bits as SQLite keeps it, which counts from -2^63."""
    return number if number is None or number < 2**63 else number - 2**64


def unsigned(number: int | None) -> int | None:
    return number if number is None or number >= 0 else number + 2**64


def known_keys(file: SqliteFile, keys: Iterable[bytes]) -> set[bytes]:
    """Those of some keys that the library holds."""
    return {key for (key,) in _among(file, "SELECT key FROM entries WHERE key", keys)}


def _among(file: SqliteFile, statement: str, values: Iterable[bytes]) -> Iterator[Any]:
    """What a statement finds for any of some values; JSON has no bytes to list them by."""
    remaining = iter(values)
    while part := list(islice(remaining, VALUES)):
        yield from file.execute(f"{statement} IN ({', '.join('?' * len(part))})", part)


def insert_rows(
    file: SqliteFile, strings: InternedStrings, space: Space, rows: Sequence[Row]
) -> int:
    """Adds the rows whose keys are new, as part of a write."""
    by_key = {row.key: row for row in reversed(rows)}
    known = known_keys(file, by_key)
    new = [row for key, row in reversed(by_key.items()) if key not in known]
    if not new:
        return 0
    vectors = _checked(space, new)
    _check_signals(file, new)
    graphs = _insert_graphs(file, new)
    named = [_interned(row.entry) for row in new]
    numbers = strings.intern(dict.fromkeys(pair for pairs in named for pair in pairs))
    first = _last_id(file, "entries") + 1
    marks = ", ".join("?" * len(ENTRY_COLUMNS))
    file.executemany(
        f"INSERT INTO entries (id, {', '.join(ENTRY_COLUMNS)}, checksum) VALUES (?, {marks}, ?)",
        (
            _summed(
                number,
                row.key,
                graphs[row.graph_hash],
                row.graph.num_nodes,
                *(numbers[pair] for pair in pairs),
                signed(row.entry.address),
                signed(row.entry.size),
                to_sql(row.entry.function),
                vector.tobytes(),
                content_checksum(row.signals),
            )
            for number, (row, vector, pairs) in enumerate(
                zip(new, vectors, named, strict=True), start=first
            )
        ),
    )
    file.executemany(
        "INSERT INTO signals (id, content) VALUES (?, ?)",
        ((number, row.signals) for number, row in enumerate(new, start=first) if row.signals),
    )
    return len(new)


def _summed(number: int, *values: Any) -> tuple[Any, ...]:
    return (number, *values, entry_checksum(values))


def entry_checksum(values: Sequence[Any]) -> int:
    """CRC-32 of the values of ``ENTRY_COLUMNS``; without signals, as before there were any.

    Of values that no entry can have it is -1, which is no checksum.
    """
    key, *numbers, function, vector, signals = values
    name = function.encode() if isinstance(function, str) else function
    if not (isinstance(key, bytes) and isinstance(name, bytes) and isinstance(vector, bytes)):
        return -1
    text = " ".join(map(str, numbers)).encode()
    end = b"" if signals is None else f" {signals}".encode()
    return zlib.crc32(b"".join((key, text, b" ", name, b" ", vector, end)))


def content_checksum(content: bytes) -> int | None:
    """CRC-32 of signals or of words, as an entry or a graph has it."""
    return zlib.crc32(content) if content else None


def _check_signals(file: SqliteFile, rows: Sequence[Row]) -> None:
    """Notes how many bytes the signals of a library have, and refuses others."""
    stored = signals_length(file)
    for row in rows:
        length = len(row.signals)
        if length and stored is None:
            file.execute("INSERT INTO facts VALUES ('signals', ?)", (length,))
            stored = length
        elif length not in (0, stored):
            raise ConfigError(
                f"the signals of {row.entry.function!r} must have {stored} bytes, got {length}; "
                "use the model that made the library"
            )


def signals_length(file: SqliteFile) -> int | None:
    """Bytes of the signals of one entry, or None before there are any."""
    length = file.value("SELECT value FROM facts WHERE name = 'signals'")
    if not isinstance(length, int | None):
        raise FormatError(f"{file.path} is damaged: its signals have {length!r} bytes")
    return length


def _checked(space: Space, rows: Sequence[Row]) -> NDArray[Any]:
    """(N, columns) the vectors, little-endian."""
    for row in rows:
        if row.vector.shape != (space.columns,):
            raise ConfigError(
                f"the vector of {row.entry.function!r} must be ({space.columns},), got "
                f"{row.vector.shape}; use the model that made the library"
            )
    vectors = np.stack([row.vector for row in rows])
    space.check(vectors)
    return vectors.astype(vectors.dtype.newbyteorder("<"), copy=False)


def _insert_graphs(file: SqliteFile, rows: Sequence[Row]) -> dict[str, int]:
    """The numbers of graphs by hash; a graph that several entries have is kept once."""
    graphs = {bytes.fromhex(row.graph_hash): row.graph for row in rows}
    words = {bytes.fromhex(row.graph_hash): own for row in rows if (own := word_bytes(row.words))}
    numbers = dict(_among(file, "SELECT hash, id FROM graphs WHERE hash", graphs))
    _fill_in_words(file, {numbers[digest]: words[digest] for digest in numbers if digest in words})
    last = _last_id(file, "graphs")
    new = [digest for digest in graphs if digest not in numbers]
    numbers |= {digest: last + count for count, digest in enumerate(new, start=1)}
    file.executemany(
        "INSERT INTO graphs (id, hash, content, words) VALUES (?, ?, ?, ?)",
        (
            (
                numbers[digest],
                digest,
                dump_graph(graphs[digest]),
                content_checksum(words.get(digest, b"")),
            )
            for digest in new
        ),
    )
    _insert_words(file, {numbers[digest]: words[digest] for digest in new if digest in words})
    return {digest.hex(): number for digest, number in numbers.items()}


def _insert_words(file: SqliteFile, words: Mapping[int, bytes]) -> None:
    file.executemany("INSERT INTO words (graph, content) VALUES (?, ?)", words.items())


def _fill_in_words(file: SqliteFile, words: Mapping[int, bytes]) -> None:
    """Gives words to graphs that were added before there were any."""
    have = f"SELECT graph FROM words WHERE graph IN {LISTED}"
    known = {number for (number,) in file.execute(have, (id_list(words),))} if words else set()
    if lacking := {number: own for number, own in words.items() if number not in known}:
        _insert_words(file, lacking)
        file.executemany(
            "UPDATE graphs SET words = ? WHERE id = ?",
            ((content_checksum(own), number) for number, own in lacking.items()),
        )
        file.begin_epoch()  # others look for words of new graphs only


def _last_id(file: SqliteFile, table: str) -> int:
    """The largest id that a table ever gave."""
    return file.value("SELECT seq FROM sqlite_sequence WHERE name = ?", (table,)) or 0


def _interned(entry: KnownFunction) -> list[tuple[int, str]]:
    texts = (dump_tags(entry.tags) if kind == "tags" else getattr(entry, kind) for kind in INTERNED)
    return list(enumerate(texts))


def fetch_rows(file: SqliteFile, strings: InternedStrings, ids: Sequence[int]) -> dict[int, Stored]:
    """Entries by id; those that are not there are left out."""
    stored = {}
    for number, keyed, checksum, *values, graph_hash in file.execute(FETCH, (id_list(ids),)):
        if number != keyed or graph_hash is None or entry_checksum(values) != checksum:
            raise not_as_stored(file, f"entry {number}")
        _, _, nodes, binary, architecture, compiler, build, file_hash, tags, *rest = values
        address, size, function, *_ = rest
        entry = KnownFunction(
            function=from_sql(function),
            binary=strings.text(binary),
            address=unsigned(address),
            size=unsigned(size),
            architecture=strings.text(architecture),
            compiler=strings.text(compiler),
            build=strings.text(build),
            file_hash=strings.text(file_hash),
            tags=strings.tags(tags),
        )
        stored[number] = Stored(number, entry, nodes, bytes(graph_hash).hex())
    return stored


def not_as_stored(file: SqliteFile, what: str, verb: str = "is") -> FormatError:
    """What to say of something whose checksum is another."""
    return FormatError(
        f"{file.path} is damaged: {what} {verb} not what was stored; `graphkin library verify` "
        "lists all damage. Restore it from a copy, or index the files again"
    )


def fetch_contents(file: SqliteFile, ids: Sequence[int]) -> tuple[dict[int, int], dict[int, bytes]]:
    """The number of each entry's graph, and the bytes of each graph by its number."""
    owners = dict(
        file.execute(
            f"SELECT id, graph FROM entries WHERE id IN {LISTED}", (id_list(ids),)
        ).fetchall()
    )
    numbers = set(owners.values())
    contents = dict(
        file.execute(
            f"SELECT id, content FROM graphs WHERE id IN {LISTED}", (id_list(numbers),)
        ).fetchall()
    )
    if missing := numbers - set(contents):
        raise FormatError(f"{file.path} is damaged: graph {min(missing)} is not there")
    return owners, contents


def fetch_vectors(file: SqliteFile, space: Space, ids: Sequence[int]) -> dict[int, NDArray[Any]]:
    """Vectors by id; those that are not there are left out."""
    kind = np.dtype(space.dtype).newbyteorder("<")
    columns = ", ".join(ENTRY_COLUMNS)
    rows = file.execute(
        f"SELECT id, checksum, {columns} FROM entries WHERE id IN {LISTED}", (id_list(ids),)
    )
    vectors = {}
    for number, checksum, *values in rows:
        if entry_checksum(values) != checksum:
            raise not_as_stored(file, f"entry {number}")
        vectors[number] = np.frombuffer(values[VECTOR], kind).astype(space.dtype)
    return vectors


def fetch_signals(file: SqliteFile, ids: Sequence[int]) -> dict[int, bytes]:
    """Signals by id; those of entries that are not there are left out."""
    rows = file.execute(
        "SELECT entries.id, entries.signals, content FROM entries LEFT JOIN signals USING (id) "
        f"WHERE entries.id IN {LISTED}",
        (id_list(ids),),
    )
    # Hundreds of them for each query: what is called here counts.
    signals, summed = {}, zlib.crc32
    for number, checksum, content in rows.fetchall():
        if (summed(content) if content else None) != checksum:
            raise not_as_stored(file, f"the signals of entry {number}", "are")
        signals[number] = content or b""
    return signals


def fetch_words(file: SqliteFile, ids: Sequence[int]) -> dict[int, WordArray]:
    """The words of the graph of each entry; those of entries that are not there are left out."""
    rows = file.execute(
        "SELECT entries.id, graphs.words, words.content FROM entries "
        "LEFT JOIN graphs ON graphs.id = entries.graph "
        f"LEFT JOIN words ON words.graph = entries.graph WHERE entries.id IN {LISTED}",
        (id_list(ids),),
    )
    words = {}
    for number, checksum, content in rows:
        if content_checksum(content or b"") != checksum:
            raise not_as_stored(file, f"the words of entry {number}", "are")
        words[number] = words_of_bytes(content or b"")
    return words


def in_order(by_id: dict[int, T], ids: Sequence[int]) -> list[T]:
    """What was read, in the order of the ids."""
    missing = next((number for number in ids if number not in by_id), None)
    if missing is not None:
        raise UnknownIdError(
            f"the library holds no entry {missing}; it may have been removed since: search again"
        )
    return [by_id[number] for number in ids]


def id_list(numbers: Iterable[int]) -> str:
    """Ids as ``LISTED`` takes them."""
    return json.dumps([int(number) for number in numbers])


def with_tags(
    strings: InternedStrings, column: NDArray[np.int32], chosen: Chosen, tags: Mapping[str, str]
) -> NDArray[np.int32]:
    """(R,) the column of tags once the chosen rows have some tags more; part of a write."""
    before, groups = np.unique(column[chosen], return_inverse=True)
    after = [(TAGS, dump_tags({**strings.tags(number), **tags})) for number in before.tolist()]
    numbers = strings.intern(dict.fromkeys(after))
    tagged = column.copy()
    tagged[chosen] = np.array([numbers[text] for text in after], dtype=np.int32)[groups]
    return tagged


def write_tags(file: SqliteFile, ids: NDArray[np.int64], tags: NDArray[np.int32]) -> None:
    """Gives each entry the tags of a number, as part of a write."""
    numbers = dict(zip(ids.tolist(), tags.tolist(), strict=True))
    every = list(numbers)
    for start in range(0, len(every), PAGE):
        page = every[start : start + PAGE]
        columns = ", ".join(ENTRY_COLUMNS)
        rows = file.execute(
            f"SELECT id, checksum, {columns} FROM entries WHERE id IN {LISTED}", (id_list(page),)
        ).fetchall()
        file.executemany(
            "UPDATE entries SET tags = ?, checksum = ? WHERE id = ?",
            [
                (numbers[number], _new_checksum(file, number, checksum, values, numbers), number)
                for number, checksum, *values in rows
            ],
        )


def _new_checksum(
    file: SqliteFile, number: int, checksum: int, values: list[object], tags: Mapping[int, int]
) -> int:
    """The checksum of an entry with other tags; a new one must not hide damage."""
    if entry_checksum(values) != checksum:
        raise not_as_stored(file, f"entry {number}")
    return entry_checksum(
        [
            tags[number] if name == "tags" else value
            for name, value in zip(ENTRY_COLUMNS, values, strict=True)
        ]
    )
