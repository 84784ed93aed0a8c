"""Names are shown whole, safely, and within a width."""

from __future__ import annotations

import pytest
from rich.cells import cell_len

from graphkin.results.text import (
    distance_text,
    encodable,
    number_text,
    printable,
    share_text,
    shortened,
    telling_ends,
)


@pytest.mark.parametrize(
    ("paths", "ends"),
    [
        (["libz.so"], ["libz.so"]),
        (["/usr/lib/x/libz.so"], ["…/x/libz.so"]),
        (["a/libz.so", "libz.so"], ["a/libz.so", "libz.so"]),
        (["/a/b/1/lib/z", "/a/b/2/lib/z"], ["…/1/lib/z", "…/2/lib/z"]),
        (["/a/b/1/lib/z"] * 2, ["…/lib/z"] * 2),
        (["/1/x/z", "/2/x/z", "/2/y/z"], ["/1/x/z", "/2/x/z", "…/y/z"]),
        (["/long/1/x/z", "/long/1/y/z"], ["…/x/z", "…/y/z"]),
        ([], []),
    ],
)
def test_the_ends_of_paths_that_tell_them_apart(paths: list[str], ends: list[str]) -> None:
    assert telling_ends(paths) == ends


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("plain_name", "plain_name"),
        ("naïve 漢字", "naïve 漢字"),
        ("\x1b[31m", "\\x1b[31m"),
        ("a\nb\tc\x7f", "a\\x0ab\\x09c\\x7f"),
        ("\u202egnp.exe", "\\u202egnp.exe"),
        ("caf\udce9", "caf\\xe9"),
        ("\ud800", "\\ud800"),
        ("\U000e0041", "\\U000e0041"),
        ("\u2028", "\\u2028"),
    ],
)
def test_printable(name: str, shown: str) -> None:
    assert printable(name) == shown


def test_encodable_changes_surrogates_only() -> None:
    assert encodable("a\x1b漢\udcff\udfff") == "a\x1b漢\\xff\\udfff"


@pytest.mark.parametrize("width", [1, 2, 7, 20, 21])
@pytest.mark.parametrize("name", ["a" * 40 + "z", "漢字" * 20, "\x1b" * 30, "/usr/lib/x.so"])
def test_shortened_fits(name: str, width: int) -> None:
    assert cell_len(shortened(name, width)) <= width


def test_the_middle_goes() -> None:
    assert shortened("/usr/local/lib/libssl.so", 11) == "/usr/…sl.so"
    assert shortened("exactly ten", 11) == "exactly ten"


def test_numbers() -> None:
    assert number_text(0.98765, 3) == "0.988"
    assert number_text(None, 3) == number_text(float("nan"), 3) == ""
    assert [distance_text(value) for value in (12.0, 0.123456)] == ["12", "0.1235"]
    assert [share_text(share) for share in (0.0, 0.5, 0.996, 1.0)] == ["0%", "50%", "99%", "100%"]
