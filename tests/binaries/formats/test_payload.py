"""What programs carry with them is named, and the programs are read all the same."""

from __future__ import annotations

import gzip
import random
import subprocess
from pathlib import Path

import pytest

from graphkin.binaries.backends.native import NativeSource, load
from graphkin.binaries.formats.archive import is_fat
from graphkin.binaries.formats.payload import LEAST_BYTES, PYINSTALLER, payload
from graphkin.errors import FormatError
from tests.binaries.compiling import Compile
from tests.paths import BINARIES

CODE = "int twice(int n) { return 2 * n; } int main(int n) { return twice(n); }"
NOISE = random.Random(1).randbytes(3 * LEAST_BYTES)


def skipped(path: Path) -> list[str]:
    """What was skipped, after the functions were read."""
    source = NativeSource(path)
    names = {function.name for function in source.functions()}
    assert not path.suffix or "twice" in names
    return [str(item) for item in source.skipped]


@pytest.fixture
def program(compile_c: Compile) -> Path:
    return compile_c(CODE, "-O1", "-fno-inline", name="program.elf")


def test_bytes_behind_a_program(program: Path) -> None:
    assert skipped(program) == []
    whole = program.read_bytes()
    program.write_bytes(whole + NOISE[: LEAST_BYTES - 1])
    assert skipped(program) == [], "a signature is that long"
    program.write_bytes(whole + NOISE)
    (reason,) = skipped(program)
    assert reason.startswith(f"{program}!12,288 bytes behind the program skipped: no header")


@pytest.mark.parametrize("width", ["-m64", "-m32"])
def test_objects_of_both_widths(compile_c: Compile, width: str) -> None:
    path = compile_c(CODE, "-O1", "-c", width, name="object.o")
    assert skipped(path) == []
    path.write_bytes(path.read_bytes() + NOISE)
    assert len(skipped(path)) == 1


def test_an_archive_of_pyinstaller(program: Path) -> None:
    program.write_bytes(program.read_bytes() + NOISE + PYINSTALLER + bytes(80))
    (reason,) = skipped(program)
    assert reason == (
        f"{program}!archive of PyInstaller skipped: the program unpacks it when it starts; "
        "unpack it first (pyinstxtractor)"
    )


def test_an_archive_of_staticx(program: Path) -> None:
    archive = program.with_name("archive")
    archive.write_bytes(NOISE)
    section = f".staticx.archive={archive}"
    subprocess.run(["objcopy", "--add-section", section, str(program)], check=True)
    (reason,) = skipped(program)
    assert reason.startswith(f"{program}!archive of staticx skipped")


def test_an_appimage(program: Path) -> None:
    data = bytearray(program.read_bytes() + NOISE)
    data[8:11] = b"AI\x02"
    program.write_bytes(data)
    (reason,) = skipped(program)
    assert "--appimage-extract" in reason


def test_pe_files_with_symbols_and_more(tmp_path: Path) -> None:
    samples = [path for path in BINARIES.glob("pe/*.dll") if not is_fat(path.read_bytes())]
    assert len(samples) > 10
    for path in samples:
        data = path.read_bytes()
        assert payload(data, load(data, path.name)) is None, path.name
    carrying = data + NOISE
    carried = payload(carrying, load(carrying, "setup.exe"))
    assert carried is not None
    assert carried.name == "12,288 bytes behind the program"


@pytest.mark.parametrize("size", [0, 1, 40, 63, 64, 100, 600])
def test_headers_that_end_early_say_nothing(program: Path, size: int) -> None:
    image = load(program.read_bytes(), "program")
    payload(program.read_bytes()[:size].ljust(6, b"\x01"), image)


def test_tables_beyond_the_file_say_nothing(program: Path) -> None:
    data = bytearray(program.read_bytes())
    image = load(bytes(data), "program")
    for place in (32, 40):
        damaged = bytearray(data)
        damaged[place : place + 8] = b"\xff" * 8
        assert payload(bytes(damaged), image) is None


def test_scripts_are_named(tmp_path: Path) -> None:
    path = tmp_path / "install"
    for data, words in (
        (b"", "is a script, not a binary"),
        (gzip.compress(NOISE), "is a script with compressed data in it"),
    ):
        path.write_bytes(b"#!/bin/sh\nexit 0\n" + data)
        with pytest.raises(FormatError, match=words):
            list(NativeSource(path).functions())
