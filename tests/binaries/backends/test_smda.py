"""SMDA as a source of functions, where nothing else tells where they start."""

from __future__ import annotations

import hashlib
import logging
import subprocess
import sys
from pathlib import Path

import pytest

from graphkin.binaries.backends.base import Limits
from graphkin.binaries.backends.native import NativeSource
from graphkin.binaries.backends.smda import SmdaSource
from graphkin.errors import FormatError, MissingDependencyError
from tests.binaries.compiling import Compile
from tests.paths import BINARIES

NO_STARTS = BINARIES / "no_starts" / "no_starts.elf"
SOURCE = """
int out(int);
int loop(int x, int y) { for (int i = 0; i < x; i++) { if (y & i) out(i); else out(y); } return y; }
int twice(int a) { return loop(a, 2) * loop(2, a); }
int chain(int a) { if (a > 3 && (a & 5) || a == 2) out(a); return a ? 7 : loop(a, a); }
"""


@pytest.fixture(autouse=True)
def _needs_smda() -> None:
    pytest.importorskip("smda")


def test_functions_are_found_by_their_code_alone() -> None:
    source = SmdaSource(NO_STARTS)
    functions = list(source.functions())
    assert source.skipped == []
    # out, pick, twice and _start, where nm had them before strip
    assert [function.address for function in functions] == [0x4000E8, 0x4000FD, 0x400135, 0x400157]
    assert [function.name for function in functions] == [
        "sub_4000e8",
        "sub_4000fd",
        "sub_400135",
        "sub_400157",
    ]
    pick = functions[1]
    assert pick.edges == (
        (0, 1), (0, 6), (1, 4), (2, 3), (3, 4), (3, 6), (4, 2), (4, 5), (5, 3),
    )  # fmt: skip
    assert pick.blocks[4].mnemonics == ("test", "je")
    assert pick.size == sum(block.size for block in pick.blocks) == 0x38
    assert (pick.architecture, pick.format, pick.binary) == ("x86-64", "elf", str(NO_STARTS))
    assert pick.file_hash == hashlib.sha256(NO_STARTS.read_bytes()).hexdigest()
    assert pick.blocks[4].instructions is None


def test_text_on_request() -> None:
    pick = [*SmdaSource(NO_STARTS, with_text=True).functions()][1]
    assert pick.blocks[4].instructions is not None
    assert pick.blocks[4].instructions[0].startswith("test ")
    assert [len(b.instructions or ()) for b in pick.blocks] == [
        len(b.mnemonics) for b in pick.blocks
    ]


@pytest.mark.parametrize("level", ["-O0", "-O1"])
def test_agrees_with_the_native_backend(compile_c: Compile, level: str) -> None:
    path = compile_c(SOURCE, level, "-shared", "-fPIC", "-fno-inline")
    ours = {function.name: function for function in NativeSource(path, with_text=True).functions()}
    theirs = {function.name: function for function in SmdaSource(path, with_text=True).functions()}
    for name in ("loop", "twice", "chain"):
        assert theirs[name].blocks == ours[name].blocks
        assert theirs[name].edges == ours[name].edges
        assert theirs[name].address == ours[name].address


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b"just some text\n" * 10, "not an ELF, PE or Mach-O file"),
        (b"\x7fELF", "not an ELF, PE or Mach-O file"),
        (b"MZ" + bytes(500), "SMDA cannot read"),
        (b"\x7fELF" + bytes(500), "SMDA cannot read"),
    ],
)
def test_foreign_and_damaged_files(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "strange.bin"
    path.write_bytes(content)
    with pytest.raises(FormatError, match=message) as caught:
        list(SmdaSource(path).functions())
    assert "strange.bin" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_limits_are_kept() -> None:
    source = SmdaSource(NO_STARTS, limits=Limits(function_bytes=40))
    assert [function.size for function in source.functions()] == [21, 34]
    assert [item.function for item in source.skipped] == ["sub_4000fd", "sub_400157"]
    assert "over the limit of 40" in source.skipped[0].reason


def test_the_log_is_left_as_it_was(caplog: pytest.LogCaptureFixture) -> None:
    before = logging.getLogger("smda").level
    list(SmdaSource(NO_STARTS).functions())
    assert caplog.records == []
    assert logging.getLogger("smda").level == before


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("graphkin.binaries.backends.smda.find_spec", lambda name: None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'graphkin\[smda\]'"):
        list(SmdaSource(NO_STARTS).functions())


def test_smda_is_imported_only_when_used() -> None:
    code = "import graphkin.binaries.backends.choose, sys; print('smda' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
