"""The page of what was done to break graphkin."""

from __future__ import annotations

from tests.paths import REPOSITORY
from tests.scripts import script


def test_the_page_is_that_of_the_results() -> None:
    tool = script("tools/reliability.py")
    expected = tool.page(*(tool.read(name) for name in ("torture", "fuzz", "load")))
    assert (REPOSITORY / "docs" / "reliability.md").read_text() == expected
