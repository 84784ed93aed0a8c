"""A browser, servers to visit with it, and a check that nothing goes wrong on their pages."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from tests.web.browser.servers import served
from tests.web.browser.using import TOKEN
from tests.web.browser.visits import PATIENCE, Visits

CHROMIUM = ("chromium", "chromium-browser", "google-chrome")
expect.set_options(timeout=PATIENCE)

# Of this package, not of the session: while Playwright's loop is there no other can run.


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    program = next(filter(None, map(shutil.which, CHROMIUM)), None)
    if program is None:
        pytest.fail(
            "the page is tested in Chromium, and there is none: `tools/chromium.sh` installs "
            f"Debian's; elsewhere put one of {', '.join(CHROMIUM)} on the PATH"
        )
    # Chromium's sandbox refuses to run as root.
    options = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=options)
        yield browser
        browser.close()


@pytest.fixture(scope="package")
def server(sample_library: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a server over the sample library, which no test may change."""
    copy = shutil.copy(sample_library, tmp_path_factory.mktemp("served") / "samples.kin")
    with served(copy) as address:
        yield address


@pytest.fixture(scope="package")
def locked(sample_library: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The same of one that asks for a token, and lets nobody change its library."""
    copy = shutil.copy(sample_library, tmp_path_factory.mktemp("locked") / "samples.kin")
    with served(copy, "--token", TOKEN, "--read-only") as address:
        yield address


@pytest.fixture(scope="package")
def mnemonics_server(mnemonics_library: Path) -> Iterator[str]:
    """The same of one whose comparisons have propagation steps to choose from."""
    with served(mnemonics_library, "--read-only") as address:
        yield address


@pytest.fixture
def visits(browser: Browser) -> Iterator[Visits]:
    visits = Visits(browser)
    yield visits
    assert visits.close() == []


@pytest.fixture
def page(visits: Visits, server: str) -> Page:
    """The server's page, on a laptop."""
    return visits.open(server)
