"""What hits are about: vulnerabilities, other tags, or plain functions."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from graphkin.results.document import FunctionResult, Hit, LibraryFunction, SearchedFile

CVE_TAG, FIXED_TAG = "cve", "fixed"
"""Vulnerabilities that a function has, and those that it is the repaired version of."""
CVE = re.compile(r"CVE-\d{4}-\d{4,19}", re.IGNORECASE)
UNTAGGED = "no tags"


@dataclass(frozen=True)
class Group:
    """Results whose best hits have the same tags."""

    title: str
    results: tuple[FunctionResult, ...]
    """Each has a hit; the likeliest first."""


def vulnerabilities(function: LibraryFunction) -> tuple[str, ...]:
    """What the tag ``cve`` lists, with commas or spaces between, each once."""
    return listed(function.tags.get(CVE_TAG, ""))


def listed(value: str) -> tuple[str, ...]:
    """The identifiers in the value of a tag, with commas or spaces between, each once."""
    names = re.split(r"[,;\s]+", value)
    return tuple(dict.fromkeys(_spelled(name) for name in names if name))


def _spelled(name: str) -> str:
    return name.upper() if CVE.fullmatch(name) else name


def tag_title(function: LibraryFunction) -> str:
    """The tags on one line; vulnerabilities first, and without their key."""
    others = [f"{key}={value}" for key, value in sorted(function.tags.items()) if key != CVE_TAG]
    return "  ".join((*vulnerabilities(function), *others)) or UNTAGGED


def groups(results: Iterable[FunctionResult]) -> list[Group]:
    """Results that have hits, by the tags of their best hit: vulnerabilities, others, none."""
    by_title: dict[str, list[FunctionResult]] = {}
    for result in results:
        if result.hits:
            by_title.setdefault(tag_title(result.hits[0]), []).append(result)
    groups_ = [
        Group(title, tuple(sorted(members, key=lambda result: likelihood(result.hits[0]))))
        for title, members in by_title.items()
    ]
    return sorted(groups_, key=_order)


def likelihood(hit: Hit) -> tuple[float, float, float]:
    """A key that puts the likeliest hit first: by probability, then score, then distance."""
    missing = float("inf")
    return (
        missing if hit.probability is None else -hit.probability,
        missing if hit.score is None else -hit.score,
        missing if hit.distance is None else hit.distance,
    )


def _order(group: Group) -> tuple[int, tuple[float, float, float], str]:
    function = group.results[0].hits[0]
    kind = 0 if vulnerabilities(function) else 1 if function.tags else 2
    return kind, likelihood(group.results[0].hits[0]), group.title


class Counts(NamedTuple):
    """Of a scan."""

    files: int
    functions: int
    with_a_hit: int
    """Functions."""
    hits: int
    without_functions: int
    """Files of which nothing was looked up."""
    small: int
    """Functions that were not looked up, because they have too few blocks."""


def count(results: Sequence[FunctionResult], files: Sequence[SearchedFile] = ()) -> Counts:
    """What there is in the results, and in the files that they are of, where these are known."""
    looked_up = Counter[str]()
    for result in results if not files else ():
        looked_up[result.query.binary] += 1
    for file in files:
        looked_up[file.binary] += file.functions
    return Counts(
        files=len(looked_up),
        functions=len(results),
        with_a_hit=sum(bool(result.hits) for result in results),
        hits=sum(len(result.hits) for result in results),
        without_functions=sum(not functions for functions in looked_up.values()),
        small=sum(file.small for file in files),
    )
