"""Long names, and files that differ in nothing but a folder far above them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from graphkin import Library
from graphkin.library.indexing.index import index_paths
from tests.web.browser.objects import branching, object_file
from tests.web.browser.servers import served
from tests.web.browser.using import hits, open_file, pick, view
from tests.web.browser.visits import Visits

LONG = "acme_connection_handle_renegotiation_request_{}"
VERSIONS = ("acme-1.0", "acme-1.1")
WIDTHS = [1440, 1024, 390]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The same library in two versions, each in the folder ``lib`` of its package."""
    folder = tmp_path_factory.mktemp("versions")
    paths = [folder / version / "lib" / "libacme.o" for version in VERSIONS]
    for seed, path in enumerate(paths):
        path.parent.mkdir(parents=True)
        graphs = ((LONG.format(n), branching(6 + n, seed)) for n in range(6))
        path.write_bytes(object_file(graphs))
    return paths


@pytest.fixture(scope="module")
def address(files: list[Path]) -> Iterator[str]:
    path = files[0].parents[2] / "versions.kin"
    with Library.create(path) as library:
        for file in files:
            index_paths(library, [file])
    with served(path, "--read-only") as address:
        yield address


def lines(place: Locator) -> int:
    """How many lines the text of an element takes."""
    counted = place.evaluate(
        """(element) => {
          const range = document.createRange();
          range.selectNodeContents(element);
          return new Set([...range.getClientRects()].map(({ top }) => Math.round(top))).size;
        }"""
    )
    return int(counted)


def expect_to_fit(page: Page, width: int) -> None:
    assert page.locator(":root").evaluate("(root) => root.scrollWidth") <= width


@pytest.mark.parametrize("width", WIDTHS)
def test_nothing_breaks_in_the_middle(
    visits: Visits, address: str, files: list[Path], width: int
) -> None:
    page = visits.open(address, viewport={"width": width, "height": 900})
    open_file(page, files[0])
    pick(page, LONG.format(3))
    expect(hits(page)).to_have_count(10)
    tenth = hits(page).nth(9)
    rank = tenth.locator("td.rank")
    expect(rank).to_have_text("10")
    assert lines(rank) == 1
    pieces = page.locator("#kin .whole")
    assert pieces.count() > 20
    assert all(lines(piece) == 1 for piece in pieces.all())
    names = hits(page).locator(".function-name").all_text_contents()
    assert set(names) <= {LONG.format(number) for number in range(6)}, "nothing is left out"
    expect_to_fit(page, width)
    builds = hits(page).locator(".build").all_text_contents()
    assert set(builds) == {f"{version}/lib" for version in VERSIONS}
    view(page, "Library")
    region = page.get_by_role("region", name="Library")
    for version in VERSIONS:
        expect(region.get_by_text(f"{version}/lib", exact=True)).to_be_visible()
    expect_to_fit(page, width)
