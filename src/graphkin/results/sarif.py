"""Results for code-scanning dashboards: SARIF 2.1.0, within what GitHub documents that it takes.

A rule is a vulnerability or a tag of the library; see :mod:`graphkin.results.sarif_rules`. A result
says that a function of a scanned file is, in all likelihood, code that a rule is about; several
hits for one rule, such as the same function from several compilers, are one result.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path, PurePath
from typing import Any, NamedTuple
from urllib.parse import quote

from graphkin.binaries.function import MEMBER
from graphkin.results.document import FunctionRef, FunctionResult, Hit, PatchVerdict, Report
from graphkin.results.grouping import FIXED_TAG, likelihood, listed, vulnerabilities
from graphkin.results.patches import verdict_text
from graphkin.results.sarif_rules import UNTAGGED, message_text, rule, rule_ids, severity
from graphkin.results.text import address_text, encodable, plural, share_text, shortened
from graphkin.results.word_text import words_line

SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)
ERROR_FROM, WARNING_FROM = 0.9, 0.5
"""Probabilities from which a result is an error, or a warning; below, it is a note."""
BASE = "%SRCROOT%"
"""What relative locations begin at."""
MOST_RESULTS = 25_000
"""GitHub refuses a run with more."""
MOST_NOTIFICATIONS = 100
MOST_LETTERS = 200
"""Of a name in a message; C++ has names of thousands."""
MOST_WORDS = 5
"""Of what the function and a hit both say."""
HIT_FIELDS = {
    "id", "function", "binary", "address", "architecture", "build", "tags", "distance", "score",
    "probability", "shared", "note",
}  # fmt: skip
"""Of each hit of a result. Pairs of blocks stay out: GitHub takes 10 MB of a compressed file."""


class Finding(NamedTuple):
    """A function of a scanned file, and the hits that are about one rule."""

    query: FunctionRef
    rule_id: str
    hits: list[Hit]
    """The likeliest first."""
    patches: tuple[PatchVerdict, ...] = ()
    """Verdicts on the rule."""


def sarif(report: Report, root: str | os.PathLike[str] | None = None) -> dict[str, Any]:
    """A log of one run, ready for ``json.dumps``.

    Args:
        report: of a scan.
        root: the directory that locations are relative to; the current one by default. A file
            outside it gets its absolute ``file:`` URI.
    """
    tag_filter = report.options.get("where", {}).get("tags", {})
    findings = [finding for result in report.results for finding in _findings(result, tag_filter)]
    by_rule: dict[str, list[Hit]] = {}
    for finding in findings:
        by_rule.setdefault(finding.rule_id, []).extend(finding.hits)
    severities = {name: severity(name, hits) or 0.0 for name, hits in by_rule.items()}
    kept = _most_severe(findings, severities)
    names = dict.fromkeys(finding.rule_id for finding in kept)
    rule_indices = {name: index for index, name in enumerate(names)}
    artifacts = Artifacts(Path.cwd() if root is None else Path(root).absolute())
    for binary in (
        *(file.binary for file in report.files),
        *(result.query.binary for result in report.results),
    ):
        artifacts.location(binary)
    fingerprints = _fingerprints(kept, artifacts)
    return {
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "graphkin",
                        "version": report.tool.version,
                        "rules": [rule(name, by_rule[name]) for name in names],
                    }
                },
                "invocations": [
                    {
                        # Not even where a file could not be read: GitHub then refuses the results
                        # of all others. The exit code and the notifications say it.
                        "executionSuccessful": True,
                        "toolExecutionNotifications": _notifications(
                            report, len(findings) - len(kept)
                        ),
                    }
                ],
                "originalUriBaseIds": {
                    BASE: {"description": {"text": "The directory that was scanned."}}
                },
                "artifacts": artifacts.documents(),
                "results": [
                    _result(finding, rule_indices[finding.rule_id], artifacts, fingerprint)
                    for finding, fingerprint in zip(kept, fingerprints, strict=True)
                ],
                "properties": {
                    "library": encodable(report.library),
                    "model": report.model,
                    "components": [component.to_dict() for component in report.components],
                },
            }
        ],
    }


def _findings(result: FunctionResult, tag_filter: Collection[str]) -> list[Finding]:
    """By rule; that a function is known at all is said only where no tag says more."""
    by_rule: dict[str, list[Hit]] = {}
    for hit in result.hits:
        for name in rule_ids(hit, tag_filter):
            by_rule.setdefault(name, []).append(hit)
    if result.hits and not by_rule:
        by_rule[UNTAGGED] = list(result.hits)
    return [
        Finding(
            result.query,
            name,
            sorted(hits, key=likelihood),
            tuple(item for item in result.patches if item.identifier in _identifiers(name)),
        )
        for name, hits in by_rule.items()
    ]


def _most_severe(findings: list[Finding], severities: dict[str, float]) -> list[Finding]:
    """As many findings as a dashboard takes, in their order."""
    if len(findings) <= MOST_RESULTS:
        return findings

    def order(number: int) -> tuple[float, tuple[float, float, float]]:
        finding = findings[number]
        return -severities[finding.rule_id], likelihood(finding.hits[0])

    numbers = sorted(range(len(findings)), key=order)[:MOST_RESULTS]
    return [findings[number] for number in sorted(numbers)]


def _notifications(report: Report, left_out: int) -> list[dict[str, Any]]:
    """What a reader of the results should know of the run."""
    warnings = [message_text(warning) for warning in report.warnings]
    errors = [message_text(reason) for reason in report.skipped]
    errors += [
        f"No function of {message_text(file.binary)} was looked up; "
        f"{plural(file.small, 'function')} with too few blocks."
        for file in report.files
        if not file.functions
    ]
    if len(errors) > MOST_NOTIFICATIONS:
        more = len(errors) - MOST_NOTIFICATIONS
        errors = [*errors[:MOST_NOTIFICATIONS], f"{plural(more, 'more file or function')} skipped."]
    if left_out:
        errors.append(
            f"{plural(left_out, 'result')} of the lowest severity and probability left out: "
            f"dashboards take {MOST_RESULTS:,}. Ask for a higher --min-probability, or for a --tag."
        )
    return [{"level": "warning", "message": {"text": text}} for text in (*warnings, *errors)]


def _result(
    finding: Finding, rule_index: int, artifacts: Artifacts, fingerprint: dict[str, str]
) -> dict[str, Any]:
    query, hit = finding.query, finding.hits[0]
    document: dict[str, Any] = {
        "ruleId": finding.rule_id,
        "ruleIndex": rule_index,
        "level": "note" if _is_fixed(finding) else level(hit.probability),
        "message": {"text": _message(finding)},
        "locations": [_location(query, artifacts.location(query.binary))],
        "partialFingerprints": fingerprint,
        "properties": {
            **hit.model_dump(mode="json", include={"probability", "score", "distance"}),
            "hits": [_hit(item) for item in finding.hits],
            "patches": [item.to_dict() for item in finding.patches],
        },
    }
    if document["properties"]["probability"] is not None:
        document["rank"] = round(100 * document["properties"]["probability"], 3)
    return document


def _hit(hit: Hit) -> dict[str, Any]:
    shown = hit.model_copy(update={"shared": hit.shared[:MOST_WORDS]})
    return shown.model_dump(mode="json", include=HIT_FIELDS)


def _identifiers(rule_id: str) -> tuple[str, ...]:
    """The vulnerabilities that a rule is about: a repaired function has the tag ``fixed``."""
    key, _, value = rule_id.partition("=")
    return listed(value) if key == FIXED_TAG else (rule_id,)


def _is_fixed(finding: Finding) -> bool:
    """Whether the function is, in all likelihood, the repaired version."""
    if not finding.patches:
        return finding.rule_id.startswith(f"{FIXED_TAG}=")
    return all(item.verdict == "fixed" for item in finding.patches)


def level(probability: float | None) -> str:
    """How loudly a dashboard says it; without a probability, softly."""
    if probability is None or not probability >= WARNING_FROM:
        return "note"
    return "error" if probability >= ERROR_FROM else "warning"


def _location(query: FunctionRef, artifact: dict[str, Any]) -> dict[str, Any]:
    # Dashboards place results by lines, and drop those that have none; a binary has one "line".
    region = {"startLine": 1, "startColumn": 1, "endLine": 1, "endColumn": 2}
    physical: dict[str, Any] = {"artifactLocation": artifact, "region": region}
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
    parts = [f"{_name_text(query.shown)} resembles {_name_text(hit.shown)}"]
    if hit.binary:
        parts.append(f" of {_name_text(hit.binary)}")
    if vulnerabilities(hit):
        parts.append(f" ({message_text(finding.rule_id)})")
    if hit.probability is not None:
        parts.append(f", the same code with probability {hit.probability:.3f}")
    if hit.evidence is not None:
        parts.append(
            f"; {share_text(hit.evidence.matched_share or 0.0)} of its blocks have a partner"
        )
    if hit.shared:
        parts.append(f"; both say {message_text(words_line(hit.shared, MOST_LETTERS))}")
    if hit.note:
        parts.append(f"; {message_text(shortened(hit.note, MOST_LETTERS))}")
    parts += [f"; {message_text(verdict_text(item))}" for item in finding.patches]
    address = address_text(query.address)
    return "".join(parts) + (f". It is at {address}." if address else ".")


def _name_text(name: str) -> str:
    return message_text(shortened(name, MOST_LETTERS))


def _fingerprints(findings: Sequence[Finding], artifacts: Artifacts) -> Iterator[dict[str, str]]:
    """Equal in every run for the same code in a file of the same name, and the same rule.

    Where the file lies, where the code lies in it, what the library is called and in which order
    it found the hits does not count. Copies of one code in a file are numbered by their addresses.
    """
    keys = [
        (artifacts.location(finding.query.binary)["uri"], _digest(finding)) for finding in findings
    ]
    numbers: dict[int, int] = {}
    copies: Counter[tuple[str, str]] = Counter()
    for number in sorted(range(len(findings)), key=lambda n: findings[n].query.address or 0):
        copies[keys[number]] += 1
        numbers[number] = copies[keys[number]]
    for number, (_, digest) in enumerate(keys):
        yield {
            "graphkinFunction/v2": f"{digest}:{numbers[number]}",
            # The name that GitHub matches alerts by.
            "primaryLocationLineHash": f"{digest[:16]}:{numbers[number]}",
        }


def _digest(finding: Finding) -> str:
    query = finding.query
    match = MEMBER.fullmatch(query.binary)
    path, member = (match[1], match[2]) if match else (query.binary, "")
    code = query.code_hash or query.function or address_text(query.address)
    parts = json.dumps([PurePath(path).name, member, code, finding.rule_id])
    return hashlib.sha256(parts.encode()).hexdigest()


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
    full = PurePath(_resolved(str(root / path)))
    try:
        inside = full.relative_to(_resolved(str(root)))
    except ValueError:
        return {"uri": "file://" + _quoted(full.as_posix())}
    return {"uri": _quoted(inside.as_posix()), "uriBaseId": BASE}


def _resolved(path: str) -> str:
    """Without links, behind which dashboards do not look."""
    try:
        return os.path.realpath(path)
    except (OSError, ValueError):  # not a path that this system can have
        return os.path.normpath(path)


def _quoted(path: str) -> str:
    """Bytes of a path that is not UTF-8 stay the bytes that they are."""
    try:
        content = path.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        content = encodable(path).encode()
    return quote(content, safe="/")
