"""Results for code-scanning dashboards: SARIF 2.1.0.

A rule is a vulnerability of the library, or a library function without one. A result says that a
function of a scanned file is, in all likelihood, the code that a rule is about; several hits for
one rule, such as the same function from several compilers, are one result.
"""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any, NamedTuple

from graphkin.results.document import FunctionRef, FunctionResult, Match, Report
from graphkin.results.grouping import likelihood, vulnerabilities
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

    query: FunctionRef
    rule_id: str
    hits: list[Match]
    """The likeliest first."""


def sarif(report: Report, root: str | os.PathLike[str] | None = None) -> dict[str, Any]:
    """A log of one run, ready for ``json.dumps``.

    Args:
        report: of a scan.
        root: the directory that locations are relative to; the current one by default. A file
            outside it gets its absolute ``file:`` URI.
    """
    findings = [finding for result in report.results for finding in _findings(result)]
    rules: dict[str, list[Match]] = {}
    for finding in findings:
        rules.setdefault(finding.rule_id, []).extend(finding.hits)
    places = {name: place for place, name in enumerate(rules)}
    artifacts = Artifacts(Path.cwd() if root is None else Path(root).absolute())
    for result in report.results:
        artifacts.location(result.query.binary)
    return {
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "graphkin",
                        "version": report.tool.version,
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
                "properties": {"library": encodable(report.library), "model": report.model},
            }
        ],
    }


def _findings(result: FunctionResult) -> list[Finding]:
    by_rule: dict[str, list[Match]] = {}
    for hit in result.hits:
        for name in rule_ids(hit):
            by_rule.setdefault(name, []).append(hit)
    return [
        Finding(result.query, name, sorted(hits, key=likelihood)) for name, hits in by_rule.items()
    ]


def _result(finding: Finding, place: int, artifacts: Artifacts) -> dict[str, Any]:
    query, hit = finding.query, finding.hits[0]
    location = artifacts.location(query.binary)
    document: dict[str, Any] = {
        "ruleId": finding.rule_id,
        "ruleIndex": place,
        "level": level(hit.probability),
        "message": {"text": _message(finding)},
        "locations": [_location(query, location)],
        "partialFingerprints": _fingerprints(finding, location["uri"]),
        "properties": {
            **hit.model_dump(mode="json", include={"probability", "score", "distance"}),
            "hits": [item.to_dict() for item in finding.hits],
        },
    }
    if document["properties"]["probability"] is not None:
        document["rank"] = round(100 * document["properties"]["probability"], 3)
    return document


def level(probability: float | None) -> str:
    """How loudly a dashboard says it; without a probability, softly."""
    if probability is None or not probability >= WARNING_FROM:
        return "note"
    return "error" if probability >= ERROR_FROM else "warning"


def _location(query: FunctionRef, artifact: dict[str, Any]) -> dict[str, Any]:
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
    query, hit = finding.query, finding.hits[0]
    parts = [f"{message_text(query.function)} resembles {message_text(hit.function)}"]
    if hit.binary:
        parts.append(f" of {message_text(hit.binary)}")
    if vulnerabilities(hit):
        parts.append(f" ({message_text(finding.rule_id)})")
    if hit.probability is not None:
        parts.append(f", the same code with probability {hit.probability:.3f}")
    if hit.evidence is not None:
        parts.append(
            f"; {share_text(hit.evidence.matched_share or 0.0)} of its blocks have a partner"
        )
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
