"""Which functions of a corpus are the same code, and which must not be told apart.

A function is known by its library, its name, and, where it is static, by its source file:
dozens of files may have a ``decode_frame`` of their own.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from graphkin.binaries.corpus import CorpusFunction, FunctionCorpus

Index = NDArray[np.int64]

HEADER = re.compile(r"\.(?:h|hh|hpp|hxx|inc|inl|def|tcc)$")
PART = re.compile(r"\.part\.\d+")


class FunctionKey(NamedTuple):
    """What names a function across builds."""

    library: str
    unit: str
    """The source file of a static function; empty for a global one."""
    name: str


@dataclass(frozen=True)
class FunctionClass:
    """The graphs of one function, one for each build that has it."""

    key: FunctionKey
    graphs: dict[str, int]
    """Build to graph number."""
    in_header: bool
    """Whether debug information says that a header defines it."""
    group: int = 0
    """Functions of one group share a graph, directly or through others."""


def function_classes(corpus: FunctionCorpus, min_builds: int) -> list[FunctionClass]:
    """The functions that at least ``min_builds`` builds have, sorted by their keys."""
    numbers_of: dict[FunctionKey, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    headers: set[FunctionKey] = set()
    for number, entry in enumerate(corpus.entries):
        key = FunctionKey(entry.binary.library, entry.unit or "", entry.base_name)
        numbers_of[key][entry.binary.build].append(number)
        if entry.defined_in is not None and HEADER.search(entry.defined_in):
            headers.add(key)
    classes = []
    for key in sorted(numbers_of):
        graphs = {
            build: chosen
            for build, numbers in sorted(numbers_of[key].items())
            if (chosen := _representative(corpus.entries, numbers)) is not None
        }
        if len(graphs) >= min_builds:
            classes.append(FunctionClass(key, graphs, key in headers))
    return classes


def _representative(entries: Sequence[CorpusFunction], numbers: Sequence[int]) -> int | None:
    """The graph that stands for a function in one build.

    The function itself, before its clones; of clones a whole one (``.isra``, ``.constprop``)
    before a part. Where several files of the build hold the library (a copy, or a static one
    beside a shared one), the first that has the function counts. Where one file has two that
    are equally good, nothing says which is meant: None.
    """
    best = min(_rank(entries[number]) for number in numbers)
    good = [number for number in numbers if _rank(entries[number]) == best]
    file = entries[good[0]].binary.path
    alike = [number for number in good if entries[number].binary.path == file]
    return alike[0] if len(alike) == 1 else None


def _rank(entry: CorpusFunction) -> int:
    if entry.name == entry.base_name:
        return 0
    return 2 if PART.search(entry.name) else 1


def contents_of(corpus: FunctionCorpus, graphs: Iterable[int]) -> Index:
    """(G,) one number for each different content of the graphs asked for, by graph number."""
    numbers: dict[str, int] = {}
    contents = np.full(len(corpus), -1, dtype=np.int64)
    for graph in graphs:
        contents[graph] = numbers.setdefault(corpus.store[graph].digest(), len(numbers))
    return contents


def grouped(classes: Sequence[FunctionClass], contents: Index) -> list[FunctionClass]:
    """The same classes, with those that share an exact graph in one group."""
    groups = connected([contents[list(item.graphs.values())].tolist() for item in classes])
    return [
        FunctionClass(item.key, item.graphs, item.in_header, group)
        for item, group in zip(classes, groups, strict=True)
    ]


def connected(sets: Sequence[Iterable[Hashable]]) -> list[int]:
    """The group of each set: those that share an element, directly or through others, are one.

    A group has the number of its first set.
    """
    parents = list(range(len(sets)))

    def root(number: int) -> int:
        while parents[number] != number:
            parents[number] = parents[parents[number]]
            number = parents[number]
        return number

    owner: dict[Hashable, int] = {}
    for number, elements in enumerate(sets):
        for element in elements:
            first = owner.setdefault(element, number)
            # The smaller number becomes the root, whatever the order of unions.
            low, high = sorted((root(first), root(number)))
            parents[high] = low
    return [root(number) for number in range(len(sets))]
