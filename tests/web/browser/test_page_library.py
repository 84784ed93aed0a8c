"""Library: what it holds, and how that changes."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from graphkin.binaries import samples
from tests.library.sample_models import earlier_model
from tests.web.browser.servers import served
from tests.web.browser.using import hits, kin, view
from tests.web.browser.visits import Visits
from tests.web.conftest import INDEXED, create_library

TAG = "cve=TEST-2026-0001"


@pytest.fixture(scope="module")
def changing(sample_library: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a server whose library may be changed."""
    copy = shutil.copy(sample_library, tmp_path_factory.mktemp("changing") / "samples.kin")
    with served(copy) as address:
        yield address


@pytest.fixture
def library(visits: Visits, changing: str) -> Page:
    page = visits.open(f"{changing}#/library")
    expect(files(page).first).to_be_visible()
    return page


def files(page: Page) -> Locator:
    """The rows of the library's files."""
    rows = page.get_by_role("region", name="Library").get_by_role("row")
    return rows.filter(has=page.get_by_role("button", name="Remove"))


def test_what_is_in_it(library: Page) -> None:
    expect(library.get_by_role("heading", name="samples.kin")).to_be_visible()
    expect(files(library)).to_have_count(2)
    expect(files(library).first).to_contain_text("libkinbeat.so")
    expect(files(library).first).to_contain_text("=".join(samples.TAG))
    built = files(library).first.get_by_role("cell").nth(1)
    expect(built).to_contain_text("gcc-O2")
    expect(built).to_contain_text(re.compile(r"x86-64 · gcc \d+"))
    region = library.get_by_role("region", name="Library")
    region.get_by_role("searchbox").fill("proto")
    expect(files(library)).to_have_count(1)
    expect(region).to_contain_text("1 of 2 files")
    files(library).get_by_text("libkinproto.so", exact=True).click()
    region.get_by_role("link", name="Kin of").first.click()
    expect(hits(library).first).to_be_visible()
    expect(kin(library).get_by_role("heading").first).to_be_visible()


def test_an_earlier_model(visits: Visits, tmp_path: Path) -> None:
    library = create_library(tmp_path, INDEXED[:1], earlier_model(tmp_path))
    with served(library, "--read-only") as address:
        page = visits.open(f"{address}#/library")
        region = page.get_by_role("region", name="Library")
        warning = region.get_by_text("The library carries another model than the 'functions'")
        expect(warning).to_be_visible()
        expect(warning).to_contain_text("graphkin index NEW.kin")


def test_by_function(library: Page) -> None:
    library.get_by_role("radio", name="functions").check()
    library.get_by_role("region", name="Library").get_by_role("searchbox").fill("heartbeat")
    expect(library.get_by_role("link", name=f"Kin of {samples.VULNERABLE[1]}")).to_be_visible()
    others = re.compile("Kin of (?!.*heartbeat)")
    expect(library.get_by_role("link", name=others)).to_have_count(0)


def test_a_file_is_added_and_removed(library: Page) -> None:
    add = library.get_by_role("group").filter(has_text="Add a binary")
    add.get_by_label("tags for all its functions").fill(TAG)
    add.get_by_label("Drop binaries to add").set_input_files(samples.FIRMWARE)
    expect(add).to_contain_text("functions added")
    added = files(library).filter(has_text="gateway")
    expect(added).to_contain_text(TAG)
    expect(files(library)).to_have_count(3)
    remove = added.get_by_role("button", name="Remove gateway")
    remove.click()
    library.get_by_role("dialog").get_by_role("button", name="Cancel").click()
    expect(library.get_by_role("dialog")).to_be_hidden()
    expect(files(library)).to_have_count(3)
    remove.click()
    dialog = library.get_by_role("dialog", name="Remove gateway?")
    dialog.get_by_role("button", name="Remove").click()
    expect(added).to_have_count(0)
    expect(files(library)).to_have_count(2)
    view(library, "Search")
    expect(library.get_by_role("link", name="gateway")).to_be_visible()


def test_a_wrong_tag_is_refused(library: Page) -> None:
    field = library.get_by_label("tags for all its functions")
    field.fill("no-value")
    field.press("Tab")
    expect(library.get_by_role("alert").filter(has_text="KEY=VALUE")).to_be_visible()
