"""Numbers and LEB128 out of bytes, within bounds."""

from __future__ import annotations

from graphkin.binaries.image import ByteOrder

MAX_LEB128 = 10
"""Bytes of a number: enough for 64 bits."""


def leb128(data: bytes, offset: int) -> tuple[int, int]:
    """An unsigned number of base 128, and the offset behind it.

    Raises:
        IndexError: where the bytes end inside the number, or it has more than ``MAX_LEB128``.
    """
    value = 0
    for position in range(MAX_LEB128):
        byte = data[offset + position]
        value |= (byte & 0x7F) << 7 * position
        if byte < 0x80:
            return value, offset + position + 1
    raise IndexError(f"a number of more than {MAX_LEB128} bytes")


class Cursor:
    """Reads one value after the other, up to ``limit``; past it, it raises IndexError."""

    def __init__(
        self,
        data: bytes,
        offset: int,
        limit: int | None = None,
        byte_order: ByteOrder = "little",
    ) -> None:
        self.data, self.offset, self.byte_order = data, offset, byte_order
        self.limit = len(data) if limit is None else limit

    def unsigned(self, width: int) -> int:
        start, end = self.offset, self.offset + width
        if end > self.limit:
            raise IndexError(end)
        self.offset = end
        return int.from_bytes(self.data[start:end], self.byte_order)

    def leb128(self) -> int:
        value, end = leb128(self.data, self.offset)
        if end > self.limit:
            raise IndexError(end)
        self.offset = end
        return value

    def text(self, limit: int) -> str:
        """Text of fewer than ``limit`` bytes that a zero byte ends; IndexError without that."""
        end = self.data.find(b"\0", self.offset, min(self.offset + limit, self.limit))
        if end < 0:
            raise IndexError(self.offset)
        raw, self.offset = self.data[self.offset : end], end + 1
        return raw.decode("utf-8", "replace")
