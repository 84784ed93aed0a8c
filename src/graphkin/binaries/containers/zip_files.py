"""Zip archives, and what is one under another name: wheels, jars, Android packages."""

from __future__ import annotations

import stat
import zipfile
from collections.abc import Iterator
from pathlib import Path

from graphkin.binaries.containers.base import DAMAGE, Entry, Format, Opening, damage, metered
from graphkin.binaries.containers.cut_zip import lost_members, opened
from graphkin.binaries.containers.stream import Stream
from graphkin.errors import FormatError

MAGICS = (b"PK\x03\x04", b"PK\x05\x06", b"PK\x07\x08")
ENCRYPTED = 1
IS_ENCRYPTED = "it is encrypted"


def members(stream: Stream, opening: Opening) -> Iterator[Entry]:
    """The files of the central directory, which lies at the end; without it, those in front."""
    assert stream.path is not None
    try:
        archive = zipfile.ZipFile(stream.path)
    except DAMAGE:
        yield from _without_list(stream.path, opening)
        return
    with damage(), archive:
        for info in archive.infolist():
            opening.meter.member()
            if info.is_dir() or stat.S_ISLNK(info.external_attr >> 16):
                continue
            if info.flag_bits & ENCRYPTED:
                opening.note(info.filename, IS_ENCRYPTED)
                continue
            try:
                with damage(), archive.open(info) as file:
                    yield Entry(info.filename, metered(file, opening.meter))
            except FormatError as error:
                opening.note(info.filename, str(error))


def _without_list(path: Path, opening: Opening) -> Iterator[Entry]:
    """The members that an archive still has when its end is lost."""
    with open(path, "rb") as file:
        for member in lost_members(file, opening):
            opening.meter.member()
            info = member.info
            if info.is_dir():
                continue
            if info.flag_bits & ENCRYPTED:
                opening.note(info.filename, IS_ENCRYPTED)
                continue
            try:
                with damage(), opened(file, member) as content:
                    yield Entry(info.filename, metered(content, opening.meter))
            except FormatError as error:
                opening.note(info.filename, str(error))
    raise FormatError("it ends early: its list of members is lost")


FORMATS = (Format("a zip archive", lambda head: head.startswith(MAGICS), members, needs_file=True),)
