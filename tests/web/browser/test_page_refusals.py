"""What the page refuses or is refused: broken files, wrong tokens, links to what is gone."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from graphkin.binaries import samples
from tests.web.browser.using import SUSPECT, TOKEN, hits, open_file, pick, rows
from tests.web.browser.visits import Visits

GONE = f"upload:{'0' * 64}:1"


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("notes.txt", b"no binary at all\n"),
        ("broken.so", samples.FIRMWARE.read_bytes()[:2000]),
        ("empty.bin", b""),
    ],
)
def test_a_file_that_cannot_be_read(
    visits: Visits, page: Page, tmp_path: Path, name: str, content: bytes
) -> None:
    visits.provoke(422)
    file = tmp_path / name
    file.write_bytes(content)
    page.get_by_label("Drop a binary here").set_input_files(file)
    alert = page.get_by_role("alert").filter(has_text=name)
    expect(alert).to_be_visible()
    expect(alert).not_to_contain_text("/tmp")
    alert.get_by_role("button", name="Dismiss").click()
    expect(alert).to_have_count(0)
    open_file(page)
    pick(page, SUSPECT)
    expect(hits(page).first).to_contain_text(samples.VULNERABLE[1])


@pytest.mark.parametrize(
    ("place", "text"),
    [
        (f"search?binary={'0' * 64}", "no longer has the file"),
        (f"search?query={GONE}", "send it again"),
        (f"compare?left={GONE}&right={GONE}", "no longer has the file"),
        ("scan?scan=gone", "no longer has the scan"),
    ],
)
def test_a_link_to_what_is_gone(visits: Visits, server: str, place: str, text: str) -> None:
    visits.provoke(404)
    page = visits.open(f"{server}#/{place}")
    expect(page.get_by_role("alert").filter(has_text=text)).to_be_visible()
    page.get_by_role("link", name="graphkin", exact=True).click()
    open_file(page)
    expect(rows(page).first).to_be_visible()


def login(page: Page) -> Locator:
    return page.get_by_role("dialog", name="This server asks for a token")


def test_the_token_is_asked_for(visits: Visits, locked: str) -> None:
    visits.provoke(401)
    page = visits.open(locked)
    dialog = login(page)
    expect(dialog).to_be_visible()
    page.keyboard.press("Escape")
    expect(dialog).to_be_visible()
    dialog.get_by_label("token").fill("not the token at all")
    dialog.get_by_role("button", name="Log in").click()
    expect(dialog.get_by_role("alert")).to_contain_text("not the token")
    dialog.get_by_label("token").fill(TOKEN)
    page.keyboard.press("Enter")
    expect(dialog).to_be_hidden()
    open_file(page)
    page.reload()
    expect(rows(page).first).to_be_visible()
    expect(dialog).to_be_hidden()
    assert TOKEN not in str(page.context.cookies())
    assert page.evaluate("document.cookie") == ""


def test_a_link_with_the_token(visits: Visits, locked: str) -> None:
    page = visits.open(f"{locked}#token={TOKEN.replace(' ', '%20')}")
    expect(page.get_by_label("Drop a binary here")).to_be_attached()
    expect(page).not_to_have_url(re.compile("token"))
    expect(login(page)).to_be_hidden()
    page.go_back()
    assert "token" not in page.url, "nor is it left behind in the history"


def test_a_link_with_a_wrong_token(visits: Visits, locked: str) -> None:
    visits.provoke(401)
    page = visits.open(f"{locked}#token=wrong")
    expect(login(page)).to_be_visible()
    expect(page).not_to_have_url(re.compile("token"))


def test_a_library_that_is_only_read(visits: Visits, locked: str) -> None:
    page = visits.open(f"{locked}#token={TOKEN.replace(' ', '%20')}")
    page.get_by_role("link", name="Library").click()
    region = page.get_by_role("region", name="Library")
    expect(region).to_contain_text("only reads its library")
    expect(region).to_contain_text("libkinbeat.so")
    expect(region.get_by_role("button", name="Remove")).to_have_count(0)
    expect(region.get_by_label("Drop binaries to add")).to_have_count(0)
