"""Results for code-scanning dashboards: SARIF 2.1.0.

A rule is a vulnerability of the library, or a library function without one. A result says that a
function of a scanned file is, in all likelihood, the code that a rule is about; several hits for
one rule, such as the same function from several compilers, are one result.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from pathlib import Path, PurePath
from typing import Any, NamedTuple
from urllib.parse import quote

from graphkin.binaries.demangling import shown_name
from graphkin.binaries.function import MEMBER, base_name
from graphkin.results.document import FunctionRef, FunctionResult, Hit, LibraryFunction, Report
from graphkin.results.grouping import CVE, likelihood, vulnerabilities
from graphkin.results.text import address_text, encodable, plural, printable, share_text

SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)
ERROR_FROM, WARNING_FROM = 0.9, 0.5
"""Probabilities from which a result is an error, or a warning; below, it is a note."""
BASE = "%SRCROOT%"
"""What relative locations begin at."""
CATALOGUE = "https://nvd.nist.gov/vuln/detail/"
FUNCTION = "function:"
"""Begins the ids of rules for functions without a vulnerability."""
UNNAMED = "unnamed"
MEANING = (
    "A function of the scanned file has the control flow and the instructions of a function in "
    "the library, as far as compilers leave them alike."
)
ADVICE = (
    "Compare the two functions with `graphkin compare`. Code that was fixed may still resemble "
    "code that was not."
)


class Finding(NamedTuple):
    """A function of a scanned file, and the hits that are about one rule."""

    query: FunctionRef
    rule_id: str
    hits: list[Hit]
    """The likeliest first."""


def sarif(report: Report, root: str | os.PathLike[str] | None = None) -> dict[str, Any]:
    """A log of one run, ready for ``json.dumps``.

    Args:
        report: of a scan.
        root: the directory that locations are relative to; the current one by default. A file
            outside it gets its absolute ``file:`` URI.
    """
    findings = [finding for result in report.results for finding in _findings(result)]
    rules: dict[str, list[Hit]] = {}
    for finding in findings:
        rules.setdefault(finding.rule_id, []).extend(finding.hits)
    rule_indices = {name: index for index, name in enumerate(rules)}
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
                    _result(finding, rule_indices[finding.rule_id], artifacts)
                    for finding in findings
                ],
                "properties": {"library": encodable(report.library), "model": report.model},
            }
        ],
    }


def _findings(result: FunctionResult) -> list[Finding]:
    by_rule: dict[str, list[Hit]] = {}
    for hit in result.hits:
        for name in rule_ids(hit):
            by_rule.setdefault(name, []).append(hit)
    return [
        Finding(result.query, name, sorted(hits, key=likelihood)) for name, hits in by_rule.items()
    ]


def _result(finding: Finding, rule_index: int, artifacts: Artifacts) -> dict[str, Any]:
    query, hit = finding.query, finding.hits[0]
    location = artifacts.location(query.binary)
    document: dict[str, Any] = {
        "ruleId": finding.rule_id,
        "ruleIndex": rule_index,
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
    name = encodable(query.shown)
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
    if query.demangled is not None:
        logical["decoratedName"] = encodable(query.function)
    return {"physicalLocation": physical, "logicalLocations": [logical]}


def _message(finding: Finding) -> str:
    query, hit = finding.query, finding.hits[0]
    parts = [f"{message_text(query.shown)} resembles {message_text(hit.shown)}"]
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
    address = address_text(query.address)
    return "".join(parts) + (f". It is at {address}." if address else ".")


def _fingerprints(finding: Finding, uri: str) -> dict[str, str]:
    """Equal in every run for the same function of the same file and the same rule.

    Names stay when code moves; the address stands in where there is no name.
    """
    query = finding.query
    name = query.function or address_text(query.address)
    parts = json.dumps([uri, member_of(query.binary), name, finding.rule_id])
    digest = hashlib.sha256(parts.encode()).hexdigest()
    # The second name is the one that dashboards of GitHub match alerts by.
    return {"graphkinFunction/v1": digest, "primaryLocationLineHash": f"{digest[:16]}:1"}


def member_of(binary: str) -> str:
    """The member of ``archive(member)``; empty for a plain file."""
    match = MEMBER.fullmatch(binary)
    return match[2] if match else ""


class Artifacts:
    """The files that were scanned, and how locations name them."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._indices: dict[str, int] = {}
        self._known: dict[str, dict[str, Any]] = {}

    def location(self, binary: str) -> dict[str, Any]:
        """Where a binary is. A member of an archive is at its archive."""
        if binary not in self._known:
            match = MEMBER.fullmatch(binary)
            location = relative_uri(match[1] if match else binary, self._root)
            index = self._indices.setdefault(location["uri"], len(self._indices))
            self._known[binary] = {**location, "index": index}
        return self._known[binary]

    def documents(self) -> list[dict[str, Any]]:
        first: dict[str, dict[str, Any]] = {}
        for location in self._known.values():
            first.setdefault(location["uri"], location)
        return [{"location": location, "roles": ["analysisTarget"]} for location in first.values()]


def relative_uri(path: str, root: Path) -> dict[str, str]:
    """A location relative to a directory; absolute for a file outside it."""
    full = PurePath(os.path.normpath(root / path))
    try:
        inside = full.relative_to(root)
    except ValueError:
        return {"uri": "file://" + _quoted(full.as_posix())}
    return {"uri": _quoted(inside.as_posix()), "uriBaseId": BASE}


def _quoted(path: str) -> str:
    """Bytes of a path that is not UTF-8 stay the bytes that they are."""
    try:
        content = path.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        content = encodable(path).encode()
    return quote(content, safe="/")


def rule_ids(function: LibraryFunction) -> tuple[str, ...]:
    """The vulnerabilities that a function is tagged with, or else the function that it is."""
    cves = tuple(encodable(name) for name in vulnerabilities(function))
    return cves or (FUNCTION + function_name(function),)


def function_name(function: LibraryFunction) -> str:
    """The name in the source, so that the clones of a compiler count as one."""
    return encodable(base_name(function.function)) or UNNAMED


def rule(rule_id: str, hits: Sequence[Hit]) -> dict[str, Any]:
    """The rule for some hits, with what the library says of them."""
    names = sorted({function_name(hit) for hit in hits})
    shown = [shown_name(name) for name in names]
    is_function = not vulnerabilities(hits[0])
    what = (
        f"A copy of {message_text(shown[0])}"
        if is_function
        else f"A copy of code that {message_text(rule_id)} is about: {message_text(_joined(shown))}"
    )
    document: dict[str, Any] = {
        "id": rule_id,
        "name": "KnownFunction" if is_function else "KnownVulnerability",
        "shortDescription": {"text": f"{what}."},
        "fullDescription": {"text": f"{what}. {MEANING}"},
        "help": {"text": ADVICE},
        "properties": {"functions": names, "tags": _tags(hits)},
    }
    if CVE.fullmatch(rule_id):
        document["helpUri"] = CATALOGUE + rule_id
        document["properties"]["tags"] = ["security", *document["properties"]["tags"]]
    return document


def _joined(names: Sequence[str], most: int = 5) -> str:
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {plural(more, 'other')}" if more > 0 else "")


def message_text(name: str) -> str:
    """A name inside a message, where braces are placeholders and ``[a](b)`` is a link."""
    return printable(name).replace("{", "{{").replace("}", "}}").replace("](", "] (")


def _tags(hits: Sequence[Hit]) -> list[str]:
    """All tags of the hits, as ``key=value``."""
    tags = {f"{key}={value}" for hit in hits for key, value in hit.tags.items()}
    return sorted(encodable(tag) for tag in tags)
