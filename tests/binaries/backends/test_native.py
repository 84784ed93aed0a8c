"""Reading leaves the process as it was, and takes no more than its budget."""

from __future__ import annotations

import gc
from pathlib import Path

import pytest

from graphkin.binaries.backends.base import Deadline, Limits, OutOfTime
from graphkin.binaries.backends.choose import open_source
from graphkin.binaries.backends.native import NativeSource
from tests.paths import BINARIES
from tests.web.browser.objects import branching, object_file

FILE = BINARIES / "evidence" / "aarch64.so"


def test_the_garbage_collector_is_as_before_when_files_were_read() -> None:
    usual = gc.get_threshold()
    first, second = NativeSource(FILE).functions(), NativeSource(FILE).functions()
    next(first)
    assert gc.get_threshold()[0] > usual[0]
    next(second)
    first.close()
    assert gc.get_threshold()[0] > usual[0]
    list(second)
    assert gc.get_threshold() == usual


def test_a_garbage_collector_that_is_off_stays_off() -> None:
    usual = gc.get_threshold()
    gc.set_threshold(0, *usual[1:])
    try:
        functions = NativeSource(FILE).functions()
        next(functions)
        assert gc.get_threshold()[0] == 0
    finally:
        functions.close()
        gc.set_threshold(*usual)


def test_blocks_of_a_function_and_of_a_file_are_bounded(tmp_path: Path) -> None:
    """A few bytes make a block: a small file could take all memory."""
    file = tmp_path / "crafted.o"
    bodies = [("large", branching(60)), *((f"f{number}", branching(10)) for number in range(9))]
    file.write_bytes(object_file(bodies))
    source = open_source(file, limits=Limits(function_blocks=50, file_blocks=35))
    names = [function.name for function in source.functions()]
    assert names == ["f0", "f1", "f2", "f3"]
    reasons = [str(item) for item in source.skipped]
    assert "large skipped: more than 50 basic blocks" in reasons[0]
    assert "more than 35 basic blocks; 5 functions are left out" in reasons[1]
    assert len(list(open_source(file).functions())) == len(bodies)


def test_a_deadline_inside_a_batch_ends_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """Functions are decoded together; those behind the deadline are left all the same."""
    whole = [function.name for function in NativeSource(FILE).functions()]
    assert len(whole) > 4
    checks = iter([None] * 3)

    def check(self: Deadline) -> None:
        if next(checks, self) is self:
            raise OutOfTime

    monkeypatch.setattr(Deadline, "check", check)
    source = NativeSource(FILE)
    names = [function.name for function in source.functions()]
    assert names == whole[: len(names)]
    assert 0 < len(names) <= 3
    left = len(whole) - len(names)
    assert f"with {left} functions left, from {whole[len(names)]} on" in source.skipped[-1].reason
