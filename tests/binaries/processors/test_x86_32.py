"""32-bit x86 of gcc and clang, with and without position independence."""

from __future__ import annotations

import logging

import pytest

from graphkin.binaries.processors.x86.processor import X86
from tests.binaries import shapes

NAMES = shapes.names("x86")


@pytest.mark.parametrize("name", NAMES)
def test_tables_have_as_many_targets_as_the_source_has_cases(name: str) -> None:
    shapes.check_tables(name)


@pytest.mark.parametrize("name", NAMES)
def test_calls_that_never_return(name: str) -> None:
    shapes.check_no_return(name)


@pytest.mark.parametrize("name", [name for name in NAMES if name.endswith("O2")])
def test_objects_and_stripped_files(name: str) -> None:
    shapes.check_object(name)
    shapes.check_stripped(name)


@pytest.mark.parametrize(
    "name", [name for name in NAMES if "static" in name and not name.endswith("O0")]
)
def test_agreement_with_smda(name: str) -> None:
    """Equal block starts in 14 of 16 functions. In the other two SMDA reads the table of a switch
    over 64 bits on into the next table, the one of computed goto in the next function; the
    emulator took the jumps as we have them. At -O0 SMDA reads few tables.
    """
    smda = pytest.importorskip("smda.Disassembler")
    logging.disable(logging.CRITICAL)
    try:
        report = smda.Disassembler().disassembleFile(str(shapes.SAMPLES / name))
    finally:
        logging.disable(logging.NOTSET)
    theirs = {
        getFunction.offset: {
            block.offset
            for block in getFunction.getBlocks()
            if any(item.mnemonic != "nop" for item in block.getInstructions())
        }
        for getFunction in report.getFunctions()
    }
    ours = {
        value.name: ({block.address for block in value.blocks}, theirs[value.address])
        for value in shapes.functions(name).values()
        if value.name not in shapes.CUT_SHORT and value.address in theirs
    }
    assert len(ours) == 16
    different = {key for key, (mine, other) in ours.items() if mine != other}
    assert different == {"longest", "jumps"}
    assert ours["longest"][0] < ours["longest"][1]
    assert ours["jumps"][1] < ours["jumps"][0]


def test_a_register_that_is_not_the_table_calls_no_slot() -> None:
    # call [ebx + 8] without any base of the global offset table, then ret
    blocks, _ = shapes.recover(X86(32), "8b5c2404 ff5308 c3")
    assert [block.mnemonics for block in blocks] == [("mov", "call", "ret")]
