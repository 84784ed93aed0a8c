"""Squashfs 4.0, the file system of routers, cameras and live systems, also inside a firmware.

An image has blocks of files, then tables in blocks of metadata: inodes, directories, fragments
(the ends of several files, packed together). All are compressed one by one, so that any file can be
read alone.
"""

from __future__ import annotations

import lzma
import mmap
import os
import struct
import sys
import zlib
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import BinaryIO, NamedTuple

from graphkin.binaries.containers.base import Entry, Format, Opening, damage
from graphkin.binaries.containers.lz_blocks import unpack_lz4, unpack_lzo
from graphkin.binaries.containers.stream import Stream
from graphkin.errors import FormatError

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

MAGIC = b"hsqs"
SUPERBLOCK = struct.Struct("<4s4I6H8Q")
METADATA = 8192
"""Bytes of a block of metadata, unpacked."""
PLAIN_METADATA, PLAIN_BLOCK = 1 << 15, 1 << 24
"""Bits of a size: what follows is not compressed."""
NO_FRAGMENT = 0xFFFFFFFF
FRAGMENT = struct.Struct("<QII")
FRAGMENTS = METADATA // FRAGMENT.size
DIRECTORY, FILE, LARGE_DIRECTORY, LARGE_FILE = 1, 2, 8, 9
FIELDS = {
    DIRECTORY: struct.Struct("<IIHHI"),
    FILE: struct.Struct("<IIII"),
    LARGE_DIRECTORY: struct.Struct("<IIIIHHI"),
    LARGE_FILE: struct.Struct("<QQQIIII"),
}
"""What inodes have behind their common bytes; the large ones have links and attributes."""
COMMON = 16
HEADER, NAME = struct.Struct("<III"), struct.Struct("<HhHH")
"""Of a run of names in a directory, and of each name."""
CACHED = 64
MOST_DEPTH = 200
LZMA_MEMORY = 64 << 20
DECOMPRESSORS: dict[int, Callable[[bytes, int], bytes]] = {
    1: lambda data, most: zlib.decompressobj().decompress(data, most),
    2: lambda data, most: lzma.LZMADecompressor(lzma.FORMAT_ALONE, LZMA_MEMORY).decompress(
        data, most
    ),
    3: unpack_lzo,
    4: lambda data, most: lzma.LZMADecompressor(lzma.FORMAT_XZ, LZMA_MEMORY).decompress(data, most),
    5: unpack_lz4,
    6: lambda data, most: zstd.ZstdDecompressor().decompress(data, most),
}
"""gzip, lzma, lzo, xz, lz4 and zstd, by their numbers."""


class Superblock(NamedTuple):
    """The fields that are needed to find files."""

    block_size: int
    compression: int
    root: int
    bytes_used: int
    inodes: int
    directories: int
    fragments: int

    @classmethod
    def of(cls, head: bytes) -> Superblock | None:
        """What an image begins with; None for what is not one of version 4.0."""
        if len(head) < SUPERBLOCK.size or not head.startswith(MAGIC):
            return None
        _, _, _, size, _, compression, log, _, _, major, minor, root, used, _, _, *tables = (
            SUPERBLOCK.unpack_from(head)
        )
        # Firmware may hold the letters by chance, so what can be checked is.
        is_sane = (major, minor) == (4, 0) and 12 <= log <= 20 and size == 1 << log
        return cls(size, compression, root, used, *tables[:3]) if is_sane else None


def is_readable(head: bytes) -> bool:
    """Whether a file begins with an image whose compression is known here."""
    block = Superblock.of(head)
    return block is not None and block.compression in DECOMPRESSORS


def members(stream: Stream, opening: Opening) -> Iterator[Entry]:
    """The regular files of an image."""
    assert stream.path is not None
    with open(stream.path, "rb") as file:
        image = _Image(file, 0)
        if image.bytes_used > (size := os.fstat(file.fileno()).st_size):
            opening.note("", f"it ends early: it has {size:,} of {image.bytes_used:,} bytes")
        yield from image.entries(opening)


def images_inside(path: Path) -> list[int]:
    """Where images lie in a firmware, one behind the other."""
    offsets: list[int] = []
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        at = data.find(MAGIC)
        while at >= 0:
            head = data[at : at + SUPERBLOCK.size]
            block = Superblock.of(head)
            following = at + 1
            if block is not None and is_readable(head) and at + block.bytes_used <= len(data):
                offsets.append(at)
                following = at + max(block.bytes_used, 1)
            at = data.find(MAGIC, following)
    return offsets


def carved(path: Path, offsets: list[int], opening: Opening) -> Iterator[Entry]:
    """The regular files of images in a firmware; of several, each has a folder."""
    with open(path, "rb") as file:
        for offset in offsets:
            folder = f"{offset:#x}/" if len(offsets) > 1 else ""
            for entry in _Image(file, offset).entries(opening):
                yield entry._replace(name=folder + entry.name)


class _Inode(NamedTuple):
    kind: int
    fields: tuple[int, ...]
    behind: tuple[int, int]
    """Where the sizes of a file's blocks are: block of metadata, and offset in it."""


class _Image:
    """One image in a file."""

    def __init__(self, file: BinaryIO, offset: int) -> None:
        self._file, self._offset = file, offset
        block = Superblock.of(self._read(0, SUPERBLOCK.size))
        if block is None:
            raise FormatError("it is damaged: there is no superblock of version 4.0")
        self._super = block
        self._unpack = DECOMPRESSORS[block.compression]
        self._metadata = lru_cache(CACHED)(self._read_metadata)
        self._fragment = lru_cache(2)(self._read_fragment)

    @property
    def bytes_used(self) -> int:
        """What the image has, without what fills up its last block."""
        return self._super.bytes_used

    def entries(self, opening: Opening) -> Iterator[Entry]:
        """Files, by the order of their folders; a damaged one is noted, and left out."""
        todo = [("", self._super.root, 0)]
        opened: set[int] = set()
        while todo:
            name, reference, depth = todo.pop()
            try:
                with damage():
                    inode = self._inode(reference)
                    if inode is None:
                        continue
                    if inode.kind in (FILE, LARGE_FILE):
                        opening.meter.member()
                        content = self._content(inode)
                        yield Entry(name, Stream(_Pieces(content, opening).read))
                    elif reference not in opened and depth < MOST_DEPTH:
                        opened.add(reference)
                        below = [
                            (f"{name}/{child}" if name else child, place, depth + 1)
                            for child, place in self._names(inode)
                        ]
                        todo += reversed(below)
            except FormatError as error:
                opening.note(name, str(error))

    def _read(self, at: int, size: int) -> bytes:
        self._file.seek(self._offset + at)
        data = self._file.read(size)
        if len(data) < size:
            raise FormatError("it ends early")
        return data

    def _decompress(self, data: bytes, most: int) -> bytes:
        with damage():
            try:
                return self._unpack(data, most)
            except zstd.ZstdError as error:
                raise FormatError(f"it is damaged: {error}") from error

    def _read_metadata(self, at: int) -> tuple[bytes, int]:
        """A block of metadata, and where the next one is."""
        size = int.from_bytes(self._read(at, 2), "little")
        length = size & (PLAIN_METADATA - 1)
        data = self._read(at + 2, length)
        if not size & PLAIN_METADATA:
            data = self._decompress(data, METADATA)
        return data, at + 2 + length

    def _table(self, at: int, offset: int, size: int) -> bytes:
        """So many bytes of metadata, from an offset on that counts from the block at an address."""
        pieces: list[bytes] = []
        while size > 0:
            data, at = self._metadata(at)
            if not data:
                raise FormatError("it is damaged: a table ends early")
            piece = data[offset : offset + size]
            pieces.append(piece)
            offset = max(offset - len(data), 0)
            size -= len(piece)
        return b"".join(pieces)

    def _inode(self, reference: int) -> _Inode | None:
        """What is at a place; None for links, devices and the like."""
        at, offset = self._super.inodes + (reference >> 16), reference & 0xFFFF
        kind = int.from_bytes(self._table(at, offset, 2), "little")
        if kind not in FIELDS:
            return None
        form, offset = FIELDS[kind], offset + COMMON
        return _Inode(
            kind, form.unpack(self._table(at, offset, form.size)), (at, offset + form.size)
        )

    def _names(self, inode: _Inode) -> Iterator[tuple[str, int]]:
        """Names of a directory, and the places of their inodes."""
        if inode.kind == DIRECTORY:
            start, _, size, offset, _ = inode.fields
        else:
            _, size, start, _, _, offset, _ = inode.fields
        # An empty directory has a size of 3, for its own name and its parent's.
        table = self._table(self._super.directories + start, offset, max(size - 3, 0))
        at = 0
        while at < len(table):
            count, block, _ = HEADER.unpack_from(table, at)
            at += HEADER.size
            for _ in range(count + 1):
                place, _, _, length = NAME.unpack_from(table, at)
                at += NAME.size
                name = table[at : at + length + 1].decode("utf-8", "surrogateescape")
                at += length + 1
                yield name, block << 16 | place

    def _content(self, inode: _Inode) -> Iterator[bytes]:
        """A file in pieces, each of a block at most."""
        if inode.kind == FILE:
            start, fragment, offset, size = inode.fields
        else:
            start, size, _, _, fragment, offset, _ = inode.fields
        most = self._super.block_size
        count = size // most if fragment != NO_FRAGMENT else -(-size // most)
        left = size
        for length in self._lengths(inode, count):
            block_size = min(most, left)
            yield self._block(start, length, block_size)
            start += length & (PLAIN_BLOCK - 1)
            left -= block_size
        if left:
            piece = self._fragment(fragment)[offset : offset + left]
            if len(piece) < left:
                raise FormatError("it is damaged: a file ends early")
            yield piece

    def _lengths(self, inode: _Inode, count: int) -> Iterator[int]:
        """Bytes of each block of a file in the image."""
        at, offset = inode.behind
        for first in range(0, count, METADATA // 4):
            number = min(METADATA // 4, count - first)
            yield from struct.unpack(f"<{number}I", self._table(at, offset + 4 * first, 4 * number))

    def _block(self, at: int, length: int, size: int) -> bytes:
        """The first bytes of a block of data; one without a length is all zeros."""
        data = self._unpacked(at, length) if length else bytes(size)
        if len(data) < size:
            raise FormatError("it is damaged: a block ends early")
        return data[:size]

    def _unpacked(self, at: int, length: int) -> bytes:
        data = self._read(at, length & (PLAIN_BLOCK - 1))
        return data if length & PLAIN_BLOCK else self._decompress(data, self._super.block_size)

    def _read_fragment(self, number: int) -> bytes:
        place = self._super.fragments + 8 * (number // FRAGMENTS)
        at = int.from_bytes(self._read(place, 8), "little")
        entry = self._table(at, FRAGMENT.size * (number % FRAGMENTS), FRAGMENT.size)
        start, length, _ = FRAGMENT.unpack(entry)
        return self._unpacked(start, length)


class _Pieces:
    """The source of a stream: pieces of a file, counted as they are unpacked."""

    def __init__(self, pieces: Iterator[bytes], opening: Opening) -> None:
        self._pieces = pieces
        self._meter = opening.meter
        self._rest = b""

    def read(self, size: int) -> bytes:
        while not self._rest:
            with damage():
                piece = next(self._pieces, None)
            if piece is None:
                return b""
            self._meter.spend(len(piece))
            self._rest = piece
        data, self._rest = self._rest[:size], self._rest[size:]
        return data


FORMATS = (Format("a squashfs image", is_readable, members, needs_file=True),)
