"""How the page looks: on a phone, and in the dark."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import FrameLocator, Page, expect

from tests.web.browser.using import (
    SUSPECT,
    compare_suspect,
    comparison,
    expect_scan_to_end,
    hits,
    open_file,
    pick,
    start_scan,
    view,
)
from tests.web.browser.visits import Visits

PHONE = {"width": 390, "height": 844}
BRIGHTNESS = {"light": range(220, 256), "dark": range(60)}


def expect_to_fit(place: Page | FrameLocator) -> None:
    """Nothing sticks out to the side."""
    width = place.locator(":root").evaluate("(root) => root.scrollWidth")
    assert width <= PHONE["width"]


def test_on_a_phone(visits: Visits, server: str) -> None:
    page = visits.open(server, viewport=PHONE, is_mobile=True, has_touch=True)
    expect(page.get_by_role("heading", name="Find the kin")).to_be_visible()
    expect_to_fit(page)
    open_file(page)
    pick(page, SUSPECT)
    expect(hits(page).first).to_be_in_viewport()
    expect_to_fit(page)
    page.get_by_role("link", name="Scan all").tap()
    expect_to_fit(page)
    start_scan(page)
    expect_scan_to_end(page)
    expect_to_fit(page)
    view(page, "Library")
    region = page.get_by_role("region", name="Library")
    expect(region.get_by_text("libkinbeat.so", exact=True)).to_be_visible()
    expect_to_fit(page)
    view(page, "Compare")
    expect_to_fit(page)
    view(page, "Search")
    hits(page).first.get_by_role("link", name="Compare with").tap()
    expect_to_fit(comparison(page))
    expect_to_fit(page)


def brightness(place: Page | FrameLocator) -> int:
    """Of the background behind everything; 255 is white."""
    colour = place.locator("body").evaluate(
        "(body) => getComputedStyle(body).backgroundColor.match(/^rgb\\(/)"
        " ? getComputedStyle(body).backgroundColor"
        " : getComputedStyle(document.documentElement).backgroundColor"
    )
    red, green, blue = map(int, re.findall(r"\d+", colour)[:3])
    return (red + green + blue) // 3


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_light_and_dark(visits: Visits, server: str, scheme: str) -> None:
    page = visits.open(server, color_scheme=scheme)
    expect(page.get_by_role("heading", name="Find the kin")).to_be_visible()
    assert brightness(page) in BRIGHTNESS[scheme]
    frame = compare_suspect(page)
    assert brightness(frame) in BRIGHTNESS[scheme]
