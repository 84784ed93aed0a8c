"""Zip archives without their list of members, which lies at the end and so is the first to be lost.

Each member has a header of its own in front of it. Writers that cannot go back leave the sizes to a
descriptor behind the member; then its end is where its compressed data say that they end.
"""

from __future__ import annotations

import struct
import zipfile
import zlib
from collections.abc import Iterator
from typing import BinaryIO, NamedTuple

from graphkin.binaries.containers.base import Opening, damage
from graphkin.binaries.containers.budget import Meter
from graphkin.binaries.containers.stream import PIECE
from graphkin.errors import FormatError

LOCAL, DESCRIPTOR = b"PK\x03\x04", b"PK\x07\x08"
HEADER = struct.Struct("<4s5H3I2H")
EXTRA = struct.Struct("<2H")
HAS_DESCRIPTOR, IS_UTF8 = 1 << 3, 1 << 11
WIDE, WIDE_EXTRA = 0xFFFFFFFF, 1
"""A size that stands in the extra field with that number, in 64 bits."""


class LostMember(NamedTuple):
    """A member that was found by its own header."""

    info: zipfile.ZipInfo
    start: int
    """Where its compressed bytes begin."""


def lost_members(file: BinaryIO, opening: Opening) -> Iterator[LostMember]:
    """The members from the front on, as long as one follows the other.

    The first that is not whole, or of which nobody can tell where it ends, is noted and ends them.
    """
    end = file.seek(0, 2)
    at = 0
    while True:
        file.seek(at)
        raw = file.read(HEADER.size)
        if len(raw) < HEADER.size or not raw.startswith(LOCAL):
            return
        _, _, flags, method, _, _, crc, packed, unpacked, name_size, extra_size = HEADER.unpack(raw)
        name = file.read(name_size).decode("utf-8" if flags & IS_UTF8 else "cp437", "replace")
        extra = file.read(extra_size)
        start = at + HEADER.size + name_size + extra_size
        info = zipfile.ZipInfo(name or "unnamed")
        info.flag_bits, info.compress_type, info.CRC = flags, method, crc
        info.file_size, info.compress_size = _wide_sizes(extra, unpacked, packed)
        try:
            if flags & HAS_DESCRIPTOR and not info.compress_size:
                _measure(file, start, info, opening.meter)
            at = start + info.compress_size
            if at > end:
                raise FormatError("it ends early")
        except FormatError as error:
            opening.note(info.filename, str(error))
            return
        yield LostMember(info, start)
        if flags & HAS_DESCRIPTOR:
            at = _descriptor_end(file, at)


def opened(file: BinaryIO, member: LostMember) -> zipfile.ZipExtFile:
    """A member's content, of which the checksum is compared when it ends."""
    file.seek(member.start)
    return zipfile.ZipExtFile(file, "r", member.info)


def _wide_sizes(extra: bytes, unpacked: int, packed: int) -> tuple[int, int]:
    """The sizes of a member, which stand in an extra field where they are large."""
    at = 0
    while at + EXTRA.size <= len(extra):
        kind, size = EXTRA.unpack_from(extra, at)
        at += EXTRA.size
        if kind == WIDE_EXTRA and size >= 16 and WIDE in (unpacked, packed):
            wide_unpacked, wide_packed = struct.unpack_from("<2Q", extra.ljust(at + 16, b"\0"), at)
            return wide_unpacked, wide_packed
        at += size
    return unpacked, packed


def _measure(file: BinaryIO, start: int, info: zipfile.ZipInfo, meter: Meter) -> None:
    """Fills in what the header of a member leaves to its descriptor."""
    if info.compress_type != zipfile.ZIP_DEFLATED:
        raise FormatError("its header does not tell its size, and the list of members is lost")
    decompressor, size, crc, read = zlib.decompressobj(-15), 0, 0, 0
    file.seek(start)
    while not decompressor.eof:
        data = decompressor.unconsumed_tail
        if not data:
            data = file.read(PIECE // 8)
            read += len(data)
        if not data:
            raise FormatError("it ends early")
        with damage():
            piece = decompressor.decompress(data, PIECE)
        meter.spend(len(piece))
        size, crc = size + len(piece), zlib.crc32(piece, crc)
    info.compress_size = read - len(decompressor.unused_data)
    info.file_size, info.CRC = size, crc


def _descriptor_end(file: BinaryIO, at: int) -> int:
    """Where the descriptor of a member ends: with or without a mark, of 32 or 64 bits."""
    for size in (16, 12, 24, 20):
        file.seek(at)
        descriptor = file.read(size)
        has_mark = descriptor.startswith(DESCRIPTOR)
        if has_mark == (size in (16, 24)) and file.read(len(LOCAL)) == LOCAL:
            return at + size
    return at
