"""HTML pages: what is in them, and that names in them stay names."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from dataclasses import replace
from html import escape
from typing import Any

import pytest

from graphkin.binaries import Block
from graphkin.binaries.function import Token
from graphkin.errors import ConfigError
from graphkin.results.document import FunctionResult
from graphkin.results.html.scan import scan_page
from graphkin.results.text import printable
from tests.results.samples import (
    ADLER,
    HEARTBEAT,
    HOSTILE,
    INFLATE,
    QUERY,
    TALKING,
    Parsed,
    attention,
    changed,
    compared_page,
    function,
    report,
    result,
    result_named,
)

ELEMENTS = {
    "html", "head", "meta", "title", "style", "body", "script", "noscript", "header", "main",
    "section", "div", "span", "h1", "h2", "p", "dl", "dt", "dd", "label", "input", "output",
    "button", "table", "thead", "tbody", "tr", "th", "td", "svg", "path", "pre", "b", "i",
    "small", "code", "template", "details", "summary", "wbr",
}  # fmt: skip
"""All that a page is made of; none of them loads anything by itself."""


def compared(name: str = "sample") -> str:
    left, right = function(6, name, f"mov {name}"), function(5, name, name)
    return compared_page(
        left, right, maps=attention(6, 5), score=-1.25, probability=0.875, distance=9.0
    )


def scanned(*results: FunctionResult) -> str:
    return scan_page(report(*results, library="known.kin"), title="a scan")


PAGES = {
    "comparison": compared(),
    "scan": scanned(result(HEARTBEAT, INFLATE), result()),
}


def contents(page: str, element: str) -> list[str]:
    return re.findall(rf"<{element}[^>]*>(.*?)</{element}>", page, flags=re.DOTALL)


@pytest.mark.parametrize("page", PAGES.values(), ids=PAGES.keys())
def test_a_page_needs_nothing_else(page: str) -> None:
    parsed = Parsed(page)
    assert {tag for tag, _ in parsed.elements} <= ELEMENTS
    for _, attributes in parsed.elements:
        assert not attributes.keys() & {"src", "href", "srcset", "action", "style"}
        assert not [name for name in attributes if name.startswith("on")]
    (style,) = contents(page, "style")
    assert "url(" not in style
    assert "@import" not in style


@pytest.mark.parametrize("page", PAGES.values(), ids=PAGES.keys())
def test_the_policy_allows_what_is_there_and_no_more(page: str) -> None:
    policies = [
        attributes["content"] or ""
        for tag, attributes in Parsed(page).elements
        if tag == "meta" and attributes.get("http-equiv") == "Content-Security-Policy"
    ]
    (policy,) = policies
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules["default-src"] == "'none'"
    assert set(rules) == {"default-src", "base-uri", "form-action", "style-src", "script-src"}
    scripts = contents(page, "script")
    for rule, content in (("style-src", contents(page, "style")[0]), ("script-src", scripts[1])):
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert rules[rule] == f"'sha256-{digest}'"
    assert len(scripts) == 2, "the data, and what reads it"


@pytest.mark.parametrize("name", HOSTILE)
def test_names_are_text(name: str) -> None:
    plain = [tag for tag, _ in Parsed(compared()).elements]
    page = compared(name)
    assert [tag for tag, _ in Parsed(page).elements] == plain
    assert escape(printable(name)) in page
    page.encode()
    # Lines may end inside of a long name; there is nothing else inside.
    scan = scanned(result_named(name)).replace("<wbr>", "")
    usual = [tag for tag, _ in Parsed(scanned(result_named("usual"))).elements]
    assert [tag for tag, _ in Parsed(scan).elements] == usual
    assert escape(printable(name)) in scan
    (data,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', scan)
    json.loads(data)[0][0]["function"].encode()


def test_names_of_cpp_are_shown_as_the_source_spells_them() -> None:
    name = "_ZN3foo3barEi"
    texts = Parsed(compared(name)).texts
    assert "foo::bar(int)" in texts["h2"]
    assert name in texts["p"]
    scan = scanned(result_named(name))
    assert '<button type="button" aria-expanded="false"><span class="name">foo::bar(' in scan
    assert "".join(data_of(scan)[0][0]["name_pieces"]) == "foo::bar(int)"
    assert data_of(scan)[0][0]["demangled"] == "foo::bar(int)"


def test_equal_input_makes_equal_pages() -> None:
    assert compared() == PAGES["comparison"]


def data_of(page: str) -> Any:
    return json.loads(contents(page, "script")[0])


def test_a_comparison_shows_blocks_and_numbers() -> None:
    page = PAGES["comparison"]
    texts = Parsed(page).texts
    assert {"0.875", "-1.250", "9"} <= set(texts["dd"])
    assert page.count('<div class="block"') == 11
    assert page.count("<svg") == 3
    edges = re.findall(r'<path class="([a-z-]+)"', page)
    assert len(edges) == 6 + 5
    assert edges.count("back") == 2
    data = data_of(page)
    assert [len(data[side]["boxes"]) for side in ("left", "right")] == [6, 5]
    assert len(data["steps"]) == 3


def test_the_share_is_that_of_the_last_step() -> None:
    maps = attention(6, 5)
    page = compared_page(function(6), function(5), maps=maps)
    strong = [pair for pair in data_of(page)["steps"][-1]["pairs"] if pair[2] >= 500]
    assert 0 < len(strong) < 5
    assert f"({len(strong)} of 6)" in page


def test_every_instruction_is_there() -> None:
    texts = tuple(f"mov r{n}, {n}" for n in range(100))
    block = Block(0x1000, 400, ("mov",) * 100, texts)
    long = replace(function(1), blocks=(block,), edges=())
    bare = replace(long, blocks=(block._replace(mnemonics=("nop", "ret"), instructions=None),))
    page = compared_page(long, bare, maps=attention(1, 1))
    code = contents(page, "pre")
    assert re.sub(r"<.?b>| +", " ", code[0]).split("\n")[99].split() == ["mov", "r99,", "99"]
    assert code[1] == "<b>nop</b>\n<b>ret</b>"


def test_every_block_says_what_it_says() -> None:
    said = Token("str", "<b>bold</b>"), Token("imp", "puts"), Token("dat", "00ff" * 4)
    talking = replace(function(1), blocks=(Block(0x1000, 4, ("nop",), ("nop",), None, said),))
    page = compared_page(talking, function(2), maps=attention(1, 2))
    code, words, *_ = contents(page, "pre")
    assert code == "<b>nop</b>"
    assert words.split("\n") == [
        "; strings &quot;&lt;b&gt;bold&lt;/b&gt;&quot;",
        "; imports puts",
        "; tables 00ff00ff00ff00ff",
    ]


def test_what_a_long_block_says_has_room_of_its_own() -> None:
    code = ("nop",) * 100
    mute = Block(0x1000, 100, code, code, None, ())
    talking = mute._replace(evidence=(Token("str", "text"), Token("imp", "puts")))
    heights = []
    for block in (mute, talking):
        side = replace(function(1), blocks=(block,), edges=())
        page = compared_page(side, side, maps=attention(1, 1))
        heights.append(data_of(page)["left"]["boxes"][0][3])
    assert heights[1] - heights[0] == 28, "two lines"


def test_a_comparison_says_what_both_say_and_what_one_says() -> None:
    left, right = function(2, "both"), function(3, "both")
    both = compared_page(left, right, maps=attention(2, 3))
    assert Parsed(both).texts["span"][0] == '"both"'
    assert Parsed(both).texts["h2"][2:3] == ["both say"]
    other = compared_page(left, function(3, "other"), maps=attention(2, 3))
    titles = ["nothing that both say", "only the left says", "only the right says"]
    assert Parsed(other).texts["h2"][2:5] == titles
    assert {'"both"', '"other"'} <= set(Parsed(other).texts["dd"])


def test_a_function_without_blocks_is_refused() -> None:
    empty = replace(function(2, "nothing"), blocks=(), edges=())
    with pytest.raises(ConfigError, match="nothing of nothing has no blocks"):
        compared_page(function(2), empty, maps=attention(2, 2))


def test_a_scan_lists_functions_with_hits() -> None:
    other = result(ADLER, query=changed(QUERY, binary="b.so", function="other"))
    page = scanned(other, result(HEARTBEAT, INFLATE), result())
    texts = Parsed(page).texts
    assert texts["dd"] == ["2", "3", "2", "3", "known.kin", "functions 1.2.3 (0123456789ab)"]
    assert [name for name in texts["span"] if name in ("sub_1234", "other")] == [
        "sub_1234",
        "other",
    ], "vulnerabilities come first"
    assert "CVE-2014-0160  package=openssl" in texts["td"]
    hits = data_of(page)
    assert [len(actual) for actual in hits] == [2, 1]
    assert hits[0][0]["address"] == "0xffffffff81000123", "a script would round the number"
    assert hits[0][0]["evidence"]["pairs"] == [[0, 0, 0.99], [3, 4, 0.75]]


def test_a_scan_says_what_both_say_and_why_a_probability_is_low() -> None:
    page = scanned(result(TALKING, INFLATE))
    said = '"heartbeat of %d bytes", 0x9e3779b9, memcpy'
    assert Parsed(page).texts["small"] == [f"both say {said}", "one of 3 equal copies"]
    first, second = data_of(page)[0]
    assert (first["shared"], first["note"]) == (said, "one of 3 equal copies")
    assert (second["shared"], second["note"]) == ("", None)


def test_a_scan_that_found_nothing_says_so() -> None:
    assert "Nothing was found." in scanned(result())
    assert "Nothing was found." not in PAGES["scan"]


def test_a_scan_of_graphs_speaks_of_graphs_and_nodes() -> None:
    query = QUERY.model_copy(update={"kind": "graph"})
    page = scanned(result(HEARTBEAT, query=query))
    heads = [re.sub(r"<[^>]+>", "", head).strip() for head in contents(page, "th")]
    assert "graph" in heads
    assert "nodes matched" in heads
    assert "function" not in heads
    assert 'data-thing="graph" data-part="node"' in page
    assert "<dt>graphs</dt>" in page
    assert "<dt>functions</dt>" in PAGES["scan"]
