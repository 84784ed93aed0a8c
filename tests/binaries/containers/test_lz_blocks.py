"""Blocks of LZO and LZ4: every instruction by hand, and what hostile blocks may not do."""

from __future__ import annotations

import random

import pytest

from graphkin.binaries.containers.lz_blocks import unpack_lz4, unpack_lzo

END = b"\x11\0\0"
"""The instruction that ends a block of LZO."""
LETTERS = bytes(range(65, 91))
LONG = random.Random(1).randbytes(40_000)


def literals(content: bytes) -> bytes:
    """LZO's instruction for a long run of bytes."""
    rounds, last = divmod(len(content) - 19, 255)
    return bytes(1 + rounds) + bytes([last + 1]) + content


@pytest.mark.parametrize(
    ("block", "content"),
    [
        (b"\x15ABCD", b"ABCD"),
        (b"\0\x08" + LETTERS, LETTERS),
        (b"\x12A\0\0", b"AAA"),
        (literals(LONG[:2049]) + b"\0\0", LONG[:2049] + LONG[:3]),
        (b"\x15ABCD\x4d\0Y", b"ABCD" + b"ABC" + b"Y"),
        (b"\x15ABCD\x8d\0Y", b"ABCD" + b"ABCDA" + b"Y"),
        (b"\x15ABCD\x2a\x0d\0X", b"ABCD" * 4 + b"X"),
        (b"\x15ABCD\x20\x05\x0c\0", b"ABCD" * 10 + b"AB"),
        (literals(LONG) + b"\x12\x04\0", LONG + LONG[-16385:][:4]),
        (literals(LONG) + b"\x1a\x04\0", LONG + LONG[-32769:][:4]),
    ],
)
def test_instructions_of_lzo(block: bytes, content: bytes) -> None:
    assert unpack_lzo(block + END, 1 << 16) == content


@pytest.mark.parametrize(
    ("block", "content"),
    [
        (b"\x40ABCD", b"ABCD"),
        (b"\xf0\x0b" + LETTERS, LETTERS),
        (b"\x48ABCD\x04\0\x10X", b"ABCD" * 4 + b"X"),
        (b"\x1fA\x01\0\xff\x00\x10X", b"A" * 275 + b"X"),
    ],
)
def test_instructions_of_lz4(block: bytes, content: bytes) -> None:
    assert unpack_lz4(block, 1 << 16) == content


@pytest.mark.parametrize(
    ("unpack", "block"),
    [
        (unpack_lzo, b"\x15ABCD\x20" + bytes(1000) + b"\x05\x0c\0" + END),
        (unpack_lz4, b"\x1fA\x01\0" + b"\xff" * 1000 + b"\0\x10X"),
    ],
)
def test_a_block_has_a_limit(unpack: object, block: bytes) -> None:
    assert callable(unpack)
    assert len(unpack(block, 1 << 20)) > 200_000
    with pytest.raises(ValueError, match="more than 100,000 bytes"):
        unpack(block, 100_000)


@pytest.mark.parametrize("unpack", [unpack_lzo, unpack_lz4])
@pytest.mark.parametrize(
    "block", [b"", b"\x15AB", b"\x15ABCD\x2a\xff\xff", b"\x48ABCD\0\0", b"\0\0\0"]
)
def test_damaged_blocks_are_refused(unpack: object, block: bytes) -> None:
    """By what :func:`damage` turns into one kind of error; an empty block of LZ4 is empty."""
    assert callable(unpack)
    if unpack is unpack_lz4 and block in (b"", b"\0\0\0"):
        block = b"\x10"
    with pytest.raises((ValueError, IndexError)):
        unpack(block, 1 << 16)
