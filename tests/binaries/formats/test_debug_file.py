"""Debug files beside a binary, in the system's folder, and inside the binary."""

from __future__ import annotations

import lzma
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from graphkin.binaries.backends.native import NativeSource, load
from graphkin.binaries.formats.elf import debug_file
from graphkin.binaries.formats.elf.debug_file import debug_link
from graphkin.binaries.formats.elf.debug_folders import DebugFolders
from graphkin.binaries.image import Image
from graphkin.cli.exit_codes import is_incomplete
from tests.binaries.compiling import Compile

SOURCE = """
__attribute__((noinline)) static int inner(int n) { return n * n + 1; }
__attribute__((noinline)) static int outer(int n) { return n ? inner(n) : 3; }
int start(int n) { return outer(n) + inner(n + 1); }
"""
HIDDEN = {"inner", "outer"}


def run(*command: str | Path) -> None:
    if shutil.which(str(command[0])) is None:
        pytest.skip(f"{command[0]} is not installed")
    subprocess.run(list(map(str, command)), check=True, capture_output=True)


@pytest.fixture
def split(compile_c: Compile, tmp_path: Path) -> tuple[Path, Path]:
    """A stripped library, and its debug file in another folder."""
    whole = compile_c(
        SOURCE, "-O1", "-g", "-shared", "-fPIC", "-Wl,--build-id=sha1", name="whole.so"
    )
    (tmp_path / "bin").mkdir()
    (tmp_path / "apart").mkdir()
    bare, debug = tmp_path / "bin" / "lib.so", tmp_path / "apart" / "lib.so.debug"
    run("objcopy", "--only-keep-debug", whole, debug)
    run("objcopy", "--strip-all", f"--add-gnu-debuglink={debug}", whole, bare)
    return bare, debug


def without_build_id(path: Path) -> None:
    run("objcopy", "--remove-section=.note.gnu.build-id", path)


def read(bare: Path, system: Path | None = None, limit: int = 1 << 30) -> Image:
    folders = DebugFolders(bare, limit, system or bare.parent / "nothing")
    return load(bare.read_bytes(), str(bare), folders)


def names(image: Image) -> set[str]:
    return {extent.name for extent in image.extents}


def test_without_a_debug_file_static_names_are_gone(split: tuple[Path, Path]) -> None:
    bare, _ = split
    image = read(bare)
    assert not HIDDEN & names(image)
    assert image.remark is None


@pytest.mark.parametrize("place", ["lib.so.debug", ".debug/lib.so.debug"])
def test_beside_the_binary_by_its_checksum(split: tuple[Path, Path], place: str) -> None:
    bare, debug = split
    without_build_id(bare)
    (bare.parent / ".debug").mkdir()
    shutil.copy(debug, bare.parent / place)
    image = read(bare)
    assert names(image) >= HIDDEN
    assert image.note is None
    assert image.lines is not None


def test_in_the_folder_of_the_system(split: tuple[Path, Path], tmp_path: Path) -> None:
    bare, debug = split
    home = tmp_path / "system" / str(bare.parent).lstrip("/")
    home.mkdir(parents=True)
    shutil.copy(debug, home)
    assert names(read(bare, tmp_path / "system")) >= HIDDEN


def test_by_the_build_id(split: tuple[Path, Path], tmp_path: Path) -> None:
    bare, debug = split
    listing = subprocess.run(["readelf", "-n", bare], capture_output=True, text=True, check=True)
    build_id = listing.stdout.partition("Build ID: ")[2].split()[0]
    run("objcopy", "--remove-section=.gnu_debuglink", bare)
    home = tmp_path / "system" / ".build-id" / build_id[:2]
    home.mkdir(parents=True)
    # As Fedora has it: a link to the file in its own folder.
    shutil.copy(debug, tmp_path / "system")
    (home / f"{build_id[2:]}.debug").symlink_to("../../lib.so.debug")
    assert names(read(bare, tmp_path / "system")) >= HIDDEN
    other = tmp_path / "other" / ".build-id" / build_id[:2]
    other.mkdir(parents=True)
    shutil.copy(debug, other / f"{build_id[2:]}.debug")
    without_build_id(other / f"{build_id[2:]}.debug")
    assert not HIDDEN & names(read(bare, tmp_path / "other"))


def test_functions_are_the_same_as_those_of_the_whole_library(
    split: tuple[Path, Path], tmp_path: Path
) -> None:
    bare, debug = split
    shutil.copy(debug, bare.parent)
    whole = {f.name: f for f in NativeSource(tmp_path / "whole.so", with_files=True).functions()}
    functions = {f.name: f for f in NativeSource(bare, with_files=True).functions()}
    assert functions.keys() == whole.keys()
    for name in ("inner", "outer", "start"):
        function, other = functions[name], whole[name]
        assert (function.blocks, function.size, function.unit) == (
            other.blocks,
            other.size,
            other.unit,
        )
        assert function.defined_in == other.defined_in
        assert function.defined_in is not None


def test_a_file_whose_checksum_differs_is_not_used(split: tuple[Path, Path]) -> None:
    bare, debug = split
    content = bytearray(debug.read_bytes())
    content[-1] ^= 1
    (bare.parent / debug.name).write_bytes(content)
    image = read(bare)
    assert not HIDDEN & names(image)
    assert image.note is None
    assert image.remark is not None
    assert "checksum" in image.remark
    source = NativeSource(bare)
    assert any(function.name == "start" for function in source.functions())
    (item,) = source.skipped
    assert str(item).startswith(f"{bare}: its debug information in ")
    assert not is_incomplete(source.skipped)


def test_a_file_over_the_limit_is_not_read(split: tuple[Path, Path]) -> None:
    bare, debug = split
    shutil.copy(debug, bare.parent)
    image = read(bare, limit=debug.stat().st_size - 1)
    assert not HIDDEN & names(image)
    assert image.remark is not None
    assert "over the limit" in image.remark


@pytest.mark.parametrize(
    "name", ["../apart/lib.so.debug", "/etc/passwd", "..", ".", "", "a\0b", "C:x", "..\\x", "x/"]
)
def test_only_plain_names_are_looked_for(tmp_path: Path, name: str) -> None:
    assert list(DebugFolders(tmp_path / "lib.so", 1).of_link(name)) == []


def test_a_link_that_leads_out_of_the_folder_is_not_followed(split: tuple[Path, Path]) -> None:
    bare, debug = split
    (bare.parent / debug.name).symlink_to(debug)
    assert not HIDDEN & names(read(bare))
    (bare.parent / debug.name).unlink()
    (bare.parent / debug.name).symlink_to(debug.name)
    assert not HIDDEN & names(read(bare))
    (bare.parent / debug.name).unlink()
    os.mkfifo(bare.parent / debug.name)
    assert not HIDDEN & names(read(bare))


def test_a_debug_file_for_another_processor_is_not_used(split: tuple[Path, Path]) -> None:
    bare, debug = split
    content = bytearray(debug.read_bytes())
    content[18:20] = (183).to_bytes(2, "little")
    (bare.parent / debug.name).write_bytes(content)
    run("objcopy", "--remove-section=.gnu_debuglink", bare)
    run("objcopy", f"--add-gnu-debuglink={bare.parent / debug.name}", bare)
    assert not HIDDEN & names(read(bare))


def test_links_with_damage() -> None:
    assert debug_link(b"abc\0\x01\x02\x03\x04", "little") == ("abc", 0x04030201)
    assert debug_link(b"abcd\0\0\0\0\x01\x02\x03\x04", "big") == ("abcd", 0x01020304)
    for content in (b"", b"abc", b"abc\0", b"abc\0\x01\x02\x03", b"a" * 300 + b"\0\0\0\0\0\0\0\0"):
        assert debug_link(content, "little") == ("", 0)


# --- Symbols inside the binary ------------------------------------------------------------------


def with_mini(split: tuple[Path, Path], content: bytes) -> Path:
    bare, debug = split
    mini = debug.with_name("mini.xz")
    mini.write_bytes(content)
    run("objcopy", "--remove-section=.gnu_debuglink", f"--add-section=.gnu_debugdata={mini}", bare)
    return bare


def test_mini_symbols(split: tuple[Path, Path]) -> None:
    bare = with_mini(split, lzma.compress(split[1].read_bytes()))
    assert names(load(bare.read_bytes(), str(bare))) >= HIDDEN


def test_mini_symbols_that_are_damaged_or_grow_too_large(
    split: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    content = split[1].read_bytes()
    monkeypatch.setattr(debug_file, "MAX_MINI", len(content))
    bomb = lzma.compress(content + b"\0")
    for hostile in (
        bomb,
        b"\xfd7zXZ\0junk",
        lzma.compress(b"not ELF"),
        lzma.compress(content)[:99],
    ):
        bare = with_mini(split, hostile)
        assert not HIDDEN & names(load(bare.read_bytes(), str(bare)))
        run("objcopy", "--remove-section=.gnu_debugdata", bare)
