"""RISC-V of gcc and clang, with compressed instructions: jump tables, calls, stripped files."""

from __future__ import annotations

import pytest

from graphkin.binaries.backends.native import NativeSource, load
from graphkin.binaries.function import edge_kinds
from graphkin.binaries.processors.riscv import RiscV64
from graphkin.errors import FormatError
from tests.binaries import shapes

NAMES = shapes.names("riscv64")


@pytest.mark.parametrize("name", NAMES)
def test_tables_have_as_many_targets_as_the_source_has_cases(name: str) -> None:
    shapes.check_tables(name)


@pytest.mark.parametrize("name", NAMES)
def test_calls_that_never_return(name: str) -> None:
    shapes.check_no_return(name)


@pytest.mark.parametrize("name", [name for name in NAMES if name.endswith("O2")])
def test_stripped_files(name: str) -> None:
    shapes.check_stripped(name)


def test_objects_are_refused() -> None:
    data = (shapes.SAMPLES / "riscv64/gcc-shared-O2.o").read_bytes()
    with pytest.raises(FormatError, match="is an object of RISC-V; graphkin reads it once it is"):
        load(data, "shapes.o")


@pytest.mark.parametrize(
    ("stop", "name"),
    [
        ("8280", "c.jr"),  # ra
        ("67800000", "ret"),
        ("67800200", "jr"),  # t0, where helpers of prologues return to
        ("0290", "c.ebreak"),
        ("73001000", "ebreak"),
        ("73002030", "mret"),
    ],
)
def test_what_ends_a_path(stop: str, name: str) -> None:
    blocks, edges = shapes.recover(RiscV64(), f"{stop} 0145 8280")
    assert [block.mnemonics for block in blocks] == [(name,)]
    assert edges == ()


@pytest.mark.parametrize(
    ("branch", "name"),
    [
        ("6306b500", "beq"),
        ("6316b500", "bne"),
        ("6346b500", "blt"),
        ("6356b500", "bge"),
        ("6366b500", "bltu"),
        ("6376b500", "bgeu"),
        ("09c5", "c.beqz"),
        ("09e5", "c.bnez"),
    ],
)
def test_branches_of_every_kind(branch: str, name: str) -> None:
    # branch to the last one; c.li a0, 0, four times; c.jr ra
    fillers = "0145" * 4
    blocks, edges = shapes.recover(RiscV64(), f"{branch} {fillers} 8280")
    assert [block.mnemonics for block in blocks] == [(name,), ("c.li",) * 4, ("c.jr",)]
    assert edges == ((0, 1), (0, 2), (1, 2))


def test_texts_have_addresses_where_capstone_prints_distances() -> None:
    source = NativeSource(shapes.SAMPLES / "riscv64/gcc-shared-O2", with_text=True)
    loops = next(function for function in source.functions() if function.name == "loops")
    kinds = dict(zip(loops.edges, edge_kinds(loops), strict=True))
    branches = 0
    for number, block in enumerate(loops.blocks):
        assert block.instructions is not None
        for target in (target for start, target in loops.edges if start == number):
            if kinds[number, target] == "taken":
                branches += 1
                named = block.instructions[-1].rpartition(" ")[2]
                assert int(named, 16) == loops.blocks[target].address
    assert branches >= 4
