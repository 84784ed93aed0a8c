"""A library in a Milvus collection, for when one machine is not enough.

The server keeps vectors and metadata. Graphs, their signals and words, and documents lie beside
it, in a folder that every machine mounts (:mod:`graphkin.library.engines.milvus.bundles`), because
a value of Milvus holds 64 kB at most. The call graphs of files are not kept.

Milvus has no transactions. The id of a row comes from its key, so that writing a row twice is
writing it once: an ``add`` that was interrupted leaves some of its rows, each of them whole, and
the same ``add`` again completes it.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from graphkin.binaries.call_graph import CallGraph
from graphkin.errors import ConfigError, FormatError, StorageError
from graphkin.graphs import Graph
from graphkin.graphs.encoding import load_graph
from graphkin.library.engines.base import (
    Engine,
    Nearest,
    Space,
    UnknownIdError,
    Verification,
    check_sharing,
)
from graphkin.library.engines.milvus import collection
from graphkin.library.engines.milvus.address import MilvusAddress
from graphkin.library.engines.milvus.bundles import BundleStore
from graphkin.library.engines.milvus.client import (
    IDS_AT_ONCE,
    PAGE,
    Collection,
    connect,
    literal,
    runs,
)
from graphkin.library.engines.milvus.compaction import damage, repack, sweep
from graphkin.library.engines.milvus.filters import condition
from graphkin.library.engines.milvus.payloads import Payload, dump_payload, load_payload
from graphkin.library.engines.milvus.queries import count_binaries, library_stats, nearest
from graphkin.library.engines.milvus.rows import add_tags, assign_ids, known_keys
from graphkin.library.records import BinarySummary, Filter, Row, Stored, WordArray, words_of_bytes

ROWS_AT_ONCE = 1_000
"""Of an ``add``: they share a bundle of graphs."""


class MilvusEngine(Engine):
    """Rows in a collection of a Milvus server, searched exactly.

    Ids are derived from keys: unique and stable, but in no order of adding, and a row that is
    removed and added again has its id again.
    """

    def __init__(
        self, client: Any, address: MilvusAddress, description: collection.Description
    ) -> None:
        self.space = description.space
        self.address = address
        self.bundles = BundleStore(Path(description.graphs_folder) / description.folder)
        self._client = client
        self._description = description
        self._rows = Collection(client, address.collection)
        self._records = Collection(client, address.collection + collection.RECORDS)
        self._listed: set[tuple[str, str, str]] = set()

    @classmethod
    def create(
        cls,
        url: str,
        space: Space,
        documents: Mapping[str, bytes],
        *,
        approximate: bool = False,
        graphs_folder: str | Path | None = None,
    ) -> Self:
        """A new, empty library.

        Args:
            url: ``milvus://host:port/collection``, whose collection must not exist; ``?shards=N``
                cuts it into so many parts.
            space: what its vectors are.
            documents: files to keep with it, by name.
            graphs_folder: the folder for graphs, on storage that everyone who opens the library has
                mounted at the same place; or ``?graphs-folder=`` in the URL.
        """
        if approximate:
            raise ConfigError("approximate search is an option of a library in a file")
        address = MilvusAddress.parse(url)
        root = address.graphs_folder or graphs_folder
        if root is None:
            raise ConfigError(
                f"{address} needs a folder for its graphs; add ?graphs-folder=/a/shared/folder"
            )
        client = connect(address)
        try:
            if Collection(client, address.collection).exists():
                raise StorageError(f"{address} exists already; open it, or choose another name")
            folder = f"{address.collection}-{secrets.token_hex(4)}"
            store = BundleStore(Path(root).absolute() / folder)
            named = {name: store.put([content])[0].bundle for name, content in documents.items()}
            description = collection.Description(space, str(Path(root).absolute()), folder, named)
            engine = cls(client, address, description)
            engine._create_collections()
            engine._prepare()
        except BaseException:
            client.close()
            raise
        return engine

    @classmethod
    def open(cls, url: str, *, graphs_folder: str | Path | None = None) -> Self:
        """A library that exists.

        Args:
            url: ``milvus://host:port/collection``.
            graphs_folder: the folder of the graphs, where it was moved or is mounted elsewhere;
                without effect where the graphs of this library are not in it.
        """
        address = MilvusAddress.parse(url)
        client = connect(address)
        try:
            rows = Collection(client, address.collection)
            if not rows.exists():
                raise FormatError(
                    f"there is no library {address}; check the address, or create it with "
                    "`graphkin index`"
                )
            description = collection.Description.from_text(rows.description(), str(address))
            roots = (address.graphs_folder, graphs_folder, description.graphs_folder)
            folders = [str(Path(root).absolute()) for root in roots if root]
            there = [root for root in folders if Path(root, description.folder).is_dir()]
            if not there:
                raise StorageError(
                    f"the graphs of {address} are not at {Path(folders[0], description.folder)}; "
                    "mount that, or name the folder that holds it by ?graphs-folder="
                )
            engine = cls(client, address, replace(description, graphs_folder=there[0]))
            engine._prepare()
        except BaseException:
            client.close()
            raise
        return engine

    def _create_collections(self) -> None:
        """The side collection first: where the main one is, both are."""
        if self._records.exists():
            self._records.drop()
        self._records.create(collection.records_schema())
        self._rows.create(collection.library_schema(self._description), self.address.shards)

    def _prepare(self) -> None:
        """Makes the collections searchable, both at a time; they are again where they were."""
        self._records.index(collection.index_params("hamming"))
        self._rows.index(collection.index_params(self.space.metric))
        self._records.load(wait=False)
        self._rows.load()
        self._records.load()

    @classmethod
    def exists(cls, url: str) -> bool:
        """Whether the server has the collection, of whatever it may be."""
        address = MilvusAddress.parse(url)
        client = connect(address)
        try:
            return Collection(client, address.collection).exists()
        finally:
            client.close()

    @classmethod
    def shown_name(cls, url: str) -> str:
        return str(MilvusAddress.parse(url))

    @classmethod
    def uploads_folder(cls, url: str) -> Path:
        address = MilvusAddress.parse(url)
        host = address.host.replace(":", "-")
        return Path(f"{host}-{address.port}-{address.collection}.files").absolute()

    def documents(self) -> Mapping[str, bytes]:
        bundles = self._description.documents
        return {name: self.bundles.read_whole(bundle) for name, bundle in bundles.items()}

    def add(self, rows: Sequence[Row]) -> int:
        """Adds rows whose keys are new. When it fails, some may be there: add them all again."""
        for row in rows:
            self.space.check(row.vector[None])
        unique = list({row.key: row for row in reversed(rows)}.values())[::-1]
        ids = assign_ids(self._rows, [row.key for row in unique])
        new = [(own, row) for (own, known), row in zip(ids, unique, strict=True) if not known]
        values = [collection.write_row(own, row) for own, row in new]
        self._list_texts(collection.listed_texts(row.entry for _, row in new))
        for start in range(0, len(new), ROWS_AT_ONCE):
            part = slice(start, start + ROWS_AT_ONCE)
            pieces = self.bundles.put([dump_payload(row) for _, row in new[part]])
            self._rows.upsert(
                {**own, **piece._asdict()} for own, piece in zip(values[part], pieces, strict=True)
            )
        return len(new)

    def _list_texts(self, texts: set[tuple[str, str, str]]) -> None:
        """Records texts before rows with them are there, so that no pattern misses one."""
        new = texts - self._listed
        self._records.upsert(collection.write_record(*text) for text in sorted(new))
        self._listed |= new

    def known(self, keys: Iterable[bytes]) -> set[bytes]:
        return known_keys(self._rows, keys)

    def tag(self, where: Filter, tags: Mapping[str, str]) -> int:
        """Adds tags to what matches. When it fails, some may have them: do it again."""
        self._list_texts(collection.listed_tags(tags))
        return add_tags(self._rows, self._matching(where, collection.ROW_FIELDS), tags)

    def keep_call_graphs(self, call_graphs: Mapping[str, bytes]) -> None:
        """Does nothing: a collection has room for functions, not for whole files."""

    def call_graph(self, file_hash: str) -> CallGraph | None:
        return None

    def call_graph_files(self) -> list[str]:
        return []

    def finish_files(self, files: Iterable[tuple[str, str]]) -> None:
        self._records.upsert(collection.write_record(collection.FILE, *pair) for pair in files)

    def finished_files(self) -> set[tuple[str, str]]:
        kind = f"kind == {literal(collection.FILE)}"
        rows = self._records.scan(kind, ["name", "text"], after="")
        return {(collection.decoded(row["name"]), collection.decoded(row["text"])) for row in rows}

    def remove(self, where: Filter) -> int:
        rows = [(row["id"], row["file_hash"]) for row in self._matching(where, ["file_hash"])]
        # Files first: one that is gone in part must not count as finished.
        for chunk in runs(sorted({file_hash for _, file_hash in rows}), PAGE):
            names = f"name in [{', '.join(map(literal, chunk))}]"
            kind = f"kind == {literal(collection.FILE)}"
            gone = [row["id"] for row in self._records.scan(f"{kind} and {names}", [], after="")]
            self._records.delete_ids(gone)
        self._rows.delete_ids([own for own, _ in rows])
        return len(rows)

    def nearest(
        self,
        vectors: NDArray[Any],
        count: int,
        where: Filter | None = None,
        unrounded: NDArray[np.float32] | None = None,
    ) -> Nearest:
        """Exact, by codes alone. Among more than 16,384 that are equally far, the server
        chooses."""
        self.space.check(vectors)
        return nearest(self._rows, self.space, vectors, count, self._expressions(where))

    def _expressions(self, where: Filter | None) -> Iterator[str]:
        """Expressions that each let a part of what matches through, and nothing else."""
        parts = condition(where, self._texts)
        if parts.rest.is_empty():
            yield parts.expression
            return
        ids = [row["id"] for row in self._matching(where, [])]
        for chunk in runs(ids, IDS_AT_ONCE):
            yield f"id in {chunk}"

    def sharing(
        self,
        words: WordArray,
        weights: NDArray[np.float32],
        count: int,
        where: Filter | None = None,
    ) -> list[tuple[int, float]]:
        """Nothing: the server has no lists of words, and would read every row for them."""
        check_sharing(words, weights, count)
        return []

    def beside(
        self, ids: Sequence[int], reach: int, where: Filter | None = None
    ) -> NDArray[np.int64]:
        """Nothing: ids come from keys, and the server knows no other order."""
        return np.zeros(0, np.int64)

    def fetch(self, ids: Sequence[int]) -> list[Stored]:
        return [collection.read_stored(row) for row in self._by_id(ids, collection.STORED_FIELDS)]

    def graphs(self, ids: Sequence[int]) -> list[Graph]:
        return [load_graph(payload.graph) for payload in self._payloads(ids)]

    def signals(self, ids: Sequence[int]) -> list[bytes]:
        return [payload.signals for payload in self._payloads(ids)]

    def words(self, ids: Sequence[int]) -> list[WordArray]:
        return [words_of_bytes(payload.words) for payload in self._payloads(ids)]

    def _payloads(self, ids: Sequence[int]) -> list[Payload]:
        pieces = [collection.read_piece(row) for row in self._by_id(ids, collection.PIECE_FIELDS)]
        try:
            contents = self.bundles.read(pieces)
        except FormatError:
            # Compaction may have moved them meanwhile.
            moved = [
                collection.read_piece(row) for row in self._by_id(ids, collection.PIECE_FIELDS)
            ]
            if moved == pieces:
                raise
            contents = self.bundles.read(moved)
        return [load_payload(content) for content in contents]

    def vectors(self, ids: Sequence[int]) -> NDArray[Any]:
        vectors = np.empty((len(ids), self.space.columns), dtype=self.space.dtype)
        for number, row in enumerate(self._by_id(ids, ["vector"])):
            vectors[number] = collection.read_vector(row, self.space)
        return vectors

    def _by_id(self, ids: Sequence[int], fields: Sequence[str]) -> list[collection.Values]:
        rows = self._rows.by_id(ids, fields)
        missing = next((own for own in ids if own not in rows), None)
        if missing is not None:
            raise UnknownIdError(f"{self.address} has no entry {missing}; was it removed?")
        return [rows[own] for own in ids]

    def scan(self, where: Filter | None = None, after: int = 0) -> Iterator[Stored]:
        for row in self._matching(where, collection.STORED_FIELDS, after):
            yield collection.read_stored(row)

    def _matching(
        self, where: Filter | None, fields: Sequence[str], after: int = 0
    ) -> Iterator[collection.Values]:
        """The fields of what matches, in the order of ids."""
        parts = condition(where, self._texts)
        every = list(dict.fromkeys([*fields, *parts.fields]))
        for row in self._rows.scan(parts.expression, every, after):
            if parts.rest.is_empty() or parts.rest.matches(collection.read_entry(row), nodes=0):
                yield row

    def _texts(self, kind: str, name: str) -> set[str]:
        """Texts that occur in a field, or as values of a tag; some may have been removed."""
        own = f"kind == {literal(kind)} and name == {literal(collection.encoded(name))}"
        rows = self._records.scan(own, ["text"], after="")
        return {collection.decoded(row["text"]) for row in rows}

    def count(self, where: Filter | None = None) -> int:
        parts = condition(where, self._texts)
        if parts.rest.is_empty():
            return self._rows.count(parts.expression)
        return sum(1 for _ in self._matching(where, []))

    def stats(self) -> dict[str, Any]:
        return library_stats(self._rows, self.bundles)

    def binaries(self) -> list[BinarySummary]:
        return count_binaries(self._rows)

    def verify(self) -> Verification:
        """Compares every graph and every document with its hash."""
        result = Verification()
        for name, bundle in self._description.documents.items():
            try:
                self.bundles.read_whole(bundle)
            except (FormatError, StorageError) as error:
                result.damage.append(f"document {name}: {error}")
        result.entries, sentences = damage(self._rows, self.bundles)
        result.damage += sentences
        if (counted := self._rows.count()) != result.entries:
            result.damage.append(f"the server counts {counted} rows, and has {result.entries}")
        return result

    def compact(self) -> None:
        """Packs graphs anew, deletes bundles that nothing uses, and has the server compact.

        The server does its part in the background, later. Bundles of the last hour stay: a writer
        may be about to use them.
        """
        documents = set(self._description.documents.values())
        repack(self._rows, self.bundles, documents)
        sweep(self._rows, self.bundles, documents)
        for part in (self._rows, self._records):
            part.flush()
            part.compact()

    def close(self) -> None:
        self._client.close()
