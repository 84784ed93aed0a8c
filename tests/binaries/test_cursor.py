"""Numbers out of bytes, within bounds."""

from __future__ import annotations

import pytest

from graphkin.binaries.cursor import Cursor, leb128


def test_numbers_and_text_one_after_the_other() -> None:
    cursor = Cursor(b"\x01\x02\x80\x01name\0rest", 0)
    assert (cursor.unsigned(2), cursor.leb128(), cursor.text(8)) == (0x201, 128, "name")
    assert cursor.offset == 9


@pytest.mark.parametrize("data", [b"", b"\x80", b"\x80" * 20 + b"\x01"])
def test_a_number_that_does_not_end_is_refused(data: bytes) -> None:
    with pytest.raises(IndexError):
        leb128(data, 0)


def test_nothing_is_read_past_the_limit() -> None:
    data = b"\x80\x80\x01a\0"
    with pytest.raises(IndexError):
        Cursor(data, 0, 2).leb128()
    with pytest.raises(IndexError):
        Cursor(data, 0, 2).unsigned(3)
    with pytest.raises(IndexError):
        Cursor(data, 3, 4).text(100)
    with pytest.raises(IndexError):
        Cursor(b"abcd\0", 0).text(4)
