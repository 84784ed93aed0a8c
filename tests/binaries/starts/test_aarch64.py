"""What AArch64 code tells of function starts: switches, veneers, and the address of return."""

from __future__ import annotations

from graphkin.binaries.image import Image, Region
from graphkin.binaries.processors.aarch64 import AArch64
from graphkin.binaries.recovery.flow import Flow
from graphkin.binaries.recovery.listing import Listing
from graphkin.binaries.recovery.ranges import Symbol
from graphkin.binaries.starts.clues import Clues
from graphkin.binaries.starts.locate import locate

VENEER = "21008052 05000014 c0035fd6 1f2003d5 00040014 1f2003d5 010000b9 fbffff17"
"""mov w1, #1; b 1018 | 1008: ret; nop | b 2010; nop | 1018: str w1, [x0]; b 1008"""


def located(code: str, clues: Clues | None = None) -> Image:
    region = Region(0x1000, bytes.fromhex(code), True)
    image = Image("elf", "aarch64", [region], [], [], frozenset())
    return locate(image, clues or Clues([], False))


def starts(code: str, clues: Clues | None = None) -> list[int]:
    return [extent.start for extent in located(code, clues).extents]


def test_what_a_switch_counts_from_starts_no_function() -> None:
    # ldrb w2, [x2, w1, uxtw]; adr x1, 1010; add x2, x1, w2, sxtb #2; br x2
    # 1010: mov w0, #1; ret
    code = "42486138 61000010 2288228b 40001fd6 20008052 c0035fd6"
    assert starts(code) == [0x1000]
    # The same without adr: a jump through a pointer.
    assert starts(code.replace("61000010", "1f2003d5")) == [0x1000, 0x1010]


def test_a_call_behind_which_the_address_of_return_is_saved_does_not_come_back() -> None:
    # stp x29, x30, [sp, #-16]!; bl fc4 | stp x29, x30, [sp, #-16]!; ldp x29, x30, [sp], #16; ret
    code = "fd7bbfa9 f0ffff97 {} fd7bc1a8 c0035fd6"
    assert starts(code.format("fd7bbfa9")) == [0x1000, 0x1008]
    assert starts(code.format("3f2303d5")) == [0x1000, 0x1008]  # paciasp
    assert starts(code.format("e00300aa")) == [0x1000]


def test_a_function_that_begins_with_nothing() -> None:
    # ret | nop; mov w0, #1; ret, as crti.o has it for _fini
    code = "c0035fd6 1f2003d5 20008052 c0035fd6"
    assert starts(code, Clues([], False, entries=[0x1004])) == [0x1000, 0x1004]
    # Padding ends at a multiple of 8 bytes: what is behind it, at 100c, is a part of the function.
    assert starts("c0035fd6 1f2003d5 1f2003d5 20008052 c0035fd6") == [0x1000, 0x1008]


def test_a_veneer_belongs_to_the_function_that_it_was_taken_from() -> None:
    symbols = [Symbol(0x1000, 12, "stores")]
    for clues in (Clues([], False), Clues(symbols, True)):
        image = located(VENEER, clues)
        assert [extent.start for extent in image.extents] == [0x1000]
        assert image.fragments == [(0x1018, 0x1020)]
        listing = Listing(image, AArch64())
        listing.add_range(0x1000, 0x100C)
        blocks, edges = Flow(image, listing, AArch64(), lambda: None).recover()
        assert [block.address for block in blocks] == [0x1000, 0x1008, 0x1018]
        assert set(edges) == {(0, 2), (2, 1)}


def test_a_veneer_that_is_not_used_is_no_function_and_joins_none() -> None:
    # The instruction was left in its place: mov w1, #1; str w1, [x0]; ret
    assert starts(VENEER.replace("05000014", "010000b9")) == [0x1000]
