"""Long names, on the page and in the report of a scan, and files that differ in nothing but a
folder far above them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from graphkin import Library
from graphkin.binaries.demangling import demangled
from graphkin.library.indexing.index import index_paths
from graphkin.results.document import EvidenceToken
from graphkin.results.html.line_ends import pieces
from graphkin.results.html.scan import scan_page
from tests.results.samples import ADLER, QUERY, changed, report, result
from tests.web.browser.objects import branching, object_file
from tests.web.browser.servers import served
from tests.web.browser.using import hits, open_file, pick, view
from tests.web.browser.visits import Visits

LONG = "acme_connection_handle_renegotiation_request_{}"
VERSIONS = ("acme-1.0", "acme-1.1")
WIDTHS = [1440, 1024, 390]
FOLDED = (
    "_ZNSt6vectorISt4pairINSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEES_IiSaIiEEESaIS8_EE"
    "17_M_realloc_insertIJRKS8_EEEvN9__gnu_cxx17__normal_iteratorIPS8_SA_EEDpOT_"
)
SPELLED = demangled(FOLDED) or ""
"""Of some hundred letters."""


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The same library in two versions, each in the folder ``lib`` of its package."""
    folder = tmp_path_factory.mktemp("versions")
    paths = [folder / version / "lib" / "libacme.o" for version in VERSIONS]
    for seed, path in enumerate(paths):
        path.parent.mkdir(parents=True)
        named = [*((LONG.format(n), n) for n in range(6)), (FOLDED, 6)]
        path.write_bytes(object_file((name, branching(6 + n, seed)) for name, n in named))
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
    known = {SPELLED, *(LONG.format(number) for number in range(6))}
    assert set(names) <= known, "nothing is left out"
    expect_to_fit(page, width)
    builds = hits(page).locator(".build").all_text_contents()
    assert set(builds) == {f"{version}/lib" for version in VERSIONS}
    view(page, "Library")
    region = page.get_by_role("region", name="Library")
    for version in VERSIONS:
        expect(region.get_by_text(f"{version}/lib", exact=True)).to_be_visible()
    expect_to_fit(page, width)


@pytest.mark.parametrize("width", [1440, 1000])
def test_names_of_cpp_end_lines_between_their_parts(
    visits: Visits, address: str, files: list[Path], width: int
) -> None:
    assert len(SPELLED) > 200
    page = visits.open(address, viewport={"width": width, "height": 900})
    open_file(page, files[0])
    pick(page, SPELLED)
    name = hits(page).locator(".function-name").filter(has_text="_M_realloc_insert").first
    expect(name).to_have_text(SPELLED)
    shown = name.locator(".whole")
    assert shown.all_text_contents() == pieces(SPELLED), "one rule for the page and for reports"
    assert all(lines(piece) == 1 for piece in shown.all())
    assert lines(name) > 2
    built = hits(page).locator(".of .whole").filter(has_text="x86-64").first
    assert lines(built) == 1
    expect_to_fit(page, width)
    view(page, "Scan")
    page.get_by_role("button", name="Start the scan").click()
    expect(page.get_by_role("button", name="Scan again")).to_be_visible()
    expect(page.get_by_role("link", name="Compare with").first).to_be_visible()
    for button in page.get_by_role("link", name="Compare with").all():
        box = button.bounding_box()
        assert box is not None
        assert box["x"] + box["width"] <= width, "nothing is cut off on the right"


@pytest.mark.parametrize("width", [1440, 1000])
def test_nothing_breaks_in_the_middle_of_a_report(
    visits: Visits, tmp_path: Path, width: int
) -> None:
    shared = (EvidenceToken("imp", FOLDED[1:]), EvidenceToken("imp", "Znwm"))
    hit = changed(ADLER, function=FOLDED, probability=0.9, shared=shared)
    results = result(hit), result(changed(hit, function="inflate", binary="lib/libz.so.1"))
    path = tmp_path / "scan.html"
    path.write_text(scan_page(report(*results)), encoding="utf-8")
    page = visits.open(path.as_uri(), viewport={"width": width, "height": 900})
    expect_to_fit(page, width)
    texts = page.locator("#rows .name").all_text_contents()
    assert {"sub_1234", SPELLED, "inflate", "lib/libz.so.1"} <= set(texts)
    for name in page.locator("#rows .name").all():
        text = name.text_content() or ""
        assert lines(name) <= len(pieces(text)), "a line ends inside of a piece"
        assert text in (SPELLED, QUERY.binary) or lines(name) == 1
    expect(page.locator("#rows small").first).to_contain_text("operator new(unsigned long)")
    page.get_by_role("button", name="sub_1234").first.click()
    inside = page.locator("tr.details .name").first
    assert inside.text_content() == SPELLED
    assert lines(inside) <= len(pieces(SPELLED))
