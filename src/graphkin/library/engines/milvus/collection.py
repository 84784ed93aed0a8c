"""What the collections of a Milvus library look like, and how a row is written and read.

A library is two collections. ``NAME`` holds a row for each graph, and in its description the
space, the folder of the graphs and the names of the documents. ``NAME_records`` holds the files
that are finished, and each text that occurs in a field that people choose by.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphkin.errors import ConfigError, FormatError
from graphkin.library.engines.base import Space
from graphkin.library.engines.milvus.bundles import Piece
from graphkin.library.records import TEXT_CONDITIONS, KnownFunction, Stored
from graphkin.library.records import Row as GraphRow

FORMAT = "graphkin library"
VERSION = 1
RECORDS = "_records"
GRAPHS_FOLDER = "payloads"
"""The name that ``graphs_folder`` has in a description."""
NAME = re.compile(r"\w+-[0-9a-f]{8}", re.ASCII)
"""Of a library's own folder: a server cannot lead elsewhere."""
MOST_BYTES = 65_535
"""Of a text, in UTF-8."""
STAND_IN = 0x10F800
SHIFT = STAND_IN - 0xD800
SURROGATE = re.compile("[\ud800-\udfff]")
TAKEN = re.compile("[\U0010f800-\U0010ffff]")
MOST_TAGS = 2_000
"""Each takes two of the 4,096 elements of Milvus's longest array."""
METRICS = {"hamming": "HAMMING", "euclidean": "L2", "cosine": "COSINE"}
STORED_FIELDS = (*TEXT_CONDITIONS, "place", "tags", "nodes", "graph_hash")
PIECE_FIELDS = ("bundle", "start", "size")
ROW_FIELDS = (*STORED_FIELDS, *PIECE_FIELDS, "key", "vector")
"""All but the id."""
LISTED = ("binary", "architecture", "compiler", "build")
"""Fields whose texts are few beside the rows: patterns are looked up among the texts."""
FILE, TAG = "file", "tags"
"""Kinds of records besides the names of the fields in ``LISTED``."""

Values = dict[str, Any]


@dataclass(frozen=True)
class Description:
    """What a library's collection says of itself."""

    space: Space
    graphs_folder: str
    """The folder under which the library has its own."""
    folder: str
    """The name of that: no other library has it, so that many can share ``graphs_folder``."""
    documents: Mapping[str, str]
    """The bundle of each document."""

    def to_text(self) -> str:
        values = asdict(self)
        values[GRAPHS_FOLDER] = values.pop("graphs_folder")
        return json.dumps({"format": FORMAT, "version": VERSION, **values})

    @classmethod
    def from_text(cls, text: str, where: str) -> Description:
        """Reads the description of the collection at ``where``."""
        try:
            values = json.loads(text)
            known = values.pop("format") == FORMAT
        except (ValueError, KeyError, TypeError, AttributeError):
            known = False
        if not known:
            raise FormatError(
                f"{where} is a collection of something else than graphkin; choose another name"
            )
        try:
            if (version := values.pop("version")) != VERSION:
                raise FormatError(
                    f"{where} is a library of version {version}, this graphkin reads {VERSION}; "
                    "use the graphkin that made it"
                )
            folder = values["folder"]
            if not NAME.fullmatch(folder):
                raise FormatError(
                    f"{where} names {folder!r} as the folder of its graphs, which is not a name "
                    "that graphkin gives; it may have been made to harm whoever opens it"
                )
            return cls(Space(**values.pop("space")), values.pop(GRAPHS_FOLDER), **values)
        except (KeyError, TypeError) as error:
            raise FormatError(f"the description of {where} is damaged: {error}") from error


def library_schema(description: Description) -> Any:
    from pymilvus import DataType, MilvusClient

    schema = MilvusClient.create_schema(
        auto_id=False, enable_dynamic_field=False, description=description.to_text()
    )
    schema.add_field("id", DataType.INT64, is_primary=True)
    for name in ("key", "graph_hash", "bundle"):
        schema.add_field(name, DataType.VARCHAR, max_length=64)
    for name in (*TEXT_CONDITIONS, "place"):
        schema.add_field(name, DataType.VARCHAR, max_length=MOST_BYTES)
    for name in ("nodes", "start", "size"):
        schema.add_field(name, DataType.INT64)
    schema.add_field(
        "tags",
        DataType.ARRAY,
        element_type=DataType.VARCHAR,
        max_length=MOST_BYTES,
        max_capacity=2 * MOST_TAGS,
    )
    binary = description.space.metric == "hamming"
    kind = DataType.BINARY_VECTOR if binary else DataType.FLOAT_VECTOR
    schema.add_field("vector", kind, dim=description.space.width)
    return schema


def records_schema() -> Any:
    from pymilvus import DataType, MilvusClient

    schema = MilvusClient.create_schema(auto_id=False, enable_dynamic_field=False)
    schema.add_field("id", DataType.VARCHAR, max_length=64, is_primary=True)
    schema.add_field("kind", DataType.VARCHAR, max_length=64)
    for name in ("name", "text"):
        schema.add_field(name, DataType.VARCHAR, max_length=MOST_BYTES)
    # Milvus takes no collection without vectors.
    schema.add_field("vector", DataType.BINARY_VECTOR, dim=8)
    return schema


def index_params(metric: str) -> Any:
    """Exact search, by reading every vector."""
    from pymilvus import MilvusClient

    params = MilvusClient.prepare_index_params()
    kind = "BIN_FLAT" if metric == "hamming" else "FLAT"
    params.add_index("vector", index_type=kind, metric_type=METRICS[metric])
    return params


def write_row(own: int, row: GraphRow) -> Values:
    """A row as the collection holds it, but for the piece of its graph."""
    entry = row.entry
    return {
        **{name: encoded(getattr(entry, name)) for name in TEXT_CONDITIONS},
        "id": own,
        "key": row.key.hex(),
        "graph_hash": row.graph_hash,
        "place": json.dumps([entry.address, entry.size]),
        "nodes": row.graph.num_nodes,
        "tags": written_tags(entry.function, entry.tags),
        "vector": written_vector(row.vector),
    }


def read_stored(values: Values) -> Stored:
    """The row of ``STORED_FIELDS``."""
    return Stored(values["id"], read_entry(values), values["nodes"], values["graph_hash"])


def read_entry(values: Values) -> KnownFunction:
    """The entry of a row, as far as its fields were asked for."""
    try:
        address, size = json.loads(values.get("place", "[null, null]"))
        lists = [json.loads(decoded(text)) for text in values.get("tags", ())]
        tags = dict(pair for pair in lists if len(pair) == 2)
    except (ValueError, TypeError) as error:
        raise FormatError(f"entry {values['id']} is damaged: {error}; remove it") from error
    texts = {name: decoded(values[name]) for name in TEXT_CONDITIONS if name in values}
    return KnownFunction(**texts, address=address, size=size, tags=tags)


def read_piece(values: Values) -> Piece:
    """The row of ``PIECE_FIELDS``."""
    return Piece(*(values[name] for name in PIECE_FIELDS))


def written_vector(vector: Any) -> Any:
    """A vector, or what the server sent of one, as it takes it; it sends a code as [bytes]."""
    if isinstance(vector, np.ndarray):
        return vector.tobytes() if vector.dtype == np.uint8 else vector
    return vector[0] if isinstance(vector[0], bytes) else vector


def read_vector(values: Values, space: Space) -> NDArray[Any]:
    """The vector of a row."""
    vector = written_vector(values["vector"])
    if space.metric == "hamming":
        return np.frombuffer(vector, dtype=np.uint8)
    return np.asarray(vector, dtype=np.float32)


def write_record(kind: str, name: str, text: str) -> Values:
    """A record; equal ones are one."""
    content = json.dumps([kind, name, text])
    return {
        "id": hashlib.sha256(content.encode()).hexdigest(),
        "kind": kind,
        "name": encoded(name),
        "text": encoded(text),
        "vector": bytes(1),
    }


def listed_texts(entries: Iterable[KnownFunction]) -> set[tuple[str, str, str]]:
    """(kind, name, text) of the records that patterns are looked up in."""
    texts = set()
    for entry in entries:
        texts |= {(name, "", getattr(entry, name)) for name in LISTED}
        texts |= listed_tags(entry.tags)
    return texts


def listed_tags(tags: Mapping[str, str]) -> set[tuple[str, str, str]]:
    """The same of tags."""
    return {(TAG, name, value) for name, value in tags.items()}


def written_tags(function: str, tags: Mapping[str, str]) -> list[str]:
    """The tags of a function as the collection holds them: each name, and each with its value."""
    if len(tags) > MOST_TAGS:
        raise ConfigError(f"{function!r} has {len(tags)} tags, at most {MOST_TAGS} fit")
    return [text for tag in tags.items() for text in (tag_text(tag[0]), tag_text(*tag))]


def tag_text(*parts: str) -> str:
    """An element of the array of tags, encoded: a name, or a name and a value."""
    return encoded(json.dumps(parts, ensure_ascii=False))


def encoded(text: str) -> str:
    """A text that Milvus can hold.

    Names in binaries need not be UTF-8; what Python makes of their stray bytes, lone surrogates,
    is not text to Milvus. They become the last characters of Unicode, which nobody uses.
    """
    if not text.isascii():
        if TAKEN.search(text):
            raise ConfigError(f"{text!r} has a character from {chr(STAND_IN)!r} on; leave it out")
        text = SURROGATE.sub(lambda match: chr(ord(match[0]) + SHIFT), text)
    if (size := len(text.encode())) > MOST_BYTES:
        raise ConfigError(
            f"{text[:40]!r}... has {size} bytes, Milvus takes {MOST_BYTES}; shorten it"
        )
    return text


def decoded(text: str) -> str:
    """What :func:`encoded` was given."""
    return text if text.isascii() else TAKEN.sub(lambda match: chr(ord(match[0]) - SHIFT), text)
