"""What all formats of containers share: an entry, a format, and damage in one kind of error."""

from __future__ import annotations

import errno
import lzma
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Protocol

from graphkin.binaries.containers.budget import Meter
from graphkin.binaries.containers.stream import Stream
from graphkin.errors import FormatError, GraphkinError

HEAD = 36 << 10
"""First bytes that tell the format: the mark of an ISO image lies at 32 KB."""
DAMAGE = (
    EOFError,
    ValueError,
    IndexError,
    KeyError,
    OverflowError,
    NotImplementedError,
    RuntimeError,
    struct.error,
    lzma.LZMAError,
    tarfile.TarError,
    zipfile.BadZipFile,
    zlib.error,
)
"""What readers of the standard library raise for files that are damaged, or made to harm."""
SMALL_PIECE = 1 << 13
ENDS_EARLY = ("unexpected end of data", "EOFError")
"""What they say of files that are cut."""


class Entry(NamedTuple):
    """A member of a container, while its bytes can be read."""

    name: str
    """As the container has it; never a path on disk."""
    stream: Stream
    is_layer: bool = False
    """A part of the format: where it is a container, its members are those of the whole."""
    is_archive: bool = False
    """It holds all that there is, so it is a failure if its format is not known."""


@dataclass
class Opening:
    """What a format needs to know of the container that it reads."""

    label: str
    """How the container is called."""
    meter: Meter
    note: Callable[[str, str], None]
    """Is told the name of a member that is skipped, and why; of the container for ``""``."""
    folder: Path
    """Private, for files that have to lie somewhere."""
    seconds: float
    """Time for a program that helps."""


Members = Callable[[Stream, Opening], Iterator[Entry]]


@dataclass(frozen=True)
class Format:
    """A format of containers."""

    name: str
    """With its article: ``a zip archive``."""
    matches: Callable[[bytes], bool]
    """Whether a file begins so."""
    members: Members
    """Gives the members in turn; an entry's stream ends when the next is asked for."""
    needs_file: bool = False
    """It cannot be read from front to back, so :attr:`Stream.path` must be there."""


@contextmanager
def damage() -> Iterator[None]:
    """Raises a FormatError for whatever a reader of the standard library raises inside."""
    try:
        yield
    except GraphkinError:
        raise
    except (*DAMAGE, OSError) as error:
        # An offset below 0, or no number of the system's at all, is of the file, not of the disk.
        if isinstance(error, OSError) and error.errno not in (None, errno.EINVAL):
            raise
        text = " ".join(str(error).split()) or type(error).__name__
        if text in ENDS_EARLY:
            raise FormatError("it ends early") from error
        raise FormatError(f"it is damaged: {text}") from error


class Readable(Protocol):
    """What a reader of the standard library gives for a member."""

    def read(self, size: int, /) -> bytes: ...


def metered(file: Readable, meter: Meter) -> Stream:
    """A file of the standard library's readers as a stream that counts what comes out of it.

    It is read in small pieces: where a file is cut, all of a piece is lost.
    """

    def read(size: int) -> bytes:
        with damage():
            data = file.read(min(size, SMALL_PIECE))
        meter.spend(len(data))
        return data

    return Stream(read)
