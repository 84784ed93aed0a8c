"""File systems, firmware and archives that ``unblob`` unpacks, where it is installed. Without it,
firmware is searched for squashfs images, which most of it is made of.

unblob is a program of its own, which calls others for many formats. It writes files under names
from the image, so it works in a folder that is private and that goes away, and only the content
of regular files is taken from there.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from graphkin.binaries.containers import squashfs
from graphkin.binaries.containers.base import Entry, Format, Opening
from graphkin.binaries.containers.budget import Budget, OverBudget
from graphkin.binaries.containers.stream import Stream
from graphkin.errors import FormatError

PROGRAM = "unblob"
INSTALL = (
    "graphkin opens it through unblob, which is not installed: pip install unblob, and the tools "
    "that `unblob --show-external-dependencies` lists"
)
ONLY_SQUASHFS = (
    "only what is in its squashfs images is read; graphkin opens the rest through unblob, which is "
    "not installed"
)
NOTHING = (
    "unblob found nothing in it; `unblob --show-external-dependencies` says whether a tool for it "
    "is missing"
)
MARKS: tuple[tuple[int, bytes, str], ...] = (
    (0, b"hsqs", "a squashfs image"),
    (0, b"sqsh", "a squashfs image"),
    (0x400, b"\xe2\xe1\xf5\xe0", "an EROFS image"),
    (0x400, b"\x10\x20\xf5\xf2", "an F2FS image"),
    (0x8001, b"CD001", "an ISO 9660 image"),
    (0, b"\x45\x3d\xcd\x28", "a cramfs image"),
    (0, b"\x28\xcd\x3d\x45", "a cramfs image"),
    (0, b"-rom1fs-", "a romfs image"),
    (0, b"UBI#", "a UBI image"),
    (0, b"\x31\x18\x10\x06", "a UBIFS image"),
    (0, b"\x85\x19\x01\xe0", "a JFFS2 image"),
    (0, b"\x85\x19\x03\x20", "a JFFS2 image"),
    (0, b"XFSB", "an XFS image"),
    (0, b"\x3a\xff\x26\xed", "an Android sparse image"),
    (0, b"ANDROID!", "an Android boot image"),
    (0, b"\x27\x05\x19\x56", "a U-Boot image"),
    (0, b"HDR0", "a TRX firmware image"),
    (0x52, b"FAT32   ", "a FAT image"),
    (0x36, b"FAT12   ", "a FAT image"),
    (0x36, b"FAT16   ", "a FAT image"),
    (3, b"NTFS    ", "an NTFS image"),
    (0, b"7z\xbc\xaf\x27\x1c", "a 7-Zip archive"),
    (0, b"Rar!\x1a\x07", "a RAR archive"),
    (0, b"MSCF\0\0\0\0", "a Windows cabinet"),
    (0, b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an OLE file, such as a Windows installer"),
    (0, b"xar!", "a xar archive"),
    (0, b"\x04\x22\x4d\x18", "lz4 data"),
    (0, b"LZIP", "lzip data"),
    (0, b"\x89LZO\0\r\n\x1a\n", "lzop data"),
)
POLL_SECONDS = 0.5
MEMORY = 8 << 30
"""Address space of unblob, and of each program that it calls."""
PR_SET_PDEATHSIG = 1
CARVED = "_extract"
"""What unblob appends to the name of a file for the folder of its content."""


def is_installed() -> bool:
    """Whether unblob can be called."""
    return shutil.which(PROGRAM) is not None


def can_search(path: Path) -> bool:
    """Whether something may be found in a file of no known format."""
    return is_installed() or bool(squashfs.images_inside(path))


def members(stream: Stream, opening: Opening) -> Iterator[Entry]:
    """The regular files that unblob finds in an image."""
    assert stream.path is not None
    if not is_installed():
        offsets = squashfs.images_inside(stream.path)
        if not offsets:
            raise FormatError(INSTALL)
        opening.note("", ONLY_SQUASHFS)
        yield from squashfs.carved(stream.path, offsets, opening)
        return
    with tempfile.TemporaryDirectory(dir=opening.folder, prefix="image-") as folder:
        # A name of ours, which the folders of the output are called after.
        source, out = Path(folder, "image"), Path(folder, "out")
        os.symlink(os.path.abspath(stream.path), source)
        _run(source, out, opening)
        count = 0
        for file in _files(out):
            opening.meter.member()
            count += 1
            os.chmod(file, 0o600)  # images have files that nobody may read
            with open(file, "rb") as content:
                yield Entry(_name(file, out), Stream(content.read))
        if not count:
            raise FormatError(NOTHING)


def _run(source: Path, out: Path, opening: Opening) -> None:
    """Calls unblob within the budget."""
    command = [PROGRAM, "--extract-dir", str(out), "--depth", "1", "--process-num", "1"]
    command += ["--randomness-depth", "0", "--log", str(out.with_name("log")), str(source)]
    budget = opening.meter.budget
    end = time.monotonic() + opening.seconds
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd=out.parent,
        start_new_session=True,
        preexec_fn=partial(_restrict, budget.member_bytes, int(opening.seconds) + 1),
    )
    try:
        while process.poll() is None:
            if time.monotonic() > end:
                raise OverBudget(f"unblob is not finished after {opening.seconds:g} s")
            _check(out, budget)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(POLL_SECONDS)
        _check(out, budget)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    opening.meter.spend(_size(out))


def _restrict(file_bytes: int, seconds: int) -> None:
    """Runs in unblob's process before unblob does: limits that those whom it calls inherit."""
    import resource

    for kind, limit in (
        (resource.RLIMIT_AS, MEMORY),
        (resource.RLIMIT_FSIZE, file_bytes),
        (resource.RLIMIT_CPU, seconds),
        (resource.RLIMIT_CORE, 0),
    ):
        _, hard = resource.getrlimit(kind)
        limit = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
        resource.setrlimit(kind, (limit, hard))
    if sys.platform == "linux":
        # A worker that takes too long is killed, and must not leave a process behind.
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def _check(folder: Path, budget: Budget) -> None:
    if _size(folder) > budget.total_bytes:
        raise OverBudget(f"more than {budget.total_bytes:,} bytes unpacked")


def _size(folder: Path) -> int:
    """Bytes on disk, so that holes do not count."""
    return sum(512 * os.lstat(file).st_blocks for file in _files(folder))


def _files(folder: Path) -> Iterator[Path]:
    """Regular files, sorted; links are not followed."""
    for parent, below, names in os.walk(folder):
        below.sort()
        for name in sorted(names):
            file = Path(parent, name)
            with contextlib.suppress(OSError):
                if file.is_file() and not file.is_symlink():
                    yield file


def _name(file: Path, out: Path) -> str:
    """The name in the image, without the folders that unblob made."""
    first, *others = os.path.relpath(file, out).split(os.sep)
    parts = [first, *others] if not first.endswith(CARVED) else others
    return "/".join(part.removesuffix(CARVED) for part in parts)


def _format(offset: int, magic: bytes, name: str) -> Format:
    def matches(head: bytes) -> bool:
        return head.startswith(magic, offset)

    return Format(name, matches, members, needs_file=True)


def _is_ext(head: bytes) -> bool:
    """The mark has two bytes only, so what lies around it has to fit as well."""
    block = head[0x400:0x460]
    if len(block) < 0x60 or block[0x38:0x3A] != b"\x53\xef":
        return False
    sizes = [int.from_bytes(block[at : at + 4], "little") for at in (0x18, 0x4C)]
    return sizes[0] <= 6 and sizes[1] <= 1 and any(block[:8])


FORMATS = (
    *(_format(*mark) for mark in MARKS),
    Format("an ext2, ext3 or ext4 image", _is_ext, members, needs_file=True),
)
UNKNOWN = Format(
    "of no format that graphkin knows",
    lambda head: True,
    members,
    needs_file=True,
)
"""For a file that a person names: unblob looks for known formats at every byte."""
