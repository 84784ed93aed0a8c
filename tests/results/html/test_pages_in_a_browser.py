"""The pages in Chromium: their scripts run under their own policy, and nothing else does."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from graphkin.models import AttentionMaps
from graphkin.results.html.scan import scan_page
from tests.results.samples import (
    HEARTBEAT,
    IMAGE,
    INFLATE,
    SCRIPT,
    attention,
    compared_page,
    function,
    report,
    result,
    result_named,
)

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
ATTEMPTS = 5
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium to open pages with")


def rendered(page: str, tmp_path: Path) -> str:
    """The document after its scripts ran.

    A busy machine may end the page before its first frame, in which a comparison places its
    blocks: then it is opened again.
    """
    path = tmp_path / "page.html"
    path.write_text(page, encoding="utf-8")
    assert CHROMIUM is not None
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=20000"]
    command = [CHROMIUM, *options, f"--user-data-dir={tmp_path / 'profile'}", "--dump-dom"]
    document = ""
    for _ in range(ATTEMPTS):
        done = subprocess.run(
            [*command, path.as_uri()], capture_output=True, text=True, timeout=120, check=True
        )
        document = done.stdout
        if "<template>" not in document or placed_blocks(document):
            break
    return document


def placed_blocks(document: str) -> int:
    """Blocks that are in the page, not in the template of those to come."""
    page = re.sub(r"<template>.*?</template>", "", document, flags=re.DOTALL)
    return len(re.findall(r'<div class="block[^"]*" tabindex="0" style="[^"]*left: \d+px', page))


def title(document: str) -> str:
    match = re.search(r"<title>(.*?)</title>", document, re.DOTALL)
    assert match is not None
    return match[1]


def test_a_comparison(tmp_path: Path) -> None:
    page = compared_page(
        function(6, IMAGE, f"mov {SCRIPT}{IMAGE}"), function(5, SCRIPT), maps=attention(6, 5)
    )
    document = rendered(page, tmp_path)
    assert "owned" not in title(document).replace("document.title='owned'", "")
    assert document.count("<img") == 0
    assert placed_blocks(document) == 11
    share = re.search(r'id="share">\d+% \((\d+) of 6\)', document)
    assert share is not None
    matched = int(share[1])
    assert matched > 0
    assert len(re.findall(r'<div class="block pair"', document)) == 2 * matched
    assert document.count("<meter") == matched
    overlay = re.search(r'<svg id="overlay".*?</svg>', document, re.DOTALL)
    assert overlay is not None
    assert 0 < overlay[0].count("<path") <= matched


def test_a_comparison_begins_where_most_blocks_match(tmp_path: Path) -> None:
    sharp = attention(6, 5)
    left_to_right, right_to_left = sharp.left_to_right[-1], sharp.right_to_left[-1]
    maps = AttentionMaps(
        [0 * left_to_right, left_to_right, 0 * left_to_right],
        [0 * right_to_left, right_to_left, 0 * right_to_left],
        0.5,
    )
    document = rendered(compared_page(function(6), function(5), maps=maps), tmp_path)
    assert '<output id="step-value">1</output> of 2' in document
    assert document.count("<meter") > 0


def test_a_large_comparison_shows_what_is_in_view(tmp_path: Path) -> None:
    page = compared_page(function(400), function(3), maps=attention(400, 3))
    assert 3 < placed_blocks(rendered(page, tmp_path)) < 200


def test_a_scan(tmp_path: Path) -> None:
    results = [
        result(HEARTBEAT, INFLATE),
        result_named(IMAGE),
        result_named(SCRIPT),
    ]
    document = rendered(scan_page(report(*results, library=SCRIPT), title="a scan"), tmp_path)
    assert title(document) == "a scan"
    assert document.count("<img") == 0
    assert "3 of 3 shown" in document
