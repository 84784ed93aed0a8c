"""What two functions both say."""

from __future__ import annotations

import pytest

from graphkin.results.document import EvidenceToken
from graphkin.results.shared_words import (
    MOST_ALONE,
    MOST_SHARED,
    have_same_width,
    is_telling,
    said_words,
    shared,
)
from graphkin.results.word_text import Word

LEFT = [
    ("num", "2654435769"),
    ("imp", "malloc"),
    ("off", "328"),
    ("str", "%s: %d"),
    ("dat", "0011223344556677"),
    ("flt", "0.5"),
    ("str", "%s: %d"),
    ("imp", "free"),
    ("num", "8"),
    ("str", "left"),
]
RIGHT = [*reversed(LEFT[:9]), ("str", "right"), ("imp", "left")]


def test_what_both_say_is_in_the_order_of_kinds() -> None:
    assert shared(LEFT, RIGHT) == (
        EvidenceToken("str", "%s: %d"),
        EvidenceToken("imp", "malloc"),
        EvidenceToken("imp", "free"),
        EvidenceToken("num", "2654435769"),
        EvidenceToken("flt", "0.5"),
        EvidenceToken("dat", "0011223344556677"),
    )
    assert shared(LEFT, []) == shared([], LEFT) == ()


def test_the_rarest_is_first_where_rarity_is_known() -> None:
    rarity = {"malloc": 1.0, "free": 1.0, "2654435769": 9.0, "8": 0.1}
    words = shared(LEFT, RIGHT, lambda word: rarity.get(word.text, 5.0))
    assert [word.text for word in words] == [
        "2654435769",
        "%s: %d",
        "0.5",
        "0011223344556677",
        "malloc",
        "free",
        "8",
    ]


def test_offsets_count_where_pointers_are_equally_wide() -> None:
    assert EvidenceToken("off", "328") not in shared(LEFT, RIGHT)
    assert shared(LEFT, RIGHT, same_width=True)[-1] == EvidenceToken("off", "328")
    assert have_same_width("x86-64", "aarch64")
    assert have_same_width("arm", "mipsel")
    assert not have_same_width("x86-64", "x86")
    assert not have_same_width("mips", "mips64")


@pytest.mark.parametrize("text", ["2", "255", "256", "511", "4096", "65535", "shift 7", "-2"])
def test_constants_of_many_functions_are_not_telling(text: str) -> None:
    assert not is_telling("num", text)
    assert is_telling("str", text)


@pytest.mark.parametrize("text", ["257", "1000", "2654435769"])
def test_other_constants_are_telling(text: str) -> None:
    assert is_telling("num", text)


def test_what_only_one_says() -> None:
    said = said_words(LEFT, RIGHT)
    assert said.shared == shared(LEFT, RIGHT)
    assert said.only_left == (("str", "left"),)
    assert said.only_right == (("str", "right"), ("imp", "left"))


def test_lists_are_limited() -> None:
    many: list[Word] = [("str", str(number)) for number in range(100)]
    assert len(shared(many, many)) == MOST_SHARED
    assert len(shared(many, many, most=3)) == 3
    assert len(said_words(many, []).only_left) == MOST_ALONE
