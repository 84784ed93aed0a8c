"""Results for code-scanning dashboards: SARIF 2.1.0.

A rule is a vulnerability of the library, or a library function without one. A result says that a
function of a scanned file is, in all likelihood, the code that a rule is about; several hits for
one rule, such as the same function from several compilers, are one result.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from graphkin.results.document import Hit, Query, SearchResult
from graphkin.results.grouping import likelihood, vulnerabilities
from graphkin.results.json_lines import finite, hit_document
from graphkin.results.sarif.locations import BASE, Artifacts, member_of
from graphkin.results.sarif.rules import message_text, rule, rule_ids
from graphkin.results.text import address_text, encodable, share_text

SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)
ERROR_FROM, WARNING_FROM = 0.9, 0.5
"""Probabilities from which a result is an error, or a warning; below, it is a note."""


class Finding(NamedTuple):
    """A function of a scanned file, and the hits that are about one rule."""

    query: Query
    rule_id: str
    hits: list[tuple[int, Hit]]
    """With their ranks; the likeliest first."""


def sarif(
    results: Iterable[SearchResult],
    *,
    tool_version: str,
    library: str,
    root: str | os.PathLike[str] | None = None,
) -> dict[str, Any]:
    """A log of one run, ready for ``json.dumps``.

    Args:
        results: of a scan.
        tool_version: of graphkin.
        library: what was searched.
        root: the directory that locations are relative to; the current one by default. A file
            outside it gets its absolute ``file:`` URI.
    """
    everything = list(results)
    findings = [finding for result in everything for finding in _findings(result)]
    rules: dict[str, list[Hit]] = {}
    for finding in findings:
        rules.setdefault(finding.rule_id, []).extend(hit for _, hit in finding.hits)
    places = {name: place for place, name in enumerate(rules)}
    artifacts = Artifacts(Path.cwd() if root is None else Path(root).absolute())
    for result in everything:
        artifacts.location(result.query.binary)
    return {
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "graphkin",
                        "version": tool_version,
                        "rules": [rule(name, hits) for name, hits in rules.items()],
                    }
                },
                "invocations": [{"executionSuccessful": True}],
                "originalUriBaseIds": {
                    BASE: {"description": {"text": "The directory that was scanned."}}
                },
                "artifacts": artifacts.documents(),
                "results": [
                    _result(finding, places[finding.rule_id], artifacts) for finding in findings
                ],
                "properties": {"library": encodable(library)},
            }
        ],
    }


def _findings(result: SearchResult) -> list[Finding]:
    found: dict[str, list[tuple[int, Hit]]] = {}
    for rank, hit in enumerate(result.hits, start=1):
        for name in rule_ids(hit.entry):
            found.setdefault(name, []).append((rank, hit))
    return [
        Finding(result.query, name, sorted(hits, key=lambda item: likelihood(item[1])))
        for name, hits in found.items()
    ]


def _result(finding: Finding, place: int, artifacts: Artifacts) -> dict[str, Any]:
    query, hit = finding.query, finding.hits[0][1]
    location = artifacts.location(query.binary)
    document: dict[str, Any] = {
        "ruleId": finding.rule_id,
        "ruleIndex": place,
        "level": level(hit.probability),
        "message": {"text": _message(finding)},
        "locations": [_location(query, location)],
        "partialFingerprints": _fingerprints(finding, location["uri"]),
        "properties": {
            "probability": finite(hit.probability),
            "score": finite(hit.score),
            "distance": finite(hit.distance),
            "hits": [hit_document(item, rank) for rank, item in finding.hits],
        },
    }
    probability = finite(hit.probability)
    if probability is not None:
        document["rank"] = round(100 * probability, 3)
    return document


def level(probability: float | None) -> str:
    """How loudly a dashboard says it; without a probability, softly."""
    if probability is None or not probability >= WARNING_FROM:
        return "note"
    return "error" if probability >= ERROR_FROM else "warning"


def _location(query: Query, artifact: dict[str, Any]) -> dict[str, Any]:
    # Dashboards place results by lines, and drop those that have none; a binary has one "line".
    physical: dict[str, Any] = {"artifactLocation": artifact, "region": {"startLine": 1}}
    name = encodable(query.function)
    if query.address is not None:
        physical["address"] = {
            "absoluteAddress": query.address,
            "kind": "function",
            "name": name,
        }
    logical = {
        "name": name,
        "fullyQualifiedName": f"{encodable(query.binary)}:{name}",
        "kind": "function",
    }
    return {"physicalLocation": physical, "logicalLocations": [logical]}


def _message(finding: Finding) -> str:
    query, hit = finding.query, finding.hits[0][1]
    entry = hit.entry
    parts = [f"{message_text(query.function)} resembles {message_text(entry.function)}"]
    if entry.binary:
        parts.append(f" of {message_text(entry.binary)}")
    if vulnerabilities(entry):
        parts.append(f" ({message_text(finding.rule_id)})")
    if hit.probability is not None:
        parts.append(f", the same code with probability {hit.probability:.3f}")
    if hit.evidence is not None:
        parts.append(f"; {share_text(hit.evidence.matched_share)} of its blocks have a partner")
    place = address_text(query.address)
    return "".join(parts) + (f". It is at {place}." if place else ".")


def _fingerprints(finding: Finding, uri: str) -> dict[str, str]:
    """Equal in every run for the same function of the same file and the same rule.

    Names stay when code moves; the address stands in where there is no name.
    """
    query = finding.query
    place = query.function or address_text(query.address)
    parts = json.dumps([uri, member_of(query.binary), place, finding.rule_id])
    digest = hashlib.sha256(parts.encode()).hexdigest()
    # The second name is the one that dashboards of GitHub match alerts by.
    return {"graphkinFunction/v1": digest, "primaryLocationLineHash": f"{digest[:16]}:1"}
