"""The API as it is described: on the server's own page, and in the documentation."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from playwright.sync_api import expect

from graphkin.binaries import samples
from tests.paths import REPOSITORY
from tests.web.browser.using import SUSPECT, TOKEN
from tests.web.browser.visits import Visits

SERVE = REPOSITORY / "docs" / "serve.md"


def test_the_reference_of_the_api(visits: Visits, server: str) -> None:
    page = visits.open(f"{server}api/docs")
    expect(page.get_by_role("heading", name="graphkin")).to_be_visible()
    for path in ("/api/search", "/api/scans/{scan}/events", "/api/library/removals"):
        expect(page.get_by_role("button", name=path).first).to_be_visible()


def test_the_reference_needs_the_token_too(visits: Visits, locked: str) -> None:
    page = visits.open(f"{locked}#token={TOKEN.replace(' ', '%20')}")
    expect(page.get_by_role("heading", name="Find the kin")).to_be_visible()
    page.goto(f"{locked}api/docs")
    expect(page.get_by_role("button", name="/api/search").first).to_be_visible()


def test_the_client_of_the_documentation(server: str, tmp_path: Path) -> None:
    code = re.search(r"```python\n(.*?)```", SERVE.read_text(encoding="utf-8"), re.DOTALL)
    assert code is not None
    client = tmp_path / "client.py"
    client.write_text(code[1], encoding="utf-8")
    command = [sys.executable, client, server.rstrip("/"), samples.FIRMWARE]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300)
    assert re.search(rf"^{SUSPECT} +{samples.VULNERABLE[1]} +0\.\d\d\d$", done.stdout, re.MULTILINE)
