"""Diff: two files are chosen, compared with progress, and one pair is looked at."""

from __future__ import annotations

import csv
from pathlib import Path

from playwright.sync_api import Page, expect

from graphkin.binaries import samples
from tests.web.browser.using import SUSPECT, comparison, view

FIXED = samples.path("gateway-fixed")


def test_a_diff(page: Page, tmp_path: Path) -> None:
    view(page, "Diff")
    diff = page.get_by_role("region", name="Diff", exact=True)
    expect(diff).to_contain_text("No diff is open")
    diff.get_by_label("or drop both here").set_input_files([samples.FIRMWARE, FIXED])
    expect(diff.get_by_role("combobox", name="new file")).to_contain_text("gateway-fixed")
    diff.get_by_role("combobox", name="old file").select_option(label="gateway (119 functions)")
    diff.get_by_role("combobox", name="new file").select_option(
        label="gateway-fixed (119 functions)"
    )
    diff.get_by_role("button", name="Start the diff").click()
    expect(diff.get_by_role("progressbar", name="Progress of the diff")).to_be_visible()
    expect(diff.get_by_role("heading", name="gateway → gateway-fixed")).to_be_visible()
    expect(diff.get_by_text("119 of 119 shown")).to_be_visible()
    expect(page).to_have_title("gateway · done · graphkin")
    rows = diff.get_by_role("row").filter(has=page.get_by_role("cell"))
    expect(rows.first).to_contain_text(SUSPECT)
    diff.get_by_role("button", name="1 changed").click()
    expect(diff.get_by_text("1 of 119 shown")).to_be_visible()
    diff.get_by_role("button", name="1 changed").click()
    diff.get_by_role("searchbox", name="Filter functions").fill("identical 0x4004c0")
    expect(diff.get_by_text("1 of 119 shown")).to_be_visible()
    diff.get_by_role("searchbox", name="Filter functions").fill(SUSPECT)
    with page.expect_download() as download:
        diff.get_by_role("link", name="CSV").click()
    download.value.save_as(tmp_path / "diff.csv")
    assert len(list(csv.reader((tmp_path / "diff.csv").open()))) == 120
    page.reload()
    expect(diff.get_by_text("119 of 119 shown")).to_be_visible()
    rows.first.get_by_role("link", name="Compare with").click()
    comparison(page)
    expect(page.get_by_role("region", name="Compare", exact=True)).to_contain_text("gateway-fixed")
