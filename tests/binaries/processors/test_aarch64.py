"""AArch64 of gcc and clang: jump tables of bytes, halves and words, stubs, objects, stripped."""

from __future__ import annotations

from pathlib import Path

import lief
import pytest

from graphkin.binaries.backends.native import NativeSource
from graphkin.binaries.image import Image, Region
from graphkin.binaries.processors.aarch64 import AArch64
from graphkin.binaries.recovery.listing import Listing
from tests.binaries import shapes

NAMES = shapes.names("aarch64")


@pytest.mark.parametrize("name", NAMES)
def test_tables_have_as_many_targets_as_the_source_has_cases(name: str) -> None:
    functions = shapes.functions(name)
    expected = {"dense": [12], "wide": [60], "machine": [11]}
    if "clang" in name:  # gcc compares one by one below 11 cases
        expected |= {"shifted": [10], "holes": [10], "twice": [7, 9], "masked": [8], "longest": [9]}
    assert {key: shapes.widths(functions[key]) for key in expected} == expected


def switch_targets(code: str, jump: int, data: bytes = b"", noreturn: int = 0) -> list[int] | None:
    """Where the jump at an address leads to; the code lies at 0x1000, the data at 0x2000."""
    raw = bytes.fromhex(code)
    regions = [Region(0x1000, raw, True), Region(0x2000, data, False)]
    image = Image("elf", "aarch64", regions, [], [], frozenset([noreturn]))
    processor = AArch64()
    listing = Listing(image, processor)
    listing.add_range(0x1000, 0x1000 + len(raw))
    return processor.tables(image)(listing, listing.addresses.index(jump), False)


def test_the_address_of_a_table_that_was_kept_on_the_stack() -> None:
    """Other addresses were in the same register since, and may look like tables."""
    # adrp x0, 0x2000; add x0, x0, #0x100; str x0, [sp, #8]; adrp x0, 0x2000; add x0, x0, #0x200
    # cmp w1, #2; b.hi 0x1040; ldr x0, [sp, #8]; ldrb w0, [x0, w1, uxtw]; adr x2, 0x1030
    # add x0, x2, w0, sxtb #2; br x0; then three times mov w0, N; ret
    code = (
        "000000b0 00000491 e00700f9 000000b0 00000891 3f080071 48010054 e00740f9 00486138"
        "62000010 4088208b 00001fd6 20008052 c0035fd6 40008052 c0035fd6 60008052 c0035fd6"
    )
    data = bytearray(0x300)
    data[0x100:0x103] = 0, 2, 4
    assert switch_targets(code, 0x102C, bytes(data)) == [0x1030, 0x1038, 0x1040]


LOAD_AND_JUMP = (
    "81010010 1f2003d5 20486238 62000010 4088208b 00001fd6"
    "20008052 c0035fd6 40008052 c0035fd6 60008052 c0035fd6 00020400"
)
"""adr x1, T; nop; ldrb w0, [x1, w2, uxtw]; adr x2, C; add x0, x2, w0, sxtb #2; br x0
C: three times mov w0, N; ret. T: .byte 0, 2, 4"""


def test_a_sum_that_carries_bounds_a_table() -> None:
    # adds w2, w0, #3; b.hs 0x100c; ret
    code = f"020c0031 42000054 c0035fd6 {LOAD_AND_JUMP}"
    assert switch_targets(code, 0x1020) == [0x1024, 0x102C, 0x1034]


def test_the_index_is_a_copy_of_what_was_compared() -> None:
    """And the comparison lies ahead of a call that never comes back."""
    # mov w2, w0; cmp w0, #2; b.ls 0x1010; bl 0xc
    code = f"e203002a 1f080071 49000054 00fcff97 {LOAD_AND_JUMP}"
    assert switch_targets(code, 0x1024, noreturn=0xC) == [0x1028, 0x1030, 0x1038]


@pytest.mark.parametrize("name", NAMES)
def test_calls_that_never_return(name: str) -> None:
    shapes.check_no_return(name)


@pytest.mark.parametrize("name", [name for name in NAMES if name.endswith("O2")])
def test_objects_and_stripped_files(name: str) -> None:
    shapes.check_object(name)
    shapes.check_stripped(name)


@pytest.mark.parametrize(
    ("stop", "name"),
    [
        ("200020d4", "brk"),
        ("000040d4", "hlt"),
        ("00000000", "udf"),
        ("c0035fd6", "ret"),
        ("ff0b5fd6", "ret"),
        ("e0039fd6", "eret"),
    ],
)
def test_what_ends_a_path(stop: str, name: str) -> None:
    blocks, edges = shapes.recover(AArch64(), f"{stop} 1f2003d5 c0035fd6")
    assert [block.mnemonics for block in blocks] == [(name,)]
    assert edges == ()


def test_branches_of_every_kind() -> None:
    # cbz w0, +20; tbnz w1, #3, +16; b.eq +12; b +8; (dead) nop; ret
    code = "a0000034 81001837 60000054 02000014 1f2003d5 c0035fd6"
    blocks, edges = shapes.recover(AArch64(), code)
    assert [block.mnemonics[0] for block in blocks] == ["cbz", "tbnz", "b.eq", "b", "ret"]
    assert edges == ((0, 1), (0, 4), (1, 2), (1, 4), (2, 3), (2, 4), (3, 4))


def test_an_unknown_word_does_not_end_a_function() -> None:
    # a word that is no instruction, between two that are
    blocks, _ = shapes.recover(AArch64(), "00008052 ffffffff c0035fd6")
    assert [block.mnemonics for block in blocks] == [("mov", ".byte", "ret")]


@pytest.mark.parametrize(("select", "count"), [("080c0153", 8), ("087c1e53", 4)])
def test_bits_that_select_an_entry(select: str, count: int) -> None:
    """``ubfx w8, w0, #1, #3`` or ``lsr w8, w0, #30`` says how long the table is."""
    # adr x9, table; ...; adr x10, cases; ldrb w11, [x9, x8]; add x10, x10, x11, lsl #2; br x10
    code = f"c9010010 {select} 8a000010 2b696838 4a090b8b 40011fd6"
    cases, table = "c0035fd6" * 8, bytes(range(8)).hex()
    blocks, edges = shapes.recover(AArch64(), code + cases + table)
    assert edges == tuple((0, number + 1) for number in range(count))
    assert [block.address for block in blocks[1:]] == [0x1018 + 4 * n for n in range(count)]


def test_marks_of_debug_sections_say_nothing_of_code(tmp_path: Path) -> None:
    name = "aarch64/clang-shared-O2"
    binary = lief.ELF.parse(str(shapes.SAMPLES / name))
    assert binary is not None
    expected = shapes.functions(name)
    mark = lief.ELF.Symbol()
    mark.name, mark.value = "$d.1", expected["dense"].address
    mark.type, mark.binding = lief.ELF.Symbol.TYPE.NOTYPE, lief.ELF.Symbol.BINDING.LOCAL
    # A section that is not loaded, as .debug_line; what counts from its start is no address.
    mark.shndx = [section.name for section in binary.sections].index(".symtab")
    binary.add_symtab_symbol(mark)
    binary.write(str(tmp_path / "marked.so"))
    source = NativeSource(tmp_path / "marked.so")
    functions = {function.name: function.edges for function in source.functions()}
    assert functions == {key: function.edges for key, function in expected.items()}
    assert source.skipped == []
