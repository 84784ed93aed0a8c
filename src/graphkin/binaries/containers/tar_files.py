"""Tar archives of every kind that Python reads."""

from __future__ import annotations

import tarfile
from collections.abc import Iterator
from typing import Self

from graphkin.binaries.containers.base import Entry, Format, Opening, damage, metered
from graphkin.binaries.containers.stream import Stream
from graphkin.errors import FormatError

BLOCK = 512
CHECKSUM = slice(148, 156)


class _Header(tarfile.TarInfo):
    """A header that is there, or damage: the standard library takes any other for the end."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> Self:
        try:
            return super().frombuf(buf, encoding, errors)
        except tarfile.HeaderError as error:
            if len(buf) == BLOCK and not any(buf):
                raise  # the mark of the end
            if len(buf) < BLOCK:
                raise FormatError("it ends early: there is no mark of its end") from error
            raise FormatError(f"it is damaged: {error} of a header") from error


def is_tar(head: bytes) -> bool:
    """Whether a file begins with a header whose checksum is right; old ones have no magic."""
    header = head[:BLOCK]
    text = header[CHECKSUM].strip(b" \0")
    if len(header) < BLOCK or not header[0] or not text or not set(text) <= set(b"01234567"):
        return False
    blank = header[: CHECKSUM.start] + b" " * 8 + header[CHECKSUM.stop :]
    return int(text, 8) == sum(blank)


def members(stream: Stream, opening: Opening) -> Iterator[Entry]:
    """Regular files; links, devices and folders hold nothing."""
    # A stream, so that nothing is read twice.
    with damage(), tarfile.open(fileobj=stream, mode="r|", tarinfo=_Header) as archive:  # type: ignore[call-overload]
        for info in archive:
            archive.members = []  # which would keep all that was listed
            opening.meter.member()
            file = archive.extractfile(info) if info.isreg() else None
            if file is not None:
                yield Entry(info.name, metered(file, opening.meter))
        rest = Stream(archive.fileobj.read)
        rest.skip_zeros()
        if is_tar(rest.peek(BLOCK)):
            yield Entry("rest", rest, is_layer=True)  # archives that were joined
        rest.drain()


FORMATS = (Format("a tar archive", is_tar, members),)
