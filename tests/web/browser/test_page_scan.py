"""Scan: progress while it runs, results as they come, reports, and how to stop it."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.sync_api import Locator, Page, expect

from graphkin.binaries import samples
from tests.web.browser.using import SUSPECT, comparison, expect_scan_to_end, open_file, start_scan
from tests.web.browser.visits import Visits
from tests.web.requests import FIRMWARE_ID, send, wait_for

PROGRESS = "Progress of the scan"
# Notes each value that the bar of progress has, for a scan may be over before a test can look.
WATCH_PROGRESS = """
window.progress = [];
new MutationObserver((changes) => {
  for (const { target } of changes) {
    if (target.localName === "progress" && target.value) window.progress.push(target.value);
  }
}).observe(document, { attributes: true, attributeFilter: ["value"], subtree: true });
"""


@pytest.fixture(scope="module")
def scanned(server: str) -> str:
    """The link to a scan of the firmware that is over."""
    queries = {"binary": FIRMWARE_ID, "min_probability": 0.1, "min_blocks": 12}
    with httpx.Client(base_url=server, timeout=120) as client:
        assert send(client).status_code == 201
        scan = client.post("/api/scans", json=queries).json()["id"]
        assert wait_for(client, f"/api/scans/{scan}")["state"] == "done"
    return f"{server}#/scan?scan={scan}"


def choose_firmware(page: Page) -> Locator:
    """The view with the firmware to scan."""
    open_file(page)
    page.get_by_role("link", name="Scan all").click()
    expect(shown(page).get_by_role("combobox", name="file")).to_contain_text("gateway")
    return shown(page)


def shown(page: Page) -> Locator:
    return page.get_by_role("region", name="Scan", exact=True)


def results(page: Page) -> Locator:
    """The rows of functions with kin."""
    rows = shown(page).get_by_role("row")
    return rows.filter(has=page.get_by_role("link", name="Compare with"))


def test_a_scan_tells_how_far_it_is(page: Page) -> None:
    page.evaluate(WATCH_PROGRESS)
    scan = choose_firmware(page)
    start_scan(page, blocks="5")
    expect(scan).to_contain_text("functions looked up")
    expect_scan_to_end(page)
    seen: list[float] = page.evaluate("window.progress")
    assert seen == sorted(seen)
    assert len(set(seen)) > 2
    assert seen[-1] == 1
    suspect = results(page).filter(has_text=SUSPECT)
    expect(suspect).to_contain_text(samples.VULNERABLE[1])
    expect(suspect).to_contain_text("=".join(samples.TAG))
    expect(page).to_have_title("gateway · done · graphkin")
    actual = scan.get_by_text(re.compile(r"^\d+ of \d+ shown$")).inner_text()
    page.reload()
    expect_scan_to_end(page)
    expect(scan.get_by_text(actual)).to_be_visible()


def test_results_open_sort_and_filter(visits: Visits, scanned: str) -> None:
    page = visits.open(scanned)
    expect_scan_to_end(page)
    expect(results(page).first).to_be_visible()
    everything, scan = results(page).count(), shown(page)
    scan.get_by_role("searchbox", name="Filter results").fill("DEMO-2014")
    expect(results(page).filter(has_text=SUSPECT)).to_be_visible()
    assert results(page).count() < everything
    scan.get_by_role("button", name=SUSPECT.removeprefix("0x")).click()
    expect(scan.get_by_role("table").get_by_role("table")).to_contain_text("matched")
    scan.get_by_role("button", name=SUSPECT.removeprefix("0x")).click()
    scan.get_by_role("searchbox", name="Filter results").fill("")
    head = scan.get_by_role("columnheader", name="address")
    head.get_by_role("button").click()
    expect(head).to_have_attribute("aria-sort", "ascending")
    texts = results(page).all_inner_texts()
    matches = [re.search("0x[0-9a-f]+", text) for text in texts]
    addresses = [int(match[0], 16) for match in matches if match]
    assert len(addresses) == everything
    assert addresses == sorted(addresses)
    results(page).filter(has_text=SUSPECT).get_by_role("link", name="Compare").click()
    comparison(page)


def rows_of(form: str, text: str) -> list[Any]:
    """What a report has of findings."""
    if form == "json":
        return [result for result in json.loads(text)["results"] if result["hits"]]
    if form == "csv":
        return list(csv.DictReader(text.splitlines()))
    if form == "sarif":
        results: list[Any] = json.loads(text)["runs"][0]["results"]
        return results
    return re.findall("<table", text)


def test_reports_are_saved(visits: Visits, scanned: str, tmp_path: Path) -> None:
    page = visits.open(scanned)
    expect_scan_to_end(page)
    for form in ("json", "csv", "sarif", "html"):
        with page.expect_download() as started:
            page.get_by_role("link", name=form.upper(), exact=True).click()
        assert started.value.suggested_filename.endswith(f".{form}")
        file = tmp_path / "report"
        started.value.save_as(file)
        text = file.read_text(encoding="utf-8")
        assert samples.VULNERABLE[1] in text
        assert rows_of(form, text)


def test_a_scan_is_cancelled(page: Page) -> None:
    choose_firmware(page)
    start_scan(page, rerank="500", blocks="1")
    # At once: a pointer would wait until the button stands still, and the scan may be over by then.
    page.get_by_role("button", name="Cancel the scan").dispatch_event("click")
    expect_scan_to_end(page)
    expect(page).to_have_title("gateway · cancelled · graphkin")
    expect(page.get_by_role("progressbar", name=PROGRESS)).to_be_hidden()
