"""Reading leaves the process as it was."""

from __future__ import annotations

import gc

from graphkin.binaries.backends.native import NativeSource
from tests.paths import BINARIES

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
