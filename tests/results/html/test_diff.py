"""A diff as a page; tests/web/browser/test_diff_report.py uses it."""

from __future__ import annotations

from graphkin.results.html.diff import diff_page
from graphkin.results.side_by_side import BlockRow, CodeLine
from tests.results.html.diff_samples import DIFF, ROWS, block, diff_of, pair
from tests.results.samples import HOSTILE, IMAGE, SCRIPT


def test_pairs_whose_code_is_left_out_are_counted() -> None:
    assert "The code of 1 of 2 changed functions" in diff_page(DIFF, {1: ROWS})
    assert "changed functions is in this" not in diff_page(DIFF, {1: ROWS, 2: ROWS})


def test_names_are_text() -> None:
    evil = [pair(name, "changed", 0.5) for name in HOSTILE]
    rows = (BlockRow("removed", block(CodeLine(SCRIPT, True)), None),)
    page = diff_page(diff_of(*evil, gone=IMAGE, fresh=SCRIPT), {0: rows})
    assert IMAGE not in page
    assert SCRIPT not in page
    page.encode()
