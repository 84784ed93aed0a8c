"""Files that are compressed as a whole: gzip, bzip2, xz, lzma, zstd."""

from __future__ import annotations

import bz2
import lzma
import sys
import zlib
from collections.abc import Callable, Iterator
from pathlib import PurePosixPath
from typing import Protocol

from graphkin.binaries.containers.base import Entry, Format, Opening, damage
from graphkin.binaries.containers.budget import Meter
from graphkin.binaries.containers.stream import PIECE, Stream
from graphkin.errors import FormatError

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

MOST_MEMORY = 512 << 20
"""Of a decompressor: xz lets a file ask for any amount."""
WINDOW_LOG = 27
"""Of zstd: 128 MB, as its own tool allows."""
MAGIC = 16
"""Bytes that tell the format, at most."""
SUFFIXES = dict.fromkeys((".gz", ".bz2", ".xz", ".lzma", ".zst"), "") | dict.fromkeys(
    (".tgz", ".tbz2", ".txz", ".tlz", ".tzst"), ".tar"
)
"""Endings of compressed files, and what the name ends in without."""


class Decompressor(Protocol):
    """What the decompressors of the standard library have in common."""

    @property
    def eof(self) -> bool: ...
    @property
    def needs_input(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, max_length: int = -1) -> bytes: ...


class _Gzip:
    """zlib's decompressor with the interface of the others."""

    def __init__(self) -> None:
        self._zlib = zlib.decompressobj(wbits=31)

    @property
    def eof(self) -> bool:
        return self._zlib.eof

    @property
    def needs_input(self) -> bool:
        return not self._zlib.unconsumed_tail

    @property
    def unused_data(self) -> bytes:
        return self._zlib.unused_data

    def decompress(self, data: bytes, max_length: int = -1) -> bytes:
        return self._zlib.decompress(self._zlib.unconsumed_tail + data, max(0, max_length))


class _Unpacked:
    """The source of a stream: what comes out of one compressed file, or several in a row."""

    def __init__(
        self,
        stream: Stream,
        make: Callable[[], Decompressor],
        magic: Callable[[bytes], bool],
        meter: Meter,
    ) -> None:
        self._stream, self._make, self._magic, self._meter = stream, make, magic, meter
        self._decompressor = make()
        self._rest = b""
        self._is_over = False

    def read(self, size: int) -> bytes:
        while not self._is_over:
            if self._decompressor.eof and not self._restart():
                self._is_over = True
                break
            data, self._rest = self._rest, b""
            is_last = False
            if not data and self._decompressor.needs_input:
                data = self._stream.read(PIECE // 8)
                is_last = not data
            try:
                with damage():
                    unpacked = self._decompressor.decompress(data, size)
            except zstd.ZstdError as error:
                raise FormatError(f"it is damaged: {error}") from error
            if unpacked:
                self._meter.spend(len(unpacked))
                return unpacked
            # zlib may hold back output though it asks for input.
            if is_last and not self._decompressor.eof:
                raise FormatError("it ends early")
        return b""

    def _restart(self) -> bool:
        """Begins with the compressed file that follows; what is not one is left alone."""
        # Zeros are padding, as of tapes and of xz.
        rest = self._decompressor.unused_data.lstrip(b"\0")
        while not rest:
            more = self._stream.read(PIECE // 8)
            if not more:
                return False
            rest = more.lstrip(b"\0")
        self._rest = rest + self._stream.read(MAGIC)
        if not self._magic(self._rest):
            return False
        self._decompressor = self._make()
        return True


def _format(name: str, magic: Callable[[bytes], bool], make: Callable[[], Decompressor]) -> Format:
    def members(stream: Stream, opening: Opening) -> Iterator[Entry]:
        source = _Unpacked(stream, make, magic, opening.meter)
        content = Stream(source.read)
        yield Entry(content_name(opening.label), content, is_layer=True)
        content.drain()  # an archive may end before the data does, which has a checksum at its end

    return Format(name, magic, members)


def content_name(label: str) -> str:
    """What the content of a compressed file is called: ``a.bin`` for ``a.bin.gz``."""
    path = PurePosixPath(label.rpartition("!")[2])
    ending = SUFFIXES.get(path.suffix.lower())
    return "content" if ending is None else path.stem + ending


def _is_zstd(head: bytes) -> bool:
    skippable = head[1:4] == b"\x2a\x4d\x18" and 0x50 <= head[0] <= 0x5F
    return head.startswith(b"\x28\xb5\x2f\xfd") or skippable


def _is_lzma(head: bytes) -> bool:
    """The old format has no mark: its settings are those that every program writes, the size of
    its dictionary is 2^n or 3 * 2^n, and that of its content is unknown or below 256 GB."""
    dictionary = int.from_bytes(head[1:5], "little")
    size = int.from_bytes(head[5:13], "little")
    odd = dictionary // max(dictionary & -dictionary, 1)
    is_known = size < 1 << 38 or size == (1 << 64) - 1
    is_sane = 4096 <= dictionary <= MOST_MEMORY and odd in (1, 3)
    # The first byte of the range coder is always 0.
    return head[:1] == b"\x5d" and is_sane and head[13:14] == b"\0" and is_known


FORMATS = (
    _format("gzip data", lambda head: head.startswith(b"\x1f\x8b\x08"), _Gzip),
    _format(
        "bzip2 data",
        lambda head: head.startswith(b"BZh") and head[4:10] in (b"1AY&SY", b"\x17rE8P\x90"),
        bz2.BZ2Decompressor,
    ),
    _format(
        "xz data",
        lambda head: head.startswith(b"\xfd7zXZ\0"),
        lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=MOST_MEMORY),
    ),
    _format(
        "lzma data",
        _is_lzma,
        lambda: lzma.LZMADecompressor(lzma.FORMAT_ALONE, memlimit=MOST_MEMORY),
    ),
    _format(
        "zstd data",
        _is_zstd,
        lambda: zstd.ZstdDecompressor(
            options={zstd.DecompressionParameter.window_log_max: WINDOW_LOG}
        ),
    ),
)
