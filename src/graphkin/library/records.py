"""What a library holds of each graph, what is asked of it, and what it answers."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from fnmatch import fnmatchcase
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from graphkin.errors import ConfigError
from graphkin.graphs import Graph
from graphkin.results.document import Hit, Kin
from graphkin.results.grouping import CVE_TAG, FIXED_TAG

Vector = NDArray[np.uint8] | NDArray[np.float32]
"""(W,) the bytes of a code, or a float vector."""
WordArray = NDArray[np.uint64]
"""(M,) hashes of words, each once."""


@dataclass(frozen=True)
class KnownFunction:
    """What is known of one graph in a library; all of it may be left out."""

    function: str = ""
    """The name of the function, or of whatever the graph stands for."""
    binary: str = ""
    """The file; a member of an archive is ``path(member)``."""
    address: int | None = None
    size: int | None = None
    """Bytes of code."""
    architecture: str = ""
    compiler: str = ""
    build: str = ""
    """The configuration that made the binary, such as ``gcc-12-O2``."""
    file_hash: str = ""
    """SHA-256 of the file, in hexadecimal."""
    tags: Mapping[str, str] = field(default_factory=dict)
    """Whatever a person wants to find it by, such as ``cve=CVE-2014-0160``."""

    @classmethod
    def from_mapping(cls, values: Mapping[str, Any]) -> KnownFunction:
        """Checks names and types; an unknown key is refused by name."""
        unknown = sorted(set(values) - {item.name for item in fields(cls)})
        if unknown:
            known = ", ".join(item.name for item in fields(cls))
            raise ConfigError(
                f"metadata has an unknown key {unknown[0]!r}; known are {known}. "
                "Put anything else into tags"
            )
        for name, value in values.items():
            _check(name, value)
        return cls(**values)

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    def key(self, graph_hash: str) -> bytes:
        """(16 bytes) equal for what counts as the same content: graph, file and place in it.

        Neither the path nor the tags count: a copy of a file under another name adds nothing.
        The member of an archive does: equal functions of two members are at one address.
        """
        member = self.binary[self.binary.rfind("(") :] if self.binary.endswith(")") else ""
        where = self.file_hash + member if self.file_hash else self.binary
        parts = [graph_hash, where, self.function, "" if self.address is None else self.address]
        return hashlib.sha256(json.dumps(parts).encode()).digest()[:16]


def _check(name: str, value: object) -> None:
    if name == "tags":
        if not isinstance(value, Mapping) or not all(
            isinstance(item, str) for pair in value.items() for item in pair
        ):
            raise ConfigError(f"tags must map text to text, got {value!r}")
    elif name in ("address", "size"):
        wrong = isinstance(value, bool) or not isinstance(value, int)
        if value is not None and (wrong or not 0 <= value < 2**64):  # type: ignore[operator]
            raise ConfigError(f"{name} must be a number of 64 bits, or None; got {value!r}")
    elif not isinstance(value, str):
        raise ConfigError(f"{name} must be text, got {value!r}")


def word_bytes(words: WordArray | None) -> bytes:
    """Words as engines keep them: sorted, each once, of 8 bytes in little-endian order."""
    if words is None:
        return b""
    check_words(words)
    is_ready = bool((words[1:] > words[:-1]).all())
    return (words if is_ready else np.unique(words)).astype("<u8", copy=False).tobytes()


def words_of_bytes(content: bytes) -> WordArray:
    """What :func:`word_bytes` was given."""
    return np.frombuffer(content, "<u8").astype(np.uint64)


def check_words(words: WordArray) -> None:
    if words.dtype != np.uint64 or words.ndim != 1:
        raise ConfigError(f"words must be (M,) uint64, got {words.shape} {words.dtype}")


class Row(NamedTuple):
    """A graph on its way into a library."""

    key: bytes
    """See :meth:`KnownFunction.key`; a library holds each key once."""
    entry: KnownFunction
    graph_hash: str
    """:meth:`graphkin.Graph.digest`, in hexadecimal."""
    graph: Graph
    vector: Vector
    signals: bytes = b""
    """What the model made for a search to compare beside the vector, or nothing; all rows of a
    library that have any have the same number of bytes."""
    words: WordArray | None = None
    """The rare words of the graph, by which it can be found."""


class Unstored(NamedTuple):
    """What the row of a graph begins with; its model has encoded it, and knows the rest."""

    key: bytes
    entry: KnownFunction
    graph_hash: str
    graph: Graph
    number: int
    """Among those encoded."""


@dataclass(frozen=True)
class Stored:
    """A graph of a library, without the graph itself."""

    id: int
    """Unique and stable. In a file ids rise and are never given again; in Milvus they follow from
    the key."""
    entry: KnownFunction
    nodes: int
    """Of the graph: basic blocks, for a function."""
    graph_hash: str

    @property
    def kind(self) -> Literal["function", "graph"]:
        """A function is at an address, or for a processor; anything else is a graph."""
        is_code = self.entry.address is not None or self.entry.architecture
        return "function" if is_code else "graph"

    def to_document(self) -> dict[str, Any]:
        """The fields of a :class:`graphkin.results.document.LibraryFunction`."""
        entry = self.entry
        return {
            "kind": self.kind,
            "reference": f"library:{self.id}",
            "id": self.id,
            "function": entry.function,
            "binary": entry.binary,
            "address": entry.address,
            "size": entry.size,
            "blocks": self.nodes,
            "architecture": entry.architecture,
            "compiler": entry.compiler,
            "build": entry.build,
            "tags": dict(entry.tags),
        }


@dataclass(frozen=True)
class BinarySummary:
    """A binary of a library, and how much of it is there."""

    binary: str
    file_hash: str
    architecture: str
    compiler: str
    build: str
    functions: int
    tags: Mapping[str, int]
    """Functions by ``tag=value``, the most common first."""


@dataclass(frozen=True)
class Filter:
    """Chooses functions of a library: those that match every condition that is set.

    Texts are compared as a whole, case counts, and may hold the wildcards ``*``, ``?`` and
    ``[...]`` of a shell. A tag with the pattern ``*`` asks that the tag be there.
    """

    function: str | None = None
    binary: str | None = None
    architecture: str | None = None
    compiler: str | None = None
    build: str | None = None
    file_hash: str | None = None
    address: int | None = None
    tags: Mapping[str, str] = field(default_factory=dict)
    min_blocks: int = 0
    max_blocks: int | None = None

    def is_empty(self) -> bool:
        """Whether everything matches."""
        return self == Filter()

    def matches(self, entry: KnownFunction, nodes: int) -> bool:
        """Says what the conditions mean; engines find the same faster."""
        for name in TEXT_CONDITIONS:
            pattern = getattr(self, name)
            if pattern is not None and not fnmatchcase(getattr(entry, name), pattern):
                return False
        if self.address is not None and entry.address != self.address:
            return False
        for tag, pattern in self.tags.items():
            if tag not in entry.tags or not fnmatchcase(entry.tags[tag], pattern):
                return False
        return self.min_blocks <= nodes and (self.max_blocks is None or nodes <= self.max_blocks)


TEXT_CONDITIONS = ("function", "binary", "architecture", "compiler", "build", "file_hash")


STAGES = {
    "words": "candidates that share rare words",
    "neighbours": "candidates beside what the query's own neighbours are most like",
    "ranking": "signals and the probability that is made of them; what is left are codes and the "
    "matcher's score",
    "context": "what hits of the same file say of each other",
}
"""Stages of a search that can be left out, by name; the matcher is, where nothing is reranked."""
MOST_HITS = 1_000_000
"""Of a query; there is room for all of them at once."""


@dataclass(frozen=True)
class SearchOptions:
    """How a library is searched."""

    top: int = 10
    """Hits of each query."""
    rerank: int = 0
    """Candidates, the nearest by code, that the matcher scores again; 0 for none."""
    where: Filter | None = None
    """The part of the library to search. Its tags only choose what is shown: whatever tags a
    function has, it competes for the place of the best, or a hit would be nothing but the least
    unlike of a few."""
    min_probability: float = 0.0
    """Hits that are less probable are left out; without a calibration all stay."""
    evidence: bool = False
    """Say of hits which blocks match."""
    evidence_top: int | None = None
    """Of how many hits of each query, the best first; of all by default."""
    without: frozenset[str] = frozenset()
    """Names of ``STAGES`` that are left out."""

    def __post_init__(self) -> None:
        if unknown := sorted(self.without - STAGES.keys()):
            raise ConfigError(
                f"there is no stage {unknown[0]!r} to leave out; choose among {', '.join(STAGES)}"
            )
        for name, value, least in (("top", self.top, 1), ("rerank", self.rerank, 0)):
            is_number = isinstance(value, int) and not isinstance(value, bool)
            if not is_number or not least <= value <= MOST_HITS:
                raise ConfigError(
                    f"{name} must be a number from {least} to {MOST_HITS:,}, got {value!r}"
                )

    def to_dict(self) -> dict[str, Any]:
        """The options as a report has them; of the filter, what is set."""
        where = asdict(self.where) if self.where is not None else {}
        conditions = {name: value for name, value in where.items() if value}
        return {**asdict(self), "where": conditions, "without": sorted(self.without)}

    @property
    def candidates(self) -> int:
        """How many of the nearest are looked at."""
        return max(self.top, self.rerank)

    @property
    def competing(self) -> Filter | None:
        """The part of the library that is ranked, whatever tags it has."""
        return self.where if self.where is None else replace(self.where, tags={})

    @property
    def has_tags(self) -> bool:
        """Whether some of what is ranked is not shown."""
        return self.where is not None and bool(self.where.tags)

    def shows(self, stored: Stored) -> bool:
        """Whether a function of the library that was ranked has the tags.

        Who asks for vulnerable functions is shown their repaired versions as well: that a file has
        one of those is the answer, and silence would not tell it from a file that has neither.
        """
        if self.where is None or self.where.matches(stored.entry, stored.nodes):
            return True
        tags = dict(self.where.tags)
        if CVE_TAG not in tags:
            return False
        tags[FIXED_TAG] = tags.pop(CVE_TAG)
        return replace(self.where, tags=tags).matches(stored.entry, stored.nodes)


@dataclass(frozen=True)
class Hits:
    """What a query found."""

    hits: tuple[Hit, ...]
    best_left_out: float | None
    """The highest probability of what was less probable than asked for."""
    kin: tuple[Kin, ...] = ()
    """All that competed and is not out of the question, the most probable first."""
