"""Search: a file, its functions, and the kin of one of them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from playwright.sync_api import Page, expect

from graphkin.binaries import samples
from tests.binaries.compiling import Compile
from tests.web.browser.objects import branching, object_file
from tests.web.browser.using import SUSPECT, functions, hits, kin, open_file, pick, rows
from tests.web.browser.visits import Visits
from tests.web.requests import FIRMWARE_ID

PROBABILITY = re.compile(r"^\s*(>0\.999|0\.\d{3})\s*$")
MANY = 3000


def listed(page: Page, server: str) -> list[dict[str, Any]]:
    """What the server says of the firmware's functions."""
    actual = page.request.get(f"{server}api/binaries/{FIRMWARE_ID}/functions")
    rows: list[dict[str, Any]] = actual.json()["functions"]
    return rows


def expect_kin_of_suspect(page: Page) -> None:
    expect(kin(page).get_by_role("heading", name=SUSPECT.removeprefix("0x"))).to_be_visible()
    best = hits(page).first
    expect(best).to_contain_text(samples.VULNERABLE[1])
    expect(best).to_contain_text("libkinbeat.so")
    expect(best).to_contain_text("=".join(samples.TAG))
    expect(best.get_by_role("cell").nth(1)).to_have_text(PROBABILITY)


def test_the_functions_of_a_file(page: Page, server: str) -> None:
    open_file(page)
    known = listed(page, server)
    column = page.get_by_role("region", name="Functions of the file")
    expect(column).to_contain_text(f"{len(known)} functions")
    expect(rows(page).first).to_contain_text(known[0]["address"])
    for label, key in (("blocks", "blocks"), ("bytes", "size")):
        head = functions(page).get_by_role("columnheader", name=label)
        head.get_by_role("button").click()
        expect(head).to_have_attribute("aria-sort", "descending")
        numbers = [row[key] for row in known]
        expect(rows(page).first).to_contain_text(f"{max(numbers):,}")
        head.get_by_role("button").click()
        expect(head).to_have_attribute("aria-sort", "ascending")
        expect(rows(page).first).to_contain_text(f"{min(numbers):,}")
    page.get_by_role("searchbox", name="Filter functions").fill("no such function")
    expect(functions(page)).to_contain_text("No function matches the filter")
    page.get_by_role("searchbox", name="Filter functions").fill(SUSPECT)
    expect(column).to_contain_text(f"1 of {len(known)}")
    expect(rows(page)).to_contain_text([SUSPECT])


def test_the_kin_of_a_function(page: Page) -> None:
    open_file(page)
    expect(kin(page)).to_contain_text("Pick a function")
    pick(page, SUSPECT)
    expect_kin_of_suspect(page)
    chosen = rows(page).and_(page.get_by_role("row", selected=True))
    expect(chosen).to_contain_text([SUSPECT])
    expect(page).to_have_title(re.compile(rf"{SUSPECT[2:]} · gateway"))


def test_the_code_of_a_function_and_what_it_says(page: Page) -> None:
    open_file(page)
    pick(page, "0x400580")
    code = kin(page).get_by_role("region", name="Code of the function")
    expect(code).to_be_hidden()
    kin(page).get_by_text("Its code, and what it says").click()
    expect(code.get_by_role("definition").first).to_contain_text(
        '"admin password: %s", "demo-only-secret"'
    )
    block = code.locator(".blocks > div").filter(has_text="0x400580").first
    expect(block).to_contain_text("push    r")
    expect(code.get_by_text('; strings "admin password: %s"')).to_be_visible()
    pick(page, "0x4004c0")
    expect(code.get_by_role("definition").first).to_contain_text('"alias"')


def test_by_keyboard_alone(page: Page) -> None:
    open_file(page)
    expect(rows(page).first).to_be_visible()
    page.keyboard.press("/")
    page.keyboard.type(SUSPECT)
    page.keyboard.press("ArrowDown")
    expect(rows(page)).to_be_focused()
    page.keyboard.press("Enter")
    expect(kin(page)).to_contain_text("Less probable hits are left out")
    kin(page).get_by_role("button", name="Show them").press("Enter")
    expect_kin_of_suspect(page)
    expect(kin(page).get_by_label("least probability")).to_have_value("0")
    page.keyboard.press("/")
    page.keyboard.press("Escape")
    expect(page.get_by_role("searchbox", name="Filter functions")).to_have_value("")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Home")
    expect(rows(page).first).to_be_focused()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowUp")
    expect(rows(page).nth(1)).to_be_focused()
    page.keyboard.press("3")
    expect(page.get_by_role("heading", name="Scan a file")).to_be_visible()


def test_a_link_brings_everything_back(visits: Visits, page: Page) -> None:
    open_file(page)
    pick(page, SUSPECT)
    expect_kin_of_suspect(page)
    kin(page).get_by_label("rerank the nearest").select_option("100")
    expect(page).to_have_url(re.compile("rerank=100"))
    page.reload()
    expect_kin_of_suspect(page)
    other = visits.open(page.url)
    expect_kin_of_suspect(other)
    expect(kin(other).get_by_label("rerank the nearest")).to_have_value("100")
    expect(functions(other).get_by_role("row", selected=True)).to_contain_text(SUSPECT)


def test_filters_of_the_kin(page: Page) -> None:
    open_file(page)
    pick(page, SUSPECT)
    expect_kin_of_suspect(page)
    kin(page).get_by_text("Filters").click()
    kin(page).get_by_label("binary").fill("kinproto")
    kin(page).get_by_label("binary").press("Enter")
    expect(hits(page).first).to_contain_text("libkinproto.so")
    expect(hits(page).filter(has_text="libkinbeat.so")).to_have_count(0)
    kin(page).get_by_label("binary").fill("nothing.so")
    kin(page).get_by_label("binary").press("Enter")
    expect(kin(page)).to_contain_text("Nothing passes the filters")
    kin(page).get_by_role("button", name="Clear").click()
    expect_kin_of_suspect(page)


def test_thousands_of_functions(page: Page, tmp_path: Path) -> None:
    file = tmp_path / "many.o"
    body = branching(6)
    file.write_bytes(object_file((f"function_{number}", body) for number in range(MANY)))
    open_file(page, file)
    expect(functions(page)).to_have_attribute("aria-rowcount", str(MANY + 1))
    assert rows(page).count() < 100, "only those in sight are in the page"
    rows(page).first.focus()
    page.keyboard.press("End")
    expect(functions(page).get_by_text(f"function_{MANY - 1}", exact=True)).to_be_in_viewport()
    page.get_by_role("searchbox", name="Filter functions").fill(f"function_{MANY // 2}")
    expect(rows(page)).to_have_count(1)


def test_code_of_another_processor_gets_a_remark(page: Page, compile_c: Compile) -> None:
    source = "int g(int); int loops(int n) { while (n > 3) { if (n & 1) g(n); n--; } return n; }"
    open_file(page, compile_c(source, "-m32", "-O1", "-c"))
    pick(page, "loops")
    expect(kin(page)).to_contain_text("was trained on code for x86-64, not for x86")
    page.get_by_role("link", name="Open another").click()
    open_file(page)
    pick(page, SUSPECT)
    expect(hits(page).first).to_be_visible()
    expect(kin(page)).not_to_contain_text("was trained on")
