"""Where lines end inside long names."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphkin.results.html.line_ends import WHOLE, pieces


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("sub_40218", ["sub_40218"]),
        ("/opt/acme/lib/libacme.so.1.2", ["/opt/acme/lib/libacme.so.1.2"]),
        (
            "/opt/acme/lib/x86_64-linux-gnu/libacme.so",
            ["/opt/acme/lib/", "x86_64-linux-gnu/libacme.so"],
        ),
        (
            "acme_connection_handle_renegotiation_request",
            ["acme_connection_handle_", "renegotiation_request"],
        ),
        (
            "std::map<int, std::__cxx11::basic_string<char>>::find(int const&)",
            [
                "std::map<",
                "int, ",
                "std::__cxx11::basic_string<",
                "char>>::find(",
                "int ",
                "const&)",
            ],
        ),
        ("f" * 60, ["f" * WHOLE, "f" * WHOLE, "f" * (60 - 2 * WHOLE)]),
        ("", []),
    ],
)
def test_lines_end_at_joints(name: str, expected: list[str]) -> None:
    assert pieces(name) == expected


@given(st.text(alphabet="ab_:<>(), ./\\-~é", max_size=200))
def test_nothing_is_lost_and_no_piece_is_long(name: str) -> None:
    assert "".join(pieces(name)) == name
    assert all(len(piece.rstrip(" <(,")) <= WHOLE for piece in pieces(name))
