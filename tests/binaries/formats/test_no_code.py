"""Files without machine code: data is no loss, and what a compiler left to the linker is one."""

from __future__ import annotations

import shutil
import subprocess
import zipfile
from pathlib import Path

import pytest

from graphkin.binaries.backends.base import NO_CODE
from graphkin.binaries.formats.intermediate import BITCODE_ADVICE, GIMPLE_ADVICE
from tests.command_line import Graphkin
from tests.paths import BINARIES

SHAPES = BINARIES / "show" / "shapes.o"
needs_gcc = pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not installed")


def compiled(folder: Path, source: str, *options: str, name: str = "x.o", by: str = "gcc") -> Path:
    (folder / "x.c").write_text(source)
    out = folder / name
    subprocess.run([by, *options, "-o", out, folder / "x.c"], check=True)
    return out


@pytest.fixture(params=["x.o", "x.so"])
def data_only(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    options = ("-c",) if request.param == "x.o" else ("-shared", "-nostdlib")
    return compiled(tmp_path, "int table[4] = {1, 2, 3, 4};", *options, name=request.param)


@needs_gcc
def test_a_file_of_data_is_no_loss(data_only: Path, run: Graphkin, tmp_path: Path) -> None:
    line = f"graphkin: {data_only} skipped: {NO_CODE}\n"
    result = run("show", data_only)
    assert (result.code, result.out, result.err) == (0, "", line)
    result = run("extract", data_only, SHAPES, "-o", tmp_path / "x.graphs")
    assert (result.code, result.err.count(line)) == (0, 1)
    wheel = tmp_path / "x.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.write(data_only, "x.so")
    result = run("show", wheel)
    assert (result.code, result.out, result.err.count(f"{wheel}!x.so skipped: {NO_CODE}")) == (
        0,
        "",
        1,
    )


@needs_gcc
def test_a_search_in_data(data_only: Path, run: Graphkin, tmp_path: Path) -> None:
    library = tmp_path / "x.kin"
    result = run("index", library, SHAPES, data_only)
    assert (result.code, result.err.count(NO_CODE)) == (0, 1)
    for targets in ([data_only], [data_only, SHAPES]):
        result = run("scan", library, *targets)
        assert (result.code, result.err.count(NO_CODE)) == (0, 1)
        assert "nothing was looked up" not in result.err
    assert run("index", tmp_path / "y.kin", data_only).code == 0


@needs_gcc
@pytest.mark.parametrize("wrap", [False, True], ids=["object", "static library"])
def test_intermediate_code_of_gcc_is_a_loss(wrap: bool, run: Graphkin, tmp_path: Path) -> None:
    source = "int twice(int x) { return 2 * x; }"
    path = compiled(tmp_path, source, "-c", "-O1", "-flto", "-fno-fat-lto-objects")
    label = str(path)
    if wrap:
        archive = tmp_path / "x.a"
        # The tool for plain objects, as that of gcc may be absent.
        subprocess.run(["ar", "rc", archive, path], check=True, capture_output=True)
        path, label = archive, f"{archive}(x.o)"
    result = run("show", path)
    assert (result.code, result.err) == (11, f"graphkin: {label} skipped: {GIMPLE_ADVICE}\n")
    result = run("extract", path, SHAPES, "-o", tmp_path / "x.graphs")
    assert result.code == 21
    assert f"{label} skipped: {GIMPLE_ADVICE}" in result.err


@needs_gcc
def test_an_object_with_both_is_read(run: Graphkin, tmp_path: Path) -> None:
    source = "int twice(int x) { return 2 * x; }"
    path = compiled(tmp_path, source, "-c", "-O1", "-flto", "-ffat-lto-objects")
    result = run("show", path)
    assert result.code == 0
    assert " twice" in result.out
    assert "flto" not in result.err


def test_bitcode_of_clang_is_a_loss(run: Graphkin, tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    path = folder / "x.o"
    path.write_bytes(b"BC\xc0\xde" + bytes(100))
    shutil.copy(SHAPES, folder)
    result = run("show", folder)
    assert result.code == 21
    assert f"{path} skipped: it holds {BITCODE_ADVICE}" in result.err


@needs_gcc
def test_functions_without_code_are_a_loss(run: Graphkin, tmp_path: Path) -> None:
    whole = compiled(tmp_path, "int twice(int x) { return 2 * x; }", "-c", "-g")
    debug = tmp_path / "x.debug"
    subprocess.run(["objcopy", "--only-keep-debug", whole, debug], check=True)
    result = run("show", debug)
    assert result.code == 11
    assert "it may be a debug file, whose code is in another file" in result.err
