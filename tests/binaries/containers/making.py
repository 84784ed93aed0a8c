"""Containers of every format, made by hand or by the standard library."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import struct
import sys
import tarfile
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from graphkin.binaries.containers.budget import Budget
from graphkin.binaries.containers.unpack import Absent, Member, UnpackJob, unpack
from graphkin.binaries.function import Skipped
from tests.paths import BINARIES

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

OBJECT = (BINARIES / "show" / "shapes.o").read_bytes()
OTHER = (BINARIES / "x86" / "gcc-shared-O2-stripped").read_bytes()
FILES = {"./usr/bin/tool": OTHER, "usr/share/doc/readme": b"text" * 100, "/lib/shapes.o": OBJECT}
NAMES = {"usr/bin/tool": OTHER, "lib/shapes.o": OBJECT}
"""What is to come out of :data:`FILES`."""


def zip_of(files: Mapping[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return out.getvalue()


def tar_of(files: Mapping[str, bytes], style: int = tarfile.PAX_FORMAT) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=style) as archive:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return out.getvalue()


def ar_of(files: Mapping[str, bytes]) -> bytes:
    out = b"!<arch>\n"
    for name, content in files.items():
        out += f"{name:<16}{0:<12}{0:<6}{0:<6}{100644:<8}{len(content):<10}`\n".encode()
        out += content + b"\n" * (len(content) % 2)
    return out


def deb_of(files: Mapping[str, bytes], data: str = "data.tar.xz") -> bytes:
    """A Debian package, as ``dpkg-deb`` lays it out."""
    pack = {"xz": lzma.compress, "gz": gzip.compress, "zst": zstd.compress, "tar": bytes}
    control = gzip.compress(tar_of({"./control": b"Package: x\n"}))
    content = pack[data.rpartition(".")[2]](tar_of(files))
    return ar_of({"debian-binary": b"2.0\n", "control.tar.gz": control, data: content})


def cpio_of(files: Mapping[str, bytes], mode: int = 0o100644) -> bytes:
    out = b""
    for name, content in {**files, "TRAILER!!!": b""}.items():
        raw = name.encode() + b"\0"
        fields = [1, mode, 0, 0, 1, 0, len(content), 0, 0, 0, 0, len(raw), 0]
        out += b"070701" + b"".join(b"%08x" % field for field in fields) + raw
        out += b"\0" * (-len(out) % 4)
        out += content
        out += b"\0" * (-len(out) % 4)
    return out


def odc_of(files: Mapping[str, bytes]) -> bytes:
    out = b""
    for name, content in {**files, "TRAILER!!!": b""}.items():
        raw = name.encode() + b"\0"
        fields = [(1, 6), (1, 6), (0o100644, 6), (0, 6), (0, 6), (1, 6), (0, 6), (0, 11)]
        fields += [(len(raw), 6), (len(content), 11)]
        out += b"070707" + b"".join(b"%0*o" % (width, value) for value, width in fields)
        out += raw + content
    return out


def binary_cpio_of(files: Mapping[str, bytes], order: str) -> bytes:
    out = b""
    for name, content in {**files, "TRAILER!!!": b""}.items():
        raw = name.encode() + b"\0"
        mode = 0 if name == "TRAILER!!!" else 0o100644
        halves = (len(content) >> 16, len(content) & 0xFFFF)
        fields = (0o070707, 0, 1, mode, 0, 0, 1, 0, 0, 0, len(raw), *halves)
        out += struct.pack(f"{order}13H", *fields) + raw + b"\0" * (len(raw) % 2)
        out += content + b"\0" * (len(content) % 2)
    return out


def rpm_of(payload: bytes) -> bytes:
    """A lead, a signature of one entry padded to 8 bytes, a header of two, and the payload."""

    def header(entries: int, store: bytes) -> bytes:
        index = struct.pack(">4I", 1000, 7, 0, len(store)) * entries
        return (
            b"\x8e\xad\xe8\x01" + bytes(4) + struct.pack(">2I", entries, len(store)) + index + store
        )

    lead = b"\xed\xab\xee\xdb\x03\x00" + bytes(90)
    signature = header(1, b"abcde")
    return lead + signature + bytes(-len(signature) % 8) + header(2, b"xyz") + payload


CONTAINERS: dict[str, bytes] = {
    "zip": zip_of(FILES),
    "stored zip": zip_of(FILES, zipfile.ZIP_STORED),
    "lzma zip": zip_of(FILES, zipfile.ZIP_LZMA),
    "tar": tar_of(FILES),
    "old tar": tar_of(FILES, tarfile.USTAR_FORMAT),
    "tar.gz": gzip.compress(tar_of(FILES)),
    "tar.bz2": bz2.compress(tar_of(FILES)),
    "tar.xz": lzma.compress(tar_of(FILES)),
    "tar.lzma": lzma.compress(tar_of(FILES), lzma.FORMAT_ALONE),
    "tar.zst": zstd.compress(tar_of(FILES)),
    "gz twice": gzip.compress(gzip.compress(tar_of(FILES))),
    "deb": deb_of(FILES),
    "zstd deb": deb_of(FILES, "data.tar.zst"),
    "plain deb": deb_of(FILES, "data.tar"),
    "cpio": cpio_of(FILES),
    "old cpio": odc_of(FILES),
    "binary cpio": binary_cpio_of(FILES, "<"),
    "binary cpio, big-endian": binary_cpio_of(FILES, ">"),
    "rpm": rpm_of(zstd.compress(cpio_of(FILES))),
    "xz rpm": rpm_of(lzma.compress(cpio_of(FILES))),
    "lzma rpm": rpm_of(lzma.compress(cpio_of(FILES), lzma.FORMAT_ALONE)),
    "plain rpm": rpm_of(cpio_of(FILES)),
    "ar of tar": ar_of({"other.tar/": tar_of(FILES)}),
}
"""The same files in every format."""


def unpacked(
    path: Path, folder: Path, *, inside: tuple[str, ...] = (), budget: Budget | None = None
) -> Iterator[Member | Skipped | Absent]:
    """What is in a container, found by this process."""
    folder.mkdir(exist_ok=True)
    return unpack(UnpackJob(str(path), str(folder), 1, budget or Budget(), 60.0, inside))


def contents(path: Path, folder: Path, **options: object) -> dict[str, bytes]:
    """Labels without the container's own path, and contents; nothing may be skipped."""
    results = list(unpacked(path, folder, **options))  # type: ignore[arg-type]
    assert all(isinstance(result, Member) for result in results), results
    return {
        member.label.removeprefix(f"{path}!"): Path(member.path).read_bytes()
        for member in results
        if isinstance(member, Member)
    }
