"""What the forms of the page have chosen is what the command line and the API take by default."""

from __future__ import annotations

from html.parser import HTMLParser
from importlib.resources import files

from graphkin.library.scan import MIN_BLOCKS, MIN_PROBABILITY, RERANK, TOP
from graphkin.web.api_documents import ScanRequest, SearchRequest


class Forms(HTMLParser):
    """The first values of the controls of each form."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.values: dict[str, dict[str, str]] = {}
        self._form = self._select = ""
        self._is_selected = False
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        actual = {name: value or "" for name, value in attrs}
        if tag == "form":
            self._form = actual.get("id", "")
        elif tag == "select":
            self._select = actual.get("name", "")
        elif tag == "option":
            self._is_selected = "selected" in actual
        elif tag == "input" and "value" in actual:
            self.values.setdefault(self._form, {})[actual.get("name", "")] = actual["value"]

    def handle_data(self, data: str) -> None:
        if self._is_selected and data.strip():
            self.values.setdefault(self._form, {})[self._select] = data.strip()
            self._is_selected = False


def test_the_forms() -> None:
    page = files("graphkin.web").joinpath("static", "index.html").read_text()
    forms = Forms(page).values
    search, scan = SearchRequest(query=""), ScanRequest(binary="")
    assert forms["kin-settings"] == {
        "rerank": str(search.rerank),
        "min_probability": str(search.min_probability),
        "top": str(search.top),
    }
    assert forms["scan-form"] == {
        "rerank": str(scan.rerank),
        "min_probability": str(scan.min_probability),
        "top": str(scan.top),
        "min_blocks": str(scan.min_blocks),
    }
    assert (scan.rerank, scan.min_probability) == (RERANK, MIN_PROBABILITY)
    assert (search.rerank, search.min_probability) == (RERANK, MIN_PROBABILITY)
    assert (scan.top, scan.min_blocks) == (TOP, MIN_BLOCKS)
