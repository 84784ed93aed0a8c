"""Compare: two functions side by side, by step and by weight, on the page and in a file."""

from __future__ import annotations

import re
from pathlib import Path

from playwright.sync_api import FrameLocator, Locator, Page, expect

from graphkin.binaries import samples
from tests.web.browser.using import SUSPECT, compare_suspect, comparison, hits, open_file, pick
from tests.web.browser.visits import Visits

Drawing = FrameLocator | Page
"""A comparison: in a frame of the page, or opened by itself."""
LEFT = f"sub_{SUSPECT.removeprefix('0x')}"
RIGHT = samples.VULNERABLE[1]


def step(frame: Drawing) -> Locator:
    return frame.locator("#step")


def pairs(frame: Drawing) -> Locator:
    """The rows of the strongest pairs."""
    return frame.get_by_role("table").get_by_role("row").filter(has=frame.get_by_role("button"))


def blocks(frame: Drawing, name: str) -> Locator:
    """The blocks of one of both functions."""
    return frame.get_by_role("region", name=name).locator(".block")


def expect_both(frame: Drawing) -> None:
    expect(blocks(frame, LEFT).first).to_be_visible()
    expect(blocks(frame, RIGHT).first).to_be_visible()
    expect(pairs(frame).first).to_be_visible()


def test_a_hit_is_compared(page: Page) -> None:
    frame = compare_suspect(page)
    expect_both(frame)
    for name in (LEFT, RIGHT):
        expect(page.get_by_role("heading", name=name)).to_be_visible()
    expect(page).to_have_title(f"{LEFT} and {RIGHT} · graphkin")
    expect(blocks(frame, LEFT).first).to_contain_text(re.compile("push|mov|sub"))
    count = pairs(frame).count()
    assert 0 < count <= blocks(frame, LEFT).count()
    expect(frame.locator("#share")).to_contain_text(f"({count} of ")
    expect(frame.locator("#overlay path").first).to_be_attached()


def test_one_look_at_the_other_function_has_no_steps_to_choose(page: Page) -> None:
    frame = compare_suspect(page)
    expect_both(frame)
    expect(step(frame)).to_be_hidden()
    expect(frame.locator("#threshold")).to_be_visible()


def test_the_step_slider(visits: Visits, mnemonics_server: str, tmp_path: Path) -> None:
    page = visits.open(mnemonics_server)
    frame = compare_suspect(page)
    expect_both(frame)
    pairs_by_step = walk_steps(frame)
    assert len(set(pairs_by_step)) > 2, "what is shown depends on the step"
    saved = visits.open(save_comparison(page, tmp_path).as_uri(), offline=True)
    expect_both(saved)
    assert walk_steps(saved) == pairs_by_step


def walk_steps(frame: Drawing) -> list[tuple[str, ...]]:
    """The rows of pairs after each step, from none to the last."""
    slider = step(frame)
    last = int(slider.get_attribute("max") or "0")
    assert last > 1
    rows = []
    slider.press("Home")
    for number in range(last + 1):
        expect(slider).to_have_value(str(number))
        expect(frame.locator("#step-value")).to_have_text(str(number))
        rows.append(tuple(pairs(frame).all_inner_texts()))
        slider.press("ArrowRight")
    return rows


def save_comparison(page: Page, folder: Path) -> Path:
    with page.expect_download() as download:
        page.get_by_role("link", name="Save as file").click()
    assert download.value.suggested_filename.endswith(".html")
    file = folder / "comparison.html"
    download.value.save_as(file)
    return file


def test_the_least_weight(page: Page) -> None:
    frame = compare_suspect(page)
    expect_both(frame)
    threshold = frame.locator("#threshold")
    threshold.fill("0")
    expect(frame.locator("#threshold-value")).to_have_text("0.00")
    most = pairs(frame).count()
    threshold.fill("1")
    expect(frame.locator("#threshold-value")).to_have_text("1.00")
    assert pairs(frame).count() < most
    expect(frame.locator("#share")).to_contain_text(f"({pairs(frame).count()} of ")
    expect(frame.locator(".block.pair")).to_have_count(2 * pairs(frame).count())


def test_attention_of_the_block_that_is_pointed_at(page: Page) -> None:
    frame = compare_suspect(page)
    expect_both(frame)
    seen = frame.get_by_role("region", name=RIGHT).locator(".block.seen")
    expect(seen).to_have_count(0)
    blocks(frame, LEFT).first.hover()
    expect(seen.first).to_be_attached()
    expect(seen.first.locator(".strip")).to_have_attribute(
        "data-weight", re.compile(r"^[01]\.\d\d")
    )
    page.get_by_role("heading", name=LEFT).hover()
    expect(seen).to_have_count(0)
    blocks(frame, LEFT).first.focus()
    page.keyboard.press("Enter")
    expect(seen.first).to_be_in_viewport()
    page.keyboard.press("Escape")
    expect(seen).to_have_count(0)


def test_a_link_opens_a_comparison(visits: Visits, page: Page) -> None:
    expect_both(compare_suspect(page))
    other = visits.open(page.url)
    expect_both(comparison(other))
    other.get_by_role("button", name="Swap left and right").click()
    expect(other).to_have_url(re.compile("left=library"))
    expect(other).to_have_title(f"{RIGHT} and {LEFT} · graphkin")
    frame = comparison(other)
    expect_both(frame)
    expect(frame.get_by_role("region").first).to_have_attribute("aria-label", RIGHT)
    other.go_back()
    expect(other).to_have_title(f"{LEFT} and {RIGHT} · graphkin")


def test_the_other_function_is_chosen_from_the_library(page: Page) -> None:
    open_file(page)
    pick(page, SUSPECT)
    expect(hits(page).first).to_be_visible()
    page.get_by_role("link", name="Compare with…").click()
    page.get_by_role("button", name="Choose the right function").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Library").check()
    dialog.get_by_role("searchbox").fill(RIGHT)
    dialog.get_by_role("button", name=f"Choose {RIGHT}").click()
    expect_both(comparison(page))


def test_a_comparison_is_saved_and_opens_offline(
    visits: Visits, page: Page, tmp_path: Path
) -> None:
    frame = compare_suspect(page)
    expect_both(frame)
    shown = pairs(frame).all_inner_texts()
    saved = visits.open(save_comparison(page, tmp_path).as_uri(), offline=True)
    expect_both(saved)
    assert pairs(saved).all_inner_texts() == shown
    expect(step(saved)).to_be_hidden()


def test_a_comparison_that_fails_is_not_tried_twice(
    visits: Visits, page: Page, server: str
) -> None:
    """The frame holds the error: nothing is computed again to know it."""
    visits.provoke(404)
    queries: list[str] = []
    page.on("request", lambda request: queries.append(request.url))
    page.goto(f"{server}#/compare?left=library:1&right=library:123456789")
    expect(page.get_by_role("alert").first).to_be_visible()
    comparisons = [url for url in queries if "/api/comparison" in url]
    assert len(comparisons) == 1, comparisons
