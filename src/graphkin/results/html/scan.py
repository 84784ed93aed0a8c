"""A scan as one HTML file: what was found, to filter, to sort and to look into."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from graphkin.results.components import fit_text, ranges_text
from graphkin.results.coverage import coverage_text
from graphkin.results.document import Component, FunctionResult, Hit, Report
from graphkin.results.grouping import count, groups, tag_title
from graphkin.results.html.line_ends import pieces
from graphkin.results.html.page import facts, name_markup, notices, page, table_cell, text
from graphkin.results.patches import verdict_text
from graphkin.results.sarif import level
from graphkin.results.text import (
    address_text,
    distance_text,
    number_text,
    printable,
    share_text,
)
from graphkin.results.word_text import word_text, words_line

MOST_LETTERS = 120
"""Of what both say, in the row of a function; its details have all of it."""


def scan_page(report: Report, title: str = "graphkin scan") -> str:
    """One row for each function that has a hit, with its best one; a click shows all its hits.

    Functions without hits are counted, not listed.
    """
    counts = count(report.results, report.files)
    with_hits = [result for group in groups(report.results) for result in group.results]
    is_graphs = any(result.query.kind == "graph" for result in report.results)
    thing, part = ("graph", "node") if is_graphs else ("function", "block")
    numbers = [
        ("files", f"{counts.files:,}"),
        (f"{thing}s", f"{counts.functions:,}"),
        ("with a hit", f"{counts.with_a_hit:,}"),
        ("hits", f"{counts.hits:,}"),
        *([("code read", coverage_text(report.coverage))] if report.coverage else []),
        ("library", report.library),
        ("model", report.model),
    ]
    data = [[_details(hit) for hit in result.hits] for result in with_hits]
    markup = {
        "title": text(title),
        "thing": thing,
        "part": part,
        "facts": facts(numbers),
        "warnings": notices(report.warnings),
        "components": _components(report.components),
        "rows": "\n".join(_row(number, result) for number, result in enumerate(with_hits)),
        "nothing": "" if with_hits else '<p class="nothing">Nothing was found.</p>',
    }
    return page("scan", title=title, markup=markup, data=data, scripts=("rows",))


def _components(components: Sequence[Component]) -> str:
    """A table of what is in the files; nothing where nothing is known."""
    if not components:
        return ""
    titles = ("component", "in", "probability", "functions", "fits best", "addresses")
    rows = (
        (
            name_markup(item.name),
            name_markup(item.binary),
            number_text(item.probability, 3),
            f"{item.functions:,} of {item.builds[0].known:,}",
            name_markup(fit_text(item)),
            f'<code class="address">{text(ranges_text(item))}</code>',
        )
        for item in components
    )
    head = "".join(f"<th>{title}</th>" for title in titles)
    body = "\n".join(f"<tr>{''.join(map(table_cell, row))}</tr>" for row in rows)
    return (
        '<section class="components"><h2>Components</h2>'
        f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></section>"
    )


def _row(number: int, result: FunctionResult) -> str:
    """A row; what it is sorted by is in ``data-key`` where the text does not sort."""
    query, best = result.query, result.hits[0]
    evidence = best.evidence
    tags = tag_title(best) if best.tags else ""
    cells = (
        table_cell(
            f'<button type="button" aria-expanded="false">{name_markup(query.shown or "unnamed")}'
            "</button>",
            query.shown,
        ),
        table_cell(name_markup(query.binary)),
        table_cell(
            f'<code class="address">{address_text(query.address)}</code>', str(query.address or 0)
        ),
        table_cell(
            f'<span class="probability {level(best.probability)}">'
            f"{number_text(best.probability, 3) or '-'}</span>",
            str(-1 if best.probability is None else best.probability),
        ),
        table_cell(distance_text(best.distance), str(best.distance or 0.0)),
        table_cell(
            "" if evidence is None else share_text(evidence.matched_share or 0.0),
            str(-1 if evidence is None else evidence.matched_share or 0.0),
        ),
        table_cell(f"{name_markup(best.shown)}{_remarks(result)}", best.shown),
        table_cell(name_markup(best.binary)),
        table_cell(text(tags)),
    )
    return f'<tr data-row="{number}">{"".join(cells)}</tr>'


def _remarks(result: FunctionResult) -> str:
    """Whether it is repaired, what both say, and why the probability is what it is."""
    hit = result.hits[0]
    verdicts = map(verdict_text, result.patches)
    said = f"both say {words_line(hit.shared, MOST_LETTERS)}" if hit.shared else ""
    return "".join(f"<small>{text(line)}</small>" for line in (*verdicts, said, hit.note) if line)


def _details(hit: Hit) -> dict[str, Any]:
    """A hit as the page's script shows it: words as text, and names in pieces."""
    said = ", ".join(map(word_text, hit.shared))
    return {
        **hit.to_dict(),
        "shared": said,
        "shared_pieces": pieces(said),
        "name_pieces": pieces(printable(hit.shown)),
        "file_pieces": pieces(printable(hit.binary)),
    }
