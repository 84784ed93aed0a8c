"""What hits are about: vulnerabilities, other tags, or plain functions."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from graphkin.results.document import Hit, SearchResult
from graphkin.results.known_function import KnownFunction

CVE_TAG = "cve"
CVE = re.compile(r"CVE-\d{4}-\d{4,19}", re.IGNORECASE)
UNTAGGED = "no tags"


@dataclass(frozen=True)
class Group:
    """Results whose best hits have the same tags."""

    title: str
    results: tuple[SearchResult, ...]
    """Each has a hit; the likeliest first."""


def vulnerabilities(entry: KnownFunction) -> tuple[str, ...]:
    """What the tag ``cve`` lists, with commas or spaces between, each once."""
    listed = re.split(r"[,;\s]+", entry.tags.get(CVE_TAG, ""))
    return tuple(dict.fromkeys(_spelled(name) for name in listed if name))


def _spelled(name: str) -> str:
    return name.upper() if CVE.fullmatch(name) else name


def tag_title(entry: KnownFunction) -> str:
    """The tags on one line; vulnerabilities first, and without their key."""
    others = [f"{key}={value}" for key, value in sorted(entry.tags.items()) if key != CVE_TAG]
    return "  ".join((*vulnerabilities(entry), *others)) or UNTAGGED


def groups(results: Iterable[SearchResult]) -> list[Group]:
    """Results that have hits, by the tags of their best hit: vulnerabilities, others, none."""
    found: dict[str, list[SearchResult]] = {}
    for result in results:
        if result.hits:
            found.setdefault(tag_title(result.hits[0].entry), []).append(result)
    made = [
        Group(title, tuple(sorted(members, key=lambda result: likelihood(result.hits[0]))))
        for title, members in found.items()
    ]
    return sorted(made, key=_order)


def likelihood(hit: Hit) -> tuple[float, float, float]:
    """A key that puts the likeliest hit first: by probability, then score, then distance."""
    missing = float("inf")
    return (
        missing if hit.probability is None else -hit.probability,
        missing if hit.score is None else -hit.score,
        hit.distance,
    )


def _order(group: Group) -> tuple[int, tuple[float, float, float], str]:
    entry = group.results[0].hits[0].entry
    kind = 0 if vulnerabilities(entry) else 1 if entry.tags else 2
    return kind, likelihood(group.results[0].hits[0]), group.title


class Counts(NamedTuple):
    """Of a scan."""

    files: int
    functions: int
    found: int
    """Functions with a hit."""
    hits: int


def count(results: Sequence[SearchResult]) -> Counts:
    return Counts(
        files=len({result.query.binary for result in results}),
        functions=len(results),
        found=sum(bool(result.hits) for result in results),
        hits=sum(len(result.hits) for result in results),
    )
