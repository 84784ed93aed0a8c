"""One collection of a Milvus server: the few calls that a library makes, with its errors."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from numpy.typing import NDArray

from graphkin.errors import MissingDependencyError, StorageError
from graphkin.library.engines.milvus.address import MilvusAddress

CONNECT_SECONDS = 5.0
CALL_SECONDS = 120.0
"""For one call; the client repeats it meanwhile where the server is away for a moment."""
PAGE = 4096
"""Rows of one answer."""
MOST_HITS = 16_384
"""What a Milvus server returns of one query at most."""
HITS_AT_ONCE = 500_000
"""Of all queries of one call: some 10 MB, where a server sends 64 MB at most."""
IDS_AT_ONCE = 8_192
"""In one expression."""
BYTES_AT_ONCE = 8 << 20
"""Of rows in one call, where a server takes 64 MB at most."""
ROW_BYTES = 100
"""Of a row besides its texts and its vector, roughly."""

LOADING = "the server has just started, and is loading it; try again in a minute"

Row = dict[str, Any]


def connect(address: MilvusAddress) -> Any:
    """A client of the server at an address.

    Raises:
        StorageError: nobody answers there within some seconds, or the token is refused.
        MissingDependencyError: without the package pymilvus.
    """
    try:
        from pymilvus import MilvusClient
    except ImportError as error:
        raise MissingDependencyError(
            "the package pymilvus is not installed; get it with: pip install 'graphkin[milvus]'"
        ) from error
    # Its errors are raised as ours; the log would repeat them on stderr with a traceback.
    logging.getLogger("pymilvus").setLevel(logging.CRITICAL)
    with server_errors(f"reach the Milvus server at {address.uri}"):
        return MilvusClient(
            uri=address.uri, token=address.token, timeout=CONNECT_SECONDS, dedicated=True
        )


@contextmanager
def server_errors(action: str) -> Iterator[None]:
    """Turns the client's errors into a StorageError that names the action."""
    from grpc import RpcError  # type: ignore[import-untyped]
    from pymilvus.exceptions import MilvusException

    try:
        yield
    except (MilvusException, RpcError, ConnectionError) as error:
        reason = getattr(error, "message", "") or str(error)
        hint = LOADING if "not loaded" in reason else "is the server up, and the address right?"
        raise StorageError(f"cannot {action}: {reason.strip()}; {hint}") from error


class Collection:
    """Rows of one collection. Reading sees every write that was acknowledged before."""

    def __init__(self, client: Any, name: str) -> None:
        self._client = client
        self.name = name

    def exists(self) -> bool:
        with self._errors("look for"):
            return bool(self._client.has_collection(self.name, timeout=CALL_SECONDS))

    def description(self) -> str:
        """The text that was given at creation."""
        with self._errors("describe"):
            answer = self._client.describe_collection(self.name, timeout=CALL_SECONDS)
        return str(answer.get("description", ""))

    def create(self, schema: Any, shards: int = 1) -> None:
        with self._errors("create"):
            self._client.create_collection(
                self.name,
                schema=schema,
                consistency_level="Strong",
                num_shards=shards,
                timeout=CALL_SECONDS,
            )

    def index(self, params: Any) -> None:
        """Says how vectors are searched; saying it again changes nothing."""
        with self._errors("index"):
            self._client.create_index(self.name, params, sync=False, timeout=CALL_SECONDS)

    def load(self, wait: bool = True) -> None:
        """Asks the server to keep the collection in memory, and waits for it."""
        with self._errors("load"):
            self._client.load_collection(self.name, _async=not wait, timeout=CALL_SECONDS)

    def drop(self) -> None:
        with self._errors("drop"):
            self._client.drop_collection(self.name, timeout=CALL_SECONDS)

    def upsert(self, rows: Iterable[Row]) -> None:
        """Writes rows over those with the same id: doing it twice is as doing it once."""
        for chunk in _chunks(rows):
            with self._errors("write to"):
                self._client.upsert(self.name, chunk, timeout=CALL_SECONDS)

    def delete(self, expression: str) -> None:
        with self._errors("delete from"):
            self._client.delete(self.name, filter=expression, timeout=CALL_SECONDS)

    def delete_ids(self, ids: Sequence[int]) -> None:
        for chunk in runs(ids, IDS_AT_ONCE):
            self.delete(f"id in {list(chunk)}")

    def count(self, expression: str = "") -> int:
        with self._errors("count in"):
            answer = self._client.query(
                self.name, filter=expression, output_fields=["count(*)"], timeout=CALL_SECONDS
            )
        return int(answer[0]["count(*)"])

    def scan(self, expression: str, fields: Sequence[str], after: int | str) -> Iterator[Row]:
        """Rows in the order of ids, from the first above ``after``.

        Pages after the first need not wait for what is being written meanwhile.
        """
        level = "Strong"
        while True:
            own = f"id > {literal(after)}" + (f" and ({expression})" if expression else "")
            page = self._query(own, fields, PAGE, level)
            yield from page
            if len(page) < PAGE:
                return
            after, level = page[-1]["id"], "Bounded"

    def by_id(self, ids: Sequence[int], fields: Sequence[str]) -> dict[int, Row]:
        """Those rows of some ids that are there.

        An id is known from an earlier answer, so that its row is found without the wait that the
        server makes to be sure of having everything; where one is not, the wait follows.
        """
        rows = self.look_up(ids, fields, "Session")
        missing = [own for own in ids if own not in rows]
        return rows | self.look_up(missing, fields) if missing else rows

    def look_up(
        self, ids: Sequence[int], fields: Sequence[str], level: str = "Strong"
    ) -> dict[int, Row]:
        """Those rows of some ids that are there."""
        rows: dict[int, Row] = {}
        for chunk in runs(list(dict.fromkeys(ids)), PAGE):
            answer = self._query(f"id in {list(chunk)}", fields, PAGE, level)
            rows |= {row["id"]: row for row in answer}
        return rows

    def search(
        self, vectors: NDArray[Any], limit: int, expression: str
    ) -> list[list[tuple[float, int]]]:
        """(distance, id) of the nearest of each vector, as the server measures and sorts them."""
        hits: list[list[tuple[float, int]]] = []
        for chunk in runs(vectors, max(1, HITS_AT_ONCE // limit)):
            with self._errors("search in"):
                answer = self._client.search(
                    self.name,
                    data=[_sent(vector) for vector in chunk],
                    limit=limit,
                    filter=expression,
                    consistency_level="Strong",
                    timeout=CALL_SECONDS,
                )
            hits += [[(hit["distance"], hit["id"]) for hit in near] for near in answer]
        return hits

    def flush(self) -> None:
        """Has the server write everything to its storage now."""
        with self._errors("flush"):
            self._client.flush(self.name, timeout=CALL_SECONDS)

    def compact(self) -> None:
        """Has the server begin to merge what deletion left of its files."""
        with self._errors("compact"):
            self._client.compact(self.name, timeout=CALL_SECONDS)

    def _query(self, expression: str, fields: Sequence[str], limit: int, level: str) -> list[Row]:
        with self._errors("read from"):
            answer = self._client.query(
                self.name,
                filter=expression,
                output_fields=["id", *fields],
                limit=limit,
                consistency_level=level,
                timeout=CALL_SECONDS,
            )
        return [dict(row) for row in answer]

    @contextmanager
    def _errors(self, action: str) -> Iterator[None]:
        with server_errors(f"{action} the Milvus collection {self.name!r}"):
            yield


def literal(value: int | str) -> str:
    """A value as Milvus's expressions write it."""
    return json.dumps(value, ensure_ascii=False)


def runs(items: Any, length: int) -> Iterator[Any]:
    """Slices of a sequence or an array, in order."""
    for start in range(0, len(items), length):
        yield items[start : start + length]


def _sent(vector: NDArray[Any]) -> Any:
    return vector.tobytes() if vector.dtype.itemsize == 1 else vector


def _chunks(rows: Iterable[Row]) -> Iterator[list[Row]]:
    """Rows in lists that one call can carry."""
    chunk: list[Row] = []
    total = 0
    for row in rows:
        size = _size(row)
        if chunk and (total + size > BYTES_AT_ONCE or len(chunk) == PAGE):
            yield chunk
            chunk, total = [], 0
        chunk.append(row)
        total += size
    if chunk:
        yield chunk


def _size(row: Row) -> int:
    """An upper bound: a character, like a number of a vector, takes 4 bytes at most."""
    values = (item for value in row.values() for item in _items(value))
    return ROW_BYTES + 4 * sum(len(value) for value in values if hasattr(value, "__len__"))


def _items(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
