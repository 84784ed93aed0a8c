"""Inverted lists in memory: the graphs of a word, and the rows of a graph.

Lists are pairs of a key and a value in runs that are sorted by key. The first run is usually
mapped from the side file, and a look at a key reads few of its pages. What is added is a run of
its own; runs of similar sizes are merged, so that there are few of them, and none is copied often.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from graphkin.library.engines import base
from graphkin.library.engines.sqlite.nearest import Chosen
from graphkin.library.records import WordArray

KEY, VALUE = np.uint64, np.uint32


class Run(NamedTuple):
    keys: NDArray[np.uint64]
    """(P,) rising."""
    values: NDArray[np.uint32]
    """(P,) rising where keys are equal."""

    def choose(self, chosen: NDArray[np.bool_]) -> Run:
        """Some of the pairs."""
        return Run(self.keys[chosen], self.values[chosen])


class InvertedLists:
    """The values of each key."""

    def __init__(self) -> None:
        self._runs: list[Run] = []

    def __len__(self) -> int:
        return sum(len(run.keys) for run in self._runs)

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for run in self._runs for array in run)

    def add(self, keys: NDArray[np.uint64], values: NDArray[np.uint32]) -> None:
        """Adds (P,) pairs whose values rise, and are above those of all pairs before."""
        if not len(keys):
            return
        order = np.argsort(keys, kind="stable")
        self._runs.append(Run(keys[order], values[order]))
        while len(self._runs) > 1 and len(self._runs[-2].keys) < 2 * len(self._runs[-1].keys):
            self._runs[-2:] = [_merged(self._runs[-2:])]

    def replace(self, run: Run) -> None:
        """Takes sorted pairs as they are for all."""
        self._runs = [run]

    def whole(self) -> Run:
        """All pairs."""
        self._runs = [_merged(self._runs)]
        return self._runs[0]

    def find(
        self, keys: NDArray[np.uint64], most: int | None = None
    ) -> tuple[NDArray[np.int64], NDArray[np.uint32]]:
        """(F,) the place of a key in ``keys``, and one of its values.

        A key with more than ``most`` values has none here; they are counted, not read.
        """
        lefts = [np.searchsorted(run.keys, keys, "left") for run in self._runs]
        rights = [np.searchsorted(run.keys, keys, "right") for run in self._runs]
        lengths = np.array([right - left for left, right in zip(lefts, rights, strict=True)])
        lengths = lengths.reshape(len(self._runs), len(keys))
        if most is not None:
            lengths = np.where(lengths.sum(axis=0) > most, 0, lengths)
        places = [np.repeat(np.arange(len(keys)), own) for own in lengths]
        values = [
            run.values[_ranges(left, own)]
            for run, left, own in zip(self._runs, lefts, lengths, strict=True)
        ]
        return (
            np.concatenate([np.zeros(0, np.int64), *places]),
            np.concatenate([np.zeros(0, VALUE), *values]),
        )


def _ranges(starts: NDArray[np.int64], lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """The numbers of all ranges, one range after the other."""
    ends = np.cumsum(lengths)
    return np.repeat(starts - ends + lengths, lengths) + np.arange(lengths.sum())


def _merged(runs: list[Run]) -> Run:
    if len(runs) == 1:
        return runs[0]
    keys = np.concatenate([np.zeros(0, KEY), *(run.keys for run in runs)])
    values = np.concatenate([np.zeros(0, VALUE), *(run.values for run in runs)])
    order = np.argsort(keys, kind="stable")  # which merges what is sorted in parts
    return Run(keys[order], values[order])


class SharedRows(NamedTuple):
    """Rows that share words with a graph, the best first."""

    rows: NDArray[np.uint32]
    """(K,)"""
    sums: NDArray[np.float64]
    """(K,) of the weights of the words."""


def sharing(
    graphs_by_word: InvertedLists,
    rows_by_graph: InvertedLists,
    words: WordArray,
    weights: NDArray[np.float32],
    count: int,
    chosen: Chosen | None,
) -> SharedRows:
    """The rows that :meth:`graphkin.library.engines.base.Engine.sharing` finds."""
    places, holders = graphs_by_word.find(words, base.COMMON_WORD)
    graphs, groups = np.unique(holders, return_inverse=True)
    sums_of_graphs = np.bincount(groups, weights[places], len(graphs)).astype(np.float64)
    owners, rows = rows_by_graph.find(graphs.astype(KEY))
    if chosen is not None:
        owners, rows = owners[chosen[rows]], rows[chosen[rows]]
    sums = sums_of_graphs[owners]
    best = np.lexsort((rows, -sums))[:count]
    return SharedRows(rows[best], sums[best])
