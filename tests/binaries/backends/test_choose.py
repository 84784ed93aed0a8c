"""Which backend reads which file."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from graphkin.binaries.backends.base import Limits
from graphkin.binaries.backends.binexport.reader import BinExportSource
from graphkin.binaries.backends.choose import BACKENDS, looks_like_binary, open_source
from graphkin.binaries.backends.native import NativeSource
from graphkin.binaries.backends.smda import SmdaSource
from graphkin.binaries.function import Skipped
from graphkin.errors import ConfigError, FormatError
from tests.binaries.backends.test_binexport import export, save
from tests.binaries.backends.test_smda import NO_STARTS
from tests.binaries.compiling import Compile

SOURCE = "int f(int x) { return x ? 1 : 2; } int g(int x) { return x * f(x); }"


def names(path: Path, **options: Any) -> list[str]:
    return [function.name for function in open_source(path, **options).functions()]


def test_symbols_are_preferred(compile_c: Compile) -> None:
    path = compile_c(SOURCE, "-O1", "-c")
    source = open_source(path, with_text=True)
    functions = list(source.functions())
    assert functions == list(NativeSource(path, with_text=True).functions())
    assert [function.name for function in functions] == ["f", "g"]
    assert functions[0].blocks[0].instructions is not None
    assert source.skipped == []


@pytest.fixture
def no_search(monkeypatch: pytest.MonkeyPatch) -> None:
    """As for files that are too large to look for functions in."""
    monkeypatch.setattr("graphkin.binaries.starts.locate.MAX_SWEEP", 0)


@pytest.mark.usefixtures("no_search")
def test_smda_reads_what_it_finds_more_in() -> None:
    pytest.importorskip("smda")
    skipped = [Skipped("other", "", "damaged")]
    source = open_source(NO_STARTS, skipped=skipped)
    assert list(source.functions()) == list(SmdaSource(NO_STARTS).functions())
    assert skipped == [Skipped("other", "", "damaged")]
    (coverage,) = source.coverages
    assert (coverage.share, coverage.functions) == (1.0, 4)
    assert coverage.tried == ("entry points", "SMDA")
    native = open_source(NO_STARTS, backend="native")
    assert list(native.functions()) == []
    assert native.skipped
    assert native.coverages[0].recovered_bytes == 0
    expected = open_source(NO_STARTS, wants=lambda extent: extent.name == "sub_4000fd")
    assert [function.name for function in expected.functions()] == ["sub_4000fd"]


def test_the_native_backend_stays_where_smda_finds_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("smda")
    monkeypatch.setattr("graphkin.binaries.coverage.BOUND", 1.1)
    source = open_source(NO_STARTS)
    assert list(source.functions()) == list(NativeSource(NO_STARTS).functions())
    assert "SMDA" not in source.coverages[0].tried


@pytest.mark.parametrize("backend", BACKENDS)
def test_every_backend_reads_only_what_is_wanted(
    backend: str, compile_c: Compile, tmp_path: Path
) -> None:
    path = compile_c(SOURCE, "-O1", "-shared", "-fPIC")
    if backend == "smda":
        pytest.importorskip("smda")
    if backend == "binexport":
        path = save(export(path)[1], tmp_path / "x.BinExport")
    assert {"f", "g"} <= set(names(path, backend=backend))
    assert names(path, backend=backend, wants=lambda extent: extent.name == "g") == ["g"]


@pytest.mark.usefixtures("no_search")
def test_without_smda_a_warning_says_what_would_help(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("graphkin.binaries.backends.smda.find_spec", lambda name: None)
    source = open_source(NO_STARTS)
    assert list(source.functions()) == []
    assert "no function was found" in source.skipped[0].reason
    warning = source.coverages[0].warning()
    assert "only 0.0% of 162 bytes of code lie inside the 0 functions" in warning
    assert "tried: entry points; pip install 'graphkin[smda]'" in warning


def test_functions_that_were_skipped_are_no_reason_for_smda(compile_c: Compile) -> None:
    path = compile_c(SOURCE, "-O1", "-c")
    source = open_source(path, limits=Limits(function_bytes=1))
    assert list(source.functions()) == []
    assert {item.function for item in source.skipped} == {"f", "g"}


def test_archives_stay_with_the_native_backend(compile_c: Compile, tmp_path: Path) -> None:
    data = compile_c("int nothing;", "-c", name="data.o")
    code = compile_c('__asm__("nop; ret");', "-c", name="code.o")
    archive = tmp_path / "x.a"
    subprocess.run(["ar", "rc", str(archive), str(data), str(code)], check=True)
    source = open_source(archive)
    assert list(source.functions()) == []
    # A member without code is no loss, and not worth a warning.
    assert [item.binary for item in source.skipped] == [f"{archive}(code.o)"]
    assert "no function was found" in source.skipped[0].reason


def test_a_binary_by_the_name_of_an_export_is_read_as_a_binary(
    compile_c: Compile, tmp_path: Path
) -> None:
    path = compile_c(SOURCE, "-O1", "-c")
    assert names(path.rename(tmp_path / "x.BinExport")) == ["f", "g"]


def test_binexport_files_by_name_and_by_content(compile_c: Compile, tmp_path: Path) -> None:
    path = compile_c(SOURCE, "-O1", "-shared", "-fPIC")
    functions, proto = export(path)
    for name in ("x.BinExport", "x.bin"):
        file = save(proto, tmp_path / name)
        assert isinstance(open_source(file), BinExportSource)
        assert names(file) == [function.name for function in functions]
    assert names(file, backend="binexport") == names(file)
    with pytest.raises(FormatError, match="damaged"):
        names(path, backend="binexport")
    with pytest.raises(FormatError):
        names(file, backend="native")


def test_what_cannot_be_opened_is_the_backends_to_report(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="No such file"):
        names(tmp_path / "absent")
    with pytest.raises(FormatError, match="is a directory"):
        names(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(FormatError, match="not a regular file"):
        names(tmp_path / "pipe")


def test_unknown_backend() -> None:
    with pytest.raises(ConfigError, match=r"'ghidra'; choose one of auto, native, smda, binexport"):
        open_source(NO_STARTS, backend="ghidra")


@pytest.mark.parametrize(
    ("content", "is_one"),
    [
        (b"\x7fELF\x02\x01\x01", True),
        (b"MZ\x90\0", True),
        (b"!<arch>\n", True),
        (b"\xcf\xfa\xed\xfe\x07\0\0\x01", True),
        (b"\xca\xfe\xba\xbe\0\0\0\x02", True),
        (b"\xca\xfe\xba\xbe\0\0\0\x34", False),  # compiled Java
        (b"#!/bin/sh\n", False),
        (b"\nan empty line", False),
        (b"", False),
    ],
)
def test_what_looks_like_a_binary(tmp_path: Path, content: bytes, is_one: bool) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    assert looks_like_binary(path) is is_one


def test_what_cannot_be_read_looks_like_nothing(tmp_path: Path) -> None:
    assert not looks_like_binary(tmp_path)
    assert not looks_like_binary(tmp_path / "absent")
