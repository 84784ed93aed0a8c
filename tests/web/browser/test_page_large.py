"""Comparisons of large functions: drawn at once, and still quick to use."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from playwright.sync_api import expect

from graphkin.binaries import Function
from graphkin.binaries.backends.choose import open_source
from graphkin.models import AttentionMaps
from tests.results.samples import compared_page
from tests.web.browser.objects import branching, object_file
from tests.web.browser.using import comparison, functions, open_file
from tests.web.browser.visits import Visits

LARGE, HUGE = 500, 3000
SECOND = 1000.0
BUSY = 4
"""How many times slower a machine may be that runs other tests, too."""
# When the frame is over in which the first blocks are there, in milliseconds since the page began.
WATCH_DRAWING = """
window.drawn = new Promise((resolve) => {
  const look = () => {
    if (!document.querySelector(".canvas > .block")) return requestAnimationFrame(look);
    requestAnimationFrame(() => setTimeout(() => resolve(performance.now())));
  };
  requestAnimationFrame(look);
});
"""
# How long it takes from a move of the step slider to the end of the frame that shows it.
MOVE_SLIDER = """
() => new Promise((resolve) => {
  const slider = document.getElementById("step");
  slider.value = Number(slider.value) ? 0 : slider.max;
  const began = performance.now();
  slider.dispatchEvent(new Event("input", { bubbles: true }));
  requestAnimationFrame(() => setTimeout(() => resolve(performance.now() - began)));
})
"""


def write_function(folder: Path, blocks: int) -> Path:
    file = folder / f"blocks-{blocks}.o"
    file.write_bytes(object_file([("first", branching(blocks)), ("second", branching(blocks, 1))]))
    return file


def read_function(file: Path) -> Function:
    return next(iter(open_source(file, with_text=True).functions()))


def attention(blocks: int) -> AttentionMaps:
    """Nothing is clear at first; then every block looks at its own copy."""
    flat = np.full((blocks, blocks), 1 / blocks, dtype=np.float32)
    sharp = 0.9 * np.eye(blocks, dtype=np.float32) + 0.1 * flat
    return AttentionMaps([flat, sharp], [flat, sharp], 0.5)


def test_a_large_comparison_of_the_server(
    visits: Visits, mnemonics_server: str, tmp_path: Path
) -> None:
    page = visits.open(mnemonics_server)
    page.context.add_init_script(WATCH_DRAWING)
    file = write_function(tmp_path, LARGE)
    open_file(page, file)
    functions(page).get_by_text("first", exact=True).click()
    page.get_by_role("link", name="Compare with…").click()
    page.get_by_role("button", name="Choose the right function").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("combobox", name="file").select_option(label=f"{file.name} (2 functions)")
    dialog.get_by_text("second", exact=True).click()
    frame = comparison(page).locator(":root")
    # The time that the server took is not the browser's.
    arrived: float = frame.evaluate(
        "() => performance.getEntriesByType('navigation')[0].responseStart"
    )
    drawn: float = frame.evaluate("() => window.drawn")
    assert drawn - arrived < BUSY * SECOND
    assert frame.evaluate(MOVE_SLIDER) < BUSY * SECOND


def test_a_huge_comparison(visits: Visits, tmp_path: Path) -> None:
    function = read_function(write_function(tmp_path, HUGE))
    assert len(function.blocks) == HUGE
    file = tmp_path / "page.html"
    text = compared_page(function, function, attention(HUGE))
    file.write_text(text, encoding="utf-8")
    page = visits.open(file.as_uri(), offline=True)
    pane = page.get_by_role("region", name="first").first
    blocks = pane.locator(".block")
    expect(blocks.first).to_be_visible()
    assert blocks.count() < HUGE / 4, "only those in and around the view are in the page"
    last = pane.get_by_text(f"{function.blocks[-1].address:#x}"[2:])
    expect(last).to_have_count(0)
    pane.evaluate("(pane) => pane.scrollTo(0, pane.scrollHeight)")
    expect(last.first).to_be_in_viewport()
    expect(page.locator("#share")).to_have_text(f"100% ({HUGE} of {HUGE})")
    assert page.evaluate(MOVE_SLIDER) < BUSY * SECOND
    expect(page.locator("#share")).to_contain_text(f"(0 of {HUGE})")
