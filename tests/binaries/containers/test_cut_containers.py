"""Containers that end early: whole members come out, and the damage is named and counted."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import random
import shutil
import subprocess
import tarfile
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from graphkin.binaries.containers.stream import Stream
from graphkin.binaries.containers.unpack import Member
from graphkin.binaries.function import Skipped
from graphkin.errors import FormatError
from tests.binaries.containers.making import (
    OBJECT,
    OTHER,
    ar_of,
    binary_cpio_of,
    contents,
    cpio_of,
    deb_of,
    odc_of,
    rpm_of,
    tar_of,
    unpacked,
    zip_of,
    zstd,
)
from tests.command_line import Graphkin

Pack = Callable[[Mapping[str, bytes]], bytes]


def eight_files(size: int) -> dict[str, bytes]:
    """Different ones: copies compress to nothing, and an archive has them all in its first half."""
    chance = random.Random(size)
    return {f"bin/{number}": OBJECT + chance.randbytes(size) for number in range(8)}


SMALL, LARGE = eight_files(12_000), eight_files(300_000)


def zip_of_a_pipe(files: Mapping[str, bytes]) -> bytes:
    """A writer that cannot go back leaves sizes to descriptors behind the members."""

    class Pipe(io.RawIOBase):
        def __init__(self) -> None:
            self.content = b""

        def writable(self) -> bool:
            return True

        def write(self, data: object) -> int:
            self.content += bytes(data)  # type: ignore[call-overload]
            return len(self.content)

    pipe = Pipe()
    with zipfile.ZipFile(pipe, "w", zipfile.ZIP_DEFLATED) as archive:  # type: ignore[arg-type]
        for name, content in files.items():
            archive.writestr(name, content)
    return pipe.content


def bzip2_of(files: Mapping[str, bytes]) -> bytes:
    """Blocks of 100 KB, as nothing comes out of a block that is cut."""
    return bz2.compress(tar_of(files), 1)


def zstd_of(files: Mapping[str, bytes]) -> bytes:
    """Small frames, for the same reason."""
    content = tar_of(files)
    pieces = (content[at : at + 8192] for at in range(0, len(content), 8192))
    return b"".join(map(zstd.compress, pieces))


FORMATS: dict[str, Pack] = {
    "tar": tar_of,
    "tar.gz": lambda files: gzip.compress(tar_of(files)),
    "tar.bz2": bzip2_of,
    "tar.xz": lambda files: lzma.compress(tar_of(files)),
    "tar.lzma": lambda files: lzma.compress(tar_of(files), lzma.FORMAT_ALONE),
    "tar.zst": zstd_of,
    "zip": zip_of,
    "stored zip": lambda files: zip_of(files, zipfile.ZIP_STORED),
    "bzip2 zip": lambda files: zip_of(files, zipfile.ZIP_BZIP2),
    "lzma zip": lambda files: zip_of(files, zipfile.ZIP_LZMA),
    "zip of a pipe": zip_of_a_pipe,
    "cpio": cpio_of,
    "old cpio": odc_of,
    "binary cpio": lambda files: binary_cpio_of(files, "<"),
    "deb": deb_of,
    "gzip deb": lambda files: deb_of(files, "data.tar.gz"),
    "rpm": lambda files: rpm_of(lzma.compress(cpio_of(files))),
    "gzip rpm": lambda files: rpm_of(gzip.compress(cpio_of(files))),
    "ar of tar": lambda files: ar_of({"all.tar/": tar_of(files)}),
    "zip in a tar.gz": lambda files: gzip.compress(tar_of({"all.zip": zip_of(files)})),
}


def members_and_reasons(path: Path, folder: Path) -> tuple[dict[str, bytes], list[str]]:
    results = list(unpacked(path, folder))
    members = [item for item in results if isinstance(item, Member)]
    return (
        {item.label.rpartition("!")[2]: Path(item.path).read_bytes() for item in members},
        [str(item) for item in results if isinstance(item, Skipped)],
    )


@pytest.mark.parametrize("size", ["small", "large"])
@pytest.mark.parametrize("share", [0.5, 0.9])
@pytest.mark.parametrize("kind", FORMATS)
def test_what_is_whole_is_kept(kind: str, share: float, size: str, tmp_path: Path) -> None:
    files = SMALL if size == "small" else LARGE
    whole = FORMATS[kind](files).rstrip(b"\0")  # what fills up a tar archive may be missing
    path = tmp_path / "container"
    path.write_bytes(whole[: int(share * len(whole))])
    members, reasons = members_and_reasons(path, tmp_path / "private")
    if kind != "tar.bz2" or size == "large":  # nothing comes out of the one block of a small file
        assert len(members) >= int(8 * share) - 1
    assert all(files[name] == content for name, content in members.items())
    assert any("it ends early" in reason for reason in reasons), reasons
    assert any("what came before is kept" in reason for reason in reasons) == bool(members)


@pytest.mark.parametrize("share", [0.5, 0.9])
@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress, zstd.compress])
def test_a_cut_file_alone(pack: Callable[[bytes], bytes], share: float, tmp_path: Path) -> None:
    """There is one member, which is not whole."""
    whole = pack(OTHER)
    path = tmp_path / "container"
    path.write_bytes(whole[: int(share * len(whole))])
    members, reasons = members_and_reasons(path, tmp_path / "private")
    assert (members, reasons) == ({}, [f"{path}!content skipped: it ends early"])


def test_a_cut_static_library(run: Graphkin, tmp_path: Path) -> None:
    whole = ar_of({"one.o/": OBJECT, "two.o/": OBJECT})
    path = tmp_path / "lib.a"
    path.write_bytes(whole[: int(0.9 * len(whole))])
    result = run("show", path)
    assert result.code == 21
    assert " find\n" in result.out
    assert f"{path}(two.o) skipped: the archive ends inside it" in result.err


@pytest.mark.parametrize("kind", ["tar.gz", "zip", "deb"])
def test_the_exit_code_says_so(kind: str, run: Graphkin, tmp_path: Path) -> None:
    whole = FORMATS[kind](LARGE)
    path = tmp_path / "container"
    path.write_bytes(whole[: len(whole) // 2])
    result = run("show", path)
    assert result.code == 21
    assert f"{path}!bin/0" in result.out
    assert "it ends early; what came before is kept" in result.err or kind == "zip"
    assert "it ends early" in result.err


# --- Damage that the standard library takes for an end --------------------------------------


def test_a_checksum_behind_an_archive_is_read(tmp_path: Path) -> None:
    """The archive is whole, and the compressed data behind its end are not."""
    whole = gzip.compress(tar_of(SMALL) + random.Random(1).randbytes(100_000))
    path = tmp_path / "x.tar.gz"
    for damaged in (whole[:-1], whole[:-8] + bytes(8)):
        path.write_bytes(damaged)
        shutil.rmtree(tmp_path / "private", ignore_errors=True)
        members, (reason,) = members_and_reasons(path, tmp_path / "private")
        assert members == SMALL
        assert reason.startswith(f"{path} skipped: it is ")


@pytest.mark.parametrize("cut", [0, 100, 511])
def test_a_tar_archive_without_its_end(cut: int, tmp_path: Path) -> None:
    """Between two members, or inside the header of the second."""
    first = 512 + len(OTHER) + -len(OTHER) % 512
    path = tmp_path / "x.tar"
    path.write_bytes(tar_of({"a": OTHER, "b": OBJECT}, tarfile.USTAR_FORMAT)[: first + cut])
    members, (reason,) = members_and_reasons(path, tmp_path / "private")
    assert members == {"a": OTHER}
    assert reason == (
        f"{path} skipped: it is a tar archive; it ends early: there is no mark of its end; "
        "what came before is kept"
    )


def test_a_damaged_header_of_a_tar_archive(tmp_path: Path) -> None:
    content = bytearray(tar_of({"a": OTHER, "b": OBJECT}, tarfile.USTAR_FORMAT))
    content[512 + len(OTHER) + -len(OTHER) % 512] ^= 1
    path = tmp_path / "x.tar"
    path.write_bytes(content)
    members, (reason,) = members_and_reasons(path, tmp_path / "private")
    assert members == {"a": OTHER}
    assert "it is damaged: bad checksum of a header" in reason


def test_tar_archives_that_were_joined(tmp_path: Path) -> None:
    path = tmp_path / "x.tar"
    path.write_bytes(tar_of({"a": OTHER}) + tar_of({"b": OBJECT}))
    assert contents(path, tmp_path / "private") == {"a": OTHER, "b": OBJECT}


@pytest.mark.skipif(shutil.which("mksquashfs") is None, reason="mksquashfs is not installed")
def test_a_cut_squashfs_image(tmp_path: Path) -> None:
    """Its tables lie at its end; where they are left, so are its files."""
    root = tmp_path / "root"
    root.mkdir()
    for name, content in LARGE.items():
        (root / name.rpartition("/")[2]).write_bytes(content)
    image = tmp_path / "x.sqfs"
    subprocess.run(["mksquashfs", root, image, "-quiet", "-no-progress", "-nopad"], check=True)
    whole = image.read_bytes()
    for size in (len(whole) // 2, len(whole) - 8):
        image.write_bytes(whole[:size])
        members, reasons = members_and_reasons(image, tmp_path / f"private{size}")
        assert len(members) == (0 if size == len(whole) // 2 else 8)
        expected = f"{image} skipped: it ends early: it has {size:,} of {len(whole):,} bytes"
        assert expected in reasons


def test_a_read_goes_up_to_the_damage() -> None:
    """A look ahead must not cost what lies before the damage."""
    pieces = iter([b"abc", b"def"])

    def source(size: int) -> bytes:
        for piece in pieces:
            return piece
        raise FormatError("it ends early")

    stream = Stream(source)
    assert stream.peek(100) == b"abcdef"
    assert stream.read(100) == b"abcdef"
    with pytest.raises(FormatError, match="ends early"):
        stream.read(1)
    stream.drain()  # it was said
