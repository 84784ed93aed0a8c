"""Control flow of shapes.c, as every compiler made it for every processor, against an emulator."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.binaries import shapes

PROCESSORS = {
    "x86": 16,
    "aarch64": 16,
    "arm": 32,
    "mips": 16,
    "mipsel": 16,
    "mips64el": 8,
    "riscv64": 16,
    "ppc": 16,
    "ppc64le": 16,
}
NAMES = [name for processor in PROCESSORS for name in shapes.names(processor)]


def test_every_compiler_and_level_is_there() -> None:
    # 2 compilers, shared and static, 4 levels; on ARM in both states.
    counts = Counter(name.partition("/")[0] for name in NAMES)
    assert counts == PROCESSORS
    assert all(len(shapes.traces()[name]) == 16 for name in NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_control_flow_agrees_with_an_emulator(name: str) -> None:
    for function in shapes.traces()[name]:
        shapes.check_trace(name, function)


@pytest.mark.parametrize("name", NAMES)
def test_all_code_is_reached(name: str) -> None:
    for function in shapes.traces()[name].keys() - shapes.CUT_SHORT:
        assert shapes.unreached(name, function) == [], function
