"""Names come from whoever made a file: they are shown as text, and never run."""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import Page, Route, expect

from tests.binaries.compiling import Compile
from tests.web.browser.objects import branching, object_file
from tests.web.browser.using import (
    SUSPECT,
    comparison,
    expect_scan_to_end,
    functions,
    hits,
    kin,
    open_file,
    pick,
    rows,
    start_scan,
    view,
)

IMAGE = "<img src=x onerror=document.title='owned'>"
SCRIPT = "</script><script>document.title='owned'</script>"
TURNED = "main\u202etxt.exe\x1b[2J"
"""Letters that turn text around, or mean something to a terminal."""
HOSTILE = (IMAGE, SCRIPT, "javascript:document.title='owned'", TURNED)
NAMED = "<b onmouseover=document.title='owned'>.o"


def expect_harmless(page: Page) -> None:
    expect(page.locator("body :is(img, script, [onmouseover], [onerror])")).to_have_count(0)
    assert "owned" not in page.title().replace("document.title='owned'", "")


def hostile_file(folder: Path) -> Path:
    file = folder / NAMED
    graphs = (branching(8 + number, number) for number in range(len(HOSTILE)))
    file.write_bytes(object_file(zip(HOSTILE, graphs, strict=True)))
    return file


def test_names_of_a_file_are_text(page: Page, tmp_path: Path) -> None:
    queries: list[str] = []
    page.on("request", lambda request: queries.append(request.url))
    open_file(page, hostile_file(tmp_path))
    expect(rows(page)).to_have_count(len(HOSTILE))
    for name in (IMAGE, SCRIPT):
        expect(functions(page).get_by_text(name, exact=True)).to_be_visible()
    expect(functions(page).get_by_text(r"main\u202etxt.exe\u001b[2J")).to_be_visible()
    functions(page).get_by_text(IMAGE).click()
    expect(kin(page).get_by_role("heading", name=IMAGE)).to_be_visible()
    kin(page).get_by_label("least probability").select_option("any")
    expect(hits(page).first).to_be_visible()
    expect_harmless(page)
    hits(page).first.get_by_role("link", name="Compare with").click()
    frame = comparison(page)
    expect(frame.get_by_role("region", name=IMAGE)).to_be_visible()
    expect(frame.locator("img, [onmouseover], [onerror]")).to_have_count(0)
    expect(page.get_by_role("heading", name=IMAGE)).to_be_visible()
    expect_harmless(page)
    view(page, "Search")
    page.get_by_role("link", name="Scan all").click()
    start_scan(page, probability="0", blocks="5")
    expect_scan_to_end(page)
    expect(page.get_by_role("heading", name=NAMED)).to_be_visible()
    expect(page.get_by_role("button", name=IMAGE)).to_be_visible()
    expect_harmless(page)
    assert not [url for url in queries if url.endswith("/x")]


def test_strings_in_code_are_text(page: Page, compile_c: Compile) -> None:
    source = r"""
    int puts(const char *text);
    int loud(int n) {
        if (n > 3) return puts("<img src=x onerror=document.title='owned'>");
        while (n--) puts("\x1b[2J</script><script>document.title='owned'</script>");
        return n;
    }
    """
    open_file(page, compile_c(source, "-O1", "-shared", "-fPIC"))
    page.get_by_role("searchbox", name="Filter functions").fill("loud")
    rows(page).click()
    kin(page).get_by_text("Its code, and what it says").click()
    code = kin(page).get_by_role("region", name="Code of the function")
    expect(code.get_by_text(f'; strings "{IMAGE}"')).to_be_visible()
    expect(code.get_by_text(r'; strings "\u001b[2J</script><script>')).to_be_visible()
    expect_harmless(page)


def test_what_both_say_is_text(page: Page) -> None:
    said = [["str", IMAGE], ["num", "2654435769"], ["imp", "memcpy"], ["str", TURNED], ["off", "8"]]

    def talking(route: Route) -> None:
        answer = route.fetch()
        document = answer.json()
        for hit in document["hits"]:
            hit["shared"] = []
        document["hits"][0] |= {"shared": said, "note": SCRIPT}
        route.fulfill(response=answer, json=document)

    page.route("**/api/search", talking)
    open_file(page)
    pick(page, SUSPECT)
    best = hits(page).first
    expect(best).to_contain_text(f'both say "{IMAGE}", 0x9e3779b9, memcpy')
    expect(best).to_contain_text(r'"main\u202etxt.exe\u001b[2J" and 1 more')
    expect(best).to_contain_text(SCRIPT)
    expect(hits(page).nth(1)).not_to_contain_text("both say")
    expect_harmless(page)
