"""Archives that hold no code: import libraries of Windows."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest
from typer.testing import CliRunner

from graphkin.binaries.backends.native import NativeSource
from graphkin.binaries.formats.archive import members
from graphkin.binaries.reading import read_functions
from graphkin.binaries.targets import parse_target
from graphkin.cli.main import application
from graphkin.errors import FormatError
from tests.paths import BINARIES

IMPORTS = BINARIES / "pe" / "imports.lib"
"""``llvm-dlltool -m i386:x86-64 -d tiny.def -l imports.lib``, of three names of tiny.dll."""
DLL = BINARIES / "pe" / "gcc-x86_64-O2.dll"
REASON = "it is an import library: it lists 3 names of a DLL, and that has the code"


def test_names_and_descriptors_are_passed_over_and_said_once() -> None:
    source = NativeSource(IMPORTS)
    assert list(source.functions()) == []
    assert [(skip.reason, skip.has_code) for skip in source.skipped] == [(REASON, False)]


def test_an_object_with_code_is_not_passed_over() -> None:
    data = bytearray(IMPORTS.read_bytes())
    at = data.index(b".idata$2") + 36
    data[at] |= 0x20
    assert [name for name, _ in members(bytes(data), "x.lib", [])] == ["tiny.dll"]


@pytest.mark.parametrize("command", ["show", "extract"])
def test_a_wheel_with_an_import_library_is_read_whole(command: str, tmp_path: Path) -> None:
    wheel = tmp_path / "x.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.write(DLL, "x/x.dll")
        archive.write(IMPORTS, "x/x.lib")
    output = ["-o", str(tmp_path / "x.graphs")] if command == "extract" else []
    result = CliRunner().invoke(application(), [command, str(wheel), *output])
    assert result.exit_code == 0
    assert result.stderr.count(f"{wheel}!x/x.lib skipped: {REASON}") == 1


def test_an_import_library_alone_says_what_it_is() -> None:
    with pytest.raises(FormatError, match=REASON):
        list(read_functions(parse_target(str(IMPORTS))))
