"""PE and Mach-O files that end before what their headers tell of are read with a warning."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.command_line import Graphkin
from tests.paths import BINARIES

WHOLE = sorted(
    file
    for pattern in ("pe/*.dll", "macho/*")
    for file in BINARIES.glob(pattern)
    if file.is_file() and file.suffix in (".dll", ".dylib", ".o", "")
)


PADDED = ("msvc", "clang-aarch64-O0.dll", "clang-aarch64-O2.dll", "clang-x86_64-O0.dll",
          "clang-x86_64-O2.dll")  # fmt: skip


@pytest.mark.parametrize("file", WHOLE, ids=lambda file: file.name)
def test_whole_files_are_not_called_cut(file: Path, run: Graphkin) -> None:
    assert "truncated" not in run("show", file).err


CASES = [(file, share) for file in WHOLE for share in (0.5, 0.9)]
# The last tenth of these is what fills their last section.
CASES = [case for case in CASES if case[1] < 0.9 or not case[0].name.startswith(PADDED)]


@pytest.mark.parametrize(("file", "share"), CASES)
def test_cut_files_are_named(file: Path, share: float, run: Graphkin, tmp_path: Path) -> None:
    data = file.read_bytes()
    cut = tmp_path / file.name
    cut.write_bytes(data[: int(len(data) * share)])
    result = run("show", cut)
    assert str(cut) in result.err
    assert result.code != 0, "it counts as unread, or is refused"
    assert re.search("truncated|damaged|cannot|ends inside|beyond|no functions", result.err)
