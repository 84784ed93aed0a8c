"""What a library holds of each graph, and how a part of a library is chosen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from graphkin.graphs import Graph
from graphkin.results.known_function import KnownFunction

Vector = NDArray[np.uint8] | NDArray[np.float32]
"""(W,) the bytes of a code, or a float vector."""


class Row(NamedTuple):
    """A graph on its way into a library."""

    key: bytes
    """See :meth:`KnownFunction.key`; a library holds each key once."""
    entry: KnownFunction
    graph_hash: str
    """:meth:`graphkin.Graph.digest`, in hexadecimal."""
    graph: Graph
    vector: Vector


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
    min_nodes: int = 0
    max_nodes: int | None = None

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
        return self.min_nodes <= nodes and (self.max_nodes is None or nodes <= self.max_nodes)


TEXT_CONDITIONS = ("function", "binary", "architecture", "compiler", "build", "file_hash")
