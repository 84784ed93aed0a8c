"""A report in every form that graphkin writes: the one place that knows the formats."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from graphkin.errors import ConfigError
from graphkin.results.csv_rows import csv_rows
from graphkin.results.cyclonedx import cyclonedx
from graphkin.results.document import Document, Report
from graphkin.results.html.scan import scan_page
from graphkin.results.known import known_table
from graphkin.results.sarif import sarif
from graphkin.results.tables import hits_tables, scan_table


@dataclass(frozen=True)
class Format:
    """A form of a report."""

    suffix: str
    """Of a file's name."""
    media_type: str
    write: Callable[[Report], str]
    """The text of a whole file, with a line end at its end."""
    evidence_top: int | None = None
    """Hits of each function whose evidence it shows, the best first; None for all."""


def to_json(document: Document) -> str:
    """One line of ASCII, without its end; no reader finds lone surrogates or NaN in it."""
    return json.dumps(document.to_dict(), allow_nan=False)


def _json_lines(report: Report) -> str:
    return "".join(f"{to_json(result)}\n" for result in report.results)


FORMATS: dict[str, Format] = {
    "table": Format(
        "txt",
        "text/plain",
        lambda report: f"{scan_table(report.results, report.files, report.components)}\n",
        evidence_top=1,
    ),
    "hits": Format("txt", "text/plain", lambda report: hits_tables(report.results, report.files)),
    "known": Format("txt", "text/plain", lambda report: f"{known_table(report.results)}\n", 0),
    "json": Format("json", "application/json", lambda report: to_json(report) + "\n"),
    "jsonl": Format("jsonl", "application/jsonl", _json_lines),
    "csv": Format("csv", "text/csv", lambda report: "".join(csv_rows(report.results))),
    "sarif": Format(
        "sarif",
        "application/sarif+json",
        lambda report: json.dumps(sarif(report)) + "\n",
        evidence_top=1,
    ),
    "cyclonedx": Format(
        "cdx.json",
        "application/vnd.cyclonedx+json",
        lambda report: json.dumps(cyclonedx(report)) + "\n",
        evidence_top=0,
    ),
    "html": Format("html", "text/html", scan_page),
}
"""``table`` has a line for each function with a hit, ``hits`` every hit with its evidence,
``known`` the matches of each known function; ``json``
is the whole report as one document, ``jsonl`` a line for each function; ``cyclonedx`` lists the
components of each file."""


def format_named(name: str) -> Format:
    """The format of a name; another is refused."""
    if name not in FORMATS:
        raise ConfigError(f"unknown format {name!r}; choose one of {', '.join(FORMATS)}")
    return FORMATS[name]


def render(report: Report, name: str) -> str:
    """A report in one of the formats."""
    return format_named(name).write(report)


def evidence_top(names: Iterable[str]) -> int | None:
    """Hits of each function whose evidence some formats show together; None for all."""
    shown = [format_named(name).evidence_top for name in names]
    return None if None in shown else max(filter(None, shown), default=0)
