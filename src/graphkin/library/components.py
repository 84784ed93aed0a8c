"""Which binaries of a library are inside a scanned file, in which version, and where.

A *component* is what several binaries of a library are builds or versions of: they have the tag
``component`` with one value, or most of their functions have the same names.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import PurePath
from typing import NamedTuple

from graphkin.binaries.containers.unpack import SEPARATOR
from graphkin.binaries.function import file_path
from graphkin.library.cascade import identity
from graphkin.library.context import COMMON, file_of
from graphkin.library.engines.base import Engine
from graphkin.library.records import BinarySummary, Filter
from graphkin.results.document import (
    AddressRange,
    Component,
    ComponentBuild,
    FunctionResult,
    Kin,
)

COMPONENT_TAG, VERSION_TAG = "component", "version"
SAME_NAMES = 0.4
"""Share of the functions of the larger of two binaries that both have by name, from which on they
are of one component."""
MOST_FILES = 200
"""Binaries that are compared by the names of their functions: those with most hits."""
LEAST_PROBABLE = 0.5
"""Of a function that counts for a component."""
ONE_FUNCTION = 0.7
"""The most that a single function tells of a component: code is copied from one to another."""
LEAST_SURE = 0.95
"""Probability from which on a component is listed: three functions that are likely."""
GAP = 8
"""Functions of unknown origin that may lie within one range of a component."""
ENDING = re.compile(r"(\.(so|a|o|dll|exe|dylib|lib|ko|elf|bin)\b.*)$", re.IGNORECASE)
VERSION_ENDING = re.compile(r"[-_.]v?\d[\w.]*$")


class LibraryFile(NamedTuple):
    """A binary of the library; an archive with all its members is one."""

    binary: str
    summaries: list[BinarySummary]

    @property
    def functions(self) -> int:
        return sum(summary.functions for summary in self.summaries)

    def tag(self, key: str) -> str:
        """The value of a tag that most of its functions have; empty where there is none."""
        values: Counter[str] = Counter()
        for summary in self.summaries:
            for tag, count in summary.tags.items():
                name, _, value = tag.partition("=")
                if name == key:
                    values[value] += count
        return values.most_common(1)[0][0] if values else ""


class LibraryComponents(NamedTuple):
    """The binaries of a library that were hit, and the component of each."""

    files: Mapping[str, LibraryFile]
    """By :func:`file_of`."""
    names: Mapping[str, str]
    """The name of the component of each, likewise; names are unique."""


def library_components(engine: Engine, kin: Iterable[Kin]) -> LibraryComponents:
    """The components of all binaries that some candidates are in."""
    weights: Counter[str] = Counter()
    binaries: dict[str, str] = {}
    for item in kin:
        weights[file_of(item)] += 1
        binaries.setdefault(file_of(item), file_path(item.binary))
    files = {key: LibraryFile(binary, []) for key, binary in binaries.items()}
    for summary in engine.binaries():
        key = summary.file_hash or summary.binary
        if key in files:
            files[key].summaries.append(summary)
    groups = _groups(engine, files, [key for key, _ in weights.most_common()])
    return LibraryComponents(files, _named(groups, files))


def _groups(
    engine: Engine, files: Mapping[str, LibraryFile], keys: Sequence[str]
) -> list[list[str]]:
    """Files of one component together."""
    groups: list[list[str]] = []
    by_tag: dict[str, list[str]] = {}
    members: list[tuple[list[str], set[str]]] = []
    for key in keys:
        tag = files[key].tag(COMPONENT_TAG)
        if tag:
            if tag not in by_tag:
                groups.append(by_tag.setdefault(tag, []))
            by_tag[tag].append(key)
            continue
        names = _function_names(engine, key) if len(members) < MOST_FILES else set()
        for group, known in members:
            if names and len(names & known) >= SAME_NAMES * max(len(names), len(known)):
                group.append(key)
                break
        else:
            groups.append([key])
            members.append((groups[-1], names))
    return groups


def _function_names(engine: Engine, key: str) -> set[str]:
    is_hash = len(key) == 64 and set(key) <= set("0123456789abcdef")
    where = Filter(file_hash=key) if is_hash else Filter(binary=_literal(key))
    names = set()
    for stored in engine.scan(where):
        name = identity(stored)
        if name != stored.graph_hash:
            names.add(name)
    return names


def _literal(text: str) -> str:
    """A pattern that matches this text only."""
    return re.sub(r"([*?\[])", r"[\1]", text)


def _named(groups: Sequence[Sequence[str]], files: Mapping[str, LibraryFile]) -> dict[str, str]:
    """A name for each group: its tag, the common name of its files, or of their folder."""
    names: dict[str, str] = {}
    taken: Counter[str] = Counter()
    for group in groups:
        name = component_name([files[key] for key in group])
        taken[name] += 1
        unique = name if taken[name] == 1 else f"{name} ({taken[name]})"
        names |= dict.fromkeys(group, unique)
    return names


def component_name(files: Sequence[LibraryFile]) -> str:
    """What people would call some binaries together.

    ``libpng`` of ``a/libpng16.so.16`` and ``b/libpng16.so``; ``tiff`` of ``tiff/gcc-O2.so`` and
    ``tiff/clang-O2.so``.
    """
    tag = files[0].tag(COMPONENT_TAG)
    if tag:
        return tag
    stems = {_stem(file.binary) for file in files}
    if len(stems) == 1 and (len(files) > 1 or not _is_build(files[0])):
        return stems.pop()
    folders = {_inner(file.binary).parent.name for file in files}
    if len(folders) == 1 and (folder := folders.pop()):
        return folder
    return _stem(files[0].binary)


def _is_build(file: LibraryFile) -> bool:
    """Whether a file's name says no more than what made it, such as ``x86_64-gcc-O2.so``."""
    return re.search(r"(gcc|clang|msvc|icc)[\w.]*-O[0-3sgz]", _inner(file.binary).name) is not None


def _inner(binary: str) -> PurePath:
    return PurePath(binary.rpartition(SEPARATOR)[2])


def _stem(binary: str) -> str:
    name = _inner(binary).name
    stem = ENDING.sub("", name)
    return VERSION_ENDING.sub("", stem) or stem or name


class _Match(NamedTuple):
    """A function of the scanned file that is of a component."""

    position: int
    """Among the functions of the file that were looked up, by address."""
    address: int
    kin: list[Kin]
    """The builds of the known function that are in the component, the most probable first."""


def find_components(
    results: Sequence[FunctionResult], library: LibraryComponents
) -> list[Component]:
    """The components inside one file, those with most functions first.

    Every function counts for one component: the one that has most functions in the file.
    """
    ordered = sorted(results, key=lambda result: result.query.address or 0)
    votes = [_votes(result, library) for result in ordered]
    components = []
    open_ = {position for position, own in enumerate(votes) if own}
    while open_:
        totals: dict[str, float] = defaultdict(float)
        for position in open_:
            for name, kin in votes[position].items():
                totals[name] += kin[0].probability
        name = max(totals, key=lambda name: (totals[name], name))
        own = sorted(position for position in open_ if name in votes[position])
        open_ -= set(own)
        matches = [
            _Match(position, ordered[position].query.address or 0, votes[position][name])
            for position in own
        ]
        component = _component(name, ordered[0].query.binary, matches, votes, library)
        if (component.probability or 0.0) >= LEAST_SURE:
            components.append(component)
    return sorted(components, key=lambda item: (-item.functions, item.name))


def _votes(result: FunctionResult, library: LibraryComponents) -> dict[str, list[Kin]]:
    """The components that a function may be of, with its candidates there."""
    if not result.kin or result.kin[0].probability < LEAST_PROBABLE or result.kin[0].is_runtime:
        return {}
    best = result.kin[0].function
    votes: dict[str, list[Kin]] = defaultdict(list)
    for item in result.kin:
        if item.function == best:
            votes[library.names[file_of(item)]].append(item)
    return {} if len(votes) > COMMON else dict(votes)


def _component(
    name: str,
    binary: str,
    matches: Sequence[_Match],
    votes: Sequence[Collection[str]],
    library: LibraryComponents,
) -> Component:
    best: dict[str, float] = {}
    for match in matches:
        item = match.kin[0]
        best[item.function] = max(item.probability, best.get(item.function, 0.0))
    absent = 1.0
    for probability in best.values():
        absent *= 1 - min(probability, ONE_FUNCTION)
    return Component(
        binary=binary,
        name=name,
        probability=1 - absent,
        functions=len(matches),
        builds=tuple(_builds(matches, library)),
        ranges=tuple(_ranges(matches, votes)),
    )


def _builds(matches: Sequence[_Match], library: LibraryComponents) -> list[ComponentBuild]:
    """The builds and versions of a component, the one that fits best first.

    Of each function, builds are compared by the distance of their codes; one that does not have
    the function is as far as the farthest that does.
    """
    keys = list(dict.fromkeys(file_of(item) for match in matches for item in match.kin))
    found: Counter[str] = Counter()
    nearest: Counter[str] = Counter()
    excess: dict[str, float] = defaultdict(float)
    for match in matches:
        distances: dict[str, float] = {}
        for item in match.kin:
            key = file_of(item)
            distances[key] = min(item.distance, distances.get(key, item.distance))
        least, most = min(distances.values()), max(distances.values())
        for key in keys:
            distance = distances.get(key, most + 1)
            found[key] += key in distances
            nearest[key] += distance == least
            excess[key] += distance - least
    keys.sort(key=lambda key: (excess[key], -nearest[key], library.files[key].binary))
    return [_build(library.files[key], found[key], nearest[key]) for key in keys]


def _build(file: LibraryFile, found: int, nearest: int) -> ComponentBuild:
    summary = file.summaries[0] if file.summaries else None
    return ComponentBuild(
        binary=file.binary,
        file_hash=summary.file_hash if summary else "",
        architecture=summary.architecture if summary else "",
        compiler=summary.compiler if summary else "",
        build=summary.build if summary else "",
        version=file.tag(VERSION_TAG) or None,
        known=file.functions,
        functions=found,
        nearest=nearest,
    )


def _ranges(matches: Sequence[_Match], votes: Sequence[Collection[str]]) -> list[AddressRange]:
    """Runs of functions of a component, with nothing of another component in between."""
    runs: list[list[_Match]] = []
    for match in matches:
        last = runs[-1][-1].position if runs else -1
        between = votes[last + 1 : match.position]
        if runs and len(between) <= GAP and not any(between):
            runs[-1].append(match)
        else:
            runs.append([match])
    return [
        AddressRange(start=run[0].address, last=run[-1].address, functions=len(run)) for run in runs
    ]
