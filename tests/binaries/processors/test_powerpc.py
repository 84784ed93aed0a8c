"""PowerPC of gcc and clang: returns and branches of all kinds, jump tables, stubs, two entries."""

from __future__ import annotations

from pathlib import Path

import lief
import pytest

from graphkin.binaries.backends.native import NativeSource, load
from graphkin.binaries.function import Block, edge_kinds
from graphkin.binaries.image import Image, Region
from graphkin.binaries.processors.powerpc.abi_tables import traceback_tables
from graphkin.binaries.processors.powerpc.processor import PowerPc
from graphkin.binaries.recovery.architecture import CALL
from graphkin.binaries.recovery.listing import Listing
from graphkin.binaries.starts.sweep import words
from graphkin.errors import FormatError
from tests.binaries import shapes

NAMES = [*shapes.names("ppc"), *shapes.names("ppc64le")]
RETURN, NOP, LI = "4e800020", "60000000", "38600001"


def recover(code: str) -> tuple[tuple[Block, ...], tuple[tuple[int, int], ...]]:
    """Code as manuals write it, which a little-endian machine has the other way round."""
    swapped = "".join(bytes.fromhex(word)[::-1].hex() for word in code.split())
    return shapes.recover(PowerPc(64, "little"), swapped)


@pytest.mark.parametrize("name", NAMES)
def test_tables_have_as_many_targets_as_the_source_has_cases(name: str) -> None:
    functions = shapes.functions(name)
    expected = {"dense": [12], "wide": [60], "shifted": [10], "holes": [10], "twice": [7, 9]}
    assert {key: shapes.widths(functions[key]) for key in expected} == expected


@pytest.mark.parametrize("name", NAMES)
def test_calls_that_never_return(name: str) -> None:
    shapes.check_no_return(name)


@pytest.mark.parametrize("name", [name for name in NAMES if name.endswith("O2")])
def test_stripped_files(name: str) -> None:
    shapes.check_stripped(name)


@pytest.mark.parametrize("architecture", ["ppc", "ppc64le"])
def test_objects_are_refused(architecture: str) -> None:
    data = (shapes.SAMPLES / f"{architecture}/gcc-shared-O2.o").read_bytes()
    with pytest.raises(FormatError, match="is an object of PowerPC; graphkin reads it once it is"):
        load(data, "shapes.o")


@pytest.mark.parametrize(
    ("place", "value", "reason"),
    [
        (5, 2, "big-endian code for PowerPC of 64 bits"),
        (0x30, 1, "little-endian code for PowerPC of 64 bits of the ABI ELFv1"),
    ],
)
def test_other_abis_are_refused(place: int, value: int, reason: str) -> None:
    data = bytearray((shapes.SAMPLES / "ppc64le/gcc-shared-O2").read_bytes())
    if place == 5:
        data[:] = _big_endian_header(data)
    else:
        data[place] = value
    with pytest.raises(FormatError, match=reason):
        load(bytes(data), "other.so")


def _big_endian_header(data: bytearray) -> bytes:
    """The header alone, in the other byte order."""
    header = bytearray(data[:64])
    header[5] = 2
    for start, width in ((16, 2), (18, 2), (20, 4), (48, 4), (52, 2)):
        header[start : start + width] = header[start : start + width][::-1]
    header[24:48] = bytes(24)
    header[54:64] = bytes(10)
    return bytes(header)


@pytest.mark.parametrize(
    ("stop", "name"),
    [
        (RETURN, "blr"),
        ("7fe00008", "trap"),
        ("4c000064", "rfi"),
        ("4e800420", "bctr"),  # through a register that nothing is known of
        ("48100000", "b"),  # out of the function
    ],
)
def test_what_ends_a_path(stop: str, name: str) -> None:
    blocks, edges = recover(f"{stop} {LI} {RETURN}")
    assert [block.mnemonics for block in blocks] == [(name,)]
    assert edges == ()


@pytest.mark.parametrize(
    ("branch", "name"),
    [
        ("4182000c", "beq"),
        ("409e000c", "bne"),
        ("419d000c", "bgt"),
        ("4200000c", "bdnz"),
        ("4240000c", "bdz"),
        ("41a2000c", "beq"),  # with a hint
    ],
)
def test_branches_of_every_kind(branch: str, name: str) -> None:
    # branch to the last one; li, twice; blr
    blocks, edges = recover(f"{branch} {LI} {LI} {RETURN}")
    assert [block.mnemonics for block in blocks] == [(name,), ("li", "li"), ("blr",)]
    assert edges == ((0, 1), (0, 2), (1, 2))


@pytest.mark.parametrize(
    ("word", "name"), [("4d820020", "beqlr"), ("4c9e0020", "bnelr"), ("4d820420", "beqctr")]
)
def test_a_conditional_return_goes_on_or_leaves(word: str, name: str) -> None:
    blocks, edges = recover(f"{LI} {word} {LI} {RETURN}")
    assert [block.mnemonics for block in blocks] == [("li", name), ("li", "blr")]
    assert edges == ((0, 1),)


def test_what_asks_for_its_address_is_no_call() -> None:
    # bcl 20, 31, .+4; mflr r30; bl .+4; mflr r30; blr
    blocks, _ = recover(f"429f0005 7fc802a6 48000005 7fc802a6 {RETURN}")
    assert [block.mnemonics for block in blocks] == [("bcl", "mflr", "bl", "mflr", "blr")]


@pytest.mark.parametrize("padding", [NOP, "60420000", "68000000"])
def test_padding_before_a_loop_is_no_block(padding: str) -> None:
    # b to the loop; padding; addi r3, r3, -1; cmpwi r3, 0; bne to the addi; blr
    code = f"48000008 {padding} 3863ffff 2c030000 4082fff8 {RETURN}"
    blocks, edges = recover(code)
    assert [block.mnemonics for block in blocks] == [("b",), ("addi", "cmpwi", "bne"), ("blr",)]
    assert edges == ((0, 1), (1, 1), (1, 2))


def test_hashes_of_return_addresses_are_no_words() -> None:
    # mflr r0; hashst r0, -8(r1); hashchk r0, -8(r1); blr
    blocks, _ = recover(f"7c0802a6 7fe105a5 7fe105e5 {RETURN}")
    assert [block.mnemonics for block in blocks] == [("mflr", "blr")]


def test_what_a_call_goes_to() -> None:
    """A direct one, one through a slot of the table of contents, and one of a pointer."""
    # bl 0x1000; ld r12, -32752(r2); mtctr r12; bctrl; bnel 0x1000; mtctr r3; bctrl
    code = "48000001 e9828010 7d8903a6 4e800421 4082fff1 7c6903a6 4e800421"
    content = b"".join(bytes.fromhex(word)[::-1] for word in code.split())
    image = Image("elf", "ppc64le", [Region(0x1000, content, True)], [], [], frozenset())
    image.got = 0x18000
    assert _called(image, PowerPc(64, "little"), len(content)) == [0x1000, 0x10010, None, None]


@pytest.mark.parametrize(
    ("stub", "distance"),
    [("817e8010 7d6903a6 4e800420", -0x7FF0), ("3d7e0001 816b0010 7d6903a6 4e800420", 0x10010)],
)
def test_the_slot_of_a_stub_depends_on_who_calls_it(stub: str, distance: int) -> None:
    # bcl 20, 31, .+4; mflr r30; addis r30, r30, 2; addi r30, r30, 12; bl 0x1018; blr; the stub
    code = f"429f0005 7fc802a6 3fde0002 3bde000c 48000009 {RETURN} {stub}"
    content = bytes.fromhex(code)
    image = Image("elf", "ppc", [Region(0x1000, content, True)], [], [], frozenset())
    image.byte_order = "big"
    assert _called(image, PowerPc(32, "big"), 24) == [0x1004 + 0x2000C + distance]


def _called(image: Image, processor: PowerPc, size: int) -> list[int | None]:
    listing = Listing(image, processor)
    listing.add_range(0x1000, 0x1000 + size)
    calls = (control for control, kind in enumerate(listing.kinds) if kind == CALL)
    return [processor.called(image, listing, control) for control in calls]


def test_both_entries_are_one_function() -> None:
    """Calls go to the local entry, 8 bytes behind the start that the symbol has."""
    path = shapes.SAMPLES / "ppc64le/gcc-static-O2"
    image = load(path.read_bytes(), str(path))
    starts = {extent.start for extent in image.extents}
    binary = lief.ELF.parse(path)
    assert binary is not None
    local = {symbol.value for symbol in binary.symtab_symbols if symbol.other >> 5 == 3}
    assert local
    assert image.forwards == {start + 8: start for start in local}
    assert starts.isdisjoint(image.forwards)
    stripped = Path(f"{path}-stripped")
    assert {extent.start for extent in load(stripped.read_bytes(), "stripped").extents} == starts


@pytest.mark.parametrize("architecture", ["ppc", "ppc64le"])
def test_stubs_are_no_functions_and_lead_to_names(architecture: str) -> None:
    for compiler in ("gcc", "clang"):
        name = f"{architecture}/{compiler}-shared-O2"
        image = load((shapes.SAMPLES / f"{name}-stripped").read_bytes(), name)
        whole = {function.address for function in shapes.functions(name).values()}
        assert {extent.start for extent in image.extents} == whole
        assert {"out", "ask", "abort"} <= set(image.imports.values())
        assert image.recovered_bytes / image.code_bytes > 0.98


def test_taken_and_not_taken() -> None:
    source = NativeSource(shapes.SAMPLES / "ppc/gcc-shared-O2", with_text=True)
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


def test_tables_behind_functions() -> None:
    # blr; a table of gcc | mr r3, r4; blr; one of glibc, with a length and the name "f"; nop
    code = f"{RETURN} 00000000 03000000 00001280 7c832378 {RETURN}"
    code += f" 00000000 00000000 000c2440 00000014 00660001 {NOP}"
    content = b"".join(bytes.fromhex(word)[::-1] for word in code.split())
    assert traceback_tables(words(content, 4)) == [(1, 4), (6, 11)]
    # clang has a zero behind some jumps, and goes on with instructions: ld r3, 0(r30); nop; blr
    code = f"48000100 00000000 e87e0000 {NOP} {RETURN} 00000000 {NOP} {NOP}"
    content = b"".join(bytes.fromhex(word)[::-1] for word in code.split())
    assert traceback_tables(words(content, 4)) == []
    # Entries of a jump table behind its jump begin with no zero.
    assert traceback_tables(words(b"\x20\x04\x80\x4e\x10\0\0\0\x20\0\0\0" + bytes(8), 4)) == []
