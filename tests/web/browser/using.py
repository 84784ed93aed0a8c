"""What a person does on the page."""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import FrameLocator, Locator, Page, expect

from graphkin.binaries import samples

TOKEN = "correct horse battery staple"
SUSPECT = next(
    f"{address:#x}"
    for address, name in samples.true_names().items()
    if name == samples.VULNERABLE[1]
)
"""Where the firmware has the vulnerable function."""


def open_file(page: Page, file: Path = samples.FIRMWARE) -> None:
    """Chooses a file in Search."""
    page.get_by_label("Drop a binary here").set_input_files(file)
    expect(page.get_by_role("heading", name=file.name, exact=True)).to_be_visible()


def functions(page: Page) -> Locator:
    """The list of a file's functions."""
    return page.get_by_role("grid", name="Functions")


def rows(page: Page) -> Locator:
    """Those rows of the list that are in sight."""
    return functions(page).get_by_role("row").filter(has=page.get_by_role("gridcell"))


def pick(page: Page, text: str) -> None:
    """Filters the list down to one function, picks it, and asks for improbable hits, too."""
    page.get_by_role("searchbox", name="Filter functions").fill(text)
    expect(rows(page)).to_have_count(1)
    rows(page).click()
    kin(page).get_by_label("least probability").select_option("any")


def kin(page: Page) -> Locator:
    return page.get_by_role("region", name="Kin of the function")


def hits(page: Page) -> Locator:
    """The rows of the kin that were found."""
    return kin(page).get_by_role("row").filter(has=page.get_by_role("cell"))


def compare_suspect(page: Page) -> FrameLocator:
    """Opens the firmware, and compares its vulnerable function with the first hit."""
    open_file(page)
    pick(page, SUSPECT)
    hits(page).first.get_by_role("link", name="Compare with").click()
    return comparison(page)


def comparison(page: Page) -> FrameLocator:
    """The drawing of two functions, once it is there."""
    frame = page.get_by_title("Comparison of the two functions")
    expect(frame.content_frame.get_by_role("heading", name="Strongest pairs")).to_be_visible()
    return frame.content_frame


def view(page: Page, name: str) -> None:
    """Goes to one of the four views."""
    page.get_by_role("navigation", name="Views").get_by_role("link", name=name).click()
    expect(page.get_by_role("region", name=name, exact=True)).to_be_visible()


def start_scan(
    page: Page, *, probability: str = "0.1", rerank: str = "20", blocks: str = "12"
) -> None:
    """Scans the file that is chosen in Scan."""
    panel = page.get_by_role("region", name="Scan", exact=True)
    panel.get_by_label("least probability").fill(probability)
    panel.get_by_label("least blocks").fill(blocks)
    panel.get_by_label("rerank the nearest").select_option(rerank)
    panel.get_by_role("button", name="Start the scan").click()


def expect_scan_to_end(page: Page) -> None:
    expect(page.get_by_role("button", name="Scan again")).to_be_visible()
    # Said when the last results are there.
    expect(page.get_by_text("The scan is over")).to_be_attached()
