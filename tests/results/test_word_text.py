"""What functions say, as text for people."""

from __future__ import annotations

import pytest
from rich.cells import cell_len

from graphkin.results.word_text import packed, titled_lines, word_text, words_line
from tests.results.samples import HOSTILE

WORDS = [
    ("str", "%s: no such file"),
    ("imp", "malloc"),
    ("num", "2654435769"),
    ("num", "45"),
    ("num", "shift 5"),
    ("num", "-2"),
    ("flt", "0.5"),
    ("dat", "0011223344556677"),
    ("off", "24"),
]


def test_a_word_says_what_it_is() -> None:
    assert list(map(word_text, WORDS)) == [
        '"%s: no such file"',
        "malloc",
        "0x9e3779b9",
        "45",
        "shift 5",
        "-2",
        "0.5",
        "table 0011223344556677",
        "offset 24",
    ]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("ZNSt11regex_errorD1Ev", "std::regex_error::~regex_error()"),
        ("RNvCs1234_7mycrate3foo", "mycrate::foo"),
        ("ZSTD_compress", "ZSTD_compress"),
        ("RAND_bytes", "RAND_bytes"),
    ],
)
def test_imports_are_spelled_as_in_the_source(text: str, shown: str) -> None:
    assert word_text(("imp", text)) == shown
    assert word_text(("str", text)) == f'"{text}"'


def test_lists_by_kind_have_each_word_once() -> None:
    assert list(titled_lines([*WORDS, *WORDS])) == [
        'strings    "%s: no such file"',
        "imports    malloc",
        "constants  0x9e3779b9, 45, shift 5, -2, 0.5",
        "tables     0011223344556677",
        "offsets    24",
    ]
    assert list(titled_lines(WORDS, ["imports"])) == ["imports    malloc"]


def test_what_does_not_fit_is_counted() -> None:
    names = [f"name_{number}" for number in range(10)]
    assert packed(names, 24, most_lines=2) == ["name_0, name_1, name_2,", "name_3 and 6 more"]
    assert packed(names[:5], 24, most_lines=2) == ["name_0, name_1, name_2,", "name_3, name_4"]
    assert packed(["abc", "de", "f"], 10, most_lines=1) == ["abc, de, f"], "not: abc and 2 more"
    assert packed(names[:1], 24, most_lines=1) == ["name_0"]
    assert packed([], 24, most_lines=1) == []
    assert words_line([("imp", name) for name in names], 30) == "name_0, name_1 and 8 more"


@pytest.mark.parametrize("most_lines", [1, 2, 3])
@pytest.mark.parametrize("width", range(20, 60, 3))
def test_lines_are_never_too_long_and_nothing_is_lost(width: int, most_lines: int) -> None:
    names = [chr(ord("a") + number) * (1 + number * 7 % 40) for number in range(26)]
    lines = packed(names, width, most_lines)
    assert len(lines) <= most_lines
    assert max(map(len, lines)) <= width
    body, _, more = " ".join(lines).partition(" and ")
    shown = body.split(", ")
    assert len(shown) + int(more.split()[0] if more else 0) == len(names)


@pytest.mark.parametrize("text", [*HOSTILE, "漢字" * 90, "x" * 500])
def test_a_string_is_printable_and_short(text: str) -> None:
    (line,) = titled_lines([("str", text)])
    assert line.isprintable()
    assert cell_len(line) <= 100
