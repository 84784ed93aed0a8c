"""Zip archives, and what is one under another name: wheels, jars, Android packages."""

from __future__ import annotations

import stat
import zipfile
from collections.abc import Iterator

from graphkin.binaries.containers.base import Entry, Format, Opening, damage, metered
from graphkin.binaries.containers.stream import Stream
from graphkin.errors import FormatError

MAGICS = (b"PK\x03\x04", b"PK\x05\x06", b"PK\x07\x08")
ENCRYPTED = 1


def members(stream: Stream, opening: Opening) -> Iterator[Entry]:
    """The files of the central directory, which lies at the end."""
    assert stream.path is not None
    with damage(), zipfile.ZipFile(stream.path) as archive:
        for info in archive.infolist():
            opening.meter.member()
            if info.is_dir() or stat.S_ISLNK(info.external_attr >> 16):
                continue
            if info.flag_bits & ENCRYPTED:
                opening.note(info.filename, "it is encrypted")
                continue
            try:
                with damage(), archive.open(info) as file:
                    yield Entry(info.filename, metered(file, opening.meter))
            except FormatError as error:
                opening.note(info.filename, str(error))


FORMATS = (Format("a zip archive", lambda head: head.startswith(MAGICS), members, needs_file=True),)
