"""A diff for people at a terminal, and for spreadsheets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from graphkin.results.columns import GAP, WIDTH, Column, table_lines
from graphkin.results.csv_rows import DIGITS, cell, csv_line
from graphkin.results.document import Diff, FunctionPair, FunctionRef
from graphkin.results.text import address_text, number_text, plural, share_text, shortened

MOST_ROWS = 40
"""Of a part of the table; JSON, CSV and HTML have all of them."""
COLUMNS = (
    "verdict", "probability", "similarity", "found_by",
    "left_function", "left_address", "left_blocks",
    "right_function", "right_address", "right_blocks",
    "blocks_equal", "blocks_changed", "blocks_removed", "blocks_added",
    "calls_removed", "calls_added", "left_demangled", "right_demangled",
)  # fmt: skip


def diff_table(diff: Diff, *, width: int = WIDTH, most_rows: int = MOST_ROWS) -> str:
    """What changed, what is gone and what is new; what stayed is counted."""
    changed = sorted(
        (pair for pair in diff.pairs if pair.verdict == "changed"),
        key=lambda pair: (pair.similarity or 0.0, pair.left.address or 0),
    )
    parts = [
        ("changed", _changed_lines(changed[:most_rows], width - len(GAP)), len(changed)),
        ("removed", _function_lines(diff.removed[:most_rows], width - len(GAP)), len(diff.removed)),
        ("added", _function_lines(diff.added[:most_rows], width - len(GAP)), len(diff.added)),
    ]
    lines = []
    for title, rows, count in parts:
        if count:
            lines += [title, *(GAP + row for row in rows)]
            lines += [f"{GAP}and {count - most_rows:,} more"] if count > most_rows else []
            lines += [""]
    return "\n".join([*lines, *summary_lines(diff, width)])


def summary_lines(diff: Diff, width: int = WIDTH) -> Iterator[str]:
    """The two files, and how many functions have each verdict."""
    for side in (diff.left, diff.right):
        end = f"{GAP}{plural(side.functions, 'function')}, {side.architecture}"
        yield shortened(side.binary, width - len(end)) + end
    kind = "one kind of build" if diff.is_one_kind_of_build else "different builds"
    yield (
        f"{diff.count('identical'):,} identical, {diff.count('same'):,} same, "
        f"{diff.count('changed'):,} changed, {len(diff.removed):,} removed, "
        f"{len(diff.added):,} added ({kind})"
    )


def _changed_lines(pairs: Sequence[FunctionPair], width: int) -> list[str]:
    return table_lines(
        [
            Column("prob.", [number_text(pair.probability, 3) for pair in pairs], right=True),
            Column("alike", [share_text(pair.similarity or 0.0) for pair in pairs], right=True),
            Column("function", [pair.left.shown for pair in pairs], share=3),
            Column("address", [address_text(pair.left.address) for pair in pairs], right=True),
            Column("became", [pair.right.shown for pair in pairs], share=3),
            Column("address", [address_text(pair.right.address) for pair in pairs], right=True),
            Column("what", [changes_text(pair) for pair in pairs], share=3),
        ],
        width,
    )


def changes_text(pair: FunctionPair) -> str:
    """Which blocks and calls are new, gone or other: ``~2 -1 +3 blocks, +memcpy``."""
    texts = []
    if pair.blocks is not None:
        counts = [("~", pair.blocks.changed), ("-", pair.blocks.removed), ("+", pair.blocks.added)]
        signs = [f"{sign}{len(blocks)}" for sign, blocks in counts if blocks]
        texts += [f"{' '.join(signs)} blocks"] if signs else []
    texts += [f"-{name}" for name in pair.calls_removed]
    texts += [f"+{name}" for name in pair.calls_added]
    return ", ".join(texts)


def _function_lines(functions: Sequence[FunctionRef], width: int) -> list[str]:
    return table_lines(
        [
            Column("blocks", [str(function.blocks) for function in functions], right=True),
            Column("address", [address_text(item.address) for item in functions], right=True),
            Column("function", [function.shown for function in functions], share=1),
        ],
        width,
    )


def diff_rows(diff: Diff) -> Iterator[str]:
    """Lines with their ends: the names of the columns, then a row for each function.

    The verdict of a function without a partner is ``removed`` or ``added``; what is not known is
    empty. Names are written as in the rows of a scan.
    """
    yield csv_line(COLUMNS)
    for pair in diff.pairs:
        yield csv_line(_cells(pair))
    empty = ["", "", ""]
    for function in diff.removed:
        row = ["removed", *empty, *_function(function), *empty, *[""] * 6]
        yield csv_line([*row, cell(function.demangled or ""), ""])
    for function in diff.added:
        row = ["added", *empty, *empty, *_function(function), *[""] * 6]
        yield csv_line([*row, "", cell(function.demangled or "")])


def _cells(pair: FunctionPair) -> list[str]:
    blocks = pair.blocks
    counts = (
        [""] * 4
        if blocks is None
        else [
            str(blocks.equal),
            *(str(len(numbers)) for numbers in (blocks.changed, blocks.removed, blocks.added)),
        ]
    )
    return [
        pair.verdict,
        number_text(pair.probability, DIGITS),
        number_text(pair.similarity, DIGITS),
        pair.found_by,
        *_function(pair.left),
        *_function(pair.right),
        *counts,
        cell(";".join(pair.calls_removed)),
        cell(";".join(pair.calls_added)),
        cell(pair.left.demangled or ""),
        cell(pair.right.demangled or ""),
    ]


def _function(function: FunctionRef) -> list[str]:
    return [cell(function.function), address_text(function.address), str(function.blocks)]
