"""The components of scanned files as a bill of materials: CycloneDX 1.6."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from typing import Any

from graphkin.results.components import build_text
from graphkin.results.document import AddressRange, Component, FunctionRef, Hit, Report
from graphkin.results.grouping import CVE, likelihood, vulnerabilities
from graphkin.results.text import address_text, encodable, number_text, plural

SCHEMA = "http://cyclonedx.org/schema/bom-1.6.schema.json"
NAMESPACE = uuid.UUID("6d1f5a1e-3f0f-5a55-9d0f-7c5be7a1b9a4")
"""Of the numbers of documents: equal content has an equal number."""


def cyclonedx(report: Report) -> dict[str, Any]:
    """A bill of materials, ready for ``json.dumps``.

    Every scanned file is a component that holds those that were found in it. Vulnerabilities are
    those of the tags of hits, and refer to the file; whether they can be exploited is not said.
    """
    names = [file.binary for file in report.files]
    names += [result.query.binary for result in report.results]
    files = list(dict.fromkeys(names))
    references = {name: f"file-{number}" for number, name in enumerate(files)}
    document: dict[str, Any] = {
        "$schema": SCHEMA,
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "tools": {
                "components": [
                    {"type": "application", "name": "graphkin", "version": report.tool.version}
                ]
            },
            "properties": [
                {"name": "graphkin:library", "value": encodable(report.library)},
                {"name": "graphkin:model", "value": report.model},
            ],
        },
        "components": [_file(name, references[name], report) for name in files],
        "vulnerabilities": list(_vulnerabilities(report, references)),
    }
    number = uuid.uuid5(NAMESPACE, json.dumps(document, sort_keys=True))
    return {**document, "serialNumber": f"urn:uuid:{number}"}


def _file(name: str, reference: str, report: Report) -> dict[str, Any]:
    inside = [item for item in report.components if item.binary == name]
    return {
        "type": "file",
        "bom-ref": reference,
        "name": encodable(name),
        "components": [
            _component(item, f"{reference}-component-{number}")
            for number, item in enumerate(inside)
        ],
    }


def _component(item: Component, reference: str) -> dict[str, Any]:
    best = item.builds[0]
    confidence = round(item.probability or 0.0, 3)
    properties = {
        "functions": str(item.functions),
        "known-functions": str(best.known),
        "best-fit": encodable(best.binary),
        "best-fit-sha256": best.file_hash,
        "best-fit-build": encodable(build_text(best)),
        "best-fit-nearest-functions": str(best.nearest),
        "builds-compared": str(len(item.builds)),
        "ranges": ", ".join(map(_span, item.ranges)),
    }
    document: dict[str, Any] = {
        "type": "library",
        "bom-ref": reference,
        "name": encodable(item.name),
        "evidence": {
            "identity": [
                {
                    "field": "name",
                    "confidence": confidence,
                    "methods": [{"technique": "binary-analysis", "confidence": confidence}],
                }
            ],
            "occurrences": [
                # Not as an "offset", which counts from the start of the file.
                {
                    "location": encodable(item.binary),
                    "additionalContext": f"addresses {_span(span)}, "
                    f"{plural(span.functions, 'function')}",
                }
                for span in item.ranges
            ],
        },
        "properties": [
            {"name": f"graphkin:{name}", "value": value} for name, value in properties.items()
        ],
    }
    if best.version is not None:
        document["version"] = encodable(best.version)
    return document


def _span(span: AddressRange) -> str:
    return f"{address_text(span.start)}-{address_text(span.last)}"


def _match_text(query: FunctionRef, hit: Hit) -> str:
    probability = number_text(hit.probability, 3) or "unknown"
    return encodable(
        f"{query.shown} at {address_text(query.address)} of {query.binary} resembles "
        f"{hit.shown} of {hit.binary}, probability {probability}"
    )


def _vulnerabilities(report: Report, references: dict[str, str]) -> Iterator[dict[str, Any]]:
    """One for each identifier that a tag of a hit names."""
    found: dict[str, dict[FunctionRef, Hit]] = {}
    for result in report.results:
        for hit in sorted(result.hits, key=likelihood):
            for name in vulnerabilities(hit):
                found.setdefault(name, {}).setdefault(result.query, hit)
    for number, (name, matches) in enumerate(found.items()):
        files = dict.fromkeys(query.binary for query in matches)
        document: dict[str, Any] = {
            "bom-ref": f"vulnerability-{number}",
            "id": encodable(name),
            "analysis": {"state": "in_triage"},
            "affects": [{"ref": references[binary]} for binary in files],
            "properties": [
                {"name": "graphkin:function", "value": _match_text(query, hit)}
                for query, hit in matches.items()
            ],
        }
        if CVE.fullmatch(name):
            document["source"] = {
                "name": "NVD",
                "url": f"https://nvd.nist.gov/vuln/detail/{name}",
            }
        yield document
