"""The page that ``graphkin diff --html`` writes."""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import expect

from graphkin.results.html.diff import diff_page
from tests.results.html.diff_samples import DIFF, ROWS
from tests.web.browser.visits import Visits


def test_the_page(visits: Visits, tmp_path: Path) -> None:
    file = tmp_path / "diff.html"
    file.write_text(diff_page(DIFF, {1: ROWS, 2: ROWS}), encoding="utf-8")
    page = visits.open(file.as_uri())
    names = page.locator("#rows > tr > td:first-child")
    assert names.all_inner_texts() == ["gamma", "beta", "retired", "fresh", "alpha"]
    page.get_by_role("button", name="2 changed").click()
    assert names.all_inner_texts() == ["gamma", "beta"]
    page.get_by_role("button", name="alike").click()
    page.get_by_role("button", name="alike").click()
    assert names.all_inner_texts() == ["beta", "gamma"]
    page.get_by_role("searchbox").fill("gam")
    expect(page.get_by_text("1 of 5 shown")).to_be_visible()
    page.get_by_role("button", name="gamma").click()
    details = page.locator("tr.details")
    expect(details).to_contain_text("3 equal instructions")
    assert details.locator("mark").all_inner_texts() == ["ja 8", "jb 8"]
