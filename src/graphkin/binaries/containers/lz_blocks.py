"""Blocks of LZO and LZ4, which the standard library does not unpack.

Both are runs of literal bytes and copies of what came before. Blocks are small (up to 1 MB in a
squashfs image), so they are unpacked whole. LZO is LZO1X; its instructions are those of "LZO stream
format as understood by Linux's LZO decompressor".
"""

from __future__ import annotations

LONG_RUN = 255


class _Output:
    """What is unpacked so far, within a limit."""

    def __init__(self, data: bytes, most: int) -> None:
        self.data, self.at = data, 0
        self._most = most
        self.unpacked = bytearray()

    def byte(self) -> int:
        self.at += 1
        return self.data[self.at - 1]

    def pair(self) -> int:
        """The next two bytes as a number."""
        return self.byte() | self.byte() << 8

    def literals(self, count: int) -> None:
        piece = self.data[self.at : self.at + count]
        self._check(count)
        if len(piece) < count:
            raise ValueError("the compressed block ends early")
        self.at += count
        self.unpacked += piece

    def copy(self, distance: int, count: int) -> None:
        """Appends bytes from before, which may overlap what they make."""
        start = len(self.unpacked) - distance
        self._check(count)
        if distance < 1 or start < 0:
            raise ValueError(
                f"the compressed block copies from {distance} bytes before byte {start}"
            )
        piece = self.unpacked[start : start + count]
        if distance < count:
            piece = (piece * (count // distance + 1))[:count]
        self.unpacked += piece

    def _check(self, count: int) -> None:
        if len(self.unpacked) + count > self._most:
            raise ValueError(f"the compressed block has more than {self._most:,} bytes")


def unpack_lz4(data: bytes, most: int) -> bytes:
    """A raw block of LZ4."""
    output = _Output(data, most)

    def length(nibble: int) -> int:
        more = LONG_RUN if nibble == 15 else 0
        while more == LONG_RUN:
            more = output.byte()
            nibble += more
        return nibble

    while output.at < len(data):
        token = output.byte()
        output.literals(length(token >> 4))
        if output.at < len(data):
            distance = output.pair()
            output.copy(distance, length(token & 15) + 4)
    return bytes(output.unpacked)


def unpack_lzo(data: bytes, most: int) -> bytes:
    """A raw block of LZO1X."""
    output = _Output(data, most)

    def length(bits: int, mask: int) -> int:
        if bits & mask:
            return bits & mask
        total = mask
        while not (more := output.byte()):
            total += LONG_RUN
        return total + more

    # Literals of the instruction before, where 4 stands for more than 3: they tell what the
    # smallest instructions mean.
    before = 0
    if data[:1] > b"\x11":
        count = output.byte() - 17
        output.literals(count)
        before = min(count, 4)
    while True:
        code = output.byte()
        if code < 16 and before == 0:
            output.literals(length(code, 15) + 3)
            before = 4
            continue
        if code < 16:
            count, base = (3, 2049) if before == 4 else (2, 1)
            following = code
            distance = base + (code >> 2) + (output.byte() << 2)
        elif code < 64:
            is_far = code < 32
            count = length(code, 7 if is_far else 31) + 2
            following = output.pair()
            distance = (following >> 2) + 1
            if is_far:
                distance += 16383 + ((code & 8) << 11)
                if distance == 16384:
                    return bytes(output.unpacked)
        else:
            count = (code >> 5) + 1
            following = code
            distance = (code >> 2 & 7) + 1 + (output.byte() << 3)
        output.copy(distance, count)
        before = following & 3
        output.literals(before)
