"""What a scan can find, as rules of SARIF."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from graphkin.binaries.function import base_name
from graphkin.results.document import LibraryFunction, Match
from graphkin.results.grouping import CVE, vulnerabilities
from graphkin.results.text import encodable, plural, printable

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


def rule_ids(function: LibraryFunction) -> tuple[str, ...]:
    """The vulnerabilities that a function is tagged with, or else the function that it is."""
    found = tuple(encodable(name) for name in vulnerabilities(function))
    return found or (FUNCTION + function_name(function),)


def function_name(function: LibraryFunction) -> str:
    """The name in the source, so that the clones of a compiler count as one."""
    return encodable(base_name(function.function)) or UNNAMED


def rule(rule_id: str, hits: Sequence[Match]) -> dict[str, Any]:
    """The rule for some hits, with what the library says of them."""
    names = sorted({function_name(hit) for hit in hits})
    is_function = not vulnerabilities(hits[0])
    what = (
        f"A copy of {message_text(names[0])}"
        if is_function
        else f"A copy of code that {message_text(rule_id)} is about: {message_text(_listed(names))}"
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


def _listed(names: Sequence[str], most: int = 5) -> str:
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {plural(more, 'other')}" if more > 0 else "")


def message_text(name: str) -> str:
    """A name inside a message, where braces are placeholders and ``[a](b)`` is a link."""
    return printable(name).replace("{", "{{").replace("}", "}}").replace("](", "] (")


def _tags(hits: Sequence[Match]) -> list[str]:
    """All tags of the hits, as ``key=value``."""
    found = {f"{key}={value}" for hit in hits for key, value in hit.tags.items()}
    return sorted(encodable(tag) for tag in found)
