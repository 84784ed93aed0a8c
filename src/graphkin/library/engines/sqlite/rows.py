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
from graphkin.library.records import KnownFunction, Row, Stored

T = TypeVar("T")

# json_each hands SQLite a list of any length as one value.
LISTED = "(SELECT value FROM json_each(?))"
FETCH = f"""
SELECT entries.id, {", ".join(INTERNED)}, address, size, function, nodes, graphs.hash
FROM entries JOIN graphs ON graphs.id = entries.graph WHERE entries.id IN {LISTED}
"""


TAGS = INTERNED.index("tags")
PAGE = 1000
"""Entries that are in memory as a whole at a time."""
VALUES = 500
"""That one statement is given; SQLite takes some thousand."""

ENTRY_COLUMNS = (
    "key", "graph", "nodes", *INTERNED, "address", "size", "function", "vector",
)  # fmt: skip


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
    graphs = _insert_graphs(file, new)
    named = [_interned(row.entry) for row in new]
    numbers = strings.intern(dict.fromkeys(pair for pairs in named for pair in pairs))
    marks = ", ".join("?" * len(ENTRY_COLUMNS))
    file.executemany(
        f"INSERT INTO entries ({', '.join(ENTRY_COLUMNS)}, checksum) VALUES ({marks}, ?)",
        (
            _summed(
                row.key,
                graphs[row.graph_hash],
                row.graph.num_nodes,
                *(numbers[pair] for pair in pairs),
                signed(row.entry.address),
                signed(row.entry.size),
                to_sql(row.entry.function),
                vector.tobytes(),
            )
            for row, vector, pairs in zip(new, vectors, named, strict=True)
        ),
    )
    return len(new)


def _summed(*values: Any) -> tuple[Any, ...]:
    return (*values, entry_checksum(values))


def entry_checksum(values: Sequence[Any]) -> int:
    """CRC-32 of the values of ``ENTRY_COLUMNS``."""
    key, *numbers, function, vector = values
    name = function.encode() if isinstance(function, str) else function
    text = " ".join(map(str, numbers)).encode()
    return zlib.crc32(b"".join((key, text, b" ", name, b" ", vector)))


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
    numbers = dict(_among(file, "SELECT hash, id FROM graphs WHERE hash", graphs))
    last = file.value("SELECT seq FROM sqlite_sequence WHERE name = 'graphs'") or 0
    new = [digest for digest in graphs if digest not in numbers]
    numbers |= {digest: last + count for count, digest in enumerate(new, start=1)}
    file.executemany(
        "INSERT INTO graphs (id, hash, content) VALUES (?, ?, ?)",
        ((numbers[digest], digest, dump_graph(graphs[digest])) for digest in new),
    )
    return {digest.hex(): number for digest, number in numbers.items()}


def _interned(entry: KnownFunction) -> list[tuple[int, str]]:
    texts = (dump_tags(entry.tags) if kind == "tags" else getattr(entry, kind) for kind in INTERNED)
    return list(enumerate(texts))


def fetch_rows(file: SqliteFile, strings: InternedStrings, ids: Sequence[int]) -> dict[int, Stored]:
    """Entries by id; those that are not there are left out."""
    stored = {}
    for row in file.execute(FETCH, (id_list(ids),)):
        number, binary, architecture, compiler, build, file_hash, tags, *rest = row
        address, size, function, nodes, graph_hash = rest
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
    rows = file.execute(f"SELECT id, vector FROM entries WHERE id IN {LISTED}", (id_list(ids),))
    return {number: np.frombuffer(vector, kind).astype(space.dtype) for number, vector in rows}


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
                (numbers[number], _new_checksum(number, checksum, values, numbers[number]), number)
                for number, checksum, *values in rows
            ],
        )


def _new_checksum(number: int, checksum: int, values: list[object], tags: int) -> int:
    """The checksum of an entry with other tags; a new one must not hide damage."""
    if entry_checksum(values) != checksum:
        raise FormatError(f"entry {number} is damaged; verify lists all damage. Remove it first")
    return entry_checksum(
        [
            tags if name == "tags" else value
            for name, value in zip(ENTRY_COLUMNS, values, strict=True)
        ]
    )
