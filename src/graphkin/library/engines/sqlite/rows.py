"""Entries, graphs and vectors of a library in the tables of SQLite."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from graphkin.errors import ConfigError, FormatError
from graphkin.graphs.encoding import dump_graph
from graphkin.library.engines.base import Space, UnknownIdError
from graphkin.library.engines.sqlite.file import SqliteFile
from graphkin.library.engines.sqlite.nearest import check_vectors
from graphkin.library.engines.sqlite.texts import KINDS, Texts, from_sql, tags_text, to_sql
from graphkin.library.records import Row, Stored
from graphkin.results.known_function import KnownFunction

T = TypeVar("T")

# json_each hands SQLite a list of any length as one value.
GIVEN = "(SELECT value FROM json_each(?))"
FETCH = f"""
SELECT entries.id, {", ".join(KINDS)}, address, size, function, nodes, graphs.hash
FROM entries JOIN graphs ON graphs.id = entries.graph WHERE entries.id IN {GIVEN}
"""


VALUES = 500
"""That one statement is given; SQLite takes some thousand."""

ENTRY_COLUMNS = (
    "key", "graph", "nodes", *KINDS, "address", "size", "function", "vector",
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


def insert_rows(file: SqliteFile, texts: Texts, space: Space, rows: Sequence[Row]) -> int:
    """Adds the rows whose keys are new, as part of a write."""
    by_key = {row.key: row for row in reversed(rows)}
    known = known_keys(file, by_key)
    new = [row for key, row in reversed(by_key.items()) if key not in known]
    if not new:
        return 0
    vectors = _checked(space, new)
    graphs = _insert_graphs(file, new)
    named = [_texts(row.entry) for row in new]
    numbers = texts.intern(dict.fromkeys(pair for pairs in named for pair in pairs))
    places = ", ".join("?" * len(ENTRY_COLUMNS))
    file.executemany(
        f"INSERT INTO entries ({', '.join(ENTRY_COLUMNS)}, checksum) VALUES ({places}, ?)",
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
    check_vectors(space, vectors)
    return vectors.astype(vectors.dtype.newbyteorder("<"), copy=False)


def _insert_graphs(file: SqliteFile, rows: Sequence[Row]) -> dict[str, int]:
    """The numbers of graphs by hash; a graph that several entries have is kept once."""
    graphs = {bytes.fromhex(row.graph_hash): row.graph for row in rows}
    numbers = dict(_among(file, "SELECT hash, id FROM graphs WHERE hash", graphs))
    last = file.value("SELECT seq FROM sqlite_sequence WHERE name = 'graphs'") or 0
    new = [digest for digest in graphs if digest not in numbers]
    numbers |= {digest: last + place for place, digest in enumerate(new, start=1)}
    file.executemany(
        "INSERT INTO graphs (id, hash, content) VALUES (?, ?, ?)",
        ((numbers[digest], digest, dump_graph(graphs[digest])) for digest in new),
    )
    return {digest.hex(): number for digest, number in numbers.items()}


def _texts(entry: KnownFunction) -> list[tuple[int, str]]:
    texts = (tags_text(entry.tags) if kind == "tags" else getattr(entry, kind) for kind in KINDS)
    return list(enumerate(texts))


def fetch_rows(file: SqliteFile, texts: Texts, ids: Sequence[int]) -> dict[int, Stored]:
    """Entries by id; those that are not there are left out."""
    found = {}
    for row in file.execute(FETCH, (given(ids),)):
        number, binary, architecture, compiler, build, file_hash, tags, *rest = row
        address, size, function, nodes, graph_hash = rest
        entry = KnownFunction(
            function=from_sql(function),
            binary=texts.text(binary),
            address=unsigned(address),
            size=unsigned(size),
            architecture=texts.text(architecture),
            compiler=texts.text(compiler),
            build=texts.text(build),
            file_hash=texts.text(file_hash),
            tags=texts.tags(tags),
        )
        found[number] = Stored(number, entry, nodes, bytes(graph_hash).hex())
    return found


def fetch_contents(file: SqliteFile, ids: Sequence[int]) -> tuple[dict[int, int], dict[int, bytes]]:
    """The number of each entry's graph, and the bytes of each graph by its number."""
    owners = dict(
        file.execute(f"SELECT id, graph FROM entries WHERE id IN {GIVEN}", (given(ids),)).fetchall()
    )
    numbers = set(owners.values())
    contents = dict(
        file.execute(
            f"SELECT id, content FROM graphs WHERE id IN {GIVEN}", (given(numbers),)
        ).fetchall()
    )
    if missing := numbers - set(contents):
        raise FormatError(f"{file.path} is damaged: graph {min(missing)} is not there")
    return owners, contents


def fetch_vectors(file: SqliteFile, space: Space, ids: Sequence[int]) -> dict[int, NDArray[Any]]:
    """Vectors by id; those that are not there are left out."""
    kind = np.dtype(space.dtype).newbyteorder("<")
    found = file.execute(f"SELECT id, vector FROM entries WHERE id IN {GIVEN}", (given(ids),))
    return {number: np.frombuffer(vector, kind).astype(space.dtype) for number, vector in found}


def in_order(found: dict[int, T], ids: Sequence[int]) -> list[T]:
    """What was found, in the order in which it was asked for."""
    missing = next((number for number in ids if number not in found), None)
    if missing is not None:
        raise UnknownIdError(
            f"the library holds no entry {missing}; it may have been removed since: search again"
        )
    return [found[number] for number in ids]


def given(numbers: Iterable[int]) -> str:
    """A list of ids as ``GIVEN`` takes it."""
    return json.dumps([int(number) for number in numbers])
