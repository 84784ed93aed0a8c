"""What SARIF calls rules: a known vulnerability, a tag of the library, or known code without tags.

A dashboard keeps an alert open as long as its rule and its place stay the same, and expects rules
that hardly change from run to run. So a rule is named and described by its tag alone, and not by
the functions that happened to be found. Functions without tags share one rule.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Collection, Sequence
from typing import Any

from graphkin.results.document import Hit, LibraryFunction
from graphkin.results.grouping import CVE, CVE_TAG, vulnerabilities
from graphkin.results.text import encodable, printable

UNTAGGED = "known-function"
"""The rule of functions without tags."""
SEVERITY_TAG = "severity"
"""From 0.1 to 10, or one of ``SEVERITY_WORDS``; it says how bad the other tags are."""
SEVERITY_WORDS = {"critical": 9.5, "high": 8.0, "medium": 5.5, "low": 2.0}
"""In the middle of what GitHub takes each word for."""
VULNERABILITY_SEVERITY, TAG_SEVERITY = 7.0, 2.0
"""Without the tag: high, because somebody has named the vulnerability; low, because a tag may say
anything."""
PRECISION = "medium"
"""Of all rules, as how sure a single result is, its level and its rank say."""
MOST_LETTERS = 200
"""Of a rule's id: GitHub takes 1,024 letters of a description, which holds it."""
CATALOGUE = "https://nvd.nist.gov/vuln/detail/"
MEANING = (
    "A function of the scanned file has the control flow and the instructions of a function in "
    "the library, as far as compilers leave them alike."
)
ADVICE = (
    "Compare the two functions with `graphkin compare`. Code that was fixed may still resemble "
    "code that was not."
)


def rule_ids(function: LibraryFunction, tag_filter: Collection[str] = ()) -> tuple[str, ...]:
    """The vulnerabilities that a function is tagged with; else its other tags; else nothing.

    Args:
        function: with its tags.
        tag_filter: the keys of tags that a scan was limited to; where there are some, only these
            make rules.
    """
    cves = tuple(_bounded(encodable(name)) for name in vulnerabilities(function))
    if cves:
        return cves
    keys = [key for key in sorted(function.tags) if key not in (CVE_TAG, SEVERITY_TAG)]
    chosen = [key for key in keys if key in tag_filter] or keys
    return tuple(_bounded(encodable(f"{key}={function.tags[key]}")) for key in chosen)


def _bounded(name: str) -> str:
    """A long name keeps its beginning, and a hash tells it from others that begin alike."""
    if len(name) <= MOST_LETTERS:
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:16]
    return f"{name[: MOST_LETTERS - len(digest) - 1]}-{digest}"


def severity(rule_id: str, hits: Sequence[Hit]) -> float | None:
    """How bad it is, from 0.1 to 10; None for code that nobody tagged.

    It is the highest that the tags of the hits say, where they say any.
    """
    if rule_id == UNTAGGED:
        return None
    said = [value for hit in hits if (value := _said(hit)) is not None]
    default = VULNERABILITY_SEVERITY if vulnerabilities(hits[0]) else TAG_SEVERITY
    return max(said, default=default)


def _said(hit: Hit) -> float | None:
    text = hit.tags.get(SEVERITY_TAG, "").strip().lower()
    try:
        value = SEVERITY_WORDS[text] if text in SEVERITY_WORDS else float(text)
    except ValueError:
        return None
    return max(value, 0.1) if math.isfinite(value) and 0 < value <= 10 else None


def rule(rule_id: str, hits: Sequence[Hit]) -> dict[str, Any]:
    """The rule that some hits, at least one, are about."""
    shown = message_text(rule_id)
    is_vulnerability = rule_id != UNTAGGED and bool(vulnerabilities(hits[0]))
    if rule_id == UNTAGGED:
        what, tags = "A copy of a function of the library", ["known-code"]
    elif is_vulnerability:
        what, tags = f"A copy of code that {shown} is about", ["security", "vulnerability"]
    else:
        key = rule_id.partition("=")[0]
        what, tags = f"A copy of code with the tag {shown}", ["security", key]
    help_texts = {"text": f"{MEANING} {ADVICE}", "markdown": f"{MEANING}\n\n{ADVICE}"}
    document: dict[str, Any] = {
        "id": rule_id,
        "shortDescription": {"text": f"{what}."},
        "fullDescription": {"text": f"{what}. {MEANING}"},
        "help": help_texts,
        "properties": {"tags": list(dict.fromkeys(tags)), "precision": PRECISION},
    }
    if is_vulnerability and CVE.fullmatch(rule_id):
        address = CATALOGUE + rule_id
        document["helpUri"] = address
        help_texts["markdown"] += f"\n\n[{rule_id}]({address})"
    value = severity(rule_id, hits)
    if value is not None:
        document["properties"]["security-severity"] = f"{value:.1f}"
    return document


def message_text(name: str) -> str:
    """A name inside a message, where braces are placeholders and ``[a](b)`` is a link."""
    return printable(name).replace("{", "{{").replace("}", "}}").replace("](", "] (")
