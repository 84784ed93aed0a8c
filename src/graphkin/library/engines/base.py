"""What holds the graphs of a library: the interface that every engine implements."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from graphkin.binaries.call_graph import CallGraph
from graphkin.errors import ConfigError
from graphkin.graphs import Graph
from graphkin.library.records import BinarySummary, Filter, Row, Stored, WordArray, check_words

Metric = Literal["hamming", "euclidean", "cosine"]


@dataclass(frozen=True)
class Space:
    """What vectors of a library are, and how they are compared.

    Distances are bits that differ (Hamming), squared lengths (Euclidean), or 1 - cosine.
    """

    metric: Metric
    width: int
    """Bits of a code, or numbers of a vector."""

    @property
    def dtype(self) -> type[np.uint8] | type[np.float32]:
        return np.uint8 if self.metric == "hamming" else np.float32

    @property
    def columns(self) -> int:
        """Entries of the array of one vector."""
        return self.width // 8 if self.metric == "hamming" else self.width

    def check(self, vectors: NDArray[Any]) -> None:
        """Refuses what is not (N, columns) vectors of this space."""
        if vectors.dtype != self.dtype or vectors.shape[1:] != (self.columns,):
            raise ConfigError(
                f"vectors must be (N, {self.columns}) {np.dtype(self.dtype)}, got "
                f"{vectors.shape} {vectors.dtype}; use the model that made the library"
            )
        if self.metric != "hamming" and not np.isfinite(vectors).all():
            raise ConfigError("vectors must be finite numbers, got NaN or infinity")


WIDER = 4
"""Times as many codes are compared with numbers that were not rounded as are asked for."""
COMMON_WORD = 500
"""Graphs of a library with the same word, above which it does not lead to any of them."""
COUNTED = ("architecture", "compiler", "build", "tags", "binary")
"""What the statistics of a library count entries by."""
TOP_BINARIES = 20
"""That the statistics list."""


def counts_document(counts: Mapping[str, Counter[str]]) -> dict[str, dict[str, int]]:
    """The part of :meth:`Engine.stats` that all engines share, the largest counts first."""
    return {
        "architectures": dict(counts["architecture"].most_common()),
        "compilers": dict(counts["compiler"].most_common()),
        "builds": dict(counts["build"].most_common()),
        "tags": dict(counts["tags"].most_common()),
        "top_binaries": dict(counts["binary"].most_common(TOP_BINARIES)),
    }


class UnknownIdError(ConfigError):
    """An id that the library does not hold; another process may have removed it since."""


def check_sharing(words: WordArray, weights: NDArray[np.float32], count: int) -> None:
    """Refuses what :meth:`Engine.sharing` does not take."""
    check_words(words)
    if weights.shape != words.shape:
        raise ConfigError(f"each word must have one weight, got {weights.shape} for {words.shape}")
    if count < 1:
        raise ConfigError(f"count must be at least 1, got {count}")


class Nearest(NamedTuple):
    """The nearest of each query, in order of distance, and of id where distances are equal."""

    ids: NDArray[np.int64]
    """(Q, K), -1 where there are fewer than K."""
    distances: NDArray[np.float32]
    """(Q, K), infinite where there are fewer than K."""


@dataclass
class Verification:
    """What a check of a library found."""

    entries: int = 0
    """Checked."""
    damage: list[str] = field(default_factory=list)
    """What is wrong, one sentence each; empty for a sound library."""
    notes: dict[str, Any] = field(default_factory=dict)
    """What else was measured, such as the recall of an approximate index."""


class Engine(ABC):
    """Keeps rows, and finds the nearest of a vector.

    One process writes at a time, others may read meanwhile; every call sees what was
    acknowledged before it began.
    """

    space: Space

    @classmethod
    @abstractmethod
    def exists(cls, url: str) -> bool:
        """Whether there is something at a path or URL, a library or not."""

    @classmethod
    @abstractmethod
    def create(
        cls,
        url: str,
        space: Space,
        documents: Mapping[str, bytes],
        *,
        approximate: bool = False,
        graphs_folder: str | Path | None = None,
    ) -> Self:
        """A new, empty library; see :meth:`graphkin.Library.create`."""

    @classmethod
    @abstractmethod
    def open(cls, url: str, *, graphs_folder: str | Path | None = None) -> Self:
        """A library that exists; see :meth:`graphkin.Library.open`."""

    @classmethod
    @abstractmethod
    def shown_name(cls, url: str) -> str:
        """The name of a library for its users: without folders of this machine or passwords."""

    @classmethod
    @abstractmethod
    def uploads_folder(cls, url: str) -> Path:
        """Where a server keeps the files that were added to the library."""

    def one_state(self) -> AbstractContextManager[None]:
        """All calls inside see the same state, whatever others write meanwhile, where the engine
        has such a thing; other threads may have to wait for the end."""
        return nullcontext()

    def one_write(self) -> AbstractContextManager[None]:
        """What is added, kept and finished inside is written at once, all of it or nothing, where
        the engine has such a thing."""
        return nullcontext()

    @abstractmethod
    def documents(self) -> Mapping[str, bytes]:
        """What was given at creation: the files of the models, by name."""

    @abstractmethod
    def add(self, rows: Sequence[Row]) -> int:
        """Adds rows whose keys are new, and returns how many those were.

        When it returns, they survive the end of the process at any moment. An engine with
        transactions adds all or none; with another, adding again completes what was interrupted.
        A key that is twice in ``rows`` counts once.
        """

    @abstractmethod
    def known(self, keys: Iterable[bytes]) -> set[bytes]:
        """Those of some keys that the library holds."""

    @abstractmethod
    def tag(self, where: Filter, tags: Mapping[str, str]) -> int:
        """Adds tags to every entry that matches, and returns how many do.

        A tag that an entry has already gets the new value, its other tags stay. It is as durable
        as :meth:`add` when it returns, and as whole when it is interrupted.
        """

    @abstractmethod
    def finish_files(self, files: Iterable[tuple[str, str]]) -> None:
        """Remembers (file hash, settings) of files that are in the library as a whole, read with
        these settings."""

    @abstractmethod
    def finished_files(self) -> set[tuple[str, str]]:
        """(file hash, settings) of files that need not be read again."""

    @abstractmethod
    def keep_call_graphs(self, call_graphs: Mapping[str, bytes]) -> None:
        """Keeps the call graphs of files, by their hashes, as
        :meth:`graphkin.binaries.call_graph.CallGraph.to_bytes` has them. An engine that keeps none
        does nothing."""

    @abstractmethod
    def call_graph(self, file_hash: str) -> CallGraph | None:
        """What was kept of a file; None where there is nothing: single functions of it were added,
        it was added by an earlier graphkin, or the engine keeps none."""

    @abstractmethod
    def call_graph_files(self) -> list[str]:
        """Hashes of the files whose call graphs are kept."""

    @abstractmethod
    def remove(self, where: Filter) -> int:
        """Removes what matches, and returns how many that was; their files count as unfinished."""

    @abstractmethod
    def nearest(
        self,
        vectors: NDArray[Any],
        count: int,
        where: Filter | None = None,
        unrounded: NDArray[np.float32] | None = None,
    ) -> Nearest:
        """The nearest ``count`` of each of (Q, columns) vectors, exactly unless the engine was
        made approximate.

        Args:
            vectors: codes, or float vectors.
            count: how many.
            where: among those that match.
            unrounded: (Q, bits) numbers whose signs are the codes. Of ``WIDER`` times as many
                codes those are chosen that are most like the numbers: a bit that was nearly the
                other one counts for little. An engine whose codes are elsewhere goes by the codes.
        """

    @abstractmethod
    def sharing(
        self,
        words: WordArray,
        weights: NDArray[np.float32],
        count: int,
        where: Filter | None = None,
    ) -> list[tuple[int, float]]:
        """The ``count`` entries that share most with a graph, and how much: (id, sum of weights).

        The largest sums come first, and the smaller of two ids where sums are equal. Words of more
        than ``COMMON_WORD`` graphs do not count. An engine without lists of words finds nothing.

        Args:
            words: of the graph.
            weights: (M,) of each word.
        """

    @abstractmethod
    def beside(
        self, ids: Sequence[int], reach: int, where: Filter | None = None
    ) -> NDArray[np.int64]:
        """The ids, rising, of entries that were added next to others, and come from the same file:
        functions of a file are added in the order of their addresses. Ids that are not there have
        nothing beside them; an engine that does not know the order finds nothing.

        Args:
            ids: of the others, which are among the result.
            reach: entries on either side of each.
            where: among those that match.
        """

    @abstractmethod
    def fetch(self, ids: Sequence[int]) -> list[Stored]:
        """Rows by id, in the order given; an :class:`UnknownIdError` names an id that is not there,
        here and in :meth:`graphs`, :meth:`vectors`, :meth:`signals` and :meth:`words`."""

    @abstractmethod
    def graphs(self, ids: Sequence[int]) -> list[Graph]:
        """Graphs by id, in the order given."""

    @abstractmethod
    def scan(self, where: Filter | None = None, after: int = 0) -> Iterator[Stored]:
        """What matches, in the order of ids, from the first above ``after``."""

    @abstractmethod
    def vectors(self, ids: Sequence[int]) -> NDArray[Any]:
        """(N, columns) vectors by id, in the order given."""

    @abstractmethod
    def signals(self, ids: Sequence[int]) -> list[bytes]:
        """Signals by id, in the order given; empty for rows that were added without."""

    @abstractmethod
    def words(self, ids: Sequence[int]) -> list[WordArray]:
        """The rare words of the graphs of entries, rising, in the order of the ids."""

    @abstractmethod
    def count(self, where: Filter | None = None) -> int:
        """How many match."""

    @abstractmethod
    def stats(self) -> dict[str, Any]:
        """Sizes on disk and in memory, and entries by architecture, compiler and binary."""

    @abstractmethod
    def binaries(self) -> list[BinarySummary]:
        """Every binary, counted without reading its entries one by one where the engine can."""

    @abstractmethod
    def verify(self) -> Verification:
        """Reads everything, and says what is damaged."""

    @abstractmethod
    def compact(self) -> None:
        """Gives back the space of what was removed."""

    @abstractmethod
    def close(self) -> None:
        """Lets go of files and connections; a closed engine is of no further use."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
