"""Squashfs images against the files that they were made of."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
from pathlib import Path

import pytest

from graphkin.binaries.containers import disk_images, squashfs
from graphkin.binaries.containers.base import Opening
from graphkin.binaries.containers.budget import Budget, Meter, OverBudget
from graphkin.binaries.containers.stream import Stream
from graphkin.binaries.function import Skipped
from graphkin.binaries.inputs import Inputs
from graphkin.binaries.reading import read_functions
from graphkin.binaries.targets import parse_target
from graphkin.errors import FormatError
from tests.binaries.containers.making import OBJECT, OTHER
from tests.paths import BINARIES

SAMPLES = BINARIES / "squashfs"
"""Images of four files, of mksquashfs 4.5.1 with blocks of 4 KB: ``make_squashfs.sh``."""
NAMES = ["bin/shapes.o", "bin/tool", "etc/empty", "etc/holes"]
needs_tool = pytest.mark.skipif(
    shutil.which("mksquashfs") is None, reason="mksquashfs is not installed (squashfs-tools)"
)


def contents(image: Path, budget: Budget | None = None) -> dict[str, bytes | str]:
    """Every file of an image, or why it cannot be read."""
    files: dict[str, bytes | str] = {}
    meter = Meter(budget or Budget(), image.stat().st_size)
    opening = Opening(str(image), meter, files.__setitem__, image.parent, 10.0)
    for entry in squashfs.members(Stream(lambda size: b"", image), opening):
        try:
            data = b""
            while piece := entry.stream.read(1 << 20):
                data += piece
            files[entry.name] = data
        except FormatError as error:
            files[entry.name] = str(error)
    return files


@pytest.mark.parametrize("compression", ["gzip", "xz", "zstd", "lzma", "lzo", "lz4"])
def test_files_of_every_compression(compression: str) -> None:
    files = contents(SAMPLES / f"{compression}.sqfs")
    assert sorted(files) == NAMES
    assert files["bin/shapes.o"] == OBJECT
    assert files["bin/tool"] == OTHER
    assert files["etc/empty"] == b""
    assert files["etc/holes"] == bytes(20_000) + b"end"


@needs_tool
@pytest.mark.parametrize(
    "options",
    [
        ["-comp", "gzip", "-b", "131072"],
        ["-comp", "xz", "-Xbcj", "x86", "-b", "1M"],
        ["-comp", "zstd", "-no-fragments"],
        ["-comp", "lzo", "-b", "1M"],
        ["-comp", "lzo", "-Xalgorithm", "lzo1x_1"],
        ["-comp", "lz4", "-Xhc"],
        ["-comp", "gzip", "-noI", "-noD", "-noF"],
        ["-comp", "gzip", "-b", "4096", "-always-use-fragments"],
    ],
    ids=" ".join,
)
def test_a_large_tree(options: list[str], tmp_path: Path) -> None:
    """Thousands of names, long ones, large files, hard links, and files that end with a block."""
    root = tmp_path / "root"
    chance = random.Random(1)
    expected = {}
    for number in range(3000):
        name = f"d{number % 7}/e{number % 3}/{'n' * (number % 90)}{number}"
        size = chance.choice([0, 1, 4096, 8192, 5000, 300_000 if number % 100 == 0 else 70])
        content = chance.randbytes(size // 2) + bytes(size - size // 2)
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(content)
        expected[name] = content
    os.link(root / "d0/e0/0", root / "linked")
    os.symlink("/etc/passwd", root / "link")
    expected["linked"] = expected["d0/e0/0"]
    image = tmp_path / "tree.sqfs"
    subprocess.run(
        ["mksquashfs", str(root), str(image), "-quiet", "-no-progress", *options], check=True
    )
    assert contents(image) == expected


def test_an_image_is_a_container() -> None:
    image = SAMPLES / "xz.sqfs"
    functions = list(read_functions(parse_target(f"{image}!bin/shapes.o")))
    assert {function.binary for function in functions} == {f"{image}!bin/shapes.o"}
    assert "grade" in {function.name for function in functions}


@pytest.mark.skipif(disk_images.is_installed(), reason="unblob is installed, and reads all of it")
@pytest.mark.parametrize("header", [b"\x27\x05\x19\x56", b"\1\2\3\4"], ids=["U-Boot", "unknown"])
def test_images_inside_a_firmware(header: bytes, tmp_path: Path) -> None:
    firmware = tmp_path / "update.bin"
    gzip_image, xz_image = ((SAMPLES / f"{name}.sqfs").read_bytes() for name in ("gzip", "xz"))
    firmware.write_bytes(header + b"hsqs" + bytes(996) + gzip_image + b"\xff" * 100 + xz_image)
    with Inputs() as inputs:
        labels = [item.label for item in inputs.inputs(inputs.files([firmware]))]
    second = 1000 + 4 + len(gzip_image) + 100
    assert labels == [
        f"{firmware}!{place:#x}/bin/{name}"
        for place in (1004, second)
        for name in ("shapes.o", "tool")
    ]
    assert inputs.skipped == [Skipped(str(firmware), "", disk_images.ONLY_SQUASHFS)]


def test_a_bomb_is_given_up() -> None:
    with pytest.raises(OverBudget, match="more than 10,000 bytes"):
        contents(SAMPLES / "gzip.sqfs", Budget(total_bytes=10_000))


@pytest.mark.parametrize("compression", ["gzip", "xz", "zstd", "lzo", "lz4"])
def test_damaged_images_do_not_crash(compression: str, tmp_path: Path) -> None:
    whole = (SAMPLES / f"{compression}.sqfs").read_bytes()
    chance = random.Random(2)
    image = tmp_path / "damaged.sqfs"
    reasons = set()
    for _ in range(150):
        data = bytearray(whole)
        for _ in range(chance.randrange(1, 20)):
            data[chance.randrange(96, len(data))] = chance.randrange(256)
        image.write_bytes(data[: chance.randrange(96, len(data) + 1)])
        reasons |= {text for text in contents(image).values() if isinstance(text, str)}
    assert "it ends early" in reasons
    assert any(reason.startswith("it is damaged") for reason in reasons)
