"""MIPS of gcc and clang in both byte orders: delay slots, ``$gp``, jump tables, objects."""

from __future__ import annotations

from pathlib import Path

import lief
import pytest

from graphkin.binaries.backends.native import NativeSource, load
from graphkin.binaries.function import edge_kinds
from graphkin.binaries.image import Image, Region
from graphkin.binaries.processors.mips import Mips
from graphkin.binaries.recovery.listing import Listing
from graphkin.errors import FormatError
from tests.binaries import shapes

NAMES = [*shapes.names("mips"), *shapes.names("mipsel"), *shapes.names("mips64el")]
RETURN = "0800e003"
NOP = "00000000"


@pytest.mark.parametrize("name", NAMES)
def test_tables_have_as_many_targets_as_the_source_has_cases(name: str) -> None:
    shapes.check_tables(name)


@pytest.mark.parametrize("name", NAMES)
def test_calls_that_never_return(name: str) -> None:
    shapes.check_no_return(name)


@pytest.mark.parametrize("name", [name for name in NAMES if name.endswith("O2")])
def test_objects_and_stripped_files(name: str) -> None:
    shapes.check_stripped(name)
    if name.startswith("mips64el"):
        with pytest.raises(
            FormatError, match="is an object of MIPS64; graphkin reads it once it is"
        ):
            load((shapes.SAMPLES / f"{name}.o").read_bytes(), name)
    else:
        shapes.check_object(name)


def test_both_byte_orders_have_the_same_control_flow() -> None:
    for name in ("gcc-shared-O2", "clang-static-O1"):
        little, big = shapes.functions(f"mipsel/{name}"), shapes.functions(f"mips/{name}")
        assert {value.architecture for value in big.values()} == {"mips"}
        assert {value.architecture for value in little.values()} == {"mipsel"}
        for function in ("dense", "twice", "loops", "checked"):
            assert shapes.shape(little[function]) == shapes.shape(big[function])
            mnemonics = [block.mnemonics for block in big[function].blocks]
            assert [block.mnemonics for block in little[function].blocks] == mnemonics


@pytest.mark.parametrize(
    ("stop", "names"),
    [
        (f"{RETURN} 01000224", ("jr", "addiu")),
        ("0d000000", ("break",)),
        ("34000000", ("teq",)),
        ("18000042", ("eret",)),
        (f"08000003 {NOP}", ("jr", "nop")),  # through $t8, which nothing is known of
        (f"00100008 {NOP}", ("j", "nop")),  # out of the function
    ],
)
def test_what_ends_a_path(stop: str, names: tuple[str, ...]) -> None:
    blocks, edges = shapes.recover(Mips(32, "little"), f"{stop} 01000324 {RETURN} {NOP}")
    assert [block.mnemonics for block in blocks] == [names]
    assert edges == ()


@pytest.mark.parametrize(
    ("branch", "name"),
    [
        ("03004010", "beqz"),
        ("03004314", "bne"),
        ("03004018", "blez"),
        ("0300401c", "bgtz"),
        ("03004004", "bltz"),
        ("03004104", "bgez"),
        ("03000145", "bc1t"),
        ("03004350", "beql"),
    ],
)
def test_a_delay_slot_belongs_to_the_block_of_its_branch(branch: str, name: str) -> None:
    # branch +16; (slot) addiu $v1, $zero, 1; addiu $v0, $v0, 1; nop; jr $ra; nop
    code = f"{branch} 01000324 01004224 {NOP} {RETURN} {NOP}"
    blocks, edges = shapes.recover(Mips(32, "little"), code)
    assert [block.mnemonics for block in blocks] == [
        (name, "addiu"),
        ("addiu", "nop"),
        ("jr", "nop"),
    ]
    assert edges == ((0, 1), (0, 2), (1, 2))


def test_a_jump_into_a_delay_slot_does_not_take_its_branch() -> None:
    # 0x1000 beqz $v0, 0x1014; nop; 0x1008 b 0x101c; 0x100c (slot) addiu; 0x1010 break
    # 0x1014 b 0x100c; nop; 0x101c jr $ra; nop
    code = f"04004010 {NOP} 04000010 01000324 0d000000 fdff0010 {NOP} {RETURN} {NOP}"
    blocks, edges = shapes.recover(Mips(32, "little"), code)
    starts = [block.address for block in blocks]
    named = {(starts[source], starts[target]) for source, target in edges}
    assert (0x1014, 0x100C) in named
    # The slot alone runs on into the break behind it, which the branch ahead jumps over.
    assert (0x100C, 0x1010) in named
    assert (0x1008, 0x101C) in named
    assert (0x100C, 0x101C) not in named


def test_a_branch_that_always_jumps_has_one_successor() -> None:
    # beq $zero, $zero, +8; nop; (dead) nop; jr $ra; nop
    blocks, edges = shapes.recover(Mips(32, "little"), f"02000010 {NOP} {NOP} {RETURN} {NOP}")
    assert [block.mnemonics for block in blocks] == [("b", "nop"), ("jr", "nop")]
    assert edges == ((0, 1),)


def test_what_a_call_goes_to() -> None:
    """The slot of a global function, the address of a local one, and of a direct call."""
    # lw $t9, -32744($gp); jalr $t9; nop; lw $t9, -32748($gp); addiu $t9, $t9, 8; jalr $t9; nop
    # bal 0x1000; nop; move $t9, $a0; jalr $t9; nop
    code = bytes.fromhex(
        f"1880998f 09f82003 {NOP} 1480998f 08003927 09f82003 {NOP} f8ff1104 {NOP}"
        f"25c88000 09f82003 {NOP}"
    )
    table = bytes(4) + (0x2000).to_bytes(4, "little") + bytes(4)
    regions = [Region(0x1000, code, True), Region(0x9000, table, False)]
    gp = 0x9000 + 0x7FF0
    image = Image("elf", "mipsel", regions, [], [], frozenset([gp - 32744, 0x2008]), got=gp)
    processor = Mips(32, "little")
    listing = Listing(image, processor)
    listing.add_range(0x1000, 0x1000 + len(code))
    calls = range(len(listing.controls))
    called = [processor.called(image, listing, control) for control in calls]
    assert called == [gp - 32744, 0x2008, 0x1000, None]
    # Through registers, nothing else can be one that never returns.
    image.noreturn = frozenset([0x3000])
    other = Mips(32, "little")
    called = [other.called(image, listing, control) for control in calls]
    assert called == [None, None, 0x1000, None]


def test_taken_and_not_taken() -> None:
    """The target of a branch is in the instruction ahead of the last."""
    source = NativeSource(shapes.SAMPLES / "mipsel/gcc-shared-O2", with_text=True)
    loops = next(function for function in source.functions() if function.name == "loops")
    kinds = dict(zip(loops.edges, edge_kinds(loops), strict=True))
    branches = 0
    for number, block in enumerate(loops.blocks):
        assert block.instructions is not None
        named = block.instructions[-2].rpartition(" ")[2] if len(block.instructions) > 1 else ""
        for target in (target for start, target in loops.edges if start == number):
            if kinds[number, target] == "taken":
                branches += 1
                assert int(named, 16) == loops.blocks[target].address
    assert branches >= 4


@pytest.mark.parametrize("other", [0xF0, 0x80])
def test_compressed_functions_are_left_out(other: int, tmp_path: Path) -> None:
    name = "mipsel/gcc-shared-O2"
    data = bytearray((shapes.SAMPLES / name).read_bytes())
    _set_other(data, name, {"dense"}, other)
    (tmp_path / "mixed.so").write_bytes(data)
    source = NativeSource(tmp_path / "mixed.so")
    assert {function.name for function in source.functions()} == shapes.functions(name).keys() - {
        "dense"
    }
    assert [skip.reason for skip in source.skipped] == [
        "1 functions are MIPS16 or microMIPS code, which graphkin does not read"
    ]
    _set_other(data, name, shapes.functions(name).keys(), other)
    with pytest.raises(
        FormatError, match=r"no function that graphkin reads: \d+ functions are MIPS"
    ):
        load(bytes(data), "all.so")


@pytest.mark.parametrize(
    ("flags", "reason"),
    [(0x90001007, "code for MIPS release 6"), (0x70001027, "MIPS code of the ABI n32")],
)
def test_what_is_refused(flags: int, reason: str) -> None:
    data = bytearray((shapes.SAMPLES / "mipsel/gcc-shared-O2").read_bytes())
    data[36:40] = flags.to_bytes(4, "little")
    with pytest.raises(FormatError, match=reason):
        load(bytes(data), "refused.so")


def _set_other(data: bytearray, name: str, functions: set[str], other: int) -> None:
    """Writes ``st_other`` of symbols, in both tables."""
    binary = lief.ELF.parse(str(shapes.SAMPLES / name))
    assert binary is not None
    for section, symbols in (
        (".symtab", binary.symtab_symbols),
        (".dynsym", binary.dynamic_symbols),
    ):
        start = binary.get_section(section).file_offset
        for number, symbol in enumerate(symbols):
            if symbol.name in functions:
                data[start + 16 * number + 13] = other
