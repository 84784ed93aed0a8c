"""32-bit x86 of gcc and clang, with and without position independence."""

from __future__ import annotations

import logging
from collections.abc import Sequence

import pytest

from graphkin.binaries.image import Image, Region
from graphkin.binaries.processors.x86.jump_tables import table_base
from graphkin.binaries.processors.x86.processor import X86
from graphkin.binaries.recovery.listing import Listing
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


@pytest.mark.parametrize("order", [range(10), range(9, -1, -1), (9, 4, 6, 3, 8, 1)])
def test_base_of_the_global_offset_table_does_not_depend_on_what_was_asked_before(
    order: Sequence[int],
) -> None:
    code = bytes.fromhex(
        "8b5c2408"  # mov ebx, [esp + 8]
        "90"
        "e800000000"  # call the next instruction
        "5b"  # pop ebx
        "81c300010000"  # add ebx, 0x100
        "90"
        "89de"  # mov esi, ebx
        "31db"  # xor ebx, ebx
        "90"
        "90"
    )
    image = Image("elf", "x86", [Region(0, code, True)], [], [], frozenset())
    listing = Listing(image, X86(32))
    listing.add_range(0, len(code))
    base = 0x10A
    in_ebx = [None, None, None, None, None, base, base, base, None, None]
    in_esi = [None, None, None, None, None, None, None, base, base, base]
    for position in order:
        assert table_base(image, listing, "ebx", position) == in_ebx[position]
        assert table_base(image, listing, "esi", position) == in_esi[position]
