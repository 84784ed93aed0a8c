"""What a pipeline learns from the end of a command."""

from __future__ import annotations

import inspect
import tarfile
from pathlib import Path

import pytest
import typer

from graphkin import errors
from graphkin.binaries.function import Skipped
from graphkin.binaries.samples import bundled
from graphkin.cli.exit_codes import (
    FOUND_AND_UNREADABLE,
    MEANINGS,
    UNREADABLE,
    exit_with,
    is_incomplete,
)
from tests.conftest import Compile, Graphkin


def test_no_error_has_such_a_code() -> None:
    kinds = [kind for _, kind in inspect.getmembers(errors, inspect.isclass)]
    taken = {kind.exit_code for kind in kinds if issubclass(kind, errors.GraphkinError)}
    assert not taken & set(MEANINGS)
    assert not {0, 1, 2, 130} & set(MEANINGS)


@pytest.mark.parametrize(
    ("has_hit", "is_partial", "code"), [(True, False, 20), (False, True, 21), (True, True, 22)]
)
def test_codes(has_hit: bool, is_partial: bool, code: int) -> None:
    with pytest.raises(typer.Exit) as ended:
        exit_with(has_hit=has_hit, is_partial=is_partial)
    assert ended.value.exit_code == code


def test_neither_is_a_success() -> None:
    exit_with(has_hit=False, is_partial=False)


def test_what_makes_an_input_incomplete() -> None:
    assert not is_incomplete([])
    assert not is_incomplete([Skipped("lib.so", "odd", "its first bytes are not an instruction")])
    assert is_incomplete([Skipped("lib.so", "odd", "it is absent")], ["other.so", "lib.so:odd"])
    assert is_incomplete([Skipped("lib.a(one.o)", "", "the archive ends inside it")])
    assert not is_incomplete([Skipped("names.lib", "", "it has no code", has_code=False)])
    assert not is_incomplete([Skipped("lib.so", "", "its debug file is another's", is_read=True)])


def test_code_that_nobody_read_is_not_a_success(
    run: Graphkin, compile_c: Compile, tmp_path: Path
) -> None:
    """Most of the code of this object is in no function, whatever its symbols say."""
    source = """int sum(int *a, int n) {
                  int s = 0;
                  for (int i = 0; i < n; i++) if (a[i]) s += a[i] * i; else s -= 1;
                  return s;
                }
                __asm__(".text; .fill 9000,1,0x06");"""
    path = compile_c(source, "-O1", "-c", name="most.o")
    library = tmp_path / "known.kin"
    assert run("index", library, bundled.ELF / "gcc-O2/libkinbeat.so").code == 0
    outcome = run("scan", library, path, "--min-blocks", "1", "--exit-code")
    assert "only " in outcome.err
    assert outcome.code == UNREADABLE


def test_what_could_not_be_read_is_said_once(run: Graphkin, tmp_path: Path) -> None:
    library, cut = tmp_path / "known.kin", tmp_path / "cut.tar"
    firmware = bundled.ELF / "gcc-O2/libkinbeat.so"
    assert run("index", library, firmware).code == 0
    with tarfile.open(cut, "w") as tar:
        tar.add(firmware, "lib.so")
    cut.write_bytes(cut.read_bytes()[:2000])
    outcome = run("scan", library, cut, firmware, "--exit-code")
    assert outcome.code == FOUND_AND_UNREADABLE
    assert outcome.err.count("cut.tar skipped: it is a tar archive") == 1
