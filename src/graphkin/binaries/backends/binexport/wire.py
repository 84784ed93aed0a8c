"""The wire format of protocol buffers, read in place: numbers and ranges of bytes by field."""

from __future__ import annotations

from collections.abc import Iterator

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
Field = tuple[int, int, int]
"""(number of the field, value, -1) or (number of the field, first byte, behind the last)."""


class WireError(ValueError):
    """Bytes that are no message."""

    def __init__(self, offset: int) -> None:
        super().__init__(f"no field at byte {offset}")


def fields(data: bytes, start: int, end: int) -> Iterator[Field]:
    """Every field of the message in ``data[start:end]``; nothing is copied.

    Raises:
        WireError: for a field that is cut off, or of a kind that messages no longer have.
    """
    at = start
    try:
        while at < end:
            first = at
            key = data[at]
            at += 1
            if key >= 0x80:
                key, at = _long(data, at, key)
            kind = key & 7
            if kind == FIXED64:
                at += 8
                value, behind = int.from_bytes(data[at - 8 : at], "little"), -1
            elif kind == FIXED32:
                at += 4
                value, behind = int.from_bytes(data[at - 4 : at], "little"), -1
            elif kind in (VARINT, BYTES):
                value, behind = data[at], -1
                at += 1
                if value >= 0x80:
                    value, at = _long(data, at, value)
                if kind == BYTES:
                    value, behind = at, at + value
                    at = behind
            else:
                raise WireError(first)
            if at > end or not key >> 3:
                raise WireError(first)
            yield key >> 3, value, behind
    except IndexError:
        raise WireError(at) from None


def numbers(data: bytes, value: int, behind: int) -> Iterator[int]:
    """Numbers of a repeated field: one, or many that are packed into bytes."""
    if behind < 0:
        yield value
        return
    at = value
    while at < behind:
        number = data[at]
        at += 1
        if number >= 0x80:
            number, at = _long(data, at, number)
        if at > behind:
            raise WireError(at)
        yield number


def signed(value: int) -> int:
    """A number as the type int32 means it."""
    value &= 0xFFFFFFFF
    return value - (1 << 32) if value >> 31 else value


def _long(data: bytes, at: int, value: int) -> tuple[int, int]:
    """A number of several bytes, of which the first is read; and the offset behind it."""
    value &= 0x7F
    for shift in range(7, 70, 7):
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & 0xFFFFFFFFFFFFFFFF, at
    raise WireError(at)
