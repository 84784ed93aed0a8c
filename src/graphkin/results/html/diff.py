"""A diff as one HTML file: every function, to filter, to sort, and to look at what changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from graphkin.results.coverage import coverage_text
from graphkin.results.diff_table import changes_text
from graphkin.results.document import Diff, FunctionPair, FunctionRef
from graphkin.results.html.page import facts, name_markup, notices, page, table_cell, text
from graphkin.results.side_by_side import BlockRow, ShownBlock
from graphkin.results.text import address_text, number_text, plural, printable, share_text

VERDICTS = ("identical", "same", "changed", "removed", "added")


def diff_page(diff: Diff, comparisons: Mapping[int, Sequence[BlockRow]] | None = None) -> str:
    """One row for each function, what changed most first; a click shows the blocks of a pair.

    Args:
        diff: what to show.
        comparisons: the blocks of pairs, by the number of the pair in the diff.
    """
    comparisons = comparisons or {}
    counts = {
        "identical": diff.count("identical"),
        "same": diff.count("same"),
        "changed": diff.count("changed"),
        "removed": len(diff.removed),
        "added": len(diff.added),
    }
    sides = [
        (name, f"{side.binary} · {plural(side.functions, 'function')}, {side.architecture}")
        for name, side in (("old", diff.left), ("new", diff.right))
    ]
    coverage = (*diff.left.coverage, *diff.right.coverage)
    numbers = [
        *sides,
        ("builds", "of one kind" if diff.is_one_kind_of_build else "different"),
        *([("code read", coverage_text(coverage))] if coverage else []),
        ("model", diff.model),
    ]
    markup = {
        "facts": facts(numbers),
        "warnings": notices(diff.warnings),
        "bars": _bars(counts),
        "rows": "\n".join(_rows(diff)),
        "left_out": _left_out(counts["changed"], len(comparisons)),
    }
    data = {number: [_row_data(row) for row in rows] for number, rows in comparisons.items()}
    return page(
        "diff",
        title="graphkin diff",
        markup=markup,
        data=data,
        scripts=("rows",),
        styles=("scan",),
    )


def _bars(counts: Mapping[str, int]) -> str:
    """A bar for each verdict, which is a filter too; SVG, because the policy forbids styles."""
    most = max(1, *counts.values())
    return "".join(
        f'<button type="button" class="bar {name}" data-verdict="{name}" aria-pressed="false">'
        f"<b>{counts[name]:,}</b> <span>{name}</span>"
        f'<svg viewBox="0 0 100 4" preserveAspectRatio="none" aria-hidden="true">'
        f'<rect width="{100 * counts[name] / most:.2f}" height="4"/></svg></button>'
        for name in VERDICTS
    )


def _left_out(changed: int, shown: int) -> str:
    if shown >= changed:
        return ""
    return (
        f'<p class="notice">The code of {shown:,} of {changed:,} changed functions is in this '
        "page, those that changed most; graphkin compare shows any two.</p>"
    )


def _rows(diff: Diff) -> list[str]:
    """Changed pairs first, the most changed on top; then what is gone, what is new, the rest."""
    numbered = list(enumerate(diff.pairs))
    changed = [item for item in numbered if item[1].verdict == "changed"]
    changed.sort(key=lambda item: item[1].similarity or 0.0)
    others = [item for item in numbered if item[1].verdict != "changed"]
    return [
        *(_pair_row(number, pair) for number, pair in changed),
        *(_row("", "removed", function, None) for function in diff.removed),
        *(_row("", "added", None, function) for function in diff.added),
        *(_pair_row(number, pair) for number, pair in others),
    ]


def _pair_row(number: int, pair: FunctionPair) -> str:
    return _row(str(number), pair.verdict, pair.left, pair.right, pair)


def _row(
    number: str,
    verdict: str,
    left: FunctionRef | None,
    right: FunctionRef | None,
    pair: FunctionPair | None = None,
) -> str:
    function = left or right
    head = "" if function is None else name_markup(function.shown or "unnamed")
    if verdict == "changed":
        head = f'<button type="button" aria-expanded="false">{head}</button>'
    became = right.shown if right and left and right.shown != left.shown else ""
    numbers = (None, None) if pair is None else (pair.probability, pair.similarity)
    cells = (
        table_cell(head),
        table_cell(name_markup(became) if became else ""),
        table_cell(f'<span class="verdict {verdict}">{verdict}</span>', verdict),
        table_cell(
            "" if numbers[1] is None else share_text(numbers[1]),
            "-1" if numbers[1] is None else str(numbers[1]),
        ),
        table_cell(number_text(numbers[0], 3), "-1" if numbers[0] is None else str(numbers[0])),
        _address(left),
        _address(right),
        table_cell("" if pair is None else text(pair.found_by)),
        table_cell("" if pair is None else text(changes_text(pair))),
    )
    return f'<tr data-row="{number}">{"".join(cells)}</tr>'


def _address(function: FunctionRef | None) -> str:
    address = None if function is None else function.address
    markup = f'<code class="address">{address_text(address)}</code>' if address is not None else ""
    return table_cell(markup, str(-1 if address is None else address))


def _row_data(row: BlockRow) -> list[Any]:
    return [row.kind, _block_data(row.left), _block_data(row.right)]


def _block_data(block: ShownBlock | None) -> list[Any] | None:
    """Address, number of instructions, and lines; a line that differs is a list of one."""
    if block is None:
        return None
    lines = [
        [printable(line.text)] if line.differs else printable(line.text) for line in block.lines
    ]
    return [address_text(block.address), block.instructions, lines]
